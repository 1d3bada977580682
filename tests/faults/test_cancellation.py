"""Cancelled at any await point, by the event loop's own means or anyio's, a server is ended and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from stockade import ServerExited, ServerProcess, Shutdown, StdioServer
from tests.servers import program, shell
from tests.servers.lifeline import Lifeline
from tests.servers.stepping import Stepped

QUICK = Shutdown(0.05, 0.05, 30)
NATIVE = [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})]
DEAF = 'trap "" TERM; echo ready; while :; do sleep 1000; done'


async def life(source: str) -> None:
    """All that one does with a server."""
    async with await ServerProcess.launch(shell(source), stderr=None, shutdown=QUICK) as process:
        await process.receive()
        await process.send(b"x")
        if source != DEAF:
            await process.receive()


async def sweep(source: str) -> int:
    """Cancel at the first await point, the second, … until it is through; at how many."""
    for at in range(100):
        with anyio.CancelScope() as scope:
            stepped = Stepped(life(source), at, scope.cancel)
            await stepped
        if stepped.suspensions <= at:
            return at
    raise AssertionError("there is no end of await points")


@pytest.mark.parametrize("source", ["echo ready; cat", DEAF], ids=["polite", "deaf"])
async def test_cancelled_at_every_await_point_a_server_is_ended(source: str) -> None:
    # fault 47; what is left is counted after the test
    with anyio.fail_after(100):
        # The launch, the close, and a frame where it isn't there already.
        assert await sweep(source) >= 2


@pytest.mark.parametrize("anyio_backend", NATIVE, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("source", ["echo ready; cat", DEAF], ids=["polite", "deaf"])
async def test_a_native_cancel_at_every_await_point_ends_the_server_too(source: str) -> None:
    # fault 47
    cancelled = 0
    with anyio.fail_after(100):
        for at in range(100):
            task: asyncio.Task[None]

            def interfere() -> None:
                task.cancel()  # noqa: B023 - called within the same turn

            stepped = Stepped(life(source), at, interfere)

            async def run() -> None:
                await stepped  # noqa: B023

            task = asyncio.get_running_loop().create_task(run())
            await asyncio.wait([task])
            if stepped.suspensions <= at:
                assert task.exception() is None
                break
            assert task.cancelled()
            cancelled += 1
    assert cancelled >= 2


@pytest.mark.parametrize("anyio_backend", NATIVE, ids=["asyncio", "uvloop"])
async def test_a_second_native_cancel_in_the_shutdown_ends_the_wait_and_not_the_end(tmp_path: Path) -> None:
    # fault 47
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "stubborn", "daemon")

        async def use() -> None:
            async with await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.3, 0.3, 30)) as process:
                await process.receive()
                await process.receive()

        task = asyncio.get_running_loop().create_task(use())
        with anyio.fail_after(30):
            await lifeline.held_by(2)
            for _ in range(3):
                # The first ends the body, the next the wait for the end.
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([task])
            assert task.cancelled()
            await lifeline.gone()


async def test_a_cancelled_launch_leaves_no_server(tmp_path: Path) -> None:
    # fault 47
    for deadline in (0, 0.0005, 0.001, 0.002, 0.003, 0.005):
        for _ in range(5):
            with anyio.move_on_after(deadline):
                async with await ServerProcess.launch(StdioServer("cat"), stderr=None, shutdown=Shutdown(60, 60, 60)):
                    await anyio.sleep_forever()


async def test_a_cancelled_receive_and_wait_leave_the_server_as_it_was() -> None:
    # fault 47
    async with await ServerProcess.launch(shell("cat"), stderr=None) as process:
        with anyio.fail_after(30):
            waits: list[Callable[[], Any]] = [process.receive, process.wait, process.exited]
            for wait in waits[:2]:
                for _ in range(5):
                    with anyio.CancelScope() as scope:
                        await Stepped(wait(), 0, scope.cancel)
                    assert scope.cancelled_caught
            await process.send(b"fine")
            assert await process.receive() == b"fine"
            process.kill()
            with pytest.raises(ServerExited):
                await process.receive()


async def test_a_close_in_a_cancelled_scope_waits_for_the_end_of_the_graces() -> None:
    # fault 47: anyio's cancellation is held off, and bounded by the graces
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            async with await ServerProcess.launch(shell(DEAF), stderr=None, shutdown=QUICK) as process:
                await process.receive()
                scope.cancel()
                await anyio.sleep_forever()
        assert process.report is not None
        assert process.report.ended_by == "kill"
