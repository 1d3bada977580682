"""The MCP transport: a server process as two streams of messages.

No task group and no task of its own: it can be entered in one task and left in another, in any order, on any loop.
"""

from __future__ import annotations

import logging
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, final

import anyio

from ._errors import (
    ConfigError,
    FrameTooLong,
    ServerExited,
    StartupTimeout,
    StockadeError,
    TransportUsedError,
)
from ._process import MAX_FRAME_BYTES, ServerProcess, checked_limit, start
from ._sdk import is_connection_lost, require, sdk
from ._server import StdioServer, checked_server, checked_shutdown, checked_timeout
from ._sinks import LOGGER, Stderr
from ._text import excerpt, last_line, recent

if TYPE_CHECKING:
    from types import TracebackType

    from mcp import StdioServerParameters
    from mcp.shared.message import SessionMessage
    from typing_extensions import Self

    from ._report import ExitReport
    from ._server import Shutdown
    from ._sinks import Writable

_log = logging.getLogger("stockade")

OnNoise = Literal["report", "ignore", "raise"]


class UnreadableLine(StockadeError, ValueError):
    """A line of the server's stdout that is not an MCP message.

    Attributes:
        excerpt: its beginning, cleaned.
    """

    code = "unreadable-line"
    excerpt: str = ""


@final
class StdioTransport:
    """Starts a server when entered, gives the two streams that `mcp.Client` and `ClientSession` take, and ends it.

    Args:
        server: what to start.
        stderr: where its stderr goes; see `ServerProcess.launch`.
        shutdown: how it is ended.
        startup_timeout: seconds from the launch until the first message, whatever it says; then the read stream brings
            a `StartupTimeout`, the server is ended and the stream with it. None: no limit.
        max_frame_bytes: a longer line ends the server; the read stream brings a `FrameTooLong`.
        on_noise: what becomes of a line that is no message. "report": the read stream brings an `UnreadableLine`
            (a ValueError), and the first one is logged; "ignore": nothing; "raise": it ends the server, and leaving
            the transport raises it.
    """

    def __init__(
        self,
        server: StdioServer,
        *,
        stderr: Stderr = LOGGER,
        shutdown: Shutdown | None = None,
        startup_timeout: float | None = 120.0,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_noise: OnNoise = "report",
    ) -> None:
        if on_noise not in ("report", "ignore", "raise"):
            raise ConfigError('on_noise must be "report", "ignore" or "raise".')
        self._server = checked_server(server, "A StdioTransport")
        self._stderr: Stderr = stderr
        self._shutdown = checked_shutdown(shutdown)
        self._startup_timeout = checked_timeout(startup_timeout, "startup_timeout")
        self._max_frame_bytes = checked_limit(max_frame_bytes)
        self._on_noise: OnNoise = on_noise
        self._used = False
        self._closing = False
        self._process: ServerProcess | None = None
        self._reader: MessageReader | None = None
        self._writer: MessageWriter | None = None

    @property
    def server(self) -> StdioServer:
        return self._server

    @property
    def process(self) -> ServerProcess:
        """The running server, once entered."""
        if self._process is None:
            raise StockadeError(
                "The transport has not been entered.",
                code="not-entered",
                stage="run",
                remedy='Use it with "async with transport" first.',
            )
        return self._process

    @property
    def exit(self) -> ExitReport | None:
        """How the server ended, once it has."""
        return None if self._process is None else self._process.report

    async def __aenter__(self) -> tuple[MessageReader, MessageWriter]:
        if self._used:
            raise TransportUsedError(
                "This transport has been used.", remedy="Make a new StdioTransport for every connection."
            )
        self._used = True
        require()
        began = monotonic()
        imported = 0.0

        def meanwhile() -> None:
            # The SDK's import takes its time, which isn't the server's; the server starts meanwhile.
            nonlocal imported
            before = monotonic()
            sdk()
            imported = monotonic() - before

        process = await start(
            self._server, self._stderr, self._shutdown, self._max_frame_bytes, self._startup_timeout, meanwhile
        )
        if self._closing:
            # Closed by another task since; nobody but this one could end the server.
            self._process = process
            await process.close()
            raise anyio.ClosedResourceError("the server was closed")
        deadline = None if self._startup_timeout is None else began + imported + self._startup_timeout
        return self.attach(process, deadline)

    def attach(self, process: ServerProcess, deadline: float | None = None) -> tuple[MessageReader, MessageWriter]:
        """The streams of a process; from here on it is this transport's to end."""
        self._used = True
        self._process = process
        self._reader = MessageReader(process, deadline, self._startup_timeout, self._on_noise)
        self._writer = MessageWriter(process)
        return self._reader, self._writer

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        process, reader = self._process, self._reader
        if process is not None and process.forked:
            # A forked child that leaves the block, by sys.exit() perhaps: the server is the parent's.
            return
        failure = None if reader is None else reader.failure
        try:
            await self.aclose()
        finally:
            # Not after the cancellation of the wait, where nothing more is known.
            if exc_val is not None:
                _explain(exc_val, failure or self._premature())
        if exc_val is None and self._on_noise == "raise" and isinstance(failure, UnreadableLine):
            raise failure

    async def aclose(self) -> None:
        """End the server and both streams. Idempotent, from any task, in any order, on any loop.

        Before the entry it is as if the transport had been used; during it, the entry ends what it has launched and
        raises ClosedResourceError.
        """
        self._used = self._closing = True
        if self._process is None:
            return
        # Before all else: the server's end must not depend on anything that a loop may refuse.
        self._process.begin_close()
        if self._reader is not None:
            await self._reader.aclose()
        if self._writer is not None:
            await self._writer.aclose()
        await self._process.close()

    def _premature(self) -> Exception | None:
        """What to say of a server that ended by itself, although nobody has read its end."""
        process, report = self._process, self.exit
        if process is None or report is None or report.ended_by != "exit":
            return None
        return process.exit_error(report, "" if self._reader is None else self._reader.wrote())

    def __repr__(self) -> str:
        return f"StdioTransport({self._server!r})"


