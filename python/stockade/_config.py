"""mcp.json files and their entries, as MCP clients write them: find a server, check it, say what is wrong where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from ._errors import ConfigError
from ._placeholders import expand

if TYPE_CHECKING:
    import os

    from ._server import Inherit, StdioServer

T = TypeVar("T")

# Where clients keep their servers: most; VS Code; Zed; VS Code's settings.json; Amp.
_SECTIONS: tuple[tuple[str, ...], ...] = (
    ("mcpServers",),
    ("servers",),
    ("context_servers",),
    ("mcp", "servers"),
    ("mcp", "mcpServers"),
    ("mcp.servers",),
    ("amp.mcpServers",),
)

_STARTED = frozenset({"command", "args", "env", "cwd"})
_TRANSPORT = frozenset({"type", "transport", "transportType"})
_LOCAL = frozenset({"stdio", "local"})
_REMOTE = frozenset({"url", "serverUrl", "httpUrl", "uri", "endpoint", "headers", "oauth"})

# What only the client itself acts on: approval, choice of tools, timing, display. Compared without case, "_" and "-".
_CLIENT_ONLY = frozenset({
    "active", "allowedtools", "alwaysallow", "alwaysload", "autoallow", "autoapprove", "autostart", "connecttimeout",
    "connectiontimeout", "deferloading", "description", "dev", "disabled", "disabledtools", "displayname",
    "enabled", "enabledtools", "excludetools", "extensionname", "gallery", "homepage", "icon", "icons", "id",
    "includetools", "initializationtimeout", "inittimeout", "isactive", "keepalive", "label", "longrunning", "meta",
    "metadata", "name", "note", "notes", "provider", "providerurl", "reconnect", "registryurl", "remember",
    "repository", "requesttimeout", "required", "restart", "retries", "settings", "source", "startuptimeout",
    "startuptimeoutms", "startuptimeoutsec", "tags", "timeout", "timeoutms", "title", "toolcalltimeout", "toolfilter",
    "tools", "toolsets", "tooltimeout", "tooltimeoutsec", "trust", "version", "watch", "watchpaths",
})  # fmt: skip

_SAFETY = "Remove the key if the server does without it, or describe the server on the command line or in Python."
_LOCALLY = "Only servers that are started locally can be used."
# Many times what any client writes; whatever a path leads to (/dev/zero) has an end here.
_LARGEST = 4 * 1024 * 1024


class Entry(NamedTuple):
    """A checked entry, placeholders replaced."""

    command: str
    args: tuple[str, ...]
    cwd: str | None
    env: dict[str, str]
    name: str | None
    shown_args: tuple[str, ...]
    """The arguments as they were written: fit to be shown, since what a placeholder stands for may be a secret."""
    where: str

    def server(self, *, inherit: Inherit = "safe") -> StdioServer:
        """The server it describes."""
        from ._server import StdioServer

        try:
            return StdioServer(self.command, self.args, cwd=self.cwd, env=self.env, inherit=inherit, name=self.name)
        except ConfigError as error:
            raise ConfigError(f"{self.where}: {error.message}", code=error.code, remedy=error.remedy) from None


def load(path: str | os.PathLike[str], name: str) -> Entry:
    """The server of that name in an mcp.json file; a `ConfigError` names file, server and key."""
    file = Path(path)
    document = _read(file)
    _once(document, {keys[0] for keys in _SECTIONS}, str(file))
    found = [
        section
        for keys in _SECTIONS
        if isinstance(section := _section(document, keys, file), Mapping) and name in section
    ]
    if not found:
        _not_there(document, file, name)
    if len(found) > 1:
        raise ConfigError(
            f"{file}: there are several servers named {name!r}, in different sections.", remedy="Rename one."
        )
    _once(found[0], {name}, str(file))
    return read_entry(found[0][name], name=name, file=file)


def read_entry(entry: object, *, name: str | None = None, file: Path | None = None) -> Entry:
    """Check an entry and replace its placeholders."""
    where = ", ".join(
        [*([str(file)] if file else []), f"server {name!r}" if name is not None else "the server's entry"]
    )
    if not isinstance(entry, Mapping):
        raise ConfigError(
            f"{where}: expected an object with a command, not {_kind(entry)}.",
            remedy='An entry looks like {"command": "npx", "args": ["-y", "some-server"]}.',
        )
    _once(cast("object", entry), None, where)
    given = _flattened(cast("Mapping[object, object]", entry))
    _check_keys(given, where)
    workspace = _workspace(file)

    def text(value: object, key: str) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{where}: {key} must be text, not {_kind(value)}.", remedy=_text_remedy(key, value))
        return expand(value, where=f"{where}: {key}", workspace=workspace)

    if given.get("command") is None:
        raise ConfigError(f"{where}: it has no command.", remedy=_LOCALLY)
    args = given.get("args")
    if args is None:
        args = []
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise ConfigError(
            f"{where}: args must be a list of texts, not {_kind(args)}.",
            remedy='Write each argument as an item of its own: ["-y", "some-server"].',
        )
    cwd = given.get("cwd")
    written = cast("Sequence[object]", args)
    expanded = tuple(text(arg, f"args[{index}]") for index, arg in enumerate(written))
    return Entry(
        command=text(given["command"], "command"),
        args=expanded,
        cwd=None if cwd is None else text(cwd, "cwd"),
        env=_environment(given.get("env"), where, text),
        name=name,
        shown_args=tuple(str(arg) for arg in written),
        where=where,
    )


def _environment(env: object, where: str, text: Callable[[object, str], str]) -> dict[str, str]:
    if env is None:
        return {}
    if not isinstance(env, Mapping):
        raise ConfigError(
            f"{where}: env must be an object of names and texts, not {_kind(env)}.", remedy='Write {"NAME": "value"}.'
        )
    _once(cast("object", env), None, f"{where}: env")
    checked: dict[str, str] = {}
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str):
            raise ConfigError(f"{where}: a name in env must be text, not {_kind(name)}.")
        # VS Code allows numbers here; an integer can only mean its digits.
        whole = isinstance(value, int) and not isinstance(value, bool)
        checked[name] = text(str(value) if whole else value, f"env[{name!r}]")
    return checked


def _flattened(entry: Mapping[object, object]) -> dict[str, object]:
    """The entry with text keys; Zed's older `"command": {"path": …, "args": …, "env": …}` becomes the common form."""
    given = {str(key): value for key, value in entry.items()}
    command = given.get("command")
    if isinstance(command, Mapping):
        inner = {str(key): value for key, value in cast("Mapping[object, object]", command).items()}
        if "path" in inner:
            inner["command"] = inner.pop("path")
            del given["command"]
            for key, value in inner.items():
                given.setdefault(key, value)
    return given


