"""os.fork() in the host, at any moment, holds up no server and shares none."""

from __future__ import annotations

import pytest

from tests.faults.hosts import Host

WHILE_LAUNCHING = """\
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # that fork and threads don't mix: that is the point
ours = set(os.listdir("/proc/self/fd"))
stay, go = os.pipe()
stop = threading.Event()
children = []

def extra(writer):
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
        except OSError:
            continue
        mine = {stay, go, writer, *(reader for _, reader in children)}
        if name not in ours and int(name) not in mine and ("pipe:" in target or "socket:" in target):
            found.append(target)
    return found

def fork():
    while not stop.is_set() and len(children) < 150:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            # Lives as long as the servers do, and says what it has inherited.
            os.close(reader); os.close(go)
            os.write(writer, json.dumps(extra(writer)).encode())
            os.close(writer)
            os.read(stay, 1)
            os._exit(0)
        os.close(writer)
        children.append((pid, reader))

async def main():
    forker = threading.Thread(target=fork)
    closed = []
    async def one():
        for _ in range(15):
            process = await ServerProcess.launch(StdioServer("cat"), stderr=None, shutdown=Shutdown(60, 60, 60))
            await process.send(b"x")
            assert await process.receive() == b"x"
            closed.append((await process.close()).ended_by)
    forker.start()
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    stop.set()
    forker.join()
    say(closed=closed, forks=len(children))

anyio.run(main)
os.close(go)
inherited = []
for pid, reader in children:
    with os.fdopen(reader, "rb") as stream:
        inherited.append(json.loads(stream.read()))
    os.waitpid(pid, 0)
say(inherited=inherited)
"""


def test_forks_during_launches_neither_deadlock_nor_hold_a_pipe_open() -> None:
    # fault 11
    with Host(WHILE_LAUNCHING) as host:
        facts = host.heard()
        # A forked child that held a server's stdin would have kept it from its end for a minute.
        assert facts["closed"] == ["close"] * 60
        assert facts["forks"] > 3
        inherited = host.heard()["inherited"]
        assert host.ended()[0] == 0
    # The event loop wakes itself by a pair of sockets: that is Python's own, and the same in every child.
    assert {target for one in inherited for target in one if "pipe:" in target} == set()
    assert len({target for one in inherited for target in one}) <= 2


IN_THE_CHILD = """\
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
from stockade import StockadeError

async def main():
    process = await ServerProcess.launch(StdioServer("cat"), stderr=None)
    await process.send(b"one")
    assert await process.receive() == b"one"
    pid = os.fork()
    if pid == 0:
        codes = []
        session = process._session
        for use in (
            lambda: session.receive(), lambda: session.send(b"x"), lambda: session.returncode,
            lambda: session.report(), lambda: session.stderr_tail(1), lambda: session.watch_stdout(),
            lambda: session.bytes_received,
        ):
            try:
                use()
                codes.append("no error")
            except StockadeError as error:
                codes.append(error.code)
        session.close(0, 0, 0, False)
        session.kill()
        say(codes=codes)
        del session, process
        os._exit(0)
    os.waitpid(pid, 0)
    await process.send(b"two")
    say(echo=(await process.receive()).decode(), ended_by=(await process.close()).ended_by)

anyio.run(main)
"""


def test_a_forked_child_is_refused_and_never_touches_the_parents_server() -> None:
    # fault 11
    with Host(IN_THE_CHILD) as host:
        assert set(host.heard()["codes"]) == {"forked"}
        assert host.heard() == {"echo": "two", "ended_by": "close"}
        assert host.ended() == (0, "")


EXITS = """\
import gc, warnings
warnings.simplefilter("ignore", DeprecationWarning)

async def own():
    async with await ServerProcess.launch(StdioServer("sh", ["-c", "exit 7"]), stderr=None) as process:
        say(own=(await process.wait()).returncode)

async def main():
    process = await ServerProcess.launch(StdioServer("cat"), stderr=None)
    pid = os.fork()
    if pid == 0:
        if sys.argv[1] == "exit":
            say(own=7)
            sys.exit(0)
        del process
        gc.collect()
        thread = threading.Thread(target=anyio.run, args=[own])
        thread.start()
        thread.join()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    await process.send(b"two")
    say(echo=(await process.receive()).decode(), ended_by=(await process.close()).ended_by)

anyio.run(main)
"""


@pytest.mark.parametrize("way", ["exit", "own"])
def test_a_forked_child_may_exit_or_start_servers_of_its_own(way: str) -> None:
    # fault 11
    with Host(EXITS, way) as host:
        assert host.heard() == {"own": 7}
        assert host.heard() == {"echo": "two", "ended_by": "close"}
        assert host.ended()[0] == 0
