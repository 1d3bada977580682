"""Hosts: programs that use stockade in a process of their own, so that they can be killed, starved or frozen."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]

# What every host gets: `say` tells the test something, as a line of JSON.
PRELUDE = """\
import json, os, signal, sys, threading
import anyio
from stockade import ServerProcess, Shutdown, StdioServer

def say(**facts):
    os.write(1, json.dumps(facts).encode() + b"\\n")

"""


def python_path() -> str:
    """Where a host finds the tests' own modules, and the package that this process uses."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


class Host:
    """A host that runs `source`."""

    def __init__(
        self,
        source: str,
        *args: object,
        under: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.process = subprocess.Popen(
            [*under, sys.executable, "-W", "error", "-c", PRELUDE + source, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONPATH": python_path(), **(env or {})},
            **options,
        )
        self._unread = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def heard(self, seconds: float = 60) -> dict[str, Any]:
        """The next thing it says."""
        assert self.process.stdout is not None
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            assert ready, "the host says nothing"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"the host has ended: {self._last_words()}"
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        facts: dict[str, Any] = json.loads(line)
        return facts

    def tell(self, line: str = "") -> None:
        """A line on its stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def ended(self, seconds: float = 60) -> tuple[int, str]:
        """Its exit status and what it wrote to stderr."""
        _, stderr = self.process.communicate(timeout=seconds)
        return self.process.returncode, stderr.decode()

    def _last_words(self) -> str:
        assert self.process.stderr is not None
        self.process.wait(30)
        return f"{self.process.returncode}\n{self.process.stderr.read().decode()}"

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            # Not reaped yet, so the number is its own: what it has forked goes as well.
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
