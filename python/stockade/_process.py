"""A running server: frames in and out, its stderr, its end."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, final

import anyio
import anyio.lowlevel
import anyio.to_thread

from . import _exit, _loops, _native
from ._errors import ConfigError, ServerClosedInput, ServerExited, StartupTimeout, StockadeError
from ._report import ExitReport, from_native
from ._server import Shutdown, checked_server, checked_shutdown
from ._sinks import LOGGER, Stderr, native_sink, report_lost
from ._stderr import StderrRing
from ._stdout import Intake, Signal, Stdout, Taken, open_stdout

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from ._server import StdioServer

MAX_FRAME_BYTES = 64 * 1024 * 1024

# A receive that always finds a frame gives the loop a turn after so many of them; the same for send.
_TURN = 32

# What the executor may take beyond the graces before a wait for it gives up.
_MARGIN = 2.0

# How long a server may take to be seen dead after its stdout has ended, before it counts as one that lives on.
_DEATH_WINDOW = 0.25


@final
class ServerProcess:
    """A launched server. Made by `launch`; leaving it as a context manager closes it.

    It isn't bound to the event loop that launched it, nor to a task.
    """

    def __init__(self, session: _native.Session, name: str, shutdown: Shutdown, sink: object = None) -> None:
        self._session = session
        # Until the end. The executor holds it weakly: it may refer to whoever owns this process.
        self._sink = sink
        self._name = name
        self._shutdown = shutdown
        self._owner = os.getpid()
        self._closed = False
        self._closed_its_stdout = False
        self._report: ExitReport | None = None
        self._intake = Intake(session, self.interrupt)
        self._stdout: Stdout | None = None
        self._stdout_loop: object = None
        # Receivers left waiting on other loops; almost always empty.
        self._others: list[Stdout] = []
        # Senders that wait while the queue is full, on the loop they wait on.
        self._senders: deque[_loops.Event] = deque()
        self._senders_loop: object = None
        self._received = 0
        self._sent = 0

    @classmethod
    async def launch(
        cls,
        server: StdioServer,
        *,
        stderr: Stderr = LOGGER,
        shutdown: Shutdown | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> ServerProcess:
        """Start `server`.

        Args:
            stderr: where its stderr goes: a callable (gets one line of bytes), a logger, a path (appended to), a file
                object, a descriptor, "inherit", None (the ring only). The default is the logger
                `stockade.server.NAME`, at INFO.
            shutdown: how it is ended, unless `close` is told otherwise.
            max_frame_bytes: a longer frame ends the server with `FrameTooLong`.
        """
        checked_server(server, "ServerProcess.launch")
        return await start(server, stderr, checked_shutdown(shutdown), checked_limit(max_frame_bytes), None)

    @property
    def pid(self) -> int:
        return self._session.pid

    @property
    def name(self) -> str:
        """The server's name, else that of its command."""
        return self._name

    @property
    def command(self) -> _native.ResolvedCommand:
        """What was started, and how it was found."""
        return self._session.command

    @property
    def returncode(self) -> int | None:
        """As `subprocess` has it; None while the server runs."""
        return self._session.returncode

    @property
    def closed(self) -> bool:
        """Whether it was closed from this side."""
        return self._closed

    @property
    def bytes_received(self) -> int:
        """Bytes read from its stdout so far."""
        return self._session.bytes_received

    @property
    def stderr(self) -> StderrRing:
        return StderrRing(self._session)

    @property
    def report(self) -> ExitReport | None:
        """How it ended, once that is known."""
        if self._report is None:
            report = self._session.report()
            if report is not None:
                self._report = from_native(report)
                report_lost(self._sink, self._session.sink_lost, self._name)
                self._sink = None
        return self._report

    def __repr__(self) -> str:
        state = "closed" if self._closed else "running" if self._report is None else f"ended: {self._report.cause}"
        return f"<ServerProcess {self._name!r} {state}>"

    # Frames

    async def receive(self) -> bytes:
        """The next frame, without its newline.

        Raises:
            ServerExited: the server has ended and every frame was read.
            FrameTooLong: it wrote more than `max_frame_bytes` without a newline.
            anyio.ClosedResourceError: `close` was called.
        """
        try:
            frame = await self.next_frame()
        except EOFError:
            frame = None
        if frame is not None:
            return frame if isinstance(frame, bytes) else frame.data
        raise await self.exited()

    async def next_frame(
        self, deadline: float | None = None, stopped: Callable[[], bool] | None = None
    ) -> bytes | _native.Noise | None:
        """As `receive`, but a line that isn't UTF-8 is told apart, and EOFError says that stdout has ended.

        None: nothing until `deadline` (as `monotonic` has it), or `stopped` says so (asked first, and after
        `interrupt`).
        """
        self._refuse_copy()
        waited = False
        while stopped is None or not stopped():
            if self._closed:
                raise _closed_here()
            taken = self._intake.take()
            if taken is None:
                stdout = self._stdout_here()
                # From another thread it may have been closed, stopped or given a frame since that was looked for; who
                # did it may not know of this waiting yet.
                if self._closed or self._intake.kept or (stopped is not None and stopped()):
                    self._let_go_if_closed(stdout)
                    continue
                timeout = None if deadline is None else deadline - monotonic()
                if timeout is not None and timeout <= 0 and waited:
                    # However often it was told to look again.
                    return None
                outcome = await stdout.wait(timeout)
                waited = True
                self._let_go_if_closed(stdout)
                if outcome is Signal.LOOK_AGAIN:
                    continue
                if outcome is Signal.EXPIRED:
                    return None
                taken = outcome
                if self._others or self._stdout is not stdout:
                    self.interrupt()
            else:
                await self._found(taken)
            frame = taken[1]
            if isinstance(frame, Exception):
                if self._closed:
                    raise _closed_here() from None
                raise frame
            if isinstance(frame, _native.LargeFrame):
                return await self._unpack(taken, frame)
            return frame
        return None

    async def _found(self, taken: Taken) -> None:
        """For what came without waiting."""
        stdout = self._stdout
        if stdout is not None and (stdout.busy or self._others or stdout.thread != threading.get_ident()):
            # Others wait, and more may have been read from the pipe than this: they won't see it become readable.
            self.interrupt()
        # This has to be where a cancellation is seen, and others get their turn.
        self._received += 1
        try:
            await _breathe(self._received % _TURN == 0)
        except BaseException:
            self._intake.give_back(taken)
            raise

    async def _unpack(self, taken: Taken, frame: _native.LargeFrame) -> bytes:
        # A copy of many MiB: off the loop. Cancelled meanwhile, the frame is there for the next receive.
        try:
            return await anyio.to_thread.run_sync(frame.to_bytes)
        except BaseException:
            self._intake.give_back(taken)
            raise

    async def send(self, frame: bytes) -> None:
        """Queue a frame; its newline is added. Waits while the queue is full.

        Raises:
            ServerClosedInput: the server runs, but has closed its stdin.
            ServerExited: it has ended.
            anyio.ClosedResourceError: `close` was called.
            ValueError: a newline inside.
        """
        try:
            await self.queue_frame(frame)
        except ServerClosedInput:
            if self._closed:
                raise _closed_here() from None
            if self._session.returncode is None:
                raise
        else:
            return
        raise await self.exited()

    async def queue_frame(self, frame: bytes) -> None:
        """As `send`, but a server that has ended is a `ServerClosedInput` too, at once."""
        self._refuse_copy()
        self._sent += 1
        await _breathe(self._sent % _TURN == 0)
        if self._closed:
            raise _closed_here()
        if self._senders or not self._session.send(frame):
            await self._send_in_turn(frame)

    async def _send_in_turn(self, frame: bytes) -> None:
        """The queue is full: first come, first served."""
        loop, running = _loops.current(), _loops.running()
        if self._senders_loop is not running:
            # Who waits on another loop keeps its own order there.
            self._senders, self._senders_loop = deque(), running
        senders, turn = self._senders, loop.event()
        senders.append(turn)
        try:
            if senders[0] is not turn:
                await turn.wait()
            while not self._closed:
                if self._session.send(frame):
                    return
                await loop.until(self._session, "writable", None)
            raise _closed_here()
        finally:
            senders.remove(turn)
            if senders:
                senders[0].set()

    # The end

    async def wait(self) -> ExitReport:
        """Wait until the server and its tree have ended."""
        self._refuse_copy()
        report = await self._ended(None)
        assert report is not None
        return report

    async def close(self, shutdown: Shutdown | None = None) -> ExitReport:
        """End the server: close its stdin, wait, terminate its tree, wait, kill it. Idempotent, from any task.

        The end goes on by itself once begun. This only waits for it: anyio and trio cancellation are held off for at
        most the graces; a native `Task.cancel()` ends the waiting, not the end.
        """
        self.begin_close(shutdown)
        graces = self._graces(shutdown)
        budget = graces.close_grace + graces.terminate_grace + graces.kill_wait + _MARGIN
        report = None
        with anyio.CancelScope(shield=True):
            report = await self._ended(budget)
        if report is None:
            raise StockadeError(
                f"The end of server {self._name!r} was not reported within {budget:.1f} s.",
                code="close-timeout",
                stage="close",
            )
        return report

    def begin_close(self, shutdown: Shutdown | None = None) -> None:
        """What `close` does, without waiting. From any thread."""
        self._refuse_copy()
        graces = self._graces(shutdown)
        self._closed = True
        self.end(graces)
        self._let_go()

    def end(self, shutdown: Shutdown | None = None) -> None:
        """Have the executor end the server. Receivers see its end as such, not as closed from here."""
        graces = self._graces(shutdown)
        self._session.close(graces.close_grace, graces.terminate_grace, graces.kill_wait, graces.descendants == "leave")

    def _graces(self, given: Shutdown | None) -> Shutdown:
        return self._shutdown if given is None else checked_shutdown(given)

    def kill(self) -> None:
        """SIGKILL to the whole tree, now. What the server has written stays readable."""
        self._session.kill()

    async def exited(self, wrote: str = "") -> ServerExited:
        """The error for a server whose stdout has ended, or that is dead; waits until all is known."""
        self._let_go()
        if self.report is None and self._session.returncode is None:
            loop = _loops.current()
            # Usually it is just dying: the end of its stdout is seen a moment before its exit.
            if not await loop.until(self._session, "exited", _DEATH_WINDOW):
                # It lives: nothing more can come of it.
                self._closed_its_stdout = True
                self.end()
        report = await self._ended(None)
        assert report is not None
        return self.exit_error(report, wrote)

    def ended_unasked(self, report: ExitReport) -> bool:
        """Whether it ended, or had to be, of its own accord."""
        return report.ended_by == "exit" or self._closed_its_stdout

    def exit_error(self, report: ExitReport, wrote: str = "") -> ServerExited:
        """The error that says how it ended; `wrote` is a further sentence."""
        how = "closed its stdout, so it was ended" if self._closed_its_stdout else "has ended"
        return ServerExited(f"Server {self._name!r} {how}: {report}.{wrote}", report=report)

    async def _ended(self, timeout: float | None) -> ExitReport | None:
        if self.report is None:
            await _loops.current().until(self._session, "ended", timeout)
        return self.report

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        # A forked child that leaves the block, by sys.exit() perhaps, has nothing to end here.
        if not self.forked:
            await self.close()

    def __del__(self) -> None:
        # Half made, or a copy in a forked child: nothing to end here.
        if getattr(self, "_owner", None) != os.getpid() or self._closed:
            return
        message = ""
        # There is nobody to tell an error; and whatever fails, the executor ends a session that is dropped.
        with suppress(Exception):
            if self._session.report() is None:
                message = f"unclosed {self!r}, pid {self._session.pid}"
                self._closed = True
                self.end()
            for stdout in self._forget_stdouts():
                stdout.abandon()
        if message:
            warnings.warn(message, ResourceWarning, source=self, stacklevel=2)

    # Forks

    @property
    def forked(self) -> bool:
        """Whether this is a forked child's copy: the server is the parent's."""
        return self._owner != os.getpid()

    def _refuse_copy(self) -> None:
        # Before anything else: in a forked child there is no running loop either, which would be the error otherwise.
        if self._owner != os.getpid():
            self._session.report()  # raises that

    # Loops

    def interrupt(self) -> None:
        """Make whoever waits in `receive` look again. From any thread."""
        if self.forked:
            return
        for stdout in (*self._others, *((self._stdout,) if self._stdout else ())):
            stdout.interrupt()

    def _stdout_here(self) -> Stdout:
        running = _loops.running()
        if self._stdout is None or self._stdout_loop is not running:
            if self._stdout is not None:
                self._leave_loop(self._stdout)
            self._stdout = open_stdout(self._session, _loops.current(), self._intake)
            self._stdout_loop = running
        return self._stdout

    def _leave_loop(self, stdout: Stdout) -> None:
        self._others = [other for other in self._others if other.busy]
        if stdout.busy:
            self._others.append(stdout)
        else:
            stdout.close()

    def _let_go_if_closed(self, stdout: Stdout) -> None:
        if self._closed:
            stdout.close()
            self._let_go()

    def _let_go(self) -> None:
        """Stop watching stdout, on every loop."""
        for stdout in self._forget_stdouts():
            stdout.close()

    def _forget_stdouts(self) -> list[Stdout]:
        stdouts = [*self._others, *((self._stdout,) if self._stdout else ())]
        self._stdout, self._stdout_loop, self._others = None, None, []
        return stdouts


