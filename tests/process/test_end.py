"""However a server's life ends, its whole tree is gone and somebody can say how."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from stockade import ServerExited, ServerProcess, Shutdown, StdioServer
from tests.servers import program, script, shell
from tests.servers.lifeline import Lifeline
from tests.servers.stepping import Stepped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CAT = StdioServer("cat")
QUICK = Shutdown(0.2, 0.2, 5)
ASYNCIO = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
]


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    with Lifeline(tmp_path / "lifeline") as lifeline:
        yield lifeline


async def test_a_polite_server_ends_when_its_stdin_is_closed() -> None:
    process = await ServerProcess.launch(CAT)
    report = await process.close()
    assert (report.returncode, report.ended_by, report.signal) == (0, "close", None)
    assert report.descendants_killed == 0
    assert process.report == report
    assert process.returncode == 0
    assert "\n" not in str(report)


async def test_close_is_idempotent_and_may_be_called_by_several_tasks_at_once() -> None:
    process = await ServerProcess.launch(CAT)
    reports = []
    async with anyio.create_task_group() as tasks:

        async def close() -> None:
            reports.append(await process.close())

        for _ in range(5):
            tasks.start_soon(close)
    assert len(reports) == 5
    assert set(reports) == {await process.close()}


async def test_wait_tells_every_task_how_the_server_ended() -> None:
    async with await ServerProcess.launch(shell("read line; echo bye >&2; exit 4")) as process:
        reports = []
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    reports.append(await process.wait())

                for _ in range(3):
                    tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                assert reports == []
                await process.send(b"go")
    assert [report.returncode for report in reports] == [4, 4, 4]
    assert reports[0].stderr_tail.strip() == "bye"


async def test_a_server_killed_by_a_signal_is_reported_as_such() -> None:
    async with await ServerProcess.launch(shell("kill -SEGV $$")) as process:
        with anyio.fail_after(30):
            report = await process.wait()
    assert report.returncode == -signal.SIGSEGV
    assert report.signal is signal.SIGSEGV
    assert "SIGSEGV" in report.cause


@pytest.mark.parametrize(("traits", "ended_by"), [(["deaf"], "terminate"), (["stubborn"], "kill")])
async def test_a_server_that_ignores_the_end_of_its_input_is_made_to_end(
    lifeline: Lifeline, traits: list[str], ended_by: str
) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, *traits, "child", "daemon"), shutdown=QUICK)
    await lifeline.held_by(3)
    with anyio.fail_after(30):
        report = await process.close()
    assert report.ended_by == ended_by
    await lifeline.gone()


async def test_what_a_polite_server_leaves_behind_is_killed(lifeline: Lifeline) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, "child", "daemon"))
    await lifeline.held_by(3)
    report = await process.close()
    assert (report.ended_by, report.descendants_killed) == ("close", 2)
    await lifeline.gone()


async def test_death_is_seen_although_a_descendant_holds_stdout(lifeline: Lifeline) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, "child", "exits"))
    async with process:
        with anyio.fail_after(30):
            with pytest.raises(ServerExited) as caught:
                await process.receive()
        assert caught.value.report is not None
        assert (caught.value.report.returncode, caught.value.report.ended_by) == (7, "exit")
    await lifeline.held_by(2)
    await lifeline.gone()


async def test_a_server_that_closes_its_stdout_and_lives_on_is_ended() -> None:
    server = script("import os, signal\nos.write(1, b'last\\n')\nos.close(1)\nsignal.pause()")
    async with await ServerProcess.launch(server, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"last"
            with pytest.raises(ServerExited) as caught:
                await process.receive()
    assert caught.value.report is not None
    assert caught.value.report.ended_by == "terminate"


async def test_after_kill_what_was_written_is_still_read(lifeline: Lifeline) -> None:
    async with await ServerProcess.launch(program("family", lifeline.path, "stubborn", "daemon")) as process:
        with anyio.fail_after(30):
            await lifeline.held_by(2)
            await process.send(b"1")
            assert await process.receive() == b"ready"
            assert await process.receive() == b"1"
            process.kill()
            with pytest.raises(ServerExited) as caught:
                await process.receive()
    assert caught.value.report is not None
    assert caught.value.report.ended_by == "kill"
    await lifeline.gone()


async def test_close_goes_on_inside_a_cancelled_scope(lifeline: Lifeline) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, "stubborn"), shutdown=QUICK)
    await lifeline.held_by(1)
    with anyio.CancelScope() as scope:
        scope.cancel()
        report = await process.close()
        assert report.ended_by == "kill"
    await lifeline.gone()


async def test_leaving_a_cancelled_block_waits_for_the_end(lifeline: Lifeline) -> None:
    with anyio.CancelScope() as scope:
        async with await ServerProcess.launch(program("family", lifeline.path, "deaf"), shutdown=QUICK) as process:
            await lifeline.held_by(1)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert process.report is not None
    await lifeline.gone()


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
async def test_a_native_cancel_of_the_wait_does_not_stop_the_end(lifeline: Lifeline) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, "stubborn"), shutdown=Shutdown(0.5, 0.5, 5))
    await lifeline.held_by(1)
    before = asyncio.all_tasks()

    async def close() -> None:
        async with process:
            await asyncio.get_running_loop().create_future()

    task = asyncio.ensure_future(close())
    await anyio.wait_all_tasks_blocked()
    task.cancel()  # leaves the block, and waits for the end
    await anyio.wait_all_tasks_blocked()
    assert process.closed
    task.cancel()  # gives up waiting
    with pytest.raises(asyncio.CancelledError), anyio.fail_after(0.4):
        await task
    assert process.report is None
    assert asyncio.all_tasks() == before
    await lifeline.gone()
    assert (await process.wait()).ended_by == "kill"


@pytest.mark.parametrize("anyio_backend", ASYNCIO)
async def test_a_timeout_that_expires_during_the_end_is_kept(lifeline: Lifeline) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, "deaf"), shutdown=Shutdown(30, 1, 5))
    await lifeline.held_by(1)
    with anyio.fail_after(20), pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(process.close(), 0.1)
    process.kill()
    with anyio.fail_after(20):
        await process.wait()
    await lifeline.gone()


async def test_a_launch_cancelled_at_any_await_point_leaves_nothing(lifeline: Lifeline) -> None:
    launched = 0
    for at in range(4):
        process = None
        with anyio.CancelScope() as scope:
            launch = ServerProcess.launch(program("family", lifeline.path, "stubborn"), shutdown=QUICK)
            process = await Stepped(launch, at, scope.cancel)
        if process is not None:
            launched += 1
            await process.close()
    assert launched >= 1
    # The leak check looks for the sessions, descriptors and processes.


async def test_an_unclosed_server_is_ended_by_the_garbage_collector_with_a_warning(lifeline: Lifeline) -> None:
    process = await ServerProcess.launch(program("family", lifeline.path, "deaf", "daemon"), shutdown=QUICK)
    await lifeline.held_by(2)
    assert await process.receive() == b"ready"
    with anyio.move_on_after(0):
        await process.receive()
    # The loop itself keeps the cancellation, and with it the frames of `receive`, until this task has waited again.
    await anyio.lowlevel.checkpoint()
    with pytest.warns(ResourceWarning, match="unclosed.*family"):  # noqa: PT031 - a cycle may hold it
        del process
        gc.collect()
    await lifeline.gone()


async def test_a_server_that_ended_by_itself_needs_no_close() -> None:
    process = await ServerProcess.launch(shell("exit 0"))
    await process.wait()
    del process
    gc.collect()


def test_a_server_outlives_its_event_loop_and_serves_another() -> None:
    async def launch() -> ServerProcess:
        process = await ServerProcess.launch(CAT)
        await process.send(b"1")
        assert await process.receive() == b"1"
        # Leaves a watch of stdout behind on this loop.
        with anyio.move_on_after(0.01):
            await process.receive()
        return process

    async def use(process: ServerProcess, word: bytes) -> None:
        with anyio.fail_after(30):
            await process.send(word)
            assert await process.receive() == word
            with anyio.move_on_after(0.01):
                await process.receive()

    async def close(process: ServerProcess) -> None:
        assert (await process.close()).ended_by == "close"

    process = anyio.run(launch)
    anyio.run(use, process, b"2", backend="trio")
    anyio.run(use, process, b"3", backend="asyncio", backend_options={"use_uvloop": True})
    anyio.run(use, process, b"4")
    anyio.run(close, process, backend="trio")


def test_a_server_launched_on_trio_is_closed_on_asyncio() -> None:
    process = anyio.run(ServerProcess.launch, CAT, backend="trio")
    assert anyio.run(process.close).ended_by == "close"


def test_a_running_loop_is_needed() -> None:
    launch = ServerProcess.launch(CAT)
    with pytest.raises(RuntimeError, match="running event loop"):
        launch.send(None)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False})])
async def test_a_forked_child_can_not_touch_the_parents_server() -> None:
    async with await ServerProcess.launch(CAT) as process:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover
            try:
                code = "none"
                try:
                    process.kill()
                    process._session.send(b"from the child")
                except Exception as error:
                    code = getattr(error, "code", repr(error))
                os.write(writer, code.encode())
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as answer:
            assert answer.read() == "forked"
        with anyio.fail_after(30):
            await process.send(b"still here")
            assert await process.receive() == b"still here"
