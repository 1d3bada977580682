"""`${…}` in mcp.json entries, as the clients that write them read it; never passed on unread."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ._errors import ConfigError

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)(\}?)")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?:(:-)(.*))?", re.DOTALL)
_ENV_ANY_NAME = re.compile(r"env:([^=:]+)")
# What may be quoted of a placeholder that is unknown. The rest may be a default, or a password with "${" in it.
_NAME = re.compile(r"(?:(?:env|input|config|command|workspaceFolder):)?[A-Za-z_][A-Za-z0-9_]{0,39}")

# Editors' own words; to them `${file}` is never a variable of the environment.
_EDITOR_WORDS = frozenset({
    "command", "config", "cwd", "defaultBuildTask", "execPath", "extensionInstallFolder", "file", "fileBasename",
    "fileBasenameNoExtension", "fileDirname", "fileDirnameBasename", "fileExtname", "fileWorkspaceFolder",
    "fileWorkspaceFolderBasename", "input", "lineNumber", "relativeFile", "relativeFileDirname", "selectedText",
    "workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "workspaceRootFolderName",
})  # fmt: skip


def expand(text: str, *, where: str, workspace: str | None = None) -> str:
    """Replace every placeholder; `ConfigError` (starting with `where`) for one that has no exact meaning here.

    `$NAME` without braces, and what a replacement brings in, stay as they are.
    """
    return _PLACEHOLDER.sub(lambda found: _meaning(found, where, workspace), text)


def _meaning(found: re.Match[str], where: str, workspace: str | None) -> str:
    inner, closed = found[1], found[2]
    if not closed:
        raise ConfigError(
            f"{where} has a ${{ without its own }}; one placeholder can't stand inside another.",
            remedy="Add the }, or put the text with ${ into a variable and write ${env:NAME}.",
        )
    if inner == "userHome":
        return _home(where)
    if inner in ("pathSeparator", "/"):
        return os.sep
    if inner in ("workspaceFolder", "workspaceFolderBasename") and workspace is not None:
        return workspace if inner == "workspaceFolder" else Path(workspace).name
    if inner.startswith("input:"):
        raise ConfigError(
            f"{where} has {_quoted(inner)}, which only the client can ask for.",
            remedy="Put the value into a variable and write ${env:NAME}.",
        )
    if inner in _EDITOR_WORDS:
        raise ConfigError(
            f"{where} has {_quoted(inner)}, which only means something inside an editor.",
            remedy="Write the value itself, or ${env:NAME}.",
        )
    if (variable := _VARIABLE.fullmatch(inner)) is not None:
        name, default = variable[1], variable[3] if variable[2] else None
    elif (variable := _ENV_ANY_NAME.fullmatch(inner)) is not None:
        name, default = variable[1], None
    else:
        raise ConfigError(
            f"{where} has {_quoted(inner)}, a placeholder that isn't understood.",
            remedy="Known are ${NAME}, ${NAME:-default}, ${env:NAME}, ${userHome} and ${pathSeparator}.",
        )
    value = os.environ.get(name, default)
    if value is None:
        raise ConfigError(
            f"{where} needs the variable {name}, which isn't set.",
            code="config-variable-unset",
            remedy=f"Set it, or write ${{{name}:-default}}.",
        )
    return value


def _home(where: str) -> str:
    try:
        return str(Path.home())
    except RuntimeError:  # neither HOME nor an entry in the system's list of users
        raise ConfigError(
            f"{where} has '${{userHome}}', and this user has no home folder.",
            remedy="Set HOME, or write the path itself.",
        ) from None


def _quoted(inner: str) -> str:
    name = _NAME.match(inner)
    shown = name[0] if name else ""
    return repr("${" + shown + ("" if shown == inner else "…") + "}")
