"""Servers that people use: listed, called, closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from stockade import ExitReport, StdioTransport
from tests.support.servers import RealServer


async def converse(server: RealServer, tool: str, arguments: dict[str, Any]) -> tuple[set[str], str, ExitReport]:
    """The tools that it offers, what one of them answers, how it ended."""
    transport = StdioTransport(server.stdio())
    with anyio.fail_after(100):
        async with Client(transport) as client:
            tools = {offered.name for offered in (await client.list_tools()).tools}
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            text = "\n".join(getattr(part, "text", "") for part in result.content)
    assert transport.exit is not None
    return tools, text, transport.exit


async def test_server_everything(everything_server: RealServer) -> None:
    tools, text, report = await converse(everything_server, "echo", {"message": "hi"})
    assert {"echo", "get-sum"} <= tools
    assert text == "Echo: hi"
    # npx, a shell and node: all gone without force.
    assert (report.ended_by, report.returncode) == ("close", 0)


async def test_server_everything_tells_its_progress(everything_server: RealServer) -> None:
    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    with anyio.fail_after(100):
        async with Client(StdioTransport(everything_server.stdio())) as client:
            arguments = {"duration": 0.4, "steps": 4}
            await client.call_tool("trigger-long-running-operation", arguments, progress_callback=progress)
    assert steps == sorted(steps)
    assert steps


async def test_server_filesystem(filesystem_server: RealServer, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk")
    tools, text, report = await converse(filesystem_server, "read_text_file", {"path": str(tmp_path / "notes.txt")})
    assert {"read_text_file", "write_file", "list_directory"} <= tools
    assert text == "remember the milk"
    assert report.ended_by in ("close", "terminate")


async def test_mcp_server_time(clock_server: RealServer) -> None:
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    tools, text, report = await converse(clock_server, "convert_time", arguments)
    assert tools == {"get_current_time", "convert_time"}
    assert "21:00" in text
    assert report.ended_by == "close"


async def test_mcp_server_git(git_server: RealServer, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("new")
    tools, text, report = await converse(git_server, "git_status", {"repo_path": str(tmp_path)})
    assert {"git_status", "git_log"} <= tools
    assert "new.txt" in text
    assert report.ended_by == "close"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_many_real_servers_at_once(everything_server: RealServer, clock_server: RealServer) -> None:
    """Started together, closed in the order they were opened."""
    with anyio.fail_after(100):
        transports = [StdioTransport(one.stdio()) for one in (everything_server, clock_server) * 3]
        async with anyio.create_task_group() as tasks:
            for transport in transports:
                tasks.start_soon(transport.__aenter__)
        for transport in transports:
            await transport.aclose()
    assert all(transport.exit is not None and transport.exit.unkillable == 0 for transport in transports)
