"""Waiting, on asyncio (uvloop too) and on trio, for what the executor's threads announce.

Natively rather than through anyio, because it is on the way of every frame. Nothing outlives its use: a loop is
watched only while somebody waits for a token there, and a loop that was closed meanwhile is let go.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _native
from ._errors import LaunchError, StockadeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import trio

_numbers = itertools.count(1)


@contextmanager
def for_waiting() -> Generator[None]:
    """Says of a descriptor that can't be had what it was for: the server runs, it wasn't to be launched."""
    try:
        yield
    except LaunchError as error:
        raise StockadeError(
            f"This process can't wait for the server: {os.strerror(error.errno or 0)}.",
            code=error.code,
            stage="run",
            remedy=error.remedy,
            operation=error.operation,
            native_code=error.native_code,
        ) from error


class Loop(ABC):
    """One running event loop, and the tokens awaited on it.

    The waker is there while there are tokens. All methods belong to the loop's own thread, except `run_soon`.
    """

    def __init__(self) -> None:
        self._tokens: dict[int, Callable[[], object]] = {}
        self._waker: _native.Waker | None = None
        # Its descriptor; kept apart, because a waker doesn't tell it in a forked child.
        self._fd = -1

    def add(self, callback: Callable[[], object]) -> tuple[_native.Waker, int]:
        """A new token; `callback` runs on the loop when it fires, once."""
        token = next(_numbers)
        # First of all: a garbage collection may discard other tokens at any step, and the last one takes the waker.
        self._tokens[token] = callback
        try:
            waker = self._waker or self._open()
        except BaseException:
            self._tokens.pop(token, None)
            raise
        return waker, token

    def _open(self) -> _native.Waker:
        waker = _native.Waker()
        try:
            self._fd = waker.fileno()
            self._watch(waker)
        except BaseException:
            waker.close()
            raise
        self._waker = waker
        return waker

    def discard(self, token: int) -> None:
        """Forget a token, fired or not."""
        self._tokens.pop(token, None)
        if not self._tokens:
            self.release()

    def release(self) -> None:
        """Let go of the waker, whatever is still awaited."""
        waker, self._waker = self._waker, None
        self._tokens.clear()
        if waker is not None:
            self._unwatch(waker)

    def abandon(self) -> None:
        """Forget everything, in a forked child: the waker is the parent's, its descriptor is closed here.

        The number must go from the loop's own list: what is opened under it next would never be watched.
        """
        waker, self._waker = self._waker, None
        self._tokens.clear()
        if waker is not None:
            with suppress(Exception):
                self._forget_fd()

    def _fire(self) -> None:
        waker = self._waker
        if waker is None:
            return
        for token in waker.take():
            callback = self._tokens.get(token)
            if callback is not None:
                callback()

    async def until(
        self, session: _native.Session, what: Literal["readable", "writable", "exited", "ended"], timeout: float | None
    ) -> bool:
        """Wait until `session` announces `what`; False: not within the time."""
        event = self.event()
        with for_waiting():
            waker, token = self.add(event.set)
        try:
            session.notify(what, waker, token)
            return await event.wait(timeout)
        finally:
            session.forget(waker, token)
            self.discard(token)

    @abstractmethod
    def event(self) -> Event: ...
    @abstractmethod
    def run_soon(self, function: Callable[[], object]) -> bool:
        """Run `function` on the loop, from any thread. False: the loop has ended."""

    @abstractmethod
    def is_current(self) -> bool: ...
    @abstractmethod
    def _watch(self, waker: _native.Waker) -> None: ...
    @abstractmethod
    def _unwatch(self, waker: _native.Waker) -> None: ...
    @abstractmethod
    def _forget_fd(self) -> None: ...


class Event(ABC):
    """Set once, awaited by one task."""

    @abstractmethod
    def set(self) -> None: ...
    @abstractmethod
    async def wait(self, timeout: float | None = None) -> bool:
        """False: not within the time."""


class AsyncioLoop(Loop):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop

    def event(self) -> Event:
        return _AsyncioEvent(self.loop)

    def run_soon(self, function: Callable[[], object]) -> bool:
        if self.loop.is_closed():
            return False
        try:
            self.loop.call_soon_threadsafe(function)
        except RuntimeError:  # closed just now
            return False
        return True

    def is_current(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def release(self) -> None:
        super().release()
        with _asyncio_lock:
            if _asyncio_loops.get(self.loop) is self:
                del _asyncio_loops[self.loop]

    def _watch(self, waker: _native.Waker) -> None:  # noqa: ARG002 - trio's needs it
        self.loop.add_reader(self._fd, self._fire)
        with _asyncio_lock:
            _asyncio_loops[self.loop] = self

    def _unwatch(self, waker: _native.Waker) -> None:
        self._forget_fd()
        waker.close()

    def _forget_fd(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self._fd)


class _AsyncioEvent(Event):
    __slots__ = ("_future",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[bool] = loop.create_future()

    def set(self) -> None:
        if not self._future.done():
            self._future.set_result(True)

    def _expire(self) -> None:
        if not self._future.done():
            self._future.set_result(False)

    async def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            return await self._future
        timer = self._future.get_loop().call_later(timeout, self._expire)
        try:
            return await self._future
        finally:
            timer.cancel()


# Loops with tokens only: an entry keeps its loop alive, and goes with the last token.
_asyncio_loops: dict[asyncio.AbstractEventLoop, AsyncioLoop] = {}
# Reentrant: a garbage collection while it is held may end a server, and let go of a loop's last token.
_asyncio_lock = threading.RLock()


def _of_asyncio(loop: asyncio.AbstractEventLoop) -> AsyncioLoop:
    found = _asyncio_loops.get(loop)
    if found is not None:
        return found
    with _asyncio_lock:
        known = list(_asyncio_loops.values())
    for other in known:
        if other.loop.is_closed():
            other.release()
    return AsyncioLoop(loop)


def _forked() -> None:
    """In the child: another thread may have held the lock, and what was awaited is the parent's."""
    global _asyncio_lock
    _asyncio_lock = threading.RLock()
    known = list(_asyncio_loops.values())
    _asyncio_loops.clear()
    for loop in known:
        loop.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class TrioLoop(Loop):
    def __init__(self) -> None:
        super().__init__()
        import trio

        self._trio = trio
        self._run = trio.lowlevel.current_trio_token()
        self.owner = os.getpid()

    def event(self) -> Event:
        return _TrioEvent(self._trio)

    def run_soon(self, function: Callable[[], object]) -> bool:
        try:
            self._run.run_sync_soon(function)
        except self._trio.RunFinishedError:
            return False
        return True

    def is_current(self) -> bool:
        try:
            return self._trio.lowlevel.current_trio_token() is self._run
        except RuntimeError:
            return False

    def _watch(self, waker: _native.Waker) -> None:
        # A system task, because a token may outlive the task that asked for it. It ends with the last token.
        self._trio.lowlevel.spawn_system_task(self._pump, waker, self._fd)

    def _unwatch(self, waker: _native.Waker) -> None:
        if self.is_current():
            self._forget_fd()
        waker.close()

    def _forget_fd(self) -> None:
        self._trio.lowlevel.notify_closing(self._fd)

    async def _pump(self, waker: _native.Waker, fd: int) -> None:
        try:
            while self._waker is waker:
                try:
                    await self._trio.lowlevel.wait_readable(fd)
                except self._trio.ClosedResourceError:
                    return
                self._fire()
        finally:
            # The run is ending, or nobody waits any more.
            if self._waker is waker:
                self._waker = None
                self._tokens.clear()
            waker.close()


