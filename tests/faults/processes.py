"""Watching processes that may belong to somebody else, without asking again and again."""

from __future__ import annotations

import os
import select
from pathlib import Path
from types import TracebackType


class Watched:
    """A living process by its handle: the number alone may be somebody else's later."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)

    def gone(self, seconds: float = 30) -> bool:
        """Wait for its death."""
        ready, _, _ = select.select([self._handle], [], [], seconds)
        return bool(ready)

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._handle)


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def state_of(pid: int) -> str:
    return _stat(pid)[0]


def alive(pid: int) -> bool:
    """Whether it exists and isn't a zombie."""
    try:
        return state_of(pid) != "Z"
    except FileNotFoundError:
        return False


def resident_bytes(pid: int | str = "self") -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """The most memory that this process has had since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def processor_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    # The name before the parenthesis may hold anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
