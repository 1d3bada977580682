"""What to start and how to end it: descriptions that are checked when they are built."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast, final

from . import _native
from ._errors import ConfigError

if TYPE_CHECKING:
    from mcp import StdioServerParameters

Text = str | os.PathLike[str]
Mode = Literal["safe", "all", "none"]
Inherit = Mode | Sequence[str]

_MODES: tuple[Mode, ...] = ("safe", "all", "none")
# Longer than any wait, and short enough for every clock.
_LONGEST = 1e9


@final
class StdioServer:
    """An MCP server that is a local program speaking on its stdin and stdout.

    Immutable, comparable, hashable and picklable. Everything that can be wrong about it is a `ConfigError` when it
    is built; whether the program exists is looked up when it is started (or by `resolve`).

    Args:
        command: the program: a name to be found on the child's PATH, or a path.
        args: its arguments, handed over as they are; no shell is involved.
        cwd: its working directory; None: this process's.
        env: variables set on top of what is inherited.
        inherit: which variables of this process it gets: "safe" (the MCP SDK's short list, completed on Windows by
            what processes need), "all", "none", or names added to the safe list (`["HTTPS_PROXY", "XDG_*"]`).
        name: what to call it in logs and messages.
    """

    __slots__ = ("__weakref__", "_args", "_command", "_cwd", "_env", "_inherit", "_name", "_native")
    __match_args__ = ("command", "args")

    _command: str
    _args: tuple[str, ...]
    _cwd: str | None
    _env: Mapping[str, str]
    _inherit: Mode | tuple[str, ...]
    _name: str | None
    _native: _native.Server

    def __init__(
        self,
        command: Text,
        args: Sequence[Text] = (),
        *,
        cwd: Text | None = None,
        env: Mapping[str, str] | None = None,
        inherit: Inherit = "safe",
        name: str | None = None,
    ) -> None:
        self._command = _text(command, "command")
        self._args = tuple(_text(arg, f"args[{index}]") for index, arg in enumerate(_items(args, "args")))
        self._cwd = None if cwd is None else _text(cwd, "cwd")
        self._env = MappingProxyType(_environment(env))
        self._inherit = _inheritance(inherit)
        self._name = _display_name(name)
        mode: Mode
        extra: tuple[str, ...]
        if isinstance(self._inherit, tuple):
            mode, extra = "safe", self._inherit
        else:
            mode, extra = self._inherit, ()
        try:
            self._native = _native.Server(self._command, self._args, self._cwd, list(self._env.items()), mode, extra)
        except UnicodeError:
            # The error itself would quote the text, which may be a secret.
            raise ConfigError(
                "The command, an argument or a variable isn't valid text (a lone surrogate).",
                remedy="Programs are given UTF-8; rename the file, or take the character out.",
            ) from None

    @property
    def command(self) -> str:
        """The program: a name or a path."""
        return self._command

    @property
    def args(self) -> tuple[str, ...]:
        """Its arguments, without the program."""
        return self._args

    @property
    def cwd(self) -> str | None:
        """Its working directory; None: this process's at the time of the launch."""
        return self._cwd

    @property
    def env(self) -> Mapping[str, str]:
        """The variables set on top of the inherited ones; read-only. Holds secrets."""
        return self._env

    @property
    def inherit(self) -> Mode | tuple[str, ...]:
        """What it gets of this process's environment: a mode, or names added to the safe list."""
        return self._inherit

    @property
    def name(self) -> str | None:
        """What it was named; `label` is never None."""
        return self._name

    @property
    def label(self) -> str:
        """What to call it in logs and messages: the name, else the last part of the command."""
        return self._name or os.path.basename(self._command.rstrip(os.sep)) or self._command  # noqa: PTH119 - each launch asks

    @classmethod
    def from_sdk(
        cls, params: StdioServerParameters, *, inherit: Inherit = "safe", name: str | None = None
    ) -> StdioServer:
        """The MCP SDK's description of a server. Its `encoding` must be UTF-8: MCP knows no other.

        `encoding_error_handler` has no counterpart: frames are checked one by one (`on_noise`).
        """
        given: Any = params
        try:
            command, args, env, cwd, encoding = given.command, given.args, given.env, given.cwd, given.encoding
        except AttributeError:
            raise ConfigError(
                f"Expected an mcp.StdioServerParameters, not {_kind(given)}.",
                remedy="From a command: StdioServer(command, args). From an mcp.json: StdioServer.from_config(entry).",
            ) from None
        if str(encoding).lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise ConfigError(
                "The encoding of the parameters can't be used: MCP messages are UTF-8.", remedy="Leave encoding out."
            )
        return cls(command, args, cwd=cwd, env=env, inherit=inherit, name=name)

    @classmethod
    def from_uri(cls, uri: str, *, inherit: Inherit = "safe", name: str | None = None) -> StdioServer:
        """A `stdio://[host]?command=…&arg=…&cwd=…&env=NAME%3Dvalue` endpoint.

        The query is split at `&`, each part at its first `=`, and both halves are percent-decoded once; `+` is a
        plus. Keys are case-insensitive. `command`: the first non-blank one, else the host. `arg`: every one in
        order, empty ones too. `cwd`: at most one. `env`: the last of a repeated name wins.
        """
        from ._uri import parse

        return cls(**parse(uri), inherit=inherit, name=name)

    @classmethod
    def from_config(
        cls, entry: Mapping[str, Any], *, inherit: Inherit = "safe", name: str | None = None
    ) -> StdioServer:
        """An entry of an mcp.json: `{"command": …, "args": …, "env": …, "cwd": …}`.

        `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${userHome}` and `${pathSeparator}` are replaced in all four,
        as the clients that write such files do; any other `${…}`, and a variable that isn't set, is an error. Keys
        that only concern the client (`type`, `disabled`, `timeout`, …) are ignored; an entry that isn't started
        locally, asks for something that isn't done here, or has an unknown key is an error.
        """
        from ._config import read_entry

        return read_entry(entry, name=name).server(inherit=inherit)

    def replace(self, **changes: Any) -> StdioServer:
        """A copy with some of the constructor's arguments changed; checked like any other."""
        current: dict[str, Any] = {
            "command": self._command,
            "args": self._args,
            "cwd": self._cwd,
            "env": self._env,
            "inherit": self._inherit,
            "name": self._name,
        }
        unknown = changes.keys() - current.keys()
        if unknown:
            raise TypeError(f"replace() got an unexpected keyword argument {min(unknown)!r}")
        return StdioServer(**{**current, **changes})

    __replace__ = replace

    def _key(self) -> tuple[object, ...]:
        return self._command, self._args, self._cwd, frozenset(self._env.items()), self._inherit, self._name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StdioServer):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __copy__(self) -> StdioServer:
        return self

    def __deepcopy__(self, _memo: object) -> StdioServer:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._command, self._args, self._cwd, dict(self._env), self._inherit, self._name)

    def __repr__(self) -> str:
        # No values: variables hold secrets by custom, and arguments often enough.
        parts = [repr(self._command)]
        if self._args:
            parts.append(f"args=<{len(self._args)}>")
        if self._cwd is not None:
            parts.append(f"cwd={self._cwd!r}")
        if self._env:
            parts.append(f"env=<{', '.join(self._env)}>")
        if self._inherit != "safe":
            parts.append(f"inherit={self._inherit!r}")
        if self._name is not None:
            parts.append(f"name={self._name!r}")
        return f"StdioServer({', '.join(parts)})"


