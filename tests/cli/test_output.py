"""What stands on a line of ours, whoever wrote it."""

from __future__ import annotations

import pytest

from stockade._cli.notice import Notice
from stockade._cli.output import complain, one_line, table


def test_a_text_with_lines_becomes_one_without_controls() -> None:
    said = "no\r\nstockade: forged\x1b[2J\u2028more\tand\u202e more"

    line = one_line(said)

    assert line.startswith("no stockade: forged")
    assert line.isprintable()


def test_an_escape_without_an_end_hides_nothing_of_the_next_line() -> None:
    assert one_line("\x1b]0;title\nwhat matters").endswith("what matters")


def test_what_is_too_long_is_cut() -> None:
    assert one_line("x" * 500, 10) == "x" * 10 + "…"
    assert one_line("x" * 500) == "x" * 500


def test_a_complaint_is_one_line_of_bounded_length(capsys: pytest.CaptureFixture[str]) -> None:
    complain("a\nstockade: b" + "x" * 1_000_000)

    err = capsys.readouterr().err
    assert err.startswith("stockade: a stockade: bxx")
    assert err.count("\n") == 1
    assert len(err) < 3000


def test_a_row_stays_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    table([("a\nb", "c\nd"), ("e", "f")])

    assert capsys.readouterr().out == "a b  c d\ne    f\n"


def test_the_notice_obeys_no_escape_in_a_servers_name(capsys: pytest.CaptureFixture[str]) -> None:
    notice = Notice("evil\x1b]0;title\x07server")
    notice.tail = lambda _lines: [b"fetching\x1b[2J"]

    line = notice._line("is starting", 3)

    assert line.isprintable()
    assert "server is starting, 3 s: fetching" in line
