"""What the event loops are told to watch, and how they forget it: also when the collector or an error interferes."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import anyio
import pytest

from stockade import ServerProcess, StdioServer, _loops
from tests.faults.hosts import Host

CAT = StdioServer("cat")
ASYNCIO = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
]

COLLECTED = """\
import asyncio, faulthandler, gc, warnings
warnings.simplefilter("ignore", ResourceWarning)
from stockade import _loops

faulthandler.dump_traceback_later(30, exit=True)
OPTIONS = {"use_uvloop": sys.argv[1] == "uvloop"}

class Holder:
    pass

async def abandon():
    holder = Holder()
    holder.itself = holder
    holder.process = await ServerProcess.launch(StdioServer("cat"), stderr=None)
    task = asyncio.ensure_future(holder.process.receive())
    await asyncio.sleep(0)
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    await asyncio.wait([task])

class Collecting:
    # Any allocation may start a collection: here it is while the lock is held.
    def __init__(self, lock):
        self.lock = lock
    def __enter__(self):
        self.lock.acquire()
        gc.collect()
    def __exit__(self, *_):
        self.lock.release()

async def use():
    async with await ServerProcess.launch(StdioServer("cat"), stderr=None) as process:
        await process.send(b"x")
        return (await process.receive()).decode()

gc.disable()
anyio.run(abandon, backend_options=OPTIONS)
watched = len(_loops._asyncio_loops)
_loops._asyncio_lock = Collecting(_loops._asyncio_lock)
say(watched=watched, echo=anyio.run(use, backend_options=OPTIONS), left=len(_loops._asyncio_loops))
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_collection_while_the_lock_is_held_is_no_deadlock(loop: str) -> None:
    with Host(COLLECTED, loop) as host:
        assert host.heard(40) == {"watched": 1, "echo": "x", "left": 0}
        assert host.ended() == (0, "")


async def test_a_token_made_while_the_last_other_one_is_discarded_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = _loops.current()
    async with await ServerProcess.launch(CAT) as process:
        _, other = loop.add(lambda: None)
        numbers = _loops._numbers

        class Discarding:
            """As the collector, which may end a server at any step."""

            def __next__(self) -> int:
                loop.discard(other)
                return next(numbers)

        monkeypatch.setattr(_loops, "_numbers", Discarding())
        process.kill()
        with anyio.fail_after(30):
            assert await loop.until(process._session, "exited", None)


async def test_a_loop_that_refused_the_waker_once_hears_the_next_token(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = _loops.current()
    async with await ServerProcess.launch(CAT) as process:

        def refuse(waker: Any) -> None:
            raise OSError("no room in the selector")

        with monkeypatch.context() as patch:
            patch.setattr(type(loop), "_watch", lambda self, waker: refuse(waker))
            with pytest.raises(OSError, match="no room"):
                await process.wait()
        process.kill()
        with anyio.fail_after(30):
            assert (await process.wait()).ended_by == "kill"


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
async def test_after_use_a_loop_is_not_held() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.move_on_after(0.01):
            await process.receive()
    gc.collect()
    assert asyncio.get_running_loop() not in _loops._asyncio_loops