class _Stream:
    """What both streams share: closed once, from any task."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._closed = False

    async def aclose(self) -> None:
        """Close this stream; the server goes on until the transport is closed. Idempotent."""
        self._closed = True

    def _closed_error(self) -> anyio.ClosedResourceError:
        return anyio.ClosedResourceError("this stream was closed" if self._closed else "the server was closed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


@final
class MessageReader(_Stream):
    """The server's messages. What goes wrong comes as an item, an exception; then the stream may end."""

    def __init__(
        self, process: ServerProcess, deadline: float | None, startup_timeout: float | None, on_noise: OnNoise
    ) -> None:
        super().__init__(process)
        self._deadline = deadline
        self._startup_timeout = startup_timeout
        self._on_noise = on_noise
        self._parse = sdk().parse
        self._wrap = sdk().wrap
        self._log = logging.getLogger(f"stockade.server.{process.name}")
        self._greeted = False
        self._first_noise = ""
        self._ended = False
        self.failure: Exception | None = None
        """Why the stream ended, unless it was closed from this side."""

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or what went wrong.

        Raises:
            anyio.EndOfStream: the server has ended, and the stream has told so.
            anyio.ClosedResourceError: the stream or the transport was closed.
        """
        while not self._closed:
            if self._ended:
                raise anyio.EndOfStream
            try:
                item = await self._next()
            except EOFError:
                return self._end(self._noted(await self._process.exited(self.wrote())))
            except FrameTooLong as error:
                return self._end(error)
            except StartupTimeout as error:
                self._process.end()
                return self._end(error)
            except StockadeError as error:
                # An executor that can't go on, or a forked copy: the stream ends here.
                return self._end(error)
            if item is not None:
                return item
        raise self._closed_error()

    async def aclose(self) -> None:
        """Close this stream; who waits in `receive` gets ClosedResourceError. Idempotent."""
        if not self._closed:
            self._closed = True
            self._process.interrupt()

    def __aiter__(self) -> MessageReader:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def _next(self) -> SessionMessage | Exception | None:
        """One line; None where it was nothing, or the stream was closed meanwhile."""
        frame = await self._process.next_frame(self._deadline, self._is_closed)
        if frame is None:
            # Unless another task has got the first message meanwhile.
            if not self._closed and self._deadline is not None:
                self._expired()
            return None
        if isinstance(frame, bytes):
            try:
                message = self._parse(frame)
            except ValueError:
                return self._noise(frame)
            self._deadline = None
            self._greeted = True
            return self._wrap(message)
        return self._noise(frame.data)

    def _is_closed(self) -> bool:
        return self._closed

    def wrote(self) -> str:
        """A sentence on what came in place of the first message, where something did."""
        if self._greeted or not self._first_noise:
            return ""
        return f" It wrote {self._first_noise!r} to stdout, where only messages belong."

    def _noted(self, error: ServerExited) -> ServerExited:
        """Logged, because the SDK may swallow it."""
        report = error.report
        if report is not None and not self._process.closed and self._process.ended_unasked(report):
            self._log.warning("ended: %s", report)
        return error

    def _expired(self) -> NoReturn:
        process = self._process
        tail = recent(process.stderr.tail())
        last = last_line(tail)
        said = f"last stderr line: {last}" if last else "nothing on stderr"
        raise StartupTimeout(
            f"Server {process.name!r} (pid {process.pid}) sent no message within {self._startup_timeout:g} s: "
            f"{process.bytes_received} bytes on stdout, {said}.{self.wrote()}",
            remedy="Start it by hand to see what it waits for, or raise startup_timeout.",
            pid=process.pid,
            bytes_received=process.bytes_received,
            stderr_tail=tail,
        )

    def _noise(self, line: bytes) -> Exception | None:
        shown = excerpt(line)
        first = not self._first_noise
        self._first_noise = self._first_noise or shown
        if self._deadline is not None and monotonic() >= self._deadline:
            # A server that writes nothing but noise never leaves a moment to wait in.
            self._expired()
        if self._on_noise == "ignore":
            _log.debug("server %r: ignored a line of %d bytes that is no message", self._process.name, len(line))
            return None
        if first and self._on_noise == "report":
            self._log.warning("wrote a line to stdout that is not an MCP message: %r", shown)
        error = UnreadableLine(
            f"Server {self._process.name!r} wrote a line that is not an MCP message: {shown!r}.",
            remedy="A server's stdout is for messages only; logs belong on its stderr.",
        )
        error.excerpt = shown
        if self._on_noise == "raise":
            self._process.end()
            return self._end(error)
        return error

    def _end(self, error: Exception) -> Exception:
        self._ended = True
        self.failure = error
        return error


@final
class MessageWriter(_Stream):
    """Messages to the server."""

    def __init__(self, process: ServerProcess) -> None:
        super().__init__(process)
        self._dump = sdk().dump

    async def send(self, item: SessionMessage) -> None:
        """Queue a message; waits while the queue is full.

        Raises:
            anyio.BrokenResourceError: the server has ended, or doesn't read its stdin any more.
            anyio.ClosedResourceError: the stream or the transport was closed.
        """
        if self._closed:
            raise self._closed_error()
        frame = self._dump(item.message)
        try:
            await self._process.queue_frame(frame)
        except StockadeError as error:
            # Whatever it is: the SDK expects these two of a stream.
            if self._closed or self._process.closed:
                raise self._closed_error() from None
            raise anyio.BrokenResourceError from error


def _explain(error: BaseException, reason: Exception | None) -> None:
    """Say why on every error of a lost connection in `error`: the SDK's own has no room for it."""
    if reason is None:
        return
    pending, seen = [error], {id(error)}
    while pending:
        one = pending.pop()
        for inner in _inner(one):
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append(inner)
        if is_connection_lost(one) or isinstance(one, (anyio.BrokenResourceError, anyio.ClosedResourceError)):
            _note(one, reason)


