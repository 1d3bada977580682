from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.cli.command import environment, stockade

COMMANDS = ("run", "tools", "call", "resolve", "doctor")


def test_help_names_every_command() -> None:
    done = stockade("--help")

    assert done.status == 0
    assert all(f"\n    {command} " in done.out for command in COMMANDS)
    assert done.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_its_exit_statuses(command: str) -> None:
    done = stockade(command, "--help")

    assert done.status == 0
    assert done.out.startswith(f"usage: stockade {command} ")
    assert "Exit status:" in done.out


def test_version() -> None:
    import stockade as package

    done = stockade("--version")

    assert (done.status, done.out) == (0, f"stockade {package.__version__}\n")


WRONG: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "run, tools, call, resolve, doctor"),
    "an unknown command": (["walk"], "run, tools, call, resolve, doctor"),
    "no server": (["tools"], "--config FILE NAME"),
    "an empty server": (["tools", "--"], "--config FILE NAME"),
    "no --": (["tools", "npx", "-y"], "Put -- before"),
    "an unknown option": (["tools", "--colour", "--", "x"], "--colour"),
    "both kinds of server": (["tools", "--config", "f", "n", "--", "x"], "not both"),
    "--config without a name": (["tools", "--config", "f"], "--config"),
    "--env without =": (["tools", "--env", "A", "--", "x"], "NAME=VALUE"),
    "--env without a name": (["tools", "--env", "=A", "--", "x"], "NAME=VALUE"),
    "two modes": (["tools", "--inherit", "all,none", "--", "x"], "--inherit"),
    "names beside all": (["tools", "--inherit", "all", "--inherit", "A", "--", "x"], "--inherit"),
    "a wrong name to inherit": (["tools", "--inherit", "A=B", "--", "x"], "="),
    "a blank command": (["tools", "--", " "], "blank"),
    "no tool": (["call", "--", "x"], "Say which tool"),
    "arguments that aren't JSON": (["call", "t", "{", "--", "x"], "JSON"),
    "arguments that aren't an object": (["call", "t", "[1]", "--", "x"], "object"),
    "a third word": (["call", "t", "{}", "u", "--", "x"], "Put the JSON in single quotes"),
    "arguments whose quotes the shell has eaten": (["call", "t", "{a:b}", "--", "x"], "Put the JSON in single quotes"),
    "NaN": (["call", "t", '{"a": NaN}', "--", "x"], "JSON"),
    "an infinite number": (["call", "t", '{"a": 1e999}', "--", "x"], "JSON"),
    "invalid UTF-8": (["call", "t", '{"a": "\udcff"}', "--", "x"], "JSON"),
    "half a character": (["call", "t", '{"a": "\\ud800"}', "--", "x"], "JSON"),
    "a tool's name that is no text": (["call", "\udcff", "--", "x"], "name"),
    "a word before --": (["tools", "npx", "--", "x"], "a word too many before --"),
    "a timeout that isn't a number": (["tools", "--timeout", "soon", "--", "x"], "--timeout: needs a number"),
    "a timeout of 0": (["tools", "--timeout", "0", "--", "x"], "--timeout: needs a number"),
    "no timeout for resolve": (["resolve", "--timeout", "1", "--", "x"], "--timeout"),
    "a mode in capitals": (["tools", "--inherit", "ALL", "--", "x"], "written small"),
    "doctor with a server": (["doctor", "--", "x"], "doctor"),
    "an abbreviation": (["tools", "--conf", "f", "n"], "--conf"),
}


@pytest.mark.parametrize(("words", "says"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_a_sentence_and_status_2(words: list[str], says: str) -> None:
    done = stockade(*words)

    assert done.status == 2
    assert done.out == ""
    assert says in done.complaint()
    assert "--help'" in done.complaint()


@pytest.mark.parametrize(
    "words",
    [["run"], ["run", "cat"], ["run", "--json", "--", "x"], ["run", "--env", "A", "--", "x"], ["run", "--", ""]],
)
def test_wrong_usage_of_run_is_status_125_as_with_env(words: list[str]) -> None:
    done = stockade(*words)

    assert done.status == 125
    assert "stockade run --help" in done.complaint()


@pytest.mark.parametrize(
    "words",
    [
        ["tools", "--env", "hunter2", "--", "x"],
        ["tools", "--envv=TOKEN=hunter2", "--", "x"],
        ["tools", "hunter2", "--", "x"],
        ["tools", "--json=hunter2", "--", "x"],
        ["call", "t", '{"token": "hunter2', "--", "x"],
        ["resolve", "--env", "TOKEN=hunter2", "--", "no-such-command"],
        ["run", "--env", "TOKEN=hunter2", "--", "no-such-command"],
        ["tools", "--env", "TOKEN=hunter2", "--", "no-such-command", "--key=hunter2"],
    ],
)
def test_no_complaint_quotes_a_value(words: list[str]) -> None:
    done = stockade(*words)

    assert done.status != 0
    assert "hunter2" not in done.out + done.err


def test_help_is_quick_and_imports_neither_the_sdk_nor_an_event_loop() -> None:
    best = 60.0
    for _ in range(30):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "stockade", "--help"], stdout=subprocess.DEVNULL, check=True)
        best = min(best, time.perf_counter() - began)
        if best < 0.1:
            break
    code = (
        "import sys\nfrom stockade._cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, sep=',', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())

    assert best < 0.1
    assert not {"mcp", "anyio", "asyncio", "trio", "pydantic", "json"} & set(done.stderr.strip().split(","))


def run_in_shell(script: str) -> subprocess.CompletedProcess[str]:
    words = ["sh", "-c", script, "sh", sys.executable]
    return subprocess.run(words, capture_output=True, env=environment(), text=True, check=False)


def test_closed_outputs_are_no_failure_of_ours() -> None:
    for script in ('"$1" -m stockade doctor >&-', '"$1" -m stockade doctor >&- 2>&-'):
        done = run_in_shell(script)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    missing = run_in_shell('"$1" -m stockade resolve -- no-such-command 2>&-')
    assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_said() -> None:
    done = run_in_shell('"$1" -m stockade doctor >/dev/full')

    assert done.returncode == 1
    assert done.stderr == "stockade: The result can't be written: no space left on device.\n"


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "stockade", "doctor"],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
            check=False,
        )
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (1, "")
