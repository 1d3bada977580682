"""Builds the wheel for manylinux_2_28 and tries it where there is no Rust and nothing of this folder. `make wheel`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
POLICY = "manylinux_2_28"
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"


def main() -> None:
    wheel = build()
    print(f"built {wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory(prefix="stockade-wheel-") as folder:
        try_it(wheel, Path(folder))
    print(f"{wheel.name} works in a fresh environment without Rust")


def build() -> Path:
    if DIST.exists():
        shutil.rmtree(DIST)
    scripts = sysconfig.get_path("scripts")
    maturin = [f"{scripts}/maturin", "build", "--release", "--zig", "--quiet"]
    if os.environ.get("CI"):
        maturin.append("--locked")
    run(
        [*maturin, "--compatibility", POLICY, "--auditwheel", "check", "--out", str(DIST)],
        env=dict(os.environ, PATH=f"{scripts}:{os.environ['PATH']}"),  # where maturin looks for zig
    )
    (wheel,) = DIST.glob("*.whl")
    expected = f"-cp310-abi3-{POLICY}_{platform.machine()}.whl"
    if not wheel.name.endswith(expected):
        sys.exit(f"{wheel.name} should end with {expected}")
    return wheel


def try_it(wheel: Path, folder: Path) -> None:
    # Whoever has Rust in a system folder gets a PATH of links to everything else.
    path = PLAIN_PATH
    if any(shutil.which(tool, path=path) for tool in ("cargo", "rustc")):
        path = str(without_rust(folder / "bin"))
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    python = folder / "venv" / "bin" / "python"
    run([sys.executable, "-m", "venv", str(folder / "venv")], env=environment, cwd=folder)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    # The pins, so that the same packages are tried on every day.
    run([*pip, "--constraint", str(constraints(folder)), f"{wheel}[mcp]"], env=environment, cwd=folder)
    smoke = folder / "smoke.py"
    shutil.copyfile(ROOT / "tools" / "smoke.py", smoke)
    run([str(python), str(smoke)], env=environment, cwd=folder)
    run([str(python.parent / "stockade"), "--help"], env=environment, cwd=folder, quiet=True)


def constraints(folder: Path) -> Path:
    path = folder / "constraints.txt"
    shutil.copyfile(ROOT / "requirements-dev.txt", path)
    return path


def without_rust(folder: Path) -> Path:
    folder.mkdir()
    for source in PLAIN_PATH.split(":"):
        for tool in Path(source).glob("*"):
            link = folder / tool.name
            if not tool.name.startswith(("cargo", "rust")) and not link.is_symlink():
                link.symlink_to(tool)
    return folder


def run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None, quiet: bool = False) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL if quiet else None, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")


if __name__ == "__main__":
    main()
