from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stockade as package
from tests.cli.command import PATIENCE, SERVER, Terminal, environment, stockade
from tests.servers.cli_server import TOOLS

NAMES = [tool["name"] for tool in TOOLS]


def test_one_aligned_line_for_each_tool() -> None:
    done = stockade("tools", "--", *SERVER)

    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert lines[0] == "echo         Says it again."
    assert lines[1] == "environment  Shows a variable"
    assert lines[2] == "fail"


def test_as_json() -> None:
    done = stockade("tools", "--json", "--", *SERVER)

    report = done.json()
    assert done.status == 0
    assert (report["server"]["name"], report["server"]["version"]) == ("small", "1.2")
    assert [tool["name"] for tool in report["tools"]] == NAMES
    assert report["tools"][0]["inputSchema"] == {"type": "object"}


def test_every_page_is_listed() -> None:
    assert [line.split()[0] for line in stockade("tools", "--", *SERVER, "pages").out.splitlines()] == NAMES


def test_a_listing_that_goes_round_and_round_ends() -> None:
    done = stockade("tools", "--", *SERVER, "circle")

    assert done.status == 0
    assert {line.split()[0] for line in done.out.splitlines()} == {"echo"}


def test_no_tools_is_said_and_no_failure() -> None:
    done = stockade("tools", "--", *SERVER, "empty")
    as_json = stockade("tools", "--json", "--", *SERVER, "empty")

    assert (done.status, done.out) == (0, "")
    assert "has no tools" in done.complaint()
    assert (as_json.status, as_json.json()["tools"], as_json.err) == (0, [], "")


def test_a_tools_description_cannot_drive_the_terminal() -> None:
    done = stockade("tools", "--", *SERVER)

    forged = next(line for line in done.out.splitlines() if line.startswith("forge"))
    assert "alert" in forged
    assert not any(char in done.out for char in "\x1b\r\u202e")


def test_a_banner_on_stdout_does_not_hurt() -> None:
    done = stockade("tools", "--", *SERVER, "noisy")

    assert done.status == 0
    assert len(done.out.splitlines()) == len(NAMES)
    assert "'Welcome to the server!'" in done.complaint()


def test_what_stood_on_stdout_in_place_of_messages_is_quoted() -> None:
    done = stockade("tools", "--", *SERVER, "garbage")
    as_json = stockade("tools", "--json", "--", *SERVER, "garbage")

    assert done.status == 1
    assert "exited with 0" in done.complaint()
    assert "'Listening on port 8080'" in done.complaint()
    assert "'Listening on port 8080'" in as_json.json()["error"]["message"]


@pytest.mark.parametrize(
    ("mode", "request_", "said"),
    [("dumb", "tools/list", "thinking"), ("deafening", "initialize", "nothing on its stderr")],
)
def test_a_conversation_that_takes_too_long_is_ended_and_says_what_was_waited_for(
    mode: str, request_: str, said: str
) -> None:
    # Long enough for the server to start and to say what it says.
    done = stockade("tools", "--json", "--timeout", "4", "--", *SERVER, mode)

    assert done.status == 1
    assert done.json()["error"]["code"] == "answer-timeout"
    assert f"has not answered {request_!r} after 4 s" in done.complaint()
    assert said in done.complaint()
    assert "--timeout" in done.complaint()


def test_endless_pages_come_to_an_end() -> None:
    done = stockade("tools", "--", *SERVER, "more")
    as_json = stockade("tools", "--json", "--", *SERVER, "more").json()

    assert (done.status, len(done.out.splitlines())) == (0, 10_000)
    assert "first 10000 tools" in done.complaint()
    assert (len(as_json["tools"]), as_json["complete"]) == (10_000, False)


def test_a_server_can_forge_neither_a_row_nor_a_line_of_ours() -> None:
    listed = stockade("tools", "--", *SERVER, "forging")
    refused = stockade("call", "echoo", "--", *SERVER, "forging")

    assert listed.out.splitlines() == ["a stockade: forged  x"]
    assert refused.status == 1
    assert "refused 'tools/call': 'no stockade: forged: xxx" in refused.complaint()
    assert refused.err.count("\n") == 1
    assert len(refused.err) < 1000
    assert "\x1b" not in refused.err


def test_a_program_that_is_no_server_is_asked_about() -> None:
    done = stockade("tools", "--", "cat")  # what comes back is our own request, which nobody answers

    assert done.status == 1
    assert "refused 'initialize'" in done.complaint()
    assert "Is it an MCP server?" in done.complaint()


