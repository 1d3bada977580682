"""What is printed, and how: plain aligned text, JSON, colour on a terminal, nothing that a server can forge."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stockade._errors import StockadeError

Colour = Literal["bold", "dim", "green", "yellow"]
_CODES: dict[Colour, str] = {"bold": "1", "dim": "2", "green": "32", "yellow": "33"}


def complain(message: str) -> None:
    """One or two sentences on stderr."""
    print(f"stockade: {clean(message)}", file=sys.stderr, flush=True)


def explain(error: StockadeError, *, json: bool) -> None:
    """An error for people on stderr and, where JSON is asked for, for programs on stdout."""
    if json:
        dump({"error": _fields(error)})
    complain(str(error))
    tail: str = getattr(getattr(error, "report", error), "stderr_tail", "")
    lines = tail.rstrip("\n").split("\n")
    if len(lines) > 1:  # a single one stands in the sentence already
        print("Its last lines on stderr:", *(f"  {clean(line)}" for line in lines[-10:]), sep="\n", file=sys.stderr)


def dump(value: Any) -> None:
    """JSON on stdout; in ASCII, so that it can be shown on any terminal."""
    import json

    print(json.dumps(value, indent=2))


def table(rows: Iterable[Sequence[str]], *, indent: str = "") -> None:
    """Columns, two spaces apart; the last one as long as it likes."""
    cleaned = [[clean(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)][:-1]
    for row in cleaned:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print(indent + "  ".join([*cells, row[-1]]).rstrip())


def clean(text: str) -> str:
    """Text that may come from a server, as lines without control or direction characters."""
    from stockade._text import printable

    # Only newlines separate: printable() makes other line separators harmless.
    return "\n".join(printable(line.removesuffix("\r")) for line in text.split("\n"))


def coloured(text: str, colour: Colour, stream: TextIO | None = None) -> str:
    """The text in a colour, if this goes to a terminal that wants it."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if wants_colour(stream or sys.stdout) else text


def wants_colour(stream: TextIO) -> bool:
    """Whether it is a terminal, and nobody said no (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def is_terminal(stream: TextIO) -> bool:
    """Whether it is a terminal that can do more than print lines."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def _fields(error: StockadeError) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "code": error.code,
        "stage": error.stage,
        "message": error.message,
        "remedy": error.remedy,
        "operation": error.operation,
        "native_code": error.native_code,
    }
    tried = getattr(error, "tried", None)
    if tried is not None:
        fields["tried"] = [{"path": path, "reason": reason} for path, reason in tried]
    report = getattr(error, "report", None)
    if report is not None:
        fields["exit"] = {
            "returncode": report.returncode,
            "ended_by": report.ended_by,
            "cause": report.cause,
            "stderr_tail": report.stderr_tail,
        }
    return fields
