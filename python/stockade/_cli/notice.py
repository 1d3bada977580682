"""On a terminal: what a slow server is doing, with its last stderr line."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, final

from .output import is_terminal, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_AFTER = 0.6
_EVERY = 0.2
_ERASE = "\r\x1b[K"


@final
class Notice:
    """Shows one line that rewrites itself, from a moment after a phase began to its end. Silent off a terminal.

    A thread writes it: the event loop may be busy importing the SDK meanwhile.
    """

    def __init__(self, label: str) -> None:
        self.tail: Callable[[int], list[bytes]] | None = None
        """Gives the last stderr lines, once there is a server; thread-safe."""
        self._label = one_line(label, 60)
        self._phase = "is starting"
        self._began = time.monotonic()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def phase(self, words: str) -> None:
        """What it is doing from now on."""
        self._phase, self._began = words, time.monotonic()

    def __enter__(self) -> Notice:
        if is_terminal(sys.stderr):
            self._thread = threading.Thread(target=self._show, name="stockade-notice", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Erase it. Idempotent."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _show(self) -> None:
        shown = False
        while not self._stopped.wait(_EVERY):
            phase, seconds = self._phase, time.monotonic() - self._began
            if shown or seconds >= _AFTER:
                self._write(_ERASE + (self._line(phase, seconds) if seconds >= _AFTER else ""))
                shown = True
        if shown:
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal has gone
            sys.stderr.write(text)
            sys.stderr.flush()

    def _line(self, phase: str, seconds: float) -> str:
        tail = self.tail(1) if self.tail is not None else []
        last = one_line(tail[-1][:1000].decode("utf-8", "replace")) if tail else ""
        text = f"{self._label} {phase}, {seconds:.0f} s" + (f": {last}" if last else "")
        width = max(shutil.get_terminal_size().columns - 1, 10)
        return text if len(text) <= width else text[: width - 1] + "…"
