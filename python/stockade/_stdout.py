"""Waiting for a server's stdout on one event loop.

The loop watches the descriptor itself, so a frame costs no thread change. The executor's "readable" token covers
what a descriptor can't show: that the server has died while a descendant still holds its stdout.
"""

from __future__ import annotations

import enum
import os
import threading
import weakref
from abc import ABC, abstractmethod
from bisect import insort
from collections import deque
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from . import _native
from ._loops import AsyncioLoop, Loop, TrioLoop, for_waiting

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

Frame = bytes | _native.LargeFrame | _native.Noise
# Its place in the stream, and a frame or what was raised instead of one.
Taken = tuple[int, Frame | Exception]


class Signal(enum.Enum):
    """What a wait may bring instead of a frame."""

    LOOK_AGAIN = enum.auto()
    EXPIRED = enum.auto()


Outcome = Taken | Signal
_place = itemgetter(0)


class Intake:
    """Takes frames from the executor. One that was given back is the next one again, whoever else gave back what."""

    def __init__(self, session: _native.Session, wake: Callable[[], object]) -> None:
        """`wake`, a method that has everybody who waits look again, is held weakly: a loop holds what is held here."""
        self._session = session
        self._wake = weakref.WeakMethod(wake)
        self._kept: list[Taken] = []
        self._count = 0

    @property
    def kept(self) -> bool:
        """Whether there is something that was given back."""
        return bool(self._kept)

    def take(self) -> Taken | None:
        """The next frame, or what the executor raises; None: nothing now."""
        if self._kept:
            with suppress(IndexError):  # another thread was quicker
                return self._kept.pop(0)
        try:
            frame = self._session.receive()
        except Exception as error:  # noqa: BLE001 - raised to whoever gets it
            self._count += 1
            return self._count, error
        if frame is None:
            return None
        self._count += 1
        return self._count, frame

    def give_back(self, taken: Taken) -> None:
        """For the next receiver, in its place."""
        insort(self._kept, taken, key=_place)
        wake = self._wake()
        if wake is not None:
            wake()