def test_an_answer_that_is_not_mcp_is_named_with_its_field() -> None:
    done = stockade("tools", "--", *SERVER, "misshapen")

    assert done.status == 1
    assert "answer to 'tools/list' that can't be used: tools.0.name: Input should be" in done.complaint()


def test_a_server_from_a_config(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"servers": {"small": {"command": SERVER[0], "args": [SERVER[1]]}}}))

    done = stockade("tools", "--config", str(file), "small")

    assert [line.split()[0] for line in done.out.splitlines()] == NAMES


def test_a_server_that_crashes_is_named_with_its_status_and_last_lines() -> None:
    done = stockade("tools", "--", *SERVER, "crash")

    assert (done.status, done.out) == (1, "")
    assert "exited with 9" in done.complaint()
    assert "\n  one\n  two\n  the last straw\n" in done.err


def test_a_crash_as_json() -> None:
    done = stockade("tools", "--json", "--", *SERVER, "crash")

    error = done.json()["error"]
    assert done.status == 1
    assert error["code"] == "server-exited"
    assert error["exit"]["returncode"] == 9
    assert error["exit"]["ended_by"] == "exit"
    assert error["exit"]["stderr_tail"].split("\n")[:3] == ["one", "two", "the last straw"]


def test_a_server_that_writes_an_endless_line_is_ended_and_says_why() -> None:
    done = stockade("tools", "--json", "--", *SERVER, "endless")

    assert done.status == 1
    assert done.json()["error"]["code"] == "frame-too-long"
    assert "67108864 bytes" in done.complaint()
    assert "max_frame_bytes if" not in done.complaint()  # there is no such option


def test_a_program_that_is_no_server_is_named() -> None:
    done = stockade("tools", "--", "true")

    assert done.status == 1
    assert "'true' has ended: exited with 0" in done.complaint()


def test_a_command_that_is_missing_or_cannot_be_started(tmp_path: Path) -> None:
    missing = stockade("tools", "--", "no-such-command")
    folder = stockade("tools", "--", str(tmp_path))

    assert missing.status == folder.status == 1
    assert "no-such-command" in missing.complaint()
    assert folder.complaint()


def test_without_the_sdk_it_says_how_to_get_it(tmp_path: Path) -> None:
    # No site-packages: only the standard library and this package.
    (tmp_path / "stockade").symlink_to(Path(package.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "stockade", "tools", "--", *SERVER],
        env=environment({"PYTHONPATH": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("stockade: ")
    assert "pip install 'mcp>=1.24,<3'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def test_on_a_terminal_a_slow_start_is_shown_with_its_last_stderr_line(gate: Path) -> None:
    terminal = Terminal("tools", "--", *SERVER, "gated", str(gate))

    terminal.until("is starting, ")
    terminal.until("fetching half of the internet")
    with gate.open("w"):  # lets it go on
        pass

    assert terminal.end() == 0
    notice, _, listing = terminal.shown.rpartition("\r\x1b[K")
    assert "is starting" in notice
    assert "is starting" not in listing
    assert listing.splitlines()[0].split()[0] == "echo"


def test_on_a_terminal_a_slow_end_is_shown() -> None:
    terminal = Terminal("tools", "--", *SERVER, "rude")

    terminal.until("is ending (Ctrl-C: at once)")

    assert terminal.end() == 0
    assert terminal.shown.rpartition("\r\x1b[K")[2].splitlines()[0].split()[0] == "echo"


def test_ctrl_c_cuts_a_slow_end_short() -> None:
    terminal = Terminal("tools", "--", *SERVER, "rude")
    terminal.until("is ending (Ctrl-C: at once)")

    terminal.interrupt()

    assert terminal.end() == 130
    assert "Traceback" not in terminal.shown


def test_a_second_ctrl_c_ends_it_at_once() -> None:
    terminal = Terminal("tools", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1000; done")
    terminal.until("is starting, ")

    terminal.interrupt()
    terminal.until("is ending (Ctrl-C: at once)")
    terminal.interrupt()

    assert terminal.end() == 130
    assert "Traceback" not in terminal.shown


def test_off_a_terminal_a_slow_start_is_silent(gate: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "stockade", "tools", "--", *SERVER, "gated", str(gate)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    with gate.open("w"):  # as soon as the server waits for it
        pass
    out, errors = process.communicate(timeout=PATIENCE)

    assert (process.returncode, errors) == (0, "")
    assert len(out.splitlines()) == len(NAMES)


def test_ctrl_c_ends_it_quietly(gate: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "stockade", "tools", "--", *SERVER, "gated", str(gate)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    writer = os.open(gate, os.O_WRONLY)  # returns when the server waits for it
    try:
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
    finally:
        os.close(writer)

    assert (process.returncode, out, errors) == (130, "", "")
