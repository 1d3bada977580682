"""Real MCP servers, at pinned versions: from npm and PyPI. `python -m tests.support.servers` installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.node import ROOT, node_bin, path_with_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade import StdioServer

HERE = Path(__file__).resolve().parent
INSTALLED = ROOT / "target" / "servers"
NODE = INSTALLED / "node"
PYTHON = INSTALLED / "python"


@dataclass(frozen=True)
class RealServer:
    """How to start one."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def stdio(self) -> StdioServer:
        from stockade import StdioServer

        return StdioServer(self.command, self.args, cwd=self.cwd, env=dict(self.env), name=self.name)


def everything() -> RealServer:
    """The reference server with one of everything, as npx starts it."""
    return _npx("everything", "@modelcontextprotocol/server-everything")


def filesystem(folder: Path) -> RealServer:
    """Files below a folder, as npx starts it."""
    return _npx("filesystem", "@modelcontextprotocol/server-filesystem", str(folder))


def clock() -> RealServer:
    """mcp-server-time."""
    return RealServer("time", str(PYTHON / "bin" / "mcp-server-time"), ("--local-timezone", "UTC"))


def git(repository: Path) -> RealServer:
    """mcp-server-git, for one repository."""
    return RealServer("git", str(PYTHON / "bin" / "mcp-server-git"), ("--repository", str(repository)))


def _npx(name: str, package: str, *args: str) -> RealServer:
    # npx takes a package that the working directory has already, so nothing is fetched when it starts.
    return RealServer(name, "npx", ("-y", package, *args), cwd=NODE, env={"PATH": path_with_node()})


def install() -> None:
    _install_node()
    _install_python()


def _install_node() -> None:
    NODE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, NODE / name)
    npm = node_bin() / "npm"
    _run(
        [str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"],
        cwd=NODE,
    )


def _install_python() -> None:
    # Apart from .venv: which mcp a server runs on is its own affair.
    if PYTHON.exists():
        shutil.rmtree(PYTHON)
    venv.create(PYTHON, with_pip=True, symlinks=True)
    pip = [str(PYTHON / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "install", "--quiet", "-r", str(HERE / "requirements-servers.txt")])


def _run(command: list[str], cwd: Path | None = None) -> None:
    environment = dict(os.environ, PATH=path_with_node(), npm_config_cache=str(INSTALLED / "npm-cache"))
    done = subprocess.run(command, cwd=cwd, env=environment, check=False)
    if done.returncode:
        sys.exit(f"installing the servers failed: {' '.join(command)} ended with {done.returncode}")


if __name__ == "__main__":
    install()
