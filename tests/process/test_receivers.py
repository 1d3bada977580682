"""Several receivers, on one loop or on several threads: each frame reaches one of them, whoever is cancelled."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import anyio
import anyio.lowlevel
import pytest

from stockade import LaunchError, ServerExited, ServerProcess, Shutdown, StdioServer, StockadeError, _loops
from stockade._stdout import AsyncioStdout, Stdout
from tests.servers import script
from tests.servers.stepping import Stepped

CAT = StdioServer("cat")
QUICK = Shutdown(0.2, 0.2, 5)
LOOPS: list[dict[str, Any]] = [
    {"backend": "asyncio"},
    {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    {"backend": "trio"},
]
ASYNCIO = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
]


def readable(process: ServerProcess) -> Stdout:
    """Wait until the pipe has something, without giving the loop a turn."""
    stdout = process._stdout
    assert stdout is not None
    assert select.select([stdout._fd], [], [], 30)[0]
    return stdout


class Elsewhere:
    """A receiver on a loop of its own, in a thread of its own."""

    def __init__(self, process: ServerProcess, loop: dict[str, Any]) -> None:
        self.got: list[bytes] = []
        self._begun = threading.Event()
        self._process = process
        self._loop = loop
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        async def receive() -> None:
            async with anyio.create_task_group() as tasks:

                async def one() -> None:
                    with anyio.fail_after(30):
                        self.got.append(await self._process.receive())

                tasks.start_soon(one)
                await anyio.wait_all_tasks_blocked()
                self._begun.set()

        anyio.run(receive, **self._loop)

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        assert self._begun.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


async def test_a_frame_given_back_wakes_who_waits() -> None:
    got: list[bytes] = []
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def waiting() -> None:
                    got.append(await process.receive())

                tasks.start_soon(waiting)
                await anyio.wait_all_tasks_blocked()
                await process.send(b"frame")
                readable(process)
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await process.receive()
                assert scope.cancelled_caught
    assert got == [b"frame"]


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop", "trio"])
async def test_a_frame_given_back_wakes_who_waits_on_another_loop(loop: dict[str, Any]) -> None:
    async with await ServerProcess.launch(CAT) as process:
        with Elsewhere(process, loop) as other:
            await process.send(b"frame")
            taken = None
            while taken is None and not other.got:
                taken = process._intake.take()
            if taken is not None:
                process._intake.give_back(taken)
    assert other.got == [b"frame"]


# Three frames in one write, once it has got a line; then it echoes.
THREE = script(
    "import os, sys\nsys.stdin.readline()\nos.write(1, b'1\\n2\\n3\\n')\n"
    "for line in sys.stdin: print(line, end='', flush=True)"
)


async def test_what_was_read_along_with_a_frame_reaches_who_waited_before() -> None:
    got: list[bytes] = []
    async with await ServerProcess.launch(THREE) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def waiting() -> None:
                    got.append(await process.receive())

                tasks.start_soon(waiting)
                tasks.start_soon(waiting)
                await anyio.wait_all_tasks_blocked()
                await process.send(b"go")
                readable(process)
                # One read takes all three: the pipe is empty from here on.
                got.append(await process.receive())
    assert sorted(got) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop", "trio"])
async def test_what_was_read_along_with_a_frame_reaches_who_waits_on_another_loop(loop: dict[str, Any]) -> None:
    async with await ServerProcess.launch(THREE) as process:
        with Elsewhere(process, loop) as other:
            process._session.send(b"go")
            with anyio.fail_after(30):
                got = [await process.receive()]
        # Nothing was received here since: the other one had to hear of it.
        with anyio.fail_after(30):
            got.append(await process.receive())
    assert sorted(got + other.got) == [b"1", b"2", b"3"]


async def test_frames_given_back_by_several_receivers_come_in_order() -> None:
    async with await ServerProcess.launch(THREE) as process:
        with anyio.fail_after(30):
            with anyio.move_on_after(0):
                await process.receive()
            await process.send(b"go")
            readable(process)
            async with anyio.create_task_group() as tasks:
                tasks.cancel_scope.cancel()
                # Each takes a frame without waiting, and sees the cancellation then.
                for _ in range(3):
                    tasks.start_soon(process.receive)
            assert [await process.receive() for _ in range(3)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_frames_handed_to_tasks_cancelled_in_the_same_turn_come_in_order(order: tuple[int, ...]) -> None:
    async with await ServerProcess.launch(THREE) as process:
        with anyio.fail_after(30):
            receivers = [asyncio.ensure_future(process.receive()) for _ in range(4)]
            await anyio.wait_all_tasks_blocked()
            await process.send(b"go")
            stdout = readable(process)
            assert isinstance(stdout, AsyncioStdout)
            stdout._ready()
            for number in order:
                receivers[number].cancel()
            await asyncio.wait(receivers[:3])
            assert all(receiver.cancelled() for receiver in receivers[:3])
            # The fourth waits since before they were given back.
            assert [await receivers[3], await process.receive(), await process.receive()] == [b"1", b"2", b"3"]


LARGE = script(
    "import sys\n"
    "for _ in range(2):\n"
    "    sys.stdin.readline(); sys.stdout.write('x' * int(sys.argv[1]) + '\\n'); sys.stdout.flush()\n"
    "sys.stdin.read()",
    20 << 20,
)


async def test_a_large_frame_whose_receiver_is_cancelled_goes_to_one_that_waits() -> None:
    got: list[int] = []
    async with await ServerProcess.launch(LARGE) as process:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                scope = anyio.CancelScope()

                async def cancelled() -> None:
                    with scope:
                        # Suspended for the second time it has the frame, and copies it.
                        await Stepped(process.receive(), 1, scope.cancel)

                async def waiting() -> None:
                    got.append(len(await process.receive()))

                tasks.start_soon(cancelled)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(waiting)
                await anyio.wait_all_tasks_blocked()
                await process.send(b"go")
            assert scope.cancelled_caught
    assert got == [20 << 20]


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
async def test_a_large_frame_comes_whole_after_a_native_cancel_at_any_await_point() -> None:
    async with await ServerProcess.launch(LARGE) as process:
        with anyio.fail_after(60):
            for at in range(2):
                await process.send(b"go")
                task: asyncio.Task[Any]

                def cancel() -> None:
                    task.cancel()  # noqa: B023 - called within this turn

                async def run() -> None:
                    await Stepped(process.receive(), at, cancel)  # noqa: B023

                task = asyncio.get_running_loop().create_task(run())
                await asyncio.wait([task])
                assert task.cancelled()
                assert await process.receive() == b"x" * (20 << 20)


# What others do between the look for a frame and the wait


def between_look_and_wait(process: ServerProcess, deed: Callable[[], object]) -> None:
    """`deed` is done on another thread, when a receiver has found nothing and is about to wait."""
    original = process._stdout_here

    def stdout_here() -> Stdout:
        thread = threading.Thread(target=deed)
        thread.start()
        thread.join(30)
        return original()

    process._stdout_here = stdout_here  # type: ignore[method-assign]


async def test_closed_on_another_thread_just_before_it_waits_a_receiver_leaves_nothing_open() -> None:
    process = await ServerProcess.launch(CAT)
    between_look_and_wait(process, process.begin_close)
    with anyio.fail_after(30), pytest.raises(anyio.ClosedResourceError):
        await process.receive()
    assert process._stdout is None
    await process.close()


async def test_a_frame_given_back_on_another_thread_just_before_it_waits_is_seen() -> None:
    async with await ServerProcess.launch(CAT) as process:
        between_look_and_wait(process, lambda: process._intake.give_back((1, b"frame")))
        with anyio.fail_after(30):
            assert await process.receive() == b"frame"


async def test_stopped_on_another_thread_just_before_it_waits_a_receiver_stops() -> None:
    stopped = threading.Event()
    async with await ServerProcess.launch(CAT) as process:

        def stop() -> None:
            stopped.set()
            process.interrupt()

        between_look_and_wait(process, stop)
        with anyio.fail_after(30):
            assert await process.next_frame(None, stopped.is_set) is None


async def test_closed_on_another_thread_at_any_moment_a_receiver_says_closed() -> None:
    flood = StdioServer("yes")
    with anyio.fail_after(60):
        for _ in range(25):
            process = await ServerProcess.launch(flood, stderr=None, shutdown=Shutdown(0, 0.2, 5))
            begun = threading.Event()

            def close() -> None:
                begun.wait(30)  # noqa: B023 - joined below
                process.begin_close()  # noqa: B023

            thread = threading.Thread(target=close)
            thread.start()
            with pytest.raises(anyio.ClosedResourceError):
                while True:
                    await process.receive()
                    begun.set()
            thread.join(30)
            assert process._stdout is None
            await process.close()


async def test_an_interrupted_wait_keeps_its_deadline() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def interrupt() -> None:
                    while True:
                        process.interrupt()
                        await anyio.lowlevel.checkpoint()

                tasks.start_soon(interrupt)
                assert await process.next_frame(time.monotonic() + 0.2) is None
                tasks.cancel_scope.cancel()


async def test_a_sender_that_waits_for_room_costs_nothing() -> None:
    async with await ServerProcess.launch(script("import signal; signal.pause()"), shutdown=QUICK) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def fill() -> None:
                    # Together more than the queue holds, and no multiple of what it holds.
                    while True:
                        await process.send(b"x" * 600_000)

                tasks.start_soon(fill)
                await anyio.wait_all_tasks_blocked()
                before = time.process_time()
                with anyio.move_on_after(1):
                    await process.wait()
                spent = time.process_time() - before
                tasks.cancel_scope.cancel()
    assert spent < 0.5


# Without a descriptor


async def test_a_wait_that_failed_for_want_of_a_descriptor_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "gate")
    gate = os.open(tmp_path / "gate", os.O_RDWR)
    # The child keeps stdout open until the gate falls: the end of the server shows nowhere but in the executor.
    server = script(
        "import os, sys\n"
        "if os.fork() == 0:\n"
        "    os.read(os.open(sys.argv[1], os.O_RDONLY), 1); os._exit(0)\n"
        "sys.stdin.readline(); os._exit(3)",
        tmp_path / "gate",
    )
    try:
        shutdown = Shutdown(0.2, 0.2, 5, descendants="leave")
        async with await ServerProcess.launch(server, shutdown=shutdown) as process:
            with anyio.fail_after(30):
                with monkeypatch.context() as patch:
                    patch.setattr(_loops._native, "Waker", no_descriptor)
                    with pytest.raises(StockadeError, match="can't wait for the server: Too many open files") as caught:
                        await process.receive()
                    assert not isinstance(caught.value, LaunchError)
                async with anyio.create_task_group() as tasks:

                    async def waiting() -> None:
                        with pytest.raises(ServerExited):
                            await process.receive()

                    tasks.start_soon(waiting)
                    await anyio.wait_all_tasks_blocked()
                    await process.send(b"go")
    finally:
        os.write(gate, b"x")
        os.close(gate)


def no_descriptor() -> NoReturn:
    raise LaunchError("no descriptor", code="too-many-files", native_code=errno.EMFILE)
