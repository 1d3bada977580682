"""Fixtures that any test may ask for."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import node, servers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def installed_servers() -> Path:
    """The folder of the real servers; what they are is in `tests.support.servers`."""
    if not (servers.INSTALLED / ".installed").exists():
        pytest.fail("the real servers aren't installed: run `make servers`")
    return servers.INSTALLED


@pytest.fixture(scope="session")
def faults_path() -> Path:
    """The folder of a `stockade` that can be told to fail; goes on the PYTHONPATH of a host started by the test."""
    folder = node.ROOT / "target" / "faults"
    if not list((folder / "stockade").glob("_native*")):
        pytest.fail("the extension with faults isn't built: run `make faults`")
    return folder


@pytest.fixture(scope="session")
def node_path() -> str:
    """A PATH with node, npm and npx."""
    return node.path_with_node()


@pytest.fixture
def everything_server(installed_servers: Path) -> servers.RealServer:
    return servers.everything()


@pytest.fixture
def filesystem_server(installed_servers: Path, tmp_path: Path) -> servers.RealServer:
    """Its folder is `tmp_path`."""
    return servers.filesystem(tmp_path)


@pytest.fixture
def clock_server(installed_servers: Path) -> servers.RealServer:
    return servers.clock()


@pytest.fixture
def git_server(installed_servers: Path, tmp_path: Path) -> servers.RealServer:
    """Its repository is `tmp_path`, new and empty."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(tmp_path)], check=True)
    return servers.git(tmp_path)
