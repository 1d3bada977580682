"""Each operation cancelled at its first await point, its second, … until it gets through: nothing is lost or left.

By anyio's scopes on every loop, and by asyncio's own Task.cancel, which no scope shields from.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from stockade import ServerProcess, Shutdown, StdioServer, StdioTransport, _native
from stockade._sdk import sdk
from tests.servers import script, shell
from tests.servers.stepping import Stepped

CAT = StdioServer("cat")
QUICK = Shutdown(0.05, 0.05, 30)
DEAF = shell('trap "" TERM; echo ready; while :; do sleep 1000; done')
# Reads nothing until it gets SIGUSR1; then answers each line with its first byte.
GATED = script(
    "import sys, signal\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
    "print('ready', flush=True)\n"
    "signal.sigwait([signal.SIGUSR1])\n"
    "for line in sys.stdin.buffer:\n"
    "    sys.stdout.buffer.write(line[:1] + b'\\n'); sys.stdout.buffer.flush()\n"
)
LARGE = 3 << 20
Operation = Callable[[], Coroutine[Any, Any, Any]]
Cancelled = Callable[[int, Operation], Awaitable[tuple[bool, Any]]]


async def by_scope(at: int, operation: Operation) -> tuple[bool, Any]:
    """Whether it was cancelled, and what it gave."""
    with anyio.CancelScope() as scope:
        return False, await Stepped(operation(), at, scope.cancel)
    return True, None


async def natively(at: int, operation: Operation) -> tuple[bool, Any]:
    task: asyncio.Task[Any]

    async def run() -> Any:
        return await Stepped(operation(), at, lambda: task.cancel())  # noqa: PLW0108 - there is no task yet

    task = asyncio.get_running_loop().create_task(run())
    await asyncio.wait([task])
    return (True, None) if task.cancelled() else (False, task.result())


ALL = [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True}), ("trio", {})]
every_way = pytest.mark.parametrize(
    ("anyio_backend", "cancelled"),
    [*((loop, by_scope) for loop in ALL), *((loop, natively) for loop in ALL[:2])],
    ids=["asyncio-scope", "uvloop-scope", "trio-scope", "asyncio-native", "uvloop-native"],
)


async def sweep(cancelled: Cancelled, operation: Operation, check: Callable[[bool, Any], Awaitable[None]]) -> int:
    """Cancel at one await point after the other; `check` after each. At how many it could be cancelled."""
    for at in range(100):
        with anyio.fail_after(60):
            stepped = await cancelled(at, operation)
            await check(*stepped)
        if not stepped[0]:
            return at
    raise AssertionError("there is no end of await points")


async def quiet() -> None:
    """Wait until no session lives."""
    while _native.live_sessions():
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def echoing(server: StdioServer = CAT) -> AsyncIterator[ServerProcess]:
    async with await ServerProcess.launch(server, stderr=None, shutdown=QUICK) as process:
        yield process


@every_way
@pytest.mark.parametrize("large", [False, True])
async def test_receive(cancelled: Cancelled, large: bool) -> None:
    frame = b"x" * LARGE if large else b"x"
    async with echoing() as process:
        attempts = 0

        async def operation() -> bytes:
            nonlocal attempts
            attempts += 1
            # The first one waits in vain: an echo may be quicker than the cancellation.
            if attempts > 1:
                process._session.send(frame)
            return await process.receive()

        async def check(was_cancelled: bool, got: bytes | None) -> None:
            if attempts == 1:
                assert was_cancelled
                process._session.send(frame)
            # Cancelled, the frame is there for the next one.
            assert (await process.receive() if was_cancelled else got) == frame

        assert await sweep(cancelled, operation, check) >= 1 + large


@every_way
async def test_receive_what_is_there_already(cancelled: Cancelled) -> None:
    async with echoing() as process:
        process._session.send(b"1")
        assert await process.receive() == b"1"

        async def operation() -> list[bytes]:
            # The first may have to wait; one read takes all, and each is a point to be cancelled at by a scope.
            for number in range(40):
                process._session.send(b"%d" % number)
            return [await process.receive() for _ in range(40)]

        async def check(was_cancelled: bool, got: list[bytes] | None) -> None:
            if was_cancelled:
                # What was received in vain is gone with the list; what follows is in order, up to the last.
                last = await process.receive()
                while last != b"39":
                    following = await process.receive()
                    assert int(following) == int(last) + 1
                    last = following
            else:
                assert got == [b"%d" % number for number in range(40)]

        assert await sweep(cancelled, operation, check) >= 1


@every_way
async def test_send_with_room(cancelled: Cancelled) -> None:
    async with echoing() as process:

        async def operation() -> None:
            for number in range(40):
                await process.send(b"%d" % number)

        async def check(was_cancelled: bool, _: None) -> None:
            process._session.send(b"end")
            got = [await process.receive()]
            while got[-1] != b"end":
                got.append(await process.receive())
            # All up to some point, each once.
            assert got[:-1] == [b"%d" % number for number in range(len(got) - 1)]
            assert was_cancelled or len(got) == 41

        # Where there is room it goes through without a pause, but for the turn that others get.
        assert await sweep(cancelled, operation, check) >= 1


@every_way
async def test_send_without_room(cancelled: Cancelled) -> None:
    for at in range(10):
        async with echoing(GATED) as process:
            with anyio.fail_after(60):
                assert await process.receive() == b"ready"
                sent = 0
                while process._session.send(b"f" * 300_000):
                    sent += 1

                async def operation() -> None:
                    async with anyio.create_task_group() as tasks:
                        # Begins when the operation waits: so it can get through.
                        tasks.start_soon(open_gate)
                        await process.send(b"x" * 300_000)

                async def open_gate() -> None:
                    if at > 0:  # noqa: B023
                        os.kill(process.pid, signal.SIGUSR1)

                was_cancelled, _ = await cancelled(at, operation)
                os.kill(process.pid, signal.SIGUSR1)
                await process.send(b"end")
                got = [await process.receive()]
                while got[-1] != b"e":
                    got.append(await process.receive())
            # Whole or not at all; nothing of what follows is held up.
            assert got in ([b"f"] * sent + [b"e"], [b"f"] * sent + [b"x", b"e"])
            if not was_cancelled:
                assert b"x" in got
                assert at >= 1
                return
    raise AssertionError("there is no end of await points")


@every_way
@pytest.mark.parametrize("server", [CAT, DEAF], ids=["polite", "deaf"])
async def test_launch(cancelled: Cancelled, server: StdioServer) -> None:
    async def operation() -> ServerProcess:
        return await ServerProcess.launch(server, stderr=None, shutdown=QUICK)

    async def check(was_cancelled: bool, process: ServerProcess | None) -> None:
        if process is not None:
            await process.close()
        await quiet()

    assert await sweep(cancelled, operation, check) >= 1


@every_way
@pytest.mark.parametrize("server", [CAT, DEAF], ids=["polite", "deaf"])
async def test_close(cancelled: Cancelled, server: StdioServer) -> None:
    processes: list[ServerProcess] = []

    async def operation() -> Any:
        processes.append(process := await ServerProcess.launch(server, stderr=None, shutdown=QUICK))
        return await process.close()

    async def check(was_cancelled: bool, report: Any) -> None:
        for process in processes:
            if was_cancelled and not process.closed:
                await process.close()  # cancelled before
            # It goes on by itself, whoever has ceased to wait.
            assert (await process.wait()).ended_by == ("close" if server is CAT else "kill")
        processes.clear()
        await quiet()

    assert await sweep(cancelled, operation, check) >= 1


@every_way
async def test_wait(cancelled: Cancelled) -> None:
    async with echoing() as process:

        async def operation() -> None:
            with anyio.move_on_after(0.05):
                await process.wait()

        async def check(was_cancelled: bool, _: None) -> None:
            process._session.send(b"fine")
            assert await process.receive() == b"fine"

        assert await sweep(cancelled, operation, check) >= 1


@every_way
@pytest.mark.parametrize("server", [CAT, DEAF], ids=["polite", "deaf"])
async def test_the_transport_from_its_entry_to_its_exit(cancelled: Cancelled, server: StdioServer) -> None:
    transports: list[StdioTransport] = []
    ping = sdk().wrap(sdk().parse(b'{"jsonrpc": "2.0", "method": "notifications/x"}'))

    async def operation() -> None:
        transports.append(transport := StdioTransport(server, stderr=None, shutdown=QUICK))
        async with transport as (reader, writer):
            await writer.send(ping)
            await reader.receive()
            with anyio.move_on_after(0.01):
                await reader.receive()

    async def check(was_cancelled: bool, _: None) -> None:
        await quiet()
        (transport,) = transports
        transports.clear()
        if transport._process is not None:
            assert transport.exit is not None
            assert transport.exit.ended_by == ("close" if server is CAT else "kill")
            with pytest.raises(anyio.ClosedResourceError):
                await transport._reader.receive()  # type: ignore[union-attr]

    # The launch, and a frame or the pause; what is there already needs no waiting.
    assert await sweep(cancelled, operation, check) >= 2
