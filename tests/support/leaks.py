"""What this process holds, before and after a test: descriptors, threads, child processes, live sessions."""

from __future__ import annotations

import gc
import os
import select
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop

from stockade import _native

# What stays on purpose for a while: trio's idle worker threads (ten seconds), libuv's pool, and the executor's idle
# launch threads (one second).
KEPT_THREADS = ("Trio thread", "libuv-worker", "stockade-launch")
PROC = Path("/proc/self")


@dataclass(frozen=True)
class Held:
    """Everything that a test could leave behind. Where there is no /proc, only the sessions are known."""

    descriptors: frozenset[str]
    threads: frozenset[str]
    children: frozenset[str]
    sessions: int

    @classmethod
    def now(cls) -> Held:
        return cls(_descriptors(), _threads(), _children(), _native.live_sessions())

    def added_since(self, before: Held) -> list[str]:
        """What is here now and wasn't before, each as a line."""
        added = [f"descriptor {line}" for line in sorted(self.descriptors - before.descriptors)]
        added += [f"thread {line}" for line in sorted(self.threads - before.threads)]
        added += [f"child process {line}" for line in sorted(self.children - before.children)]
        if self.sessions > before.sessions:
            added.append(f"{self.sessions - before.sessions} live session(s)")
        return added


def leaked_since(before: Held, deadline: float = 15.0) -> list[str]:
    """What stays after everything that ends in the background had time to end."""
    end = time.monotonic() + deadline
    collected = False
    while True:
        added = Held.now().added_since(before)
        if not added or time.monotonic() >= end:
            return added
        if not collected:
            # A cycle may hold what a test dropped; collecting costs too much to do it after every test.
            gc.collect()
            collected = True
            continue
        # No event tells that a descriptor was closed or a thread has ended: look again.
        select.select([], [], [], 0.01)


def start_executor() -> None:
    """Launch once, so that what the library keeps for the life of the process is there before the first test."""
    waker = _native.Waker()
    session = launch("true", waker)
    session.notify("ended", waker, 2)
    wait_for(waker, 2)
    waker.close()
    # libuv opens a pair of descriptors with the first loop, for good.
    uvloop.new_event_loop().close()


def launch(command: str, waker: _native.Waker) -> _native.Session:
    """Start a program with the bare executor; token 1 is used up."""
    server = _native.Server(command, [], None, [], "safe", [])
    pending = _native.start(server, None, 1 << 20, 2.0, 2.0, 2.0, False, waker, 1)
    wait_for(waker, 1)
    session = pending.take()
    assert session is not None
    return session


def wait_for(waker: _native.Waker, token: int) -> None:
    while True:
        ready, _, _ = select.select([waker.fileno()], [], [], 30.0)
        if not ready:
            raise TimeoutError("the executor didn't answer within 30 s")
        if token in waker.take():
            return


def _descriptors() -> frozenset[str]:
    found: list[str] = []
    try:
        names = os.listdir(PROC / "fd")  # noqa: PTH208 - a descriptor of its own is closed on return
    except FileNotFoundError:
        return frozenset()
    for name in names:
        try:
            target = os.readlink(PROC / "fd" / name)  # noqa: PTH115 - "pipe:[1]" is no path
        except OSError:  # the listing's own
            continue
        found.append(f"{name} -> {target}")
    return frozenset(found)


def _threads() -> frozenset[str]:
    # trio names its threads for Python alone.
    kept = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(KEPT_THREADS)}
    found: list[str] = []
    for task in _tasks():
        name = _read(task / "comm").strip()
        if name and not name.startswith(KEPT_THREADS) and int(task.name) not in kept:
            found.append(f"{task.name} ({name})")
    return frozenset(found)


def _children() -> frozenset[str]:
    """Running children and zombies, whichever thread started them."""
    pids = [pid for task in _tasks() for pid in _read(task / "children").split()]
    # The state is not part of the line: a child that was there before and has died since is nobody's leak.
    return frozenset(f"{pid} ({_read(Path('/proc') / pid / 'comm').strip()})" for pid in pids)


def _tasks() -> list[Path]:
    try:
        return list((PROC / "task").iterdir())
    except FileNotFoundError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
