from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.command import PATIENCE, SERVER, environment, stockade


def test_it_says_what_would_be_started_and_where_it_was_looked_for(tmp_path: Path) -> None:
    path = f"{tmp_path}:{os.environ['PATH']}"

    done = stockade("resolve", "--env", f"PATH={path}", "--", "cat", "-n", "a b")

    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].split() == ["kind", "executable"]
    program = lines[1].split()[1]
    assert Path(program).name == "cat"
    assert Path(program).is_absolute()
    assert lines[2].split(maxsplit=1) == ["argv", f"{lines[2].split()[1]} -n 'a b'"]
    assert f"  {tmp_path}/cat " in done.out
    assert "looked for" in lines


def test_as_json() -> None:
    done = stockade("resolve", "--json", "--cwd", "/", "--env", "A=1", "--", SERVER[0], "-n", "")

    report = done.json()
    assert done.status == 0
    assert set(report) == {"kind", "program", "argv", "command_line", "cwd", "env", "tried"}
    assert report["kind"] == "executable"
    assert report["program"] == sys.executable
    assert report["argv"][1:] == ["-n", ""]
    assert report["command_line"] is None
    assert report["cwd"] == "/"
    assert report["env"] == ["A"]
    assert all(set(place) == {"path", "reason"} for place in report["tried"])


def test_nothing_is_started(tmp_path: Path) -> None:
    touch = shutil.which("touch")
    assert touch is not None

    done = stockade("resolve", "--", touch, str(tmp_path / "started"))

    assert done.status == 0
    assert list(tmp_path.iterdir()) == []


def test_a_missing_command_lists_where_it_was_looked_for(tmp_path: Path) -> None:
    done = stockade("resolve", "--env", f"PATH={tmp_path}", "--", "no-such-command")

    assert (done.status, done.out) == (1, "")
    assert "no-such-command" in done.complaint()
    assert f"  {tmp_path}/no-such-command: " in done.err


def test_a_missing_command_as_json(tmp_path: Path) -> None:
    done = stockade("resolve", "--json", "--env", f"PATH={tmp_path}", "--", "no-such-command")

    error = done.json()["error"]
    assert done.status == 1
    assert error["code"] == "command-not-found"
    assert error["stage"] == "resolve"
    assert [place["path"] for place in error["tried"]] == [f"{tmp_path}/no-such-command"]
    assert done.complaint()


def test_no_value_is_shown_even_of_a_placeholder(tmp_path: Path) -> None:
    entry = {"command": "cat", "args": ["--key=${KEY}", "-n"], "env": {"TOKEN": "${KEY}", "PLAIN": "hunter2"}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"files": entry}}))

    for form in ([], ["--json"]):
        done = stockade("resolve", *form, "--config", str(file), "files", env={"KEY": "hunter2"})

        assert done.status == 0
        assert "hunter2" not in done.out + done.err
        assert "--key=${KEY}" in done.out
        assert "TOKEN" in done.out


def test_what_is_wrong_with_a_config_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"files": {"command": "x", "args": "-y"}}}))

    done = stockade("resolve", "--config", str(file), "files")
    missing = stockade("resolve", "--config", str(file), "other")

    assert done.status == missing.status == 1
    assert all(part in done.complaint() for part in (str(file), "'files'", "args"))
    assert all(part in missing.complaint() for part in (str(file), "'other'", "It has: files."))


def test_a_working_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "stockade", "resolve", "--", "cat"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        timeout=PATIENCE,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("stockade: This process's own working directory can't be used")
