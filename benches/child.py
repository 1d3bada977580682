"""The server that the benches start: `child.c`, compiled when it is first needed."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from pathlib import Path

SOURCE = Path(__file__).with_name("child.c")
FOLDER = Path(__file__).parent.parent / "target" / "bench"

# Without a C library, where the source brings its own entry point.
_FREESTANDING = ["-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie"]


@lru_cache(maxsize=1)
def child() -> str:
    """The path of the compiled program."""
    program = FOLDER / "child"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        FOLDER.mkdir(parents=True, exist_ok=True)
        options = _FREESTANDING if sys.platform == "linux" else []
        subprocess.run(["cc", "-O2", "-Wall", *options, "-o", program, SOURCE], check=True)
    return str(program)
