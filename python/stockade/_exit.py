"""The end of the interpreter: servers that are left are ended in order, in the process that launched them."""

from __future__ import annotations

import atexit
import os

from . import _native

_registered: int | None = None
"""The process that ends its servers at its exit."""


def register() -> None:
    """Have this process's servers ended at its exit. Idempotent."""
    global _registered
    pid = os.getpid()
    if _registered != pid:
        # A forked child inherits the registration, not the servers; for its own it registers itself.
        _registered = pid
        atexit.register(_end_all, pid)


def _end_all(owner: int) -> None:
    if os.getpid() == owner:
        _native.end_all(0.8)
