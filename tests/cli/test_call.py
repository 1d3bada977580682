from __future__ import annotations

import json

from tests.cli.command import SERVER, Terminal, stockade
from tests.servers.cli_server import FORGED


def test_it_prints_what_the_tool_says() -> None:
    done = stockade("call", "echo", '{"message": "hi ø\\nthere"}', "--", *SERVER)

    assert (done.status, done.out, done.err) == (0, "hi ø\nthere\n", "")


def test_without_arguments_there_are_none() -> None:
    assert stockade("call", "echo", "--", *SERVER).out == "{}\n"


def test_arguments_reach_the_tool_whole() -> None:
    arguments: dict[str, object] = {"text": 'a "b"', "list": [1, 2.5, None, True], "deep": {"": {}}}

    done = stockade("call", "echo", json.dumps(arguments), "--", *SERVER)

    assert json.loads(done.out) == arguments


def test_as_json() -> None:
    done = stockade("call", "--json", "echo", '{"message": "hi"}', "--", *SERVER)

    assert done.status == 0
    assert done.json()["content"] == [{"type": "text", "text": "hi"}]


def test_an_answer_with_is_error_is_status_1() -> None:
    done = stockade("call", "fail", "--", *SERVER)
    as_json = stockade("call", "--json", "fail", "--", *SERVER)

    assert (done.status, done.out) == (1, "it went wrong\n")
    assert "fail answered with an error" in done.complaint()
    assert as_json.status == 1
    assert as_json.json()["isError"] is True


def test_what_is_no_text_is_described() -> None:
    assert stockade("call", "picture", "--", *SERVER).out == "[image, image/png]\n"


def test_structured_content_alone_is_printed_as_json() -> None:
    assert stockade("call", "numbers", "--", *SERVER).json() == {"sum": 3}


def test_a_request_that_the_server_refuses_is_status_1() -> None:
    done = stockade("call", "refuse", "--", *SERVER)

    assert (done.status, done.out) == (1, "")
    assert "no such thing: refuse" in done.complaint()


def test_a_server_that_dies_meanwhile_is_named() -> None:
    done = stockade("call", "die", "--", *SERVER)

    assert (done.status, done.out) == (1, "")
    assert "exited with 9" in done.complaint()
    assert "  the last straw\n" in done.err


def test_the_environment_is_the_short_list_unless_told_otherwise() -> None:
    def seen(*options: str) -> str:
        arguments = '{"name": "CITY"}'
        return stockade("call", *options, "environment", arguments, "--", *SERVER, env={"CITY": "Oslo"}).out.strip()

    assert seen() == "(unset)"
    assert seen("--inherit", "CITY") == "Oslo"
    assert seen("--inherit", "all") == "Oslo"
    assert seen("--env", "CITY=Rome") == "Rome"


def test_what_a_tool_says_cannot_drive_the_terminal_but_reaches_a_pipe_whole() -> None:
    terminal = Terminal("call", "forge", "--", *SERVER)

    assert terminal.end() == 0
    # The notice, if it came to that, ends with the line erased.
    shown = terminal.shown.rpartition("\r\x1b[K")[2].removesuffix("\r\n")
    assert "alert" in shown
    assert not any(char in shown for char in "\x1b\r\u202e")
    assert stockade("call", "--json", "forge", "--", *SERVER).json()["content"][0]["text"] == FORGED