class _TrioEvent(Event):
    __slots__ = ("_event", "_trio")

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._event: trio.Event = trio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            await self._event.wait()
            return True
        with self._trio.move_on_after(max(timeout, 0)):
            await self._event.wait()
        return self._event.is_set()


_trio_loops: Any = None


def _of_trio() -> TrioLoop:
    global _trio_loops
    if _trio_loops is None:
        import trio

        _trio_loops = cast("Any", trio.lowlevel.RunVar)("stockade")
    with suppress(LookupError):
        found: TrioLoop = _trio_loops.get()
        if found.owner == os.getpid():
            return found
        found.abandon()
    loop = TrioLoop()
    _trio_loops.set(loop)
    return loop


def current() -> Loop:
    """The running event loop."""
    lowlevel = sys.modules.get("trio.lowlevel")
    if lowlevel is not None and lowlevel.in_trio_task():
        return _of_trio()
    try:
        return _of_asyncio(asyncio.get_running_loop())
    except RuntimeError:
        raise RuntimeError("stockade needs a running event loop: asyncio, uvloop or trio") from None


def running() -> object:
    """What identifies the running loop, as cheaply as can be: the key by which per-loop state is kept."""
    lowlevel = sys.modules.get("trio.lowlevel")
    if lowlevel is not None and lowlevel.in_trio_task():
        return lowlevel.current_trio_token()
    return asyncio.get_running_loop()
