"""Small real servers, each a program of its own, and how to start them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade import StdioServer

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
# Without site-packages and the user's settings a server is there in a few milliseconds.
BARE = ("-I", "-S", "-E")


def program(name: str, *args: object, env: Mapping[str, str] | None = None) -> StdioServer:
    """A server of this folder."""
    return StdioServer(sys.executable, [*BARE, str(HERE / f"{name}.py"), *map(str, args)], env=env, name=name)


def script(source: str, *args: object, **options: Any) -> StdioServer:
    """A server in a few lines of Python."""
    return StdioServer(sys.executable, [*BARE, "-c", source, *map(str, args)], name="script", **options)


def shell(source: str, **options: Any) -> StdioServer:
    """A server in a line of shell."""
    return StdioServer("sh", ["-c", source], name="shell", **options)