class Stdout(ABC):
    """The readers of one server's stdout on one loop.

    Methods belong to the loop's thread, except `interrupt` and `close`.
    """

    def __init__(self, session: _native.Session, loop: Loop, intake: Intake) -> None:
        self._session = session
        self._loop = loop
        self._intake = intake
        self._watch: _native.StdoutWatch | None = None
        self._fd = -1
        self._token: int | None = None
        self._asked = False
        self._announced = False
        self.thread = threading.get_ident()
        """The loop's."""

    @abstractmethod
    async def wait(self, timeout: float | None) -> Outcome:
        """The next frame, an error to raise, or a reason to look again. Loses nothing when cancelled."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether somebody waits here."""

    def interrupt(self) -> None:
        """Make everybody who waits look again; from any thread."""
        self._on_loop(self._interrupt_here)

    def close(self) -> None:
        """Stop watching; from any thread, whatever has become of the loop."""
        self._on_loop(self._close_here)

    def abandon(self) -> None:
        """As `close`, for a finaliser: it may run at any step of the loop's own, so the loop does it later."""
        if not self._loop.run_soon(self._close_here):
            self._close_here()

    def _on_loop(self, function: Callable[[], object]) -> None:
        if self._loop.is_current() or not self._loop.run_soon(function):
            function()

    @abstractmethod
    def _interrupt_here(self) -> None: ...

    def _close_here(self) -> None:
        self._interrupt_here()
        token, self._token = self._token, None
        if token is not None:
            self._loop.discard(token)
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _ask(self) -> _native.StdoutWatch | None:
        """The descriptor to watch; and, once, the token for the end that it doesn't show."""
        with for_waiting():
            if self._watch is None:
                self._watch = self._session.watch_stdout()
                if self._watch is not None:
                    self._fd = self._watch.fileno()
            if not self._asked and self._watch is not None:
                waker, token = self._loop.add(self._announce)
                try:
                    self._session.notify("readable", waker, token)
                except BaseException:
                    self._loop.discard(token)
                    raise
                # Only now: a wait that failed for want of a descriptor asks again the next time.
                self._token, self._asked = token, True
        return self._watch

    def _announce(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            self._loop.discard(token)
        self._announced = True
        self._interrupt_here()

    def _silent(self) -> bool:
        """Whether the executor is ending the server, and nothing more will come. To be asked after a look in vain."""
        return self._announced and self._session.closing


class AsyncioStdout(Stdout):
    def __init__(self, session: _native.Session, loop: AsyncioLoop, intake: Intake) -> None:
        super().__init__(session, loop, intake)
        self._asyncio = loop.loop
        self._waiters: deque[asyncio.Future[Outcome]] = deque()
        self._reading = False
        _on_asyncio.add(self)

    @property
    def busy(self) -> bool:
        return bool(self._waiters)

    async def wait(self, timeout: float | None) -> Outcome:
        if self._silent():
            return 0, EOFError()
        if not self._reading and not self._read():
            arrived = await self._loop.until(self._session, "readable", timeout)
            return Signal.LOOK_AGAIN if arrived else Signal.EXPIRED
        waiter: asyncio.Future[Outcome] = self._asyncio.create_future()
        self._waiters.append(waiter)
        timer = None
        if timeout is not None:
            timer = self._asyncio.call_later(timeout, _settle, waiter, Signal.EXPIRED)
        try:
            return await waiter
        except BaseException:
            self._drop(waiter)
            if waiter.done() and not waiter.cancelled():
                outcome = waiter.result()
                if not isinstance(outcome, Signal):
                    self._intake.give_back(outcome)
            raise
        finally:
            if timer is not None:
                timer.cancel()
                self._drop(waiter)

    def _interrupt_here(self) -> None:
        waiters, self._waiters = self._waiters, deque()
        if self._asyncio.is_closed():
            return
        for waiter in waiters:
            _settle(waiter, Signal.LOOK_AGAIN)

    def _close_here(self) -> None:
        self._stop_reading()
        super()._close_here()

    def _read(self) -> bool:
        if self._ask() is None:
            return False
        # Stays between two receives; it goes when data comes that nobody waits for.
        self._asyncio.add_reader(self._fd, self._ready)
        self._reading = True
        return True

    def _stop_reading(self) -> None:
        reading, self._reading = self._reading, False
        if reading and not self._asyncio.is_closed():
            self._asyncio.remove_reader(self._fd)

    def _ready(self) -> None:
        waiters = self._waiters
        while waiters:
            if waiters[0].done():
                waiters.popleft()
                continue
            taken = self._intake.take()
            if taken is None:
                return
            waiters.popleft().set_result(taken)
            if isinstance(taken[1], Exception):
                self._stop_reading()
                self._interrupt_here()
                return
            if not waiters:
                return
        self._stop_reading()

    def _drop(self, waiter: asyncio.Future[Outcome]) -> None:
        with suppress(ValueError):  # served and gone already
            self._waiters.remove(waiter)


_on_asyncio: weakref.WeakSet[AsyncioStdout] = weakref.WeakSet()


def _forked() -> None:
    """In the child: the descriptors are closed, and their numbers must go from the loops' own lists."""
    for stdout in list(_on_asyncio):
        with suppress(Exception):
            stdout._stop_reading()
    _on_asyncio.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _settle(waiter: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not waiter.done():
        waiter.set_result(outcome)


class TrioStdout(Stdout):
    def __init__(self, session: _native.Session, loop: TrioLoop, intake: Intake) -> None:
        super().__init__(session, loop, intake)
        import trio

        self._trio: Any = trio
        # trio lets one task wait for a descriptor.
        self._turn = trio.StrictFIFOLock()

    @property
    def busy(self) -> bool:
        return self._turn.locked()

    async def wait(self, timeout: float | None) -> Outcome:
        if timeout is None:
            return await self._wait()
        with self._trio.move_on_after(max(timeout, 0)):
            return await self._wait()
        return Signal.EXPIRED

    def _interrupt_here(self) -> None:
        # Who waits for the turn gets it one after the other.
        if self._watch is not None and self._loop.is_current():
            self._trio.lowlevel.notify_closing(self._fd)

    async def _wait(self) -> Outcome:
        try:
            self._turn.acquire_nowait()
        except self._trio.WouldBlock:
            await self._turn.acquire()
            self._turn.release()
            return Signal.LOOK_AGAIN
        try:
            watch = self._ask()
            if self._silent():
                return 0, EOFError()
            if watch is None:
                await self._loop.until(self._session, "readable", None)
                return Signal.LOOK_AGAIN
            while True:
                try:
                    await self._trio.lowlevel.wait_readable(self._fd)
                except self._trio.ClosedResourceError:
                    return Signal.LOOK_AGAIN
                taken = self._intake.take()
                if taken is not None:
                    return taken
        finally:
            self._turn.release()


def open_stdout(session: _native.Session, loop: Loop, intake: Intake) -> Stdout:
    """Readers on `loop`; what came for one that was cancelled meanwhile goes back to `intake`."""
    if isinstance(loop, AsyncioLoop):
        return AsyncioStdout(session, loop, intake)
    assert isinstance(loop, TrioLoop)
    return TrioStdout(session, loop, intake)
