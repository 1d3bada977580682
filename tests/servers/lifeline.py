"""Knows when every process that holds it is dead: the kernel closes the last writing end of a FIFO."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import anyio


class Lifeline:
    """A FIFO whose path a server gets; each of its processes opens it for writing, writes a byte and keeps it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    async def held_by(self, count: int) -> None:
        """Wait until so many processes hold it."""
        with anyio.fail_after(30):
            while count > 0:
                await anyio.wait_readable(self._reader)
                arrived = os.read(self._reader, count)
                assert arrived, "all of them are dead"
                count -= len(arrived)

    async def gone(self, seconds: float = 30) -> None:
        """Wait until nobody holds it; call it after `held_by`."""
        with anyio.fail_after(seconds):
            while True:
                await anyio.wait_readable(self._reader)
                if not os.read(self._reader, 4096):
                    return

    def __enter__(self) -> Lifeline:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._reader)
