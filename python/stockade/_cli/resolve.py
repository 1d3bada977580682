"""`stockade resolve`: what would be started, and where it was looked for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stockade._errors import CommandNotFoundError, StockadeError
from stockade._resolve import resolve

from .output import coloured, dump, explain, one_line, remark, say, table
from .servers import described

if TYPE_CHECKING:
    from stockade._native import ResolvedCommand

    from .parser import Options
    from .servers import Described


def execute(options: Options) -> int:
    """Report it; nothing is started and no variable's value is shown."""
    try:
        subject = described(options)
        found = resolve(subject.server)
    except StockadeError as error:
        explain(error, json=options.json)
        if isinstance(error, CommandNotFoundError):
            for path, reason in error.tried:
                remark("  " + one_line(f"{path}: {reason}"))
        return 1
    argv, masked = _argv(found, subject)
    if options.json:
        dump({
            "kind": found.kind,
            "program": found.program,
            "argv": argv,
            "command_line": None if masked else found.command_line,
            "cwd": subject.server.cwd,
            "env": sorted(subject.server.env),
            "tried": [{"path": place.path, "reason": place.reason} for place in found.tried],
        })  # fmt: skip
        return 0
    rows = [("kind", found.kind), ("program", found.program), ("argv", shlex.join(argv))]
    if found.command_line is not None and not masked:
        rows.append(("command line", found.command_line))
    if subject.server.cwd is not None:
        rows.append(("cwd", subject.server.cwd))
    if subject.server.env:
        rows.append(("env", " ".join(sorted(subject.server.env))))
    table(rows)
    if found.tried:
        say(coloured("looked for", "bold"))
        table([(place.path, place.reason) for place in found.tried], indent="  ")
    return 0


def _argv(found: ResolvedCommand, subject: Described) -> tuple[list[str], bool]:
    """What is handed over, with the arguments of an mcp.json as they are written there; whether that differs."""
    args, shown = list(subject.server.args), list(subject.shown_args)
    if args == shown:
        return found.argv, False
    return [*found.argv[: len(found.argv) - len(args)], *shown], True
