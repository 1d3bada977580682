"""On a terminal: that a slow server is still starting, with its last stderr line."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, final

from .output import clean, is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_AFTER = 0.6
_EVERY = 0.2
_ERASE = "\r\x1b[K"


@final
class Starting:
    """Shows one line that rewrites itself, from a moment after the start until `stop`. Silent off a terminal.

    A thread writes it: the event loop may be busy importing the SDK meanwhile.
    """

    def __init__(self, label: str) -> None:
        self.tail: Callable[[int], list[bytes]] | None = None
        """Gives the last stderr lines, once there is a server; thread-safe."""
        self._label = label
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Starting:
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
        began = time.monotonic()
        shown = False
        wait = _AFTER
        while not self._stopped.wait(wait):
            wait = _EVERY
            sys.stderr.write(_ERASE + self._line(time.monotonic() - began))
            sys.stderr.flush()
            shown = True
        if shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()

    def _line(self, seconds: float) -> str:
        tail = self.tail(1) if self.tail is not None else []
        last = clean(tail[-1].decode("utf-8", "replace")).replace("\t", " ").strip() if tail else ""
        text = f"{self._label} is starting, {seconds:.0f} s" + (f": {last}" if last else "")
        width = max(shutil.get_terminal_size().columns - 1, 10)
        return text if len(text) <= width else text[: width - 1] + "…"