@final
class Shutdown:
    """How a server is ended: stdin is closed; then its tree is terminated, then killed, each after its grace.

    Args:
        close_grace: seconds it has to exit by itself once its stdin is closed.
        terminate_grace: seconds its tree has after SIGTERM.
        kill_wait: seconds to wait for the killed tree to be gone.
        descendants: what becomes of processes that a server left behind when it exited by itself.
    """

    __slots__ = ("_close_grace", "_descendants", "_kill_wait", "_terminate_grace")

    def __init__(
        self,
        close_grace: float = 2.0,
        terminate_grace: float = 2.0,
        kill_wait: float = 2.0,
        descendants: Literal["kill", "leave"] = "kill",
    ) -> None:
        self._close_grace = _seconds(close_grace, "close_grace")
        self._terminate_grace = _seconds(terminate_grace, "terminate_grace")
        self._kill_wait = _seconds(kill_wait, "kill_wait")
        if descendants not in ("kill", "leave"):
            raise ConfigError('Shutdown: descendants must be "kill" or "leave".')
        self._descendants: Literal["kill", "leave"] = descendants

    @property
    def close_grace(self) -> float:
        """Seconds from closing stdin to SIGTERM."""
        return self._close_grace

    @property
    def terminate_grace(self) -> float:
        """Seconds from SIGTERM to SIGKILL."""
        return self._terminate_grace

    @property
    def kill_wait(self) -> float:
        """Seconds to wait for the killed tree to be gone."""
        return self._kill_wait

    @property
    def descendants(self) -> Literal["kill", "leave"]:
        """What becomes of processes that a server left behind."""
        return self._descendants

    def _key(self) -> tuple[float, float, float, Literal["kill", "leave"]]:
        return self._close_grace, self._terminate_grace, self._kill_wait, self._descendants

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shutdown):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Shutdown, self._key()

    def __repr__(self) -> str:
        return (
            f"Shutdown(close_grace={self._close_grace:g}, terminate_grace={self._terminate_grace:g}, "
            f"kill_wait={self._kill_wait:g}, descendants={self._descendants!r})"
        )


