"""Reports of errors that say nothing."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client

from stockade import ServerExited, ServerProcess, StdioTransport
from tests.reports.clients import connected
from tests.reports.test_defects import lost, notes_of
from tests.servers import script, shell


async def test_the_exit_code_is_there_for_the_asking() -> None:
    # report 64
    async with await ServerProcess.launch(shell("exit 42"), stderr=None) as process:
        with anyio.fail_after(30):
            assert (await process.wait()).returncode == 42
    assert process.returncode == 42


async def test_a_failed_tool_call_explains_itself_with_the_last_of_stderr() -> None:
    # report 65
    with pytest.raises(Exception) as caught:  # noqa: PT011 - a group or not, by the SDK's version
        async with connected() as (client, _):
            with anyio.fail_after(30):
                await client.call_tool("exit", {"status": 17})
    assert lost(caught.value)
    assert "exited with 17" in notes_of(caught.value)
    assert "the server gives up" in notes_of(caught.value)


async def test_a_wrong_path_of_a_script_fails_fast_with_the_interpreters_own_words() -> None:
    # report 67
    server = script("import sys, runpy\nrunpy.run_path(sys.argv[1])", "/nonexistent/missing.py")
    transport = StdioTransport(server, stderr=None)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        with anyio.fail_after(30):
            async with Client(transport, mode="legacy"):
                pass
    assert lost(caught.value)
    assert "/nonexistent/missing.py" in notes_of(caught.value)
    assert transport.exit is not None
    assert transport.exit.returncode == 1


async def test_the_stream_itself_tells_of_the_end_before_it_ends() -> None:
    # report 64
    async with StdioTransport(shell("echo bye >&2; kill -SEGV $$"), stderr=None) as (read, _):
        with anyio.fail_after(30):
            (only,) = [item async for item in read]
    assert isinstance(only, ServerExited)
    assert "SIGSEGV" in str(only)
    assert "bye" in str(only)
