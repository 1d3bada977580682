"""Every package that is installed for development has one version."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.node import ROOT
from tests.support.servers import HERE

REQUIREMENTS = [ROOT / "requirements-dev.txt", ROOT / "requirements-wheel.txt", HERE / "requirements-servers.txt"]
PINNED = re.compile(r"[a-z0-9.-]+==[\w.]+( ; .+)?")


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_python_packages(path: object) -> None:
    lines = [line for line in ROOT.joinpath(str(path)).read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line)] == []


def test_npm_packages() -> None:
    versions = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"].values()
    assert versions
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    locked = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert all("integrity" in entry for path, entry in locked.items() if path)


def test_the_runtime_needs_anyio_alone() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '\ndependencies = ["anyio>=4.9"]\n' in text
