"""A process that not even SIGKILL ends holds up nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import hung_files
from tests.faults.hosts import Host

STUCK = """\
import time
from pathlib import Path
from tests.faults.hung_files import Hung
from tests.faults.processes import Watched, parent_of, state_of

hung = Hung(Path(sys.argv[1]))

async def main():
    stuck = "open(%r)" % (sys.argv[1] + "/file")
    script = f"print('ready', flush=True); input(); {stuck}"
    if sys.argv[2] == "child":
        script = f"import os; print('ready', flush=True); input()\\nif os.fork() == 0: {stuck}\\ninput()"
    server = StdioServer(sys.executable, ["-I", "-S", "-c", script])
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.1, 0.1, 0.3))
    await process.receive()
    supervisor = Watched(parent_of(process.pid))
    await process.send(b"")
    await anyio.to_thread.run_sync(hung.asked)
    begun = time.monotonic()
    report = await process.close()
    say(took=time.monotonic() - begun, unkillable=report.unkillable, returncode=report.returncode,
        cause=report.cause, text=str(report), ended_by=report.ended_by)
    # Others go on as ever.
    async with await ServerProcess.launch(StdioServer("cat"), stderr=None) as other:
        await other.send(b"fine")
        say(other=(await other.receive()).decode())
    hung.close()
    say(supervisor_gone=supervisor.gone(30))
    # The executor takes the supervisor's exit status: no zombie stays.
    while await anyio.to_thread.run_sync(lambda: any(Path("/proc/self/task").glob("*/children")) and children()):
        await anyio.lowlevel.checkpoint()
    say(children=children())

def children():
    return [child for one in Path("/proc/self/task").glob("*/children") for child in one.read_text().split()]

anyio.run(main)
"""


@pytest.mark.parametrize("who", ["server", "child"])
def test_a_close_returns_by_its_deadline_although_the_kernel_ends_nothing(tmp_path: Path, who: str) -> None:
    # fault 14: a hanging file system
    why = hung_files.missing()
    if why is not None:
        pytest.skip(why)
    with Host(STUCK, tmp_path, who, under=hung_files.UNDER) as host:
        closed = host.heard()
        # The graces are 0.5 s in all, and a quarter of a second for the rest of stderr.
        assert closed["took"] < 5
        assert closed["unkillable"] == 1
        if who == "server":
            assert closed["returncode"] is None
            assert "still there" in closed["cause"]
        else:
            assert closed["returncode"] is not None
        assert "could not be killed" in closed["text"]
        assert host.heard() == {"other": "fine"}
        # What was given up is still seen to its end.
        assert host.heard() == {"supervisor_gone": True}
        assert host.heard() == {"children": []}
        assert host.ended() == (0, "")


NEW_PIDS = """\
import ctypes, subprocess

def started_as(pid):
    # The kernel numbers on from here; the namespace is the test's own.
    for _ in range(100):
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        if stranger.pid == pid:
            return stranger
        end(stranger)
    return None

def end(stranger):
    stranger.kill()
    stranger.communicate()

def answers(stranger):
    # A signal that is on its way arrives before this does.
    stranger.stdin.write(b"?")
    return stranger.stdout.read(1) == b"?"

async def main():
    server = StdioServer("sh", ["-c", "sleep 1000 >&- 2>&- & echo $$ $PPID $!; read go; exit 3"])
    process = await ServerProcess.launch(server, stderr=None)
    pids = [int(pid) for pid in (await process.receive()).split()]
    assert pids[0] == process.pid
    await process.send(b"go")
    await process.wait()
    strangers = [started_as(pid) for pid in pids]
    if None in strangers:
        say(skip=True)
        return
    process.kill()
    process.end()
    await process.close()
    process.kill()
    session = process._session
    del process, session
    say(skip=False, untouched=[answers(stranger) for stranger in strangers])
    for stranger in strangers:
        end(stranger)

anyio.run(main)
"""


def test_a_stranger_with_a_reused_pid_is_never_signalled() -> None:
    # fault 13
    under = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")
    why = cannot(under)
    if why is not None:
        pytest.skip(why)
    with Host(NEW_PIDS, under=under) as host:
        facts = host.heard()
        assert host.ended() == (0, "")
    if facts["skip"]:
        pytest.skip("this kernel doesn't let a namespace's owner choose the next pid")
    # The server's, the supervisor's and the descendant's number.
    assert facts["untouched"] == [True, True, True]


def cannot(under: tuple[str, ...]) -> str | None:
    import shutil
    import subprocess

    if shutil.which(under[0]) is None:
        return "unshare (util-linux) is not installed"
    tried = subprocess.run([*under, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"this machine allows no such namespaces: {tried.stderr.strip()}"
