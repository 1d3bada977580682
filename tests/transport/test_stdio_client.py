"""`stdio_client` stands in for the SDK's function of that name."""

from __future__ import annotations

import inspect
import io
import sys
from typing import TYPE_CHECKING

import anyio
import mcp.client.stdio
import pytest
from mcp import ClientSession, StdioServerParameters

from stockade import StdioServer, stdio_client
from tests.servers import BARE, HERE

if TYPE_CHECKING:
    from pathlib import Path

PARAMS = StdioServerParameters(command=sys.executable, args=[*BARE, str(HERE / "mcp.py")])
SPEAKS = StdioServerParameters(command="sh", args=["-c", "echo words >&2"])


def test_the_parameters_are_those_of_the_sdk() -> None:
    ours = list(inspect.signature(stdio_client).parameters)
    assert ours == list(inspect.signature(mcp.client.stdio.stdio_client).parameters)


async def test_a_session_over_the_sdks_own_parameters() -> None:
    with anyio.fail_after(60):
        async with stdio_client(PARAMS) as (reader, writer), ClientSession(reader, writer) as session:
            assert (await session.initialize()) is not None
            await session.send_ping()


async def test_it_takes_a_server_of_ours_too() -> None:
    async with stdio_client(server=StdioServer(PARAMS.command, PARAMS.args)) as streams:
        assert len(streams) == 2


async def test_entered_and_left_by_hand_in_different_tasks() -> None:
    client = stdio_client(PARAMS, errlog=None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.__aenter__)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.__aexit__, None, None, None)
    assert client.exit is not None


async def test_stderr_goes_to_sys_stderr_as_it_is_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = io.StringIO()
    monkeypatch.setattr(sys, "stderr", replaced)
    client = stdio_client(SPEAKS)
    monkeypatch.undo()
    async with client:
        await client.process.wait()
    assert replaced.getvalue() == "words\n"


async def test_errlog_may_be_a_file_with_a_descriptor_or_without(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = io.StringIO()
    with path.open("w") as file:
        for errlog in (file, text):
            async with stdio_client(SPEAKS, errlog=errlog) as (reader, _):
                assert [item async for item in reader]
    assert path.read_text() == text.getvalue() == "words\n"


async def test_a_missing_command_is_an_os_error_with_enoent() -> None:
    import errno

    with pytest.raises(FileNotFoundError) as caught:
        async with stdio_client(StdioServerParameters(command="/no/such/command")):
            pass
    assert caught.value.errno == errno.ENOENT
