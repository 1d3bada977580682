"""What is wrong with an argument is a ConfigError, before anything starts; what is closed says so."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
import pytest

from stockade import ConfigError, ServerExited, ServerProcess, Shutdown, StdioServer
from tests.servers import shell

if TYPE_CHECKING:
    from stockade import _native

CAT = StdioServer("cat")


@pytest.mark.parametrize("given", ["cat", {"command": "cat"}, None, 5, ["cat"]])
async def test_what_is_no_server_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"ServerProcess\.launch takes a StdioServer") as caught:
        await ServerProcess.launch(given)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "options",
    [
        {"shutdown": 5},
        {"shutdown": "leave"},
        {"shutdown": False},
        {"max_frame_bytes": 0},
        {"max_frame_bytes": -1},
        {"max_frame_bytes": True},
        {"max_frame_bytes": 1.5},
        {"max_frame_bytes": "64"},
        {"max_frame_bytes": sys.maxsize + 1},
        {"max_frame_bytes": 10**30},
    ],
)
async def test_wrong_options_of_a_launch_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        await ServerProcess.launch(CAT, **options)


async def test_the_largest_limit_is_one() -> None:
    async with await ServerProcess.launch(CAT, max_frame_bytes=sys.maxsize) as process:
        await process.send(b"x")
        with anyio.fail_after(30):
            assert await process.receive() == b"x"


@pytest.mark.parametrize("given", [5, "leave", False, (1, 2, 3)])
async def test_a_wrong_shutdown_of_close_is_refused_and_closes_nothing(given: Any) -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            with pytest.raises(ConfigError):
                await process.close(given)
            with pytest.raises(ConfigError):
                process.begin_close(given)
            assert not process.closed
            await process.send(b"x")
            assert await process.receive() == b"x"


async def test_after_close_an_error_says_that_it_was_closed() -> None:
    process = await ServerProcess.launch(CAT)
    await process.close()
    with pytest.raises(anyio.ClosedResourceError, match="the server was closed"):
        await process.receive()
    with pytest.raises(anyio.ClosedResourceError, match="the server was closed"):
        await process.send(b"x")


async def test_a_server_that_closed_its_stdout_and_lives_is_said_to_have_done_so() -> None:
    server = shell("exec >&-; exec sleep 1000")
    async with await ServerProcess.launch(server, shutdown=Shutdown(0.2, 0.2, 5)) as process:
        with anyio.fail_after(30), pytest.raises(ServerExited, match="'shell' closed its stdout, so it was ended: "):
            await process.receive()


class Refuses:
    """A session that can't go on."""

    pid = 1

    def report(self) -> None:
        return None

    def close(self, *_graces: object) -> None:
        raise RuntimeError("can't go on")


def test_a_finaliser_that_fails_stays_quiet_but_for_its_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    process = ServerProcess(cast("_native.Session", Refuses()), "refuses", Shutdown())
    with pytest.warns(ResourceWarning, match="unclosed.*refuses"):  # noqa: PT031 - a cycle may hold it
        del process
        gc.collect()
    assert said == []


async def test_a_finaliser_leaves_the_loops_own_lists_to_the_loop() -> None:
    process = await ServerProcess.launch(CAT, stderr=None)
    with anyio.move_on_after(0.01):
        await process.receive()
    stdout = process._stdout
    assert stdout is not None
    assert stdout._watch is not None
    await anyio.lowlevel.checkpoint()
    with pytest.warns(ResourceWarning, match="unclosed"):  # noqa: PT031 - a cycle may hold it
        del process
        gc.collect()
    # A collection may happen at any step of the loop's own.
    assert stdout._watch is not None
    with anyio.fail_after(30):
        while stdout._watch is not None:
            await anyio.lowlevel.checkpoint()
