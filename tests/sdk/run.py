"""Runs the MCP SDK's own POSIX stdio tests on stockade: over our transport, then over our spawn seam.

The tests come from the SDK's source distribution on PyPI and go to target/sdk; nothing of them is kept here.
What cannot apply, and why, is in seams.py; it is printed with the skips.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

VERSION = "2.3.0"
SHA256 = "8b147a50441cf059dc88c684e0aeed3687f0aa0f39c6cde7b90330effd2b34d8"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = ROOT / "target" / "sdk"
TESTS = [
    "tests/client/test_stdio.py",
    "tests/transports/stdio",
    "tests/interaction/transports/test_stdio.py",
    "tests/client/test_client.py::test_client_with_stdio_parameters_launches_the_server_as_a_subprocess",
    "tests/issues/test_552_windows_hang.py",
]
# As the SDK's own, but without its coverage and its documentation plugins.
INI = """\
[pytest]
xfail_strict = true
addopts = -p anyio
markers =
    requirement(id): links a test to the requirement that it exercises
filterwarnings =
    error
    ignore:.*is deprecated as of 2026-07-28 \\(SEP-2577\\).:mcp.MCPDeprecationWarning
    ignore:ping is removed as of 2026-07-28.*:mcp.MCPDeprecationWarning
"""


def run(*command: str | Path, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def source() -> Path:
    """The SDK's source distribution, downloaded once."""
    archive = TARGET / f"mcp-{VERSION}.tar.gz"
    if not archive.exists() or hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "download", "--no-deps", "--no-binary", "mcp", "--dest", TARGET, f"mcp=={VERSION}")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{archive.name} is not what it was when this was written: sha256 {found}")
    return archive


def interpreter() -> Path:
    """A Python that has this one's packages and, in a folder of its own, what the SDK's tests need besides."""
    folder = TARGET / "venv"
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8") + sys.version
    stamp = folder / "installed"
    python = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(folder, with_pip=True, clear=True)
    packages = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    ours = [path for path in sys.path if path.endswith("site-packages")]
    Path(packages, "ours.pth").write_text("\n".join([*ours, str(ROOT / "python")]) + "\n", encoding="utf-8")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "-r", HERE / "requirements.txt")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    archive, python = source(), interpreter()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as tar:
            wanted = [member for member in tar.getmembers() if "/tests/" in member.name or member.isdir()]
            tar.extractall(folder, members=wanted, filter="data")
        checkout = Path(folder, f"mcp-{VERSION}")
        (checkout / "pytest.ini").write_text(INI, encoding="utf-8")
        # Not the project's own packages of that name.
        environment = dict(os.environ, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1")
        for seam in ("transport", "spawn"):
            print(f"The SDK's stdio tests over our {seam}:", flush=True)
            command = [str(python), "-m", "pytest", "-q", "-rs", "-p", "seams", "-p", "no:cacheprovider"]
            command += [f"--rootdir={checkout}", "--import-mode=prepend", *sys.argv[1:], *TESTS]
            done = subprocess.run(command, cwd=checkout, env={**environment, "STOCKADE_SEAM": seam}, check=False)
            failed |= done.returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