def checked_limit(given: Any) -> int:
    """What was given as `max_frame_bytes`; callers without a type checker pass anything."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= sys.maxsize:
        raise ConfigError(
            f"max_frame_bytes must be a whole number of bytes, from 1 to {sys.maxsize}.",
            remedy=f"The default is {MAX_FRAME_BYTES}.",
        )
    return given


def _closed_here() -> anyio.ClosedResourceError:
    return anyio.ClosedResourceError("the server was closed")


async def start(
    server: StdioServer,
    stderr: Stderr,
    shutdown: Shutdown,
    max_frame_bytes: int,
    timeout: float | None,
    meanwhile: Callable[[], object] | None = None,
) -> ServerProcess:
    """Launch, and call `meanwhile` once that is under way. StartupTimeout when it takes longer than `timeout`."""
    _exit.register()
    name = server.label
    sink, kept = native_sink(stderr, name)
    loop = _loops.current()
    event = loop.event()
    waker, token = loop.add(event.set)
    try:
        pending = _native.start(
            server._native,
            sink,
            max_frame_bytes,
            shutdown.close_grace,
            shutdown.terminate_grace,
            shutdown.kill_wait,
            shutdown.descendants == "leave",
            waker,
            token,
        )
        try:
            if meanwhile is not None:
                meanwhile()
            if not await event.wait(timeout):
                raise StartupTimeout(f"Server {name!r} was not launched within {timeout:g} s.", operation="launch")
            session = pending.take()
        except BaseException:
            pending.cancel()
            raise
    finally:
        loop.discard(token)
    assert session is not None  # the token fires when there is an answer
    return ServerProcess(session, name, shutdown, kept)


async def _breathe(turn: bool) -> None:
    """A checkpoint that is cheap: others run only when it is their `turn`."""
    if turn:
        await anyio.lowlevel.checkpoint()
    else:
        await anyio.lowlevel.checkpoint_if_cancelled()
