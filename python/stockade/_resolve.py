"""Find what would be started, without starting it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import ResolvedCommand

if TYPE_CHECKING:
    from ._server import StdioServer

__all__ = ["ResolvedCommand", "resolve"]


def resolve(server: StdioServer) -> ResolvedCommand:
    """What would be started for this server, and where it was looked for. Blocks on the file system.

    Raises:
        CommandNotFoundError: there is no such command; `tried` lists where it was looked for.
        LaunchError: there is one, but it can't be started.
        ConfigError: this is no StdioServer.
    """
    from ._server import checked_server

    return checked_server(server, "resolve")._native.resolve()
