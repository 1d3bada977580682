"""Node is there for the tests and the demo whether or not the machine has one."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    node.node_bin.cache_clear()
    yield
    node.node_bin.cache_clear()


def machine(folder: Path, version: str) -> None:
    for name in node.TOOLS:
        tool = folder / name
        tool.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
        tool.chmod(0o755)


def test_the_machines_own_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, "v18.0.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("STOCKADE_NODE", raising=False)
    assert node.node_bin() == tmp_path
    assert node.path_with_node() == str(tmp_path)


@pytest.mark.parametrize("version", ["v16.20.0", "nonsense"])
def test_one_that_is_too_old_is_left_aside(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node.node_bin() == node.ROOT / "target" / "node" / "bin"


def test_the_one_from_pypi_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOCKADE_NODE", "wheel")
    for name in node.TOOLS:
        environment = dict(os.environ, PATH=node.path_with_node())
        done = subprocess.run([name, "--version"], env=environment, capture_output=True, text=True, check=True)
        assert int(done.stdout.strip().lstrip("v").split(".")[0]) >= 10
