"""What a server wrote is made safe to show, on one line."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade._text import excerpt, printable


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain words", "plain words"),
        ("größe ∆ 漢字 🙂".encode(), "größe ∆ 漢字 🙂"),
        (b"a\tb", "a\tb"),
        (b"a\x0bb\x0cc", "a b c"),
        (b"a\rb\nc", "a b c"),
        (b"\x1b[1;31mred\x1b[0m and \x1b[2Kclear", "red and clear"),
        (b"\x1b]0;title\x07text \x1b]8;;http://x\x1b\\link", "text link"),
        (b"\x1b]0;a title without an end", ""),
        (b"alone \x1b here", "alone \ufffd here"),
        (b"bell\x07 null\x00 delete\x7f", "bell\ufffd null\ufffd delete\ufffd"),
        (b"\xff\xc3", "\ufffd\ufffd"),
        ("right \u202eto left\u202c \u2066x\u2069".encode(), "right \ufffdto left\ufffd \ufffdx\ufffd"),
        ("no\u200bwidth\ufeff".encode(), "no\ufffdwidth\ufffd"),
        ("line\u2028paragraph\u2029next\x85".encode(), "line\ufffdparagraph\ufffdnext\ufffd"),
        ("wide\u3000and\u00a0hard".encode(), "wide and hard"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        (b"", ""),
    ],
)
def test_text_is_made_safe(data: bytes | str, shown: str) -> None:
    assert printable(data) == shown
    if isinstance(data, bytes):
        assert excerpt(data) == shown


def test_no_character_is_shown_that_moves_or_hides_others() -> None:
    for code in range(sys.maxunicode + 1):
        shown = printable(chr(code))
        assert shown == "\t" or shown.isprintable(), hex(code)


@given(st.one_of(st.binary(), st.text()))
def test_anything_becomes_one_safe_line(data: bytes | str) -> None:
    shown = printable(data)
    assert shown.replace("\t", "").isprintable()
    assert printable(shown) == shown
    shown.encode()


@given(st.one_of(st.binary(max_size=600), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))))
def test_an_excerpt_is_the_beginning_and_says_when_there_is_more(data: bytes) -> None:
    shown = excerpt(data, 20)
    assert len(shown) <= 21
    whole = printable(data)
    if len(data) <= 80 and len(whole) <= 20:
        assert shown == whole
    else:
        assert shown.endswith("…")


@pytest.mark.parametrize("char", ["x", "ü", "漢", "🙂"])
@pytest.mark.parametrize("count", [119, 120, 121, 100_000])
def test_the_limit_counts_characters_whatever_their_size(char: str, count: int) -> None:
    shown = excerpt((char * count).encode())
    assert shown == (char * count if count <= 120 else char * 120 + "…")