def _check_keys(given: Mapping[str, object], where: str) -> None:
    for key in sorted(_TRANSPORT & given.keys()):
        kind = given[key]
        if kind is not None and not (isinstance(kind, str) and kind.lower() in _LOCAL):
            said = f" ({kind!r})" if isinstance(kind, str) else ""
            raise ConfigError(f"{where}: its {key}{said} says that it isn't a stdio server.", remedy=_LOCALLY)
    for key, value in given.items():
        if key in _STARTED or key in _TRANSPORT or _says_nothing(value):
            continue
        if key in _REMOTE:
            raise ConfigError(f"{where}: its {key} says that it isn't a stdio server.", remedy=_LOCALLY)
        if key == "encoding" and value in ("utf-8", "utf8"):
            continue
        if (key,) in _SECTIONS and isinstance(value, Mapping):
            raise ConfigError(
                f"{where}: this is a whole file, with servers under {key!r}.",
                remedy=f"Give one server's entry: document[{key!r}][NAME].",
            )
        plain = key.lower().replace("_", "").replace("-", "")
        if plain not in _CLIENT_ONLY and not key.startswith(("_", "$", "//", "x-")):
            raise ConfigError(f"{where}: the key {key!r} isn't understood, and it may matter.", remedy=_SAFETY)


