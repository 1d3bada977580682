"""Runs the transport tests on each supported version of the MCP SDK, each in an environment in target/sdk."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "sdk"
VERSIONS = ("1.24.0", "1.30.0", "2.0.0", "2.3.0")
TOOLS = ("anyio", "hypothesis", "pytest", "pytest-timeout", "trio", "uvloop")


def interpreter(version: str) -> Path:
    """A Python with that version of the SDK and the tools of the tests, as the project has pinned them."""
    folder = TARGET / f"mcp-{version}"
    python = folder / "bin" / "python"
    pins = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    wanted = [line for line in pins.splitlines() if line.split("==")[0].strip() in TOOLS]
    if {line.split("==")[0].strip() for line in wanted} != set(TOOLS):
        raise SystemExit(f"requirements-dev.txt doesn't pin all of {', '.join(TOOLS)}")
    stamp = folder / "installed"
    content = "\n".join([*wanted, sys.version])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != content:
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run([*pip, f"mcp=={version}", *wanted], check=True)
        stamp.write_text(content, encoding="utf-8")
    return python


def main() -> int:
    failed = 0
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    for version in VERSIONS:
        python = interpreter(version)
        print(f"The transport tests on mcp {version}:", flush=True)
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/transport", *sys.argv[1:]]
        failed |= subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
