"""What is printed, and how: plain aligned text, JSON, colour on a terminal.

What comes from a server can't forge a line of ours: it is put on one line, but for a tool's answer (which is the whole
output) and the last lines of stderr (which are indented).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stockade._errors import StockadeError

Colour = Literal["bold", "dim", "green", "yellow"]
_CODES: dict[Colour, str] = {"bold": "1", "dim": "2", "green": "32", "yellow": "33"}


# A sentence with all its paths is shorter; what a server puts into one may not be.
_LONGEST = 2000


class Unwritable(Exception):
    """stdout takes no more: a full disk, say."""


def say(text: str = "") -> None:
    """A part of the result, on stdout."""
    try:
        print(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(_reason(error)) from error


def flush() -> None:
    """Bring the result out."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(_reason(error)) from error


def complain(message: str) -> None:
    """One or two sentences on stderr, on one line."""
    remark(f"stockade: {one_line(message, _LONGEST)}")


def remark(text: str) -> None:
    """A line on stderr; there is nobody to tell when nobody reads it."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def explain(error: StockadeError, *, json: bool) -> None:
    """An error for people on stderr and, where JSON is asked for, for programs on stdout."""
    if json:
        dump({"error": _fields(error)})
    complain(str(error))
    tail: str = getattr(getattr(error, "report", error), "stderr_tail", "")
    lines = tail.rstrip("\n").split("\n")
    if len(lines) > 1:  # a single one stands in the sentence already
        remark("\n".join(["Its last lines on stderr:", *(f"  {one_line(line, _LONGEST)}" for line in lines[-10:])]))


def dump(value: Any) -> None:
    """JSON on stdout; in ASCII, so that it can be shown on any terminal."""
    import json

    say(json.dumps(value, indent=2))


def table(rows: Iterable[Sequence[str]], *, indent: str = "") -> None:
    """Columns, two spaces apart; the last one as long as it likes."""
    cleaned = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)][:-1]
    for row in cleaned:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        say(indent + "  ".join([*cells, row[-1]]).rstrip())


def clean(text: str) -> str:
    """Text that may come from a server, as lines without control or direction characters."""
    from stockade._text import printable

    # Only newlines separate: printable() makes other line separators harmless.
    return "\n".join(printable(line.removesuffix("\r")) for line in text.split("\n"))


def one_line(text: str, limit: int | None = None) -> str:
    """The same on one line; cut where it is longer than `limit`."""
    from stockade._text import printable

    if limit is not None and len(text) > limit:
        text = text[:limit] + "…"
    # Before the cleaning: an escape sequence without an end may reach over lines.
    return " ".join(printable(part).replace("\t", " ").strip() for part in text.splitlines())


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


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


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
