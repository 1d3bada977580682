from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE, SERVER, environment, stockade


def test_the_server_has_the_very_stdin_and_stdout() -> None:
    read_stdin, write_stdin = os.pipe()
    read_stdout, write_stdout = os.pipe()
    script = "import os; print(os.stat(0).st_ino, os.stat(1).st_ino)"
    try:
        subprocess.run(
            [sys.executable, "-m", "stockade", "run", "--", sys.executable, "-c", script],
            stdin=read_stdin,
            stdout=write_stdout,
            env=environment(),
            timeout=PATIENCE,
            check=True,
        )
        seen = os.read(read_stdout, 100).split()
        assert seen == [b"%d" % os.fstat(read_stdin).st_ino, b"%d" % os.fstat(write_stdout).st_ino]
    finally:
        for descriptor in (read_stdin, write_stdin, read_stdout, write_stdout):
            os.close(descriptor)


def test_a_server_answers_through_it() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": "ø"}}}

    done = stockade("run", "--", *SERVER, stdin=json.dumps(request) + "\n")

    assert (done.status, done.err) == (0, "")
    assert json.loads(json.loads(done.out)["result"]["content"][0]["text"]) == {"a": "ø"}


def test_stderr_is_passed_on() -> None:
    done = stockade("run", "--", *SERVER, "crash")

    assert done.status == 9
    assert done.out == ""
    assert done.err == "one\ntwo\nthe last straw\n"


@pytest.mark.parametrize("status", [0, 1, 7, 125, 255])
def test_it_ends_with_the_servers_exit_status(status: int) -> None:
    done = stockade("run", "--", "sh", "-c", f"exit {status}")

    assert (done.status, done.out, done.err) == (status, "", "")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV"])
def test_it_ends_with_128_and_the_signals_number(name: str) -> None:
    done = stockade("run", "--", "sh", "-c", f"kill -{name[3:]} $$")

    assert done.status == 128 + signal.Signals[name]


def test_a_missing_command_is_127(tmp_path: Path) -> None:
    done = stockade("run", "--", "no-such-command")
    missing = stockade("run", "--", str(tmp_path / "missing"))

    assert done.status == missing.status == 127
    assert "no-such-command" in done.complaint()
    assert str(tmp_path / "missing") in missing.complaint()


def test_a_command_that_cannot_be_started_is_126(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")

    for program, says in ((script, "/no/such/interpreter"), (plain, "plain"), (tmp_path, tmp_path.name)):
        done = stockade("run", "--", str(program))

        assert done.status == 126
        assert says in done.complaint()


def test_a_config_that_cannot_be_used_is_125(tmp_path: Path) -> None:
    done = stockade("run", "--config", str(tmp_path / "missing.json"), "files")

    assert done.status == 125
    assert "missing.json" in done.complaint()


def test_it_hands_on_the_whole_environment_unless_told_otherwise() -> None:
    def seen(*options: str) -> str:
        script = "import os; print(os.environ.get('CITY'))"
        return stockade("run", *options, "--", sys.executable, "-c", script, env={"CITY": "Oslo"}).out.strip()

    assert seen() == "Oslo"
    assert seen("--inherit", "all") == "Oslo"
    assert seen("--inherit", "safe") == "None"
    assert seen("--inherit", "none") == "None"
    assert seen("--inherit", "OTHER,CIT*") == "Oslo"
    assert seen("--inherit", "safe", "--inherit", "CITY") == "Oslo"
    assert seen("--env", "CITY=Rome=x") == "Rome=x"


def test_it_starts_in_the_working_directory_it_is_told(tmp_path: Path) -> None:
    done = stockade("run", "--cwd", str(tmp_path), "--", sys.executable, "-c", "import os; print(os.getcwd())")

    assert done.out.strip() == str(tmp_path.resolve())


def test_a_server_from_a_config_and_what_is_said_on_top(tmp_path: Path) -> None:
    script = "import os; print(os.getcwd(), os.environ['A'], os.environ['B'])"
    entry = {"command": sys.executable, "args": ["-c", script], "cwd": "/", "env": {"A": "1", "B": "${CITY}"}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"files": entry}}))

    plain = stockade("run", "--config", str(file), "files", env={"CITY": "Oslo"})
    changed = stockade(
        "run", "--cwd", str(tmp_path), "--env", "A=2", "--config", str(file), "files", env={"CITY": "Oslo"}
    )

    assert plain.out.split() == ["/", "1", "Oslo"]
    assert changed.out.split() == [str(tmp_path.resolve()), "2", "Oslo"]


def test_arguments_reach_the_server_as_they_are() -> None:
    words = ["--", "--json", "", "a b", "'", '"', "$HOME", "*", "ø", "-h"]

    done = stockade("run", "--", sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words)

    assert json.loads(done.out) == words


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_reaches_the_server(name: str) -> None:
    number = signal.Signals[name]
    script = (
        "import signal, sys\n"
        f"signal.signal(signal.{name}, lambda *_: sys.exit(42))\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "stockade", "run", "--", sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == 42