def _rebuild(
    command: str,
    args: tuple[str, ...],
    cwd: str | None,
    env: dict[str, str],
    inherit: Inherit,
    name: str | None,
) -> StdioServer:
    return StdioServer(command, args, cwd=cwd, env=env, inherit=inherit, name=name)


def checked_server(given: object, taker: str) -> StdioServer:
    """The server that `taker` was given; callers without a type checker pass anything."""
    if isinstance(given, StdioServer):
        return given
    if isinstance(given, str):
        remedy = "Write StdioServer(command, [argument, …])."
    elif isinstance(given, Mapping):
        remedy = "StdioServer.from_config makes one from an entry of an mcp.json."
    else:
        remedy = "StdioServer.from_sdk makes one from the SDK's StdioServerParameters."
    raise ConfigError(f"{taker} takes a StdioServer, not {_kind(cast('object', given))}.", remedy=remedy)


def checked_shutdown(given: object) -> Shutdown:
    """What was given as `shutdown=`; None is the default."""
    if given is None:
        return Shutdown()
    if isinstance(given, Shutdown):
        return given
    remedy = "Write Shutdown(close_grace=…, terminate_grace=…)."
    raise ConfigError(f"shutdown must be a Shutdown, not {_kind(given)}.", remedy=remedy)


def checked_timeout(given: object, what: str) -> float | None:
    """Seconds, more than 0; None is no limit."""
    if given is None:
        return None
    remedy = "Give seconds, such as 30, or None for no limit."
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ConfigError(f"{what} must be a number of seconds or None, not {_kind(given)}.", remedy=remedy)
    if not 0 < given <= _LONGEST:
        raise ConfigError(f"{what} must be more than 0 seconds (and at most {_LONGEST:.0e}), or None.", remedy=remedy)
    return float(given)


def _kind(value: object) -> str:
    """What a wrong value is, in words; never the value itself."""
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def _text(value: object, what: str) -> str:
    if isinstance(value, os.PathLike):
        value = cast("os.PathLike[Any]", value).__fspath__()
    if not isinstance(value, str):
        if what == "command" and isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            remedy = (
                "The program comes first, its arguments are a list of their own: StdioServer(command, [argument, …])."
            )
        else:
            remedy = _TEXT_REMEDY.get(type(value), "")
        raise ConfigError(f"{what} must be text, not {_kind(cast('object', value))}.", remedy=remedy)
    return str(value)


_TEXT_REMEDY: dict[type, str] = {
    int: "Put the number in quotes.",
    float: "Put the number in quotes.",
    bytes: "Decode it, for example with os.fsdecode.",
}


def _items(value: object, what: str) -> Iterable[object]:
    if isinstance(value, (str, bytes, bytearray)) or not isinstance(value, Sequence):
        remedy = "Write each argument as an item of its own." if what == "args" else ""
        raise ConfigError(f"{what} must be a list of texts, not {_kind(value)}.", remedy=remedy)
    return cast("Sequence[object]", value)


def _environment(env: object) -> dict[str, str]:
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise ConfigError(
            f"env must be a mapping of names to texts, not {_kind(env)}.", remedy='Write env={"NAME": "value"}.'
        )
    checked: dict[str, str] = {}
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str):
            raise ConfigError(f"A name in env must be text, not {_kind(name)}.")
        if not isinstance(value, str):
            remedy = "Leave the variable out, or give an empty text." if value is None else ""
            raise ConfigError(
                f"env[{name!r}] must be text, not {_kind(value)}.", remedy=remedy or _TEXT_REMEDY.get(type(value), "")
            )
        checked[str(name)] = str(value)
    return checked


def _inheritance(inherit: object) -> Mode | tuple[str, ...]:
    if isinstance(inherit, str):
        for mode in _MODES:
            if inherit == mode:
                return mode
        # Not quoted: it may be a variable's value, put here by mistake.
        raise ConfigError(
            'inherit must be "safe", "all", "none" or a list of names, not another text.',
            remedy='For a single variable write inherit=["NAME"].',
        )
    names = tuple(_text(name, f"inherit[{index}]") for index, name in enumerate(_items(inherit, "inherit")))
    for name in names:
        if name.lower() in _MODES:
            raise ConfigError(
                f'In a list, inherit has names of variables; "{name.lower()}" isn\'t one.',
                remedy=f'Write inherit="{name.lower()}" without a list; names are added to the safe ones anyway.',
            )
    return names


def _display_name(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise ConfigError(f"name must be text, not {_kind(name)}.")
    if not name.strip() or not name.isprintable():
        raise ConfigError("name must be printable text that isn't blank.")
    return str(name)


def _seconds(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"Shutdown: {what} must be a number of seconds, not {_kind(value)}.")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not (0 <= seconds < math.inf):
        raise ConfigError(f"Shutdown: {what} must be a finite number of seconds, 0 or more.")
    if seconds > _LONGEST:
        raise ConfigError(f"Shutdown: {what} must be at most {_LONGEST:.0e} seconds.")
    return seconds