def _inner(error: BaseException) -> list[BaseException]:
    """The members of a group, known by their shape: Python 3.10 has no class for it. Never fails on a stranger."""
    try:
        members: object = getattr(error, "exceptions", None)
    except Exception:  # noqa: BLE001 - a property of the user's own
        return []
    if not isinstance(members, tuple):
        return []
    return [one for one in cast("tuple[object, ...]", members) if isinstance(one, BaseException)]


def _note(error: BaseException, reason: Exception) -> None:
    lines = [str(reason)]
    report = reason.report if isinstance(reason, ServerExited) else None
    tail = report.stderr_tail if report is not None else getattr(reason, "stderr_tail", "")
    if tail.strip():
        lines += ["stderr:", *(f"  {line}" for line in tail.rstrip("\n").split("\n")[-20:])]
    # By hand, because add_note came with Python 3.11.
    notes = [*getattr(error, "__notes__", ()), "\n".join(lines)]
    error.__dict__["__notes__"] = notes


class _Stderr:
    """The default of `errlog`: `sys.stderr` as it is when the client is made."""

    def __repr__(self) -> str:
        return "sys.stderr"


_STDERR = _Stderr()


def stdio_client(
    server: StdioServerParameters | StdioServer, errlog: Writable | int | _Stderr | None = _STDERR
) -> StdioTransport:
    """A drop-in for `mcp.client.stdio.stdio_client`; takes a `StdioServer` too.

    `errlog` may be any file object, with a descriptor or without; None is this process's own stderr. The default is
    `sys.stderr` at the time of this call.
    """
    stderr: Any = sys.stderr if isinstance(errlog, _Stderr) else "inherit" if errlog is None else errlog
    if not isinstance(server, StdioServer):
        server = StdioServer.from_sdk(server)
    return StdioTransport(server, stderr=stderr)
