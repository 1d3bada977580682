"""The `stdio://` endpoint grammar: text in, a server's parts out."""

from __future__ import annotations

import re
import sys
from typing import TypedDict

from ._errors import ConfigError

_SCHEME = "stdio://"
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
# What may be quoted: a misspelt key. Anything else may be the rest of a value with an unescaped &.
_WORD = re.compile(r"[A-Za-z]{1,12}")


class Parts(TypedDict):
    """What a `stdio://` endpoint says."""

    command: str
    args: list[str]
    cwd: str | None
    env: dict[str, str]


def parse(uri: object) -> Parts:
    """Split and decode; `ConfigError` names the part that is wrong, never its value (it may be a secret)."""
    if not isinstance(uri, str):
        raise ConfigError(f"A stdio:// endpoint must be text, not a value of type {type(uri).__name__}.")
    if uri[: len(_SCHEME)].lower() != _SCHEME:
        raise ConfigError("The endpoint doesn't start with stdio://.")
    rest = uri[len(_SCHEME) :]
    if "#" in rest:
        raise ConfigError("The stdio:// endpoint has a fragment.", remedy="Write # as %23.")
    host, _, query = rest.partition("?")
    host = _host(host)

    commands: list[str] = []
    args: list[str] = []
    folders: list[str] = []
    env: dict[str, str] = {}
    for number, part in enumerate(query.split("&"), start=1):
        if not part:
            continue
        raw_key, equals, raw_value = part.partition("=")
        key = _decode(raw_key, "a key")
        word = key.lower()
        if word == "command":
            commands.append(_decode(raw_value, "command"))
        elif word == "arg":
            args.append(_decode(raw_value, f"arg number {len(args) + 1}"))
        elif word == "cwd":
            folders.append(_decode(raw_value, "cwd"))
        elif word == "env":
            _set(env, _decode(raw_value, "env"))
        else:
            named = f" ({key!r})" if equals and _WORD.fullmatch(key) else ""
            raise ConfigError(
                f"Part number {number} of the stdio:// endpoint's query has no known key{named}.",
                remedy="The keys are command, arg, cwd and env; & in a value is written %26.",
            )

    command = next((text for text in commands if text.strip()), host)
    if not command.strip():
        raise ConfigError("The stdio:// endpoint names no command.", remedy="Add command=… or a host part.")
    if len(folders) > 1:
        raise ConfigError("The stdio:// endpoint has more than one cwd.")
    return Parts(command=command, args=args, cwd=folders[0] if folders else None, env=env)


def _host(raw: str) -> str:
    # URI builders put a slash between host and query; it says nothing. A longer path would.
    host, slash, path = raw.partition("/")
    if slash and path:
        raise ConfigError("The stdio:// endpoint has a path.", remedy="Give the program's path as command=… instead.")
    return _decode(host, "the host part")


def _set(env: dict[str, str], text: str) -> None:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError("An env of the stdio:// endpoint isn't NAME=value.", remedy="Write = as %3D.")
    if sys.platform == "win32":
        for known in [known for known in env if known.upper() == name.upper()]:
            del env[known]
    env[name] = value


def _decode(raw: str, what: str) -> str:
    if _BAD_ESCAPE.search(raw):
        raise ConfigError(f"In the stdio:// endpoint, {what} has a % without two hex digits.", remedy="Write % as %25.")
    try:
        data = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), raw.encode())
        return data.decode()
    except UnicodeError:
        # The cause would quote the bytes.
        raise ConfigError(f"In the stdio:// endpoint, {what} isn't valid UTF-8.") from None
