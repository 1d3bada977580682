"""Waiting for a server's stdout on one event loop.

The loop watches the descriptor itself, so a frame costs no thread change. The executor's "readable" token covers
what a descriptor can't show: that the server has died while a descendant still holds its stdout.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import _native
from ._loops import AsyncioLoop, Loop, TrioLoop

if TYPE_CHECKING:
    import asyncio

Frame = bytes | _native.LargeFrame | _native.Noise


class Signal(enum.Enum):
    """What a wait may bring instead of a frame."""

    LOOK_AGAIN = enum.auto()
    EXPIRED = enum.auto()


Outcome = Frame | Signal | Exception
Keep = Callable[[Frame | Exception], None]


class Stdout(ABC):
    """The readers of one server's stdout on one loop. Methods belong to the loop's thread, except `close`."""

    def __init__(self, session: _native.Session, loop: Loop, keep: Keep) -> None:
        self._session = session
        self._loop = loop
        self._keep = keep
        self._watch: _native.StdoutWatch | None = None
        self._token: int | None = None
        self._asked = False
        self._announced = False

    @abstractmethod
    async def wait(self, timeout: float | None) -> Outcome:
        """The next frame, an error to raise, or a reason to look again. Loses nothing when cancelled."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether somebody waits here."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make everybody who waits look again."""

    def close(self) -> None:
        """Stop watching; from any thread, whatever has become of the loop."""
        if self._loop.is_current() or not self._loop.run_soon(self._close_here):
            self._close_here()

    def _close_here(self) -> None:
        self.interrupt()
        token, self._token = self._token, None
        if token is not None:
            self._loop.discard(token)
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _ask(self) -> _native.StdoutWatch | None:
        """The descriptor to watch; and, once, the token for the end that it doesn't show."""
        if self._watch is None:
            self._watch = self._session.watch_stdout()
        if not self._asked and self._watch is not None:
            self._asked = True
            waker, self._token = self._loop.add(self._announce)
            self._session.notify("readable", waker, self._token)
        return self._watch

    def _announce(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            self._loop.discard(token)
        self._announced = True
        self.interrupt()

    def _look(self) -> Frame | Exception | None:
        try:
            return self._session.receive()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            return error

    def _silent(self) -> bool:
        """Whether the executor is ending the server, and nothing more will come. To be asked after a look in vain."""
        return self._announced and self._session.closing


class AsyncioStdout(Stdout):
    def __init__(self, session: _native.Session, loop: AsyncioLoop, keep: Keep) -> None:
        super().__init__(session, loop, keep)
        self._asyncio = loop.loop
        self._waiters: deque[asyncio.Future[Outcome]] = deque()
        self._reading = False

    @property
    def busy(self) -> bool:
        return bool(self._waiters)

    async def wait(self, timeout: float | None) -> Outcome:
        if self._silent():
            return EOFError()
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
            if waiter.done() and not waiter.cancelled():
                self._put_back(waiter.result())
            self._drop(waiter)
            raise
        finally:
            if timer is not None:
                timer.cancel()
                self._drop(waiter)

    def interrupt(self) -> None:
        waiters, self._waiters = self._waiters, deque()
        if self._asyncio.is_closed():
            return
        for waiter in waiters:
            _settle(waiter, Signal.LOOK_AGAIN)

    def _close_here(self) -> None:
        self._stop_reading()
        super()._close_here()

    def _read(self) -> bool:
        watch = self._ask()
        if watch is None:
            return False
        # Stays between two receives; it goes when data comes that nobody waits for.
        self._asyncio.add_reader(watch.fileno(), self._ready)
        self._reading = True
        return True

    def _stop_reading(self) -> None:
        if self._reading and self._watch is not None and not self._asyncio.is_closed():
            self._asyncio.remove_reader(self._watch.fileno())
        self._reading = False

    def _ready(self) -> None:
        waiters = self._waiters
        while waiters:
            if waiters[0].done():
                waiters.popleft()
                continue
            outcome = self._look()
            if outcome is None:
                return
            waiters.popleft().set_result(outcome)
            if isinstance(outcome, Exception):
                self._stop_reading()
                self.interrupt()
                return
            if not waiters:
                return
        self._stop_reading()

    def _drop(self, waiter: asyncio.Future[Outcome]) -> None:
        with suppress(ValueError):  # served and gone already
            self._waiters.remove(waiter)

    def _put_back(self, outcome: Outcome) -> None:
        if isinstance(outcome, Signal):
            return
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(outcome)
                return
        self._keep(outcome)


def _settle(waiter: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not waiter.done():
        waiter.set_result(outcome)


class TrioStdout(Stdout):
    def __init__(self, session: _native.Session, loop: TrioLoop, keep: Keep) -> None:
        super().__init__(session, loop, keep)
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

    def interrupt(self) -> None:
        # Who waits for the turn gets it one after the other.
        if self._watch is not None and self._loop.is_current():
            self._trio.lowlevel.notify_closing(self._watch.fileno())

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
                return EOFError()
            if watch is None:
                await self._loop.until(self._session, "readable", None)
                return Signal.LOOK_AGAIN
            while True:
                try:
                    await self._trio.lowlevel.wait_readable(watch.fileno())
                except self._trio.ClosedResourceError:
                    return Signal.LOOK_AGAIN
                outcome = self._look()
                if outcome is not None:
                    return outcome
        finally:
            self._turn.release()


def open_stdout(session: _native.Session, loop: Loop, keep: Keep) -> Stdout:
    """Readers on `loop`; `keep` takes a frame whose receiver was cancelled, for the next one."""
    if isinstance(loop, AsyncioLoop):
        return AsyncioStdout(session, loop, keep)
    assert isinstance(loop, TrioLoop)
    return TrioStdout(session, loop, keep)
