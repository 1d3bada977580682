"""What is missing is named, with the command that installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.node import ROOT

SCRIPT = ROOT / "tools" / "prerequisites"
PLAIN_TOOLS = ("sh", "id", "sed", "head", "sort", "cut")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with what the script itself needs; a test adds to it."""
    for name in PLAIN_TOOLS:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    return tmp_path


def tool(folder: Path, name: str, body: str = "exit 0") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    program.chmod(0o755)


def check(folder: Path, *what: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(SCRIPT), *what], cwd=ROOT, env={"PATH": str(folder)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def sudo() -> str:
    return "" if os.getuid() == 0 else "sudo "


def test_no_python(path: Path) -> None:
    tool(path, "apt-get")
    status, said = check(path, "python", "python3")
    assert status == 1
    assert "there is no python3." in said
    assert f"{sudo()}apt-get install -y python3 python3-venv" in said


def test_another_package_manager(path: Path) -> None:
    assert "install with your system's package manager: python3 python3-venv" in check(path, "python", "python3")[1]


def test_a_python_that_is_too_old(path: Path) -> None:
    tool(path, "python3", 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac')
    status, said = check(path, "python", "python3")
    assert status == 1
    assert "python3 is Python 3.9, and 3.10 or newer is needed" in said
    assert "make PYTHON=" in said


def test_a_python_without_venv(path: Path) -> None:
    tool(path, "apt-get")
    tool(path, "python3", 'case "$2" in *print*) echo 3.11 ;; *ensurepip*) exit 1 ;; esac')
    status, said = check(path, "python", "python3")
    assert status == 1
    assert "Python 3.11 has no venv module with pip" in said
    assert "apt-get install -y python3-venv" in said


def test_no_rust(path: Path) -> None:
    status, said = check(path, "rust")
    assert status == 1
    assert "no Rust toolchain" in said
    assert "sh.rustup.rs" in said


def test_rust_that_is_too_old(path: Path) -> None:
    tool(path, "cargo")
    tool(path, "rustc", "echo 'rustc 1.63.0 (x)'")
    status, said = check(path, "rust")
    assert status == 1
    assert "Rust 1.63.0 is too old: 1." in said
    assert "rustup update stable" in said


@pytest.mark.parametrize("version", ["1.100.0", "2.0.0"])
def test_no_linker(version: str, path: Path) -> None:
    tool(path, "apt-get")
    tool(path, "cargo")
    tool(path, "rustc", f"echo 'rustc {version} (x)'")
    status, said = check(path, "rust")
    assert status == 1
    assert "no C linker" in said
    assert "apt-get install -y gcc libc6-dev" in said


@pytest.mark.parametrize("missing", ["fmt", "clippy"])
def test_no_formatter_and_no_linter(missing: str, path: Path) -> None:
    tool(path, "cargo", f'[ "$1" != {missing} ]')
    tool(path, "rustc", "echo 'rustc 1.100.0 (x)'")
    tool(path, "cc")
    status, said = check(path, "lint")
    assert status == 1
    assert f"cargo {missing} is missing" in said
    assert "rustup component add" in said


def test_nothing_is_missing(path: Path) -> None:
    tool(path, "cargo")
    tool(path, "rustc", "echo 'rustc 1.100.0 (x)'")
    tool(path, "cc")
    tool(path, "python3")
    assert check(path, "lint") == (0, "")
    assert check(path, "python", "python3") == (0, "")
