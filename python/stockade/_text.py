"""Text that came from a server, made safe to show."""

from __future__ import annotations

from . import _native

# What a report quotes of a line, and keeps of stderr.
_QUOTED = 200
_TAIL_LINES = 50
_TAIL_BYTES = 16 * 1024


def printable(data: bytes | str) -> str:
    """One line for logs and messages, cleaned by the executor's own rules, as reports are."""
    # A lone surrogate becomes invalid UTF-8, which is replaced like any other.
    return _native.sanitise(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)


def excerpt(data: bytes, limit: int = 120) -> str:
    """The beginning of a line that may be very long."""
    # A code point is at most four bytes; what is cut in the middle of one is cut again below.
    text = printable(data[: limit * 4])
    if len(text) <= limit and len(data) <= limit * 4:
        return text
    return text[:limit] + "…"


def last_line(tail: str) -> str:
    """The last line of a clean tail, as a sentence may quote it: bounded, and empty where there is nothing to say."""
    line = tail.rstrip("\n").rpartition("\n")[2].strip()
    return line if len(line) <= _QUOTED else line[:_QUOTED] + "…"


def recent(lines: list[bytes]) -> str:
    """The last lines of stderr, cleaned, as many as a report has."""
    kept: list[str] = []
    room = _TAIL_BYTES
    for line in reversed(lines[-_TAIL_LINES:]):
        clean = printable(line[-_TAIL_BYTES:])
        size = len(clean.encode()) + 1
        if size > room and kept:
            break
        # Of a very long last line, the end.
        kept.append(clean if size <= room else "…" + clean.encode()[-(room - 4) :].decode("utf-8", "ignore"))
        room -= size
    return "\n".join(reversed(kept))
