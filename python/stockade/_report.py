"""How a server ended."""

from __future__ import annotations

import signal as _signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ._text import last_line

if TYPE_CHECKING:
    from . import _native


@dataclass(frozen=True)
class ExitReport:
    """How a server ended, and what became of its process tree. `str()` is one readable line.

    Attributes:
        returncode: as `subprocess` has it: -n for signal n; None where the process outlived every wait for it.
        ended_by: "exit" (by itself), "close" (its stdin was closed), "terminate", "kill" or "limit".
        cause: plain words, such as "exited with 3" or "killed by SIGSEGV".
        descendants_killed: processes of the tree, beside the server's own, that had to be killed.
        unkillable: processes of the tree that still lived when the wait for them ended.
        stderr_tail: the last lines of stderr, sanitised, separated by newlines.
        stderr_dropped: lines of stderr that are no longer known.
        duration: seconds from the launch to the server's exit.
        user_time, system_time: processor seconds.
    """

    returncode: int | None
    ended_by: Literal["exit", "close", "terminate", "kill", "limit"]
    cause: str
    descendants_killed: int = 0
    unkillable: int = 0
    stderr_tail: str = field(default="", repr=False)
    stderr_dropped: int = 0
    duration: float = 0.0
    user_time: float = 0.0
    system_time: float = 0.0

    @property
    def signal(self) -> _signal.Signals | None:
        """The signal that ended the server, if one did."""
        if self.returncode is None or self.returncode >= 0:
            return None
        try:
            return _signal.Signals(-self.returncode)
        except ValueError:  # a real-time signal has no name
            return None

    def __str__(self) -> str:
        parts = [f"{self.cause} after {_duration(self.duration)}"]
        if self.ended_by not in ("exit", "close"):
            parts.append(_STAGES[self.ended_by])
        if self.descendants_killed:
            parts.append(f"{self.descendants_killed} of its processes killed")
        if self.unkillable:
            parts.append(f"{self.unkillable} of its processes could not be killed")
        last = last_line(self.stderr_tail)
        if last:
            parts.append(f"last stderr line: {last}")
        return "; ".join(parts)


_STAGES = {
    "terminate": "it ignored the end of its input and was terminated",
    "kill": "it was killed",
    "limit": "it passed a limit",
}


def _duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s"


def from_native(report: _native.Report) -> ExitReport:
    """The executor's report as a plain value: comparable, and it pickles."""
    return ExitReport(
        returncode=report.returncode,
        ended_by=report.ended_by,
        cause=report.cause,
        descendants_killed=report.descendants_killed,
        unkillable=report.unkillable,
        stderr_tail=report.stderr_tail,
        stderr_dropped=report.stderr_dropped,
        duration=report.duration,
        user_time=report.user_time,
        system_time=report.system_time,
    )
