"""In a forked child the parent's servers are out of reach, say so at once, and the child can have its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.hosts import Host

if TYPE_CHECKING:
    from pathlib import Path

LOOPS = ["asyncio", "uvloop", "trio"]

BEGIN = """\
import asyncio, gc, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # that fork and threads don't mix: that is the point
from stockade import StdioTransport, StockadeError, stdio_client

CAT = StdioServer("cat")
LOOP = dict(
    asyncio={"backend": "asyncio"},
    uvloop={"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    trio={"backend": "trio"},
)[sys.argv[1]]

"""

LEAVES = (
    BEGIN
    + """\
async def main():
    if sys.argv[2] == "process":
        entered = await ServerProcess.launch(CAT, stderr=None)
    else:
        entered = (StdioTransport if sys.argv[2] == "transport" else stdio_client)(CAT)
    async with entered:
        process = entered if sys.argv[2] == "process" else entered.process
        # Somebody waits in it, so the loop watches what the child doesn't have.
        waiting = asyncio.ensure_future(process.receive())
        await anyio.wait_all_tasks_blocked()
        pid = os.fork()
        if pid == 0:
            sys.exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        await process.send(b"fine")
        say(status=status, echo=(await waiting).decode())

anyio.run(main, **LOOP)
"""
)


# Not on trio: a child that leaves trio's run unregisters the parent's wake-up from the poll that both share.
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("kind", ["process", "transport", "stdio_client"])
def test_a_forked_child_leaves_the_block_with_its_own_exit_status(loop: str, kind: str) -> None:
    with Host(LEAVES, loop, kind) as host:
        assert host.heard() == {"status": 7, "echo": "fine"}
        status, stderr = host.ended()
    assert status == 0
    assert "forked this one" not in stderr
    assert "stockade" not in stderr


SAYS = (
    BEGIN
    + """\
def first_step(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return repr(stop.value)
    except StockadeError as error:
        return error.code
    except BaseException as error:
        return repr(error)
    finally:
        coroutine.close()
    return "waits"

async def main():
    async with StdioTransport(CAT) as (reader, writer):
        process = transport = None
        process = reader._process
        pid = os.fork()
        if pid == 0:
            uses = dict(
                receive=process.receive(), send=process.send(b"x"), wait=process.wait(), close=process.close(),
                exit=process.__aexit__(None, None, None), read=reader.receive(), end=reader.aclose(),
                write=writer.send(MESSAGE), finish=writer.aclose(),
            )
            said = {name: first_step(use) for name, use in uses.items()}
            try:
                process.begin_close()
            except StockadeError as error:
                said["begin_close"] = error.code
            process.interrupt()
            say(**said)
            del process, reader, writer
            gc.collect()
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        await process.send(b"fine")
        say(status=status, echo=(await process.receive()).decode())

from stockade._sdk import sdk
MESSAGE = sdk().wrap(sdk().parse(b'{"jsonrpc": "2.0", "method": "notifications/x"}'))
anyio.run(main, **LOOP)
"""
)


@pytest.mark.parametrize("loop", LOOPS)
def test_every_use_of_a_copy_in_a_forked_child_says_that_it_is_one(loop: str) -> None:
    with Host(SAYS, loop) as host:
        said = host.heard()
        assert "forked this one" in said.pop("read")  # the stream brings the error as an item
        assert {said.pop(name) for name in ("exit", "end", "finish")} == {"None"}
        # A stream lets out its own errors alone.
        assert said.pop("write").startswith("BrokenResourceError")
        assert said == dict.fromkeys(["receive", "send", "wait", "close", "begin_close"], "forked")
        assert host.heard() == {"status": 0, "echo": "fine"}
        assert host.ended() == (0, "")


OWN = (
    BEGIN
    + """\
SLOW = "import sys; print('up', flush=True); sys.stdin.read(); open(sys.argv[1], 'w').write('in order')"

async def launch(path):
    process = await ServerProcess.launch(StdioServer(sys.executable, ["-I", "-S", "-c", SLOW, path]), stderr=None)
    assert await process.receive() == b"up"
    return process

kept = anyio.run(launch, sys.argv[2], **LOOP)
pid = os.fork()
kept_too = anyio.run(launch, sys.argv[3 if pid == 0 else 4], **LOOP)
if pid == 0:
    sys.exit(0)
say(child=os.waitpid(pid, 0)[1])
"""
)


@pytest.mark.parametrize("loop", LOOPS)
def test_servers_of_a_forked_child_are_ended_in_order_at_its_exit(loop: str, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("before", "child", "parent")]
    with Host(OWN, loop, *paths) as host:
        assert host.heard() == {"child": 0}
        assert host.ended() == (0, "")
    assert [path.read_text() for path in paths] == ["in order"] * 3


SAME_LOOP = (
    BEGIN
    + """\
# One that is left to be watched: by a token, by its stdout, by both or by nothing.
async def use(leave):
    process = await ServerProcess.launch(CAT, stderr=None)
    await process.send(b"x")
    assert await process.receive() == b"x"
    if leave:
        tasks.append(asyncio.ensure_future(process.receive()))
        tasks.append(asyncio.ensure_future(process.wait()))
        await asyncio.sleep(0)
    return process

tasks = []
loop = asyncio.new_event_loop()
kept = [loop.run_until_complete(use(sys.argv[2] == "watched")) for _ in range(2)]
before = list(tasks)
pid = os.fork()
if pid == 0:
    # The child goes on with the loop; that it is a copy of the parent's, with its watches, is the point.
    own = loop.run_until_complete(use(False))
    say(ended_by=loop.run_until_complete(own.close()).ended_by)
    os._exit(0)
say(status=os.waitpid(pid, 0)[1])
# The parent's loop still sees what it watched.
async def end():
    for process in kept:
        if not before:
            await process.send(b"y")
            assert await process.receive() == b"y"
        process.kill()
    await asyncio.wait(before) if before else None
    await asyncio.gather(*before, return_exceptions=True)
    for process in kept:
        await process.close()
loop.run_until_complete(end())
loop.close()
say(over=True)
"""
)


@pytest.mark.parametrize("left", ["watched", "nothing"])
def test_a_forked_child_may_go_on_with_a_loop_that_was_not_running(left: str) -> None:
    # asyncio's own alone: uvloop's doesn't survive a fork, and a trio run can't be left and taken up again.
    with Host(SAME_LOOP, "asyncio", left) as host:
        assert host.heard() == {"ended_by": "close"}
        assert host.heard() == {"status": 0}
        assert host.heard() == {"over": True}
        assert host.ended() == (0, "")


LOCKED = (
    BEGIN
    + """\
from stockade import _loops

async def use():
    async with await ServerProcess.launch(CAT, stderr=None) as process:
        await process.send(b"x")
        return (await process.receive()).decode()

anyio.run(use, **LOOP)
held, release = threading.Event(), threading.Event()

def hold():
    with _loops._asyncio_lock:
        held.set()
        release.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = os.fork()
if pid == 0:
    say(echo=anyio.run(use, **LOOP))
    os._exit(0)
say(status=os.waitpid(pid, 0)[1])
release.set()
thread.join()
"""
)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_fork_while_another_thread_holds_the_lock_leaves_the_child_free(loop: str) -> None:
    with Host(LOCKED, loop) as host:
        assert host.heard(30) == {"echo": "x"}
        assert host.heard() == {"status": 0}
        assert host.ended() == (0, "")
