"""A server gets its three descriptors and nothing else; nobody gets a server's."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess
from tests.faults import storm
from tests.faults.hosts import Host
from tests.faults.processes import parent_of
from tests.servers import script

LISTS = """\
import json, os
found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        found[name] = os.readlink("/proc/self/fd/" + name)
    except OSError:  # the listing's own
        pass
print(json.dumps(found), flush=True)
input()
"""


@pytest.fixture
def many_open() -> list[int]:
    fds = []
    try:
        for _ in range(500):
            fd = os.dup(0) if len(fds) % 2 else os.open("/dev/null", os.O_RDWR)
            os.set_inheritable(fd, True)
            fds.append(fd)
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


async def test_a_server_sees_exactly_three_descriptors(many_open: list[int]) -> None:
    # fault 16
    async with await ServerProcess.launch(script(LISTS), stderr=None) as process:
        with anyio.fail_after(30):
            found = json.loads(await process.receive())
            assert set(found) == {"0", "1", "2"}
            assert len(set(found.values())) == 3
            assert all(target.startswith("pipe:") for target in found.values())


async def test_the_supervisor_holds_nothing_of_the_hosts(many_open: list[int]) -> None:
    # fault 16
    async with await ServerProcess.launch(script(LISTS), stderr=None) as process:
        with anyio.fail_after(30):
            pipes = set(json.loads(await process.receive()).values())
            held = {os.readlink(fd) for fd in Path(f"/proc/{parent_of(process.pid)}/fd").iterdir()}  # noqa: PTH115
            # Its socket, the host's pidfd, its signals.
            assert len(held) <= 3
            assert not held & pipes
            assert not any(target.startswith(("pipe:", "/")) for target in held)


SIGNALS = """\
from pathlib import Path
status = Path("/proc/self/status").read_text()
print(*[line.split()[1] for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn"))], flush=True)
input()
"""

SIGNALS_HOST = """\
async def main():
    for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD, signal.SIGRTMIN + 3):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2, signal.SIGRTMAX])
    server = StdioServer("sh", ["-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status; cat"])
    async with await ServerProcess.launch(server, stderr=None) as process:
        say(signals=[(await process.receive()).decode().split()[1] for _ in range(2)])

anyio.run(main)
"""


def test_a_server_starts_with_no_signal_blocked_or_ignored() -> None:
    # fault 16
    with Host(SIGNALS_HOST) as host:
        assert [int(mask, 16) for mask in host.heard()["signals"]] == [0, 0]
        assert host.ended() == (0, "")


def test_launches_in_many_threads_cross_no_pipes() -> None:
    # fault 17; a thousand in each of eight threads: tests/soak
    assert storm.from_many_threads(8, 15) == ["close"] * 120


WITHOUT_STDIO = """\
report = os.dup(1)

def say(**facts):
    os.write(report, json.dumps(facts).encode() + b"\\n")

LISTS = sys.argv[1]

kept = [os.dup(fd) for fd in range(3)]

def taken():
    return [fd for fd in range(3) if os.path.lexists(f"/proc/self/fd/{fd}")]

async def main(missing):
    server = StdioServer(sys.executable, ["-I", "-S", "-c", LISTS])
    # Within the running loop, whose own descriptors would fill the gaps.
    for fd in missing:
        os.close(fd)
    try:
        async with await ServerProcess.launch(server, stderr=None) as process:
            with anyio.fail_after(30):
                found = json.loads(await process.receive())
                free = set(missing).isdisjoint(taken())
                await process.send(b"end")
                ended = await process.wait()
                say(missing=missing, found=sorted(found), kinds=[one.split(":")[0] for one in found.values()],
                    returncode=ended.returncode, stderr=ended.stderr_tail, free=free)
    finally:
        for fd in missing:
            os.dup2(kept[fd], fd)

if os.environ.get("WARM"):
    anyio.run(main, [])
for missing in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
    anyio.run(main, missing)
"""


@pytest.mark.parametrize("warm", ["", "1"], ids=["first-launch", "later"])
def test_a_host_without_its_own_stdio_launches_as_ever(warm: str) -> None:
    # fault 19
    source = LISTS.replace("input()", "import sys; input(); print('end', file=sys.stderr); sys.exit(9)")
    with Host(WITHOUT_STDIO, source, env={"WARM": warm}) as host:
        status, stderr = host.process.wait(60), host.process.stderr
        assert stderr is not None
        assert status == 0, stderr.read().decode()
        for missing in [*([[]] if warm else []), [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]:
            assert host.heard() == {
                "missing": missing,
                "found": ["0", "1", "2"],
                "kinds": ["pipe"] * 3,
                "returncode": 9,
                "stderr": "end",
                "free": True,  # nothing of ours is where the host's own belongs
            }


async def test_the_parents_and_childs_signals_stay_apart() -> None:
    # fault 16: the server leads a session of its own
    async with await ServerProcess.launch(script(LISTS), stderr=None) as process:
        with anyio.fail_after(30):
            await process.receive()
            assert os.getsid(process.pid) == process.pid
            assert os.getpgid(process.pid) == process.pid
            os.kill(os.getpid(), signal.SIGWINCH)
            await process.send(b"")
            assert (await process.wait()).returncode == 0