def _text_remedy(key: str, value: object) -> str:
    if key == "command" and isinstance(value, Sequence):
        return "command is the program alone; its arguments are a list of their own, args."
    if value is None:
        return "Leave it out, or write an empty text."
    if isinstance(value, (bool, int, float)):
        return "Put it in quotes."
    return ""


def _says_nothing(value: object) -> bool:
    return value is None or value is False or value in ("", [], {})


def _workspace(file: Path | None) -> str | None:
    """What `${workspaceFolder}` means: the folder whose `.vscode`, `.cursor` or the like holds the file."""
    if file is None:
        return None
    folder = file.absolute().parent
    return str(folder.parent) if folder.name in (".vscode", ".cursor") else None


def _read(file: Path) -> Mapping[str, Any]:
    import json

    from ._jsonc import plain

    try:
        with file.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        remedy = "Correct the path, or the file's permissions."
        raise ConfigError(f"{file}: can't be read ({why}).", code="config-unreadable", remedy=remedy) from error
    if len(data) > _LARGEST:
        raise ConfigError(
            f"{file}: has more than {_LARGEST} bytes.",
            code="config-unreadable",
            remedy="Give the file in which a client keeps its servers.",
        )
    try:
        # PowerShell's ">" writes UTF-16 with a mark.
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeError:
        raise ConfigError(f"{file}: isn't UTF-8 text.", code="config-unreadable", remedy="Save it as UTF-8.") from None
    try:
        document: object = json.loads(plain(text), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{file}: isn't JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            code="config-unreadable",
            remedy="Correct it there; comments and trailing commas are allowed.",
        ) from None
    except (RecursionError, ValueError):
        raise ConfigError(f"{file}: isn't usable JSON: nested too deep, or a number too long.") from None
    if not isinstance(document, Mapping):
        raise ConfigError(f'{file}: expected an object with "mcpServers" or "servers", not {_kind(document)}.')
    return cast("Mapping[str, Any]", document)


class _Repeating(dict[str, Any]):
    """An object in which keys stand more than once."""

    repeated: frozenset[str]


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) == len(members):
        return made
    from collections import Counter

    repeating = _Repeating(made)
    counts = Counter(key for key, _ in members)
    repeating.repeated = frozenset(key for key, count in counts.items() if count > 1)
    return repeating


def _once(value: object, keys: Collection[str] | None, where: str) -> None:
    """Refuse an object with one of these keys (None: any) twice: which of the two was meant isn't guessed."""
    repeated = value.repeated if isinstance(value, _Repeating) else frozenset[str]()
    for key in sorted(repeated if keys is None else repeated.intersection(keys)):
        raise ConfigError(f"{where}: the key {key[:80]!r} stands there twice.", remedy="Remove one of them.")


def _section(document: Mapping[str, Any], keys: tuple[str, ...], file: Path) -> Mapping[str, Any] | None:
    value: Any = document
    for depth, key in enumerate(keys):
        value = value.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            path = ".".join(keys[: depth + 1])
            raise ConfigError(f"{file}: {path} must be an object, not {_kind(value)}.")
        value = cast("Mapping[str, Any]", value)
    return value


def _not_there(document: Mapping[str, Any], file: Path, name: str) -> NoReturn:
    sections = [section for keys in _SECTIONS if (section := _section(document, keys, file)) is not None]
    if not sections:
        raise ConfigError(
            f'{file}: has no "mcpServers" or "servers".',
            code="config-no-servers",
            remedy="Give the file in which a client keeps its servers.",
        )
    names = sorted({name for section in sections for name in section})
    listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    raise ConfigError(
        f"{file}: there is no server named {name!r}.",
        code="config-no-such-server",
        remedy=f"It has: {listed}." if names else "It has none.",
    )


def _kind(value: object) -> str:
    """What a wrong value is, in JSON's words; never the value itself."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return "a list"
    return f"a value of type {type(value).__name__}"
