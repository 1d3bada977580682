"""A server written with the MCP Python SDK: one tool."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("greeter")


@server.tool()
def greet(name: str) -> str:
    """Say hello to somebody."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    server.run()
