"""What a server wrote is made safe to show, on one line."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade._text import excerpt, last_line, printable, recent


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
        # A server can't hide the rest of its line.
        (b"ok \x1b]deleting /home", "ok deleting /home"),
        (b"\x1b(Bset", "set"),
        (b"alone \x1b\x00here", "alone here"),
        (b"bell\x07 null\x00 delete\x7f", "bell null delete"),
        (b"\xff\xc3", "\ufffd\ufffd"),
        ("right \u202eto left\u202c \u2066x\u2069".encode(), "right to left x"),
        ("no\u200bwidth\ufeff".encode(), "nowidth"),
        ("line\u2028paragraph\u2029next\x85".encode(), "line paragraph next "),
        ("👩\u200d💻".encode(), "👩\u200d💻"),
        ("lone \ud800 surrogate", "lone \ufffd\ufffd\ufffd surrogate"),
        (b"", ""),
    ],
)
def test_text_is_made_safe(data: bytes | str, shown: str) -> None:
    assert printable(data) == shown
    if isinstance(data, bytes):
        assert excerpt(data) == shown


def safe(shown: str) -> bool:
    """No control but the tab, nothing that reorders what is around it, and one line."""
    if len(shown.splitlines()) > 1:
        return False
    return all(
        char == "\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in shown
    ) and not any(unicodedata.bidirectional(char) in OVERRIDES for char in shown)


OVERRIDES = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def test_no_character_is_shown_that_moves_or_hides_others() -> None:
    for code in range(sys.maxunicode + 1):
        assert safe(printable(chr(code))), hex(code)


@given(st.one_of(st.binary(), st.text(st.characters())))
def test_anything_becomes_one_safe_line(data: bytes | str) -> None:
    shown = printable(data)
    assert safe(shown)
    assert printable(shown) == shown
    shown.encode()


def test_a_quoted_line_is_the_last_one_and_bounded() -> None:
    assert last_line("one\ntwo\n") == "two"
    assert last_line("one\n  \n") == ""
    assert last_line("x" * 200) == "x" * 200
    assert last_line("x" * 201) == "x" * 200 + "…"


def test_what_is_kept_of_stderr_is_its_end_cleaned_and_bounded() -> None:
    assert recent([]) == ""
    assert recent([b"one", b"\x1b[1mtwo\xff"]) == "one\ntwo\ufffd"
    assert recent([b"%d" % n for n in range(100)]).split("\n") == [str(n) for n in range(50, 100)]
    whole = recent([b"x" * 9000, b"y" * 9000])
    assert whole == "y" * 9000
    for char in "xü漢🙂":
        kept = recent([b"before", (char * 100_000).encode() + b"!"])
        assert kept.endswith(char + "!")
        assert 16_000 < len(kept.encode()) <= 16 * 1024


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
