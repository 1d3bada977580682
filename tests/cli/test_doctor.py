from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import stockade as package
from tests.cli.command import Terminal, stockade


def test_it_reports_the_core_and_its_surroundings() -> None:
    report = stockade("doctor", "--json").json()

    assert report["stockade"] == package.__version__
    assert report["platform"]
    assert report["core"]
    found = {item["name"]: item for item in report["surroundings"]}
    assert list(found) == ["python", "mcp", "node", "npx", "uvx"]
    assert found["mcp"]["available"] is True
    assert found["mcp"]["detail"] == version("mcp")
    assert platform.python_version() in found["python"]["detail"]
    assert sys.executable in found["python"]["detail"]
    for item in (*report["core"], *report["surroundings"]):
        assert set(item) == {"name", "available", "detail", "remedy"}


def test_every_line_of_the_report_stands_in_the_text() -> None:
    report = stockade("doctor", "--json").json()
    done = stockade("doctor")

    assert (done.status, done.err) == (0, "")
    assert "\x1b" not in done.out
    for item in (*report["core"], *report["surroundings"]):
        line = next(line for line in done.out.splitlines() if line.startswith(f"  {item['name']} "))
        assert line.removeprefix(f"  {item['name']}").split()[0] == ("yes" if item["available"] else "no")


def test_what_is_missing_comes_with_its_remedy(tmp_path: Path) -> None:
    done = stockade("doctor", env={"PATH": str(tmp_path)})

    assert done.status == 0
    _, missing = done.out.split("\nmissing\n")
    for name in ("node", "npx", "uvx"):
        line = next(line for line in missing.splitlines() if line.startswith(f"  {name} "))
        assert len(line.split()) > 3


def test_programs_are_found_on_the_path(tmp_path: Path) -> None:
    for name in ("node", "npx", "uvx"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)

    report = stockade("doctor", "--json", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}).json()

    found = {item["name"]: item["detail"] for item in report["surroundings"]}
    assert [found[name] for name in ("node", "npx", "uvx")] == [str(tmp_path / n) for n in ("node", "npx", "uvx")]


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
    ids=["a terminal", "NO_COLOR", "an empty NO_COLOR", "a dumb terminal"],
)
def test_colour_only_on_a_terminal_that_wants_it(env: dict[str, str], coloured: bool) -> None:
    terminal = Terminal("doctor", env=env)

    assert terminal.end() == 0
    assert "surroundings" in terminal.shown
    assert ("\x1b[" in terminal.shown) is coloured
