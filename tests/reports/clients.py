"""An MCP client over our transport, on whatever event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client

from stockade import StdioServer, StdioTransport
from tests.servers import program

SERVER = "mcp"


def small_server() -> StdioServer:
    """An MCP server that misbehaves on request; see tests/servers/mcp.py."""
    return program(SERVER)


@asynccontextmanager
async def connected(server: StdioServer | None = None, **options: Any) -> AsyncIterator[tuple[Client, StdioTransport]]:
    transport = StdioTransport(server or small_server(), stderr=options.pop("stderr", None), **options)
    async with Client(transport, mode="legacy") as client:
        yield client, transport


def text_of(result: Any) -> str:
    return result.content[0].text
