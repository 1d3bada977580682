"""JSON as editors keep it: comments and trailing commas. They become blanks, so that positions in errors stay right."""

from __future__ import annotations

import re

# Strings come first in both, so that nothing inside of one is taken for anything else. One without an end goes to the
# end of the text, as does such a comment: were they no match, the search would begin anew at each of their characters.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_COMMENT = re.compile(rf"{_STRING}|(?P<extra>//[^\r\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|(?P<extra>,)(?=\s*[}}\]])", re.DOTALL)
_NOT_A_LINE_END = re.compile(r"[^\r\n]")


def plain(text: str) -> str:
    """The same document as strict JSON, of the same length; linear in time."""
    return _TRAILING_COMMA.sub(_blanked, _COMMENT.sub(_blanked, text))


def _blanked(found: re.Match[str]) -> str:
    return found[0] if found["extra"] is None else _NOT_A_LINE_END.sub(" ", found[0])
