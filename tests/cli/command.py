"""Runs `python -m stockade` as a user would, with pipes or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVER = (sys.executable, str(Path(__file__).parent.parent / "servers" / "cli_server.py"))
PATIENCE = 60.0


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def complaint(self) -> str:
        """The one line of stderr that is stockade's own."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("stockade: ")]
        assert len(lines) == 1, self.err
        assert self.err.startswith("stockade: "), self.err
        return lines[0].removeprefix("stockade: ")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    # Colours and the width of help depend on the caller's terminal.
    ours = {"NO_COLOR", "COLUMNS", "TERM", "FORCE_COLOR", "STOCKADE_TRACEBACK"}
    return {name: value for name, value in os.environ.items() if name not in ours} | {"TERM": "xterm", **(extra or {})}


def stockade(*words: str, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Done:
    """Run it with pipes."""
    done = subprocess.run(
        [sys.executable, "-m", "stockade", *words],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environment(env),
        cwd=cwd,
        timeout=PATIENCE,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class Terminal:
    """It runs with stdout and stderr on a terminal; what it shows is read as it comes."""

    def __init__(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        self.shown = ""
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stockade", *words],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=environment(env),
        )
        os.close(theirs)

    def until(self, text: str) -> None:
        """Read on until the text is there."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < deadline, f"never showed {text!r}: {self.shown!r}"
            assert self._read(deadline), f"ended without showing {text!r}: {self.shown!r}"

    def interrupt(self) -> None:
        """Ctrl-C, for it alone."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read the rest; the exit status."""
        deadline = time.monotonic() + PATIENCE
        try:
            while self._read(deadline):
                pass
            return self._process.wait(PATIENCE)
        finally:
            os.close(self._ours)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"silent for too long after {self.shown!r}"
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux: the other end has closed
            return False
        self.shown += data.decode()
        return bool(data)
