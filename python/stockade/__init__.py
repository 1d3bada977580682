"""Start any MCP stdio server, speak to it, and end it right.

Names are loaded when they are first used: `import stockade` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._errors import (
        Candidate,
        CommandNotFoundError,
        ConfigError,
        FrameTooLong,
        LaunchError,
        QuotingError,
        ServerClosedInput,
        ServerExited,
        StartupTimeout,
        StockadeError,
        TransportUsedError,
    )
    from ._native import __version__
    from ._process import ServerProcess
    from ._report import ExitReport
    from ._resolve import ResolvedCommand, resolve
    from ._server import Shutdown, StdioServer
    from ._sinks import LOGGER
    from ._stderr import StderrRing
    from ._transport import StdioTransport, UnreadableLine, stdio_client

__all__ = [
    "LOGGER",
    "Candidate",
    "CommandNotFoundError",
    "ConfigError",
    "ExitReport",
    "FrameTooLong",
    "LaunchError",
    "QuotingError",
    "ResolvedCommand",
    "ServerClosedInput",
    "ServerExited",
    "ServerProcess",
    "Shutdown",
    "StartupTimeout",
    "StderrRing",
    "StdioServer",
    "StdioTransport",
    "StockadeError",
    "TransportUsedError",
    "UnreadableLine",
    "__version__",
    "resolve",
    "stdio_client",
]

_HOMES = {
    "_errors": (
        "Candidate",
        "CommandNotFoundError",
        "ConfigError",
        "FrameTooLong",
        "LaunchError",
        "QuotingError",
        "ServerClosedInput",
        "ServerExited",
        "StartupTimeout",
        "StockadeError",
        "TransportUsedError",
    ),
    "_native": ("__version__",),
    "_process": ("ServerProcess",),
    "_report": ("ExitReport",),
    "_resolve": ("ResolvedCommand", "resolve"),
    "_server": ("Shutdown", "StdioServer"),
    "_sinks": ("LOGGER",),
    "_stderr": ("StderrRing",),
    "_transport": ("StdioTransport", "UnreadableLine", "stdio_client"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
