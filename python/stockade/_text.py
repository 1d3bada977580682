"""Text that came from a server, made safe to show."""

from __future__ import annotations

import re

# Colours and cursor movements go as a whole: their remains would only be noise.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")


def printable(data: bytes | str) -> str:
    """One line for logs and messages: no control or direction characters, invalid UTF-8 replaced."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    return "".join(_shown(char) for char in text)


def excerpt(data: bytes, limit: int = 120) -> str:
    """The beginning of a line that may be very long."""
    # A code point is at most four bytes; what is cut in the middle of one is cut again below.
    text = printable(data[: limit * 4])
    if len(text) <= limit and len(data) <= limit * 4:
        return text
    return text[:limit] + "…"


def _shown(char: str) -> str:
    if char.isprintable() or char == "\t":
        return char
    return " " if char.isspace() and char not in "\x1c\x1d\x1e\x1f\x85\u2028\u2029" else "\ufffd"
