"""Reports of transports that are tied to a task, or to an event loop."""

from __future__ import annotations

import gc
import threading
from contextlib import AsyncExitStack

import anyio
import pytest

from stockade import ServerExited, ServerProcess, StdioTransport
from tests.reports.clients import connected, small_server, text_of
from tests.servers import shell


async def test_a_transport_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    # report 68
    stack = AsyncExitStack()
    transport = StdioTransport(small_server(), stderr=None)

    async def enter() -> None:
        await stack.enter_async_context(transport)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enter)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stack.aclose)
    assert transport.exit is not None
    assert transport.exit.ended_by == "close"


async def test_transports_may_be_left_in_any_order() -> None:
    # report 68
    transports = [StdioTransport(small_server(), stderr=None) for _ in range(3)]
    with anyio.fail_after(30):
        for transport in transports:
            await transport.__aenter__()
        for index in (0, 2, 1):
            await transports[index].__aexit__(None, None, None)
            # The task is as good as before.
            await anyio.lowlevel.checkpoint()
    assert [transport.exit is not None for transport in transports] == [True] * 3


def test_a_server_may_be_used_from_one_loop_after_the_other() -> None:
    # report 71
    kept: list[ServerProcess] = []

    async def launch() -> None:
        process = await ServerProcess.launch(shell("cat"), stderr=None)
        await process.send(b"first")
        assert await process.receive() == b"first"
        kept.append(process)

    async def use_and_close() -> None:
        (process,) = kept
        with anyio.fail_after(30):
            await process.send(b"second")
            assert await process.receive() == b"second"
            assert (await process.close()).ended_by == "close"

    anyio.run(launch)
    for backend in ("trio",):
        anyio.run(use_and_close, backend=backend)
    kept.clear()
    gc.collect()


def test_a_server_may_be_used_from_the_loops_of_two_threads() -> None:
    # report 71
    kept: list[ServerProcess] = []
    failures: list[BaseException] = []

    async def launch() -> None:
        kept.append(await ServerProcess.launch(shell("cat"), stderr=None))

    async def use() -> None:
        for number in range(100):
            await kept[0].send(b"%d" % number)

    def run() -> None:
        try:
            anyio.run(use)
        except BaseException as error:
            failures.append(error)

    async def finish() -> None:
        with anyio.fail_after(30):
            got = sorted([int(await kept[0].receive()) for _ in range(200)])
            assert got == sorted([*range(100), *range(100)])
            await kept[0].close()

    anyio.run(launch)
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    anyio.run(finish)


async def test_a_dead_server_is_known_to_be_dead_between_two_uses() -> None:
    # report 73
    async with await ServerProcess.launch(shell("cat"), stderr=None) as process:
        with anyio.fail_after(30):
            await process.send(b"one")
            await process.receive()
            assert process.returncode is None
            process.kill()
            await process.wait()
            assert process.returncode == -9
            assert process.report is not None
            with pytest.raises(ServerExited):
                await process.send(b"two")


async def test_a_server_that_dies_between_two_calls_fails_the_next_at_once() -> None:
    # report 73
    with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK's, a group or not
        async with connected() as (client, transport):
            with anyio.fail_after(30):
                assert text_of(await client.call_tool("echo", {"message": "hi"})) == "hi"
                transport.process.kill()
                await transport.process.wait()
                await client.call_tool("echo", {"message": "again"})
    assert transport.exit is not None
