"""The server that a command line describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stockade._errors import ConfigError
from stockade._server import StdioServer

from .parser import UsageError

if TYPE_CHECKING:
    from stockade._server import Inherit

    from .parser import Options

_MODES = ("safe", "all", "none")


class Described(NamedTuple):
    """A server, and its arguments as they may be shown: an mcp.json's placeholders stand for what may be secret."""

    server: StdioServer
    shown_args: tuple[str, ...]


def described(options: Options, *, inherit: str = "safe") -> Described:
    """The server that was asked for; `ConfigError` or `UsageError` where it isn't one."""
    chosen = _inherit(options, inherit)
    env = _variables(options)
    if options.config is not None:
        from stockade._config import load

        entry = load(*options.config)
        server = entry.server(inherit=chosen)
        if env or options.cwd is not None:
            cwd = options.cwd if options.cwd is not None else server.cwd
            server = server.replace(cwd=cwd, env={**server.env, **env})
        return Described(server, entry.shown_args)
    command, *args = options.words
    try:
        server = StdioServer(command, args, cwd=options.cwd, env=env, inherit=chosen)
    except ConfigError as error:
        # What is wrong stands on the command line itself.
        raise UsageError(str(error), command=options.command) from None
    return Described(server, tuple(args))


def _variables(options: Options) -> dict[str, str]:
    env: dict[str, str] = {}
    for setting in options.env:
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise UsageError("--env needs NAME=VALUE.", command=options.command)
        env[name] = value
    return env


def _inherit(options: Options, default: str) -> Inherit:
    words = [word.strip() for said in options.inherit for word in said.split(",")]
    if not words:
        words = [default]
    modes = {word for word in words if word in _MODES}
    names = [word for word in words if word not in _MODES]
    if any(name.lower() in _MODES for name in names):
        raise UsageError("--inherit: safe, all and none are written small.", command=options.command)
    if len(modes) > 1 or (names and modes - {"safe"}):
        raise UsageError("--inherit takes safe, all, none, or names added to safe.", command=options.command)
    if names:
        return names
    return "all" if "all" in modes else "none" if "none" in modes else "safe"
