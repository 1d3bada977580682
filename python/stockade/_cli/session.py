"""A conversation with a server, for the commands that need one."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from stockade import _sdk
from stockade._errors import FrameTooLong, ServerExited, StockadeError

from .notice import Notice
from .output import complain, one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from stockade._process import ServerProcess
    from stockade._report import ExitReport
    from stockade._server import StdioServer
    from stockade._transport import MessageReader, UnreadableLine

    Work = Callable[[Any, dict[str, Any]], Awaitable["T"]]

T = TypeVar("T")

# What a server's own words may take up in a sentence of ours.
_QUOTED = 300
# Seconds for what is left on its stdout.
_LAST_WORDS = 2.0


def converse(server: StdioServer, work: Work[T], request: str, timeout: float) -> T:
    """Start the server, do the work (given the SDK's session and what `initialize` said), end the server.

    `request` is what the work asks for; `timeout` bounds everything but the end.

    Raises:
        StockadeError: whatever went wrong, in one or two sentences.
    """
    _sdk.require()
    import anyio

    # Without any handler Python prints warnings and tracebacks that the SDK logs; what matters is raised.
    logging.getLogger().addHandler(logging.NullHandler())
    return anyio.run(_Conversation(server, request, timeout).run, work)


def as_dict(model: Any) -> dict[str, Any]:
    """A result of the SDK as MCP spells it: the same for every version."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


@final
class _Conversation:
    def __init__(self, server: StdioServer, request: str, timeout: float) -> None:
        self._label = server.label
        self._server = server
        self._request = request
        self._timeout = timeout
        self._asked = "initialize"
        """The request that is waited for."""

    async def run(self, work: Work[T]) -> T:
        import anyio

        from stockade._transport import StdioTransport

        results: list[T] = []
        failure: Exception | None = None
        heard: _Heard | None = None
        # No start-up timeout: ours covers it, and a server that says something else than it was asked for as well.
        transport = StdioTransport(self._server, stderr=None, startup_timeout=None)
        limit = anyio.move_on_after(self._timeout)
        with Notice(self._label) as notice:
            try:
                with limit:
                    async with transport as (reader, writer):
                        notice.tail = transport.process.stderr.tail
                        heard = _Heard(reader)
                        try:
                            session_class: Any = importlib.import_module("mcp").ClientSession
                            async with session_class(heard, writer) as session:
                                try:
                                    ready = await session.initialize()
                                    self._asked = self._request
                                    notice.phase("is answering")
                                    results.append(await work(session, as_dict(ready)))
                                except anyio.BrokenResourceError:
                                    # It doesn't read any more; the session goes on to hear what it had to say.
                                    with anyio.move_on_after(_LAST_WORDS):
                                        await heard.over.wait()
                                    raise
                        finally:
                            notice.phase("is ending (Ctrl-C: at once)")
            except Exception as error:  # noqa: BLE001 - sorted out below
                failure = error
        noise = None if heard is None else heard.noise
        if results:
            if noise is not None:
                complain(str(noise))
            return results[0]
        if limit.cancelled_caught:
            process = None if heard is None else transport.process
            raise self._explained(self._too_slow(process), heard)
        # Why the stream ended says more than the session's "connection closed".
        if heard is not None and isinstance(heard.failure, StockadeError):
            raise self._explained(heard.failure, heard)
        assert failure is not None
        raise self._explained(self._reason(_leaf(failure), transport.exit), heard)

    def _too_slow(self, process: ServerProcess | None) -> StockadeError:
        if process is None:
            said = "it isn't started yet"
        else:
            lines = process.stderr.tail(1)
            last = one_line(lines[-1][:1000].decode("utf-8", "replace"), _QUOTED) if lines else ""
            said = f"its last stderr line is: {last}" if last else "there is nothing on its stderr"
        return StockadeError(
            f"Server {self._label!r} has not answered {self._asked!r} after {self._timeout:g} s; {said}.",
            code="answer-timeout",
            remedy="Start it with 'stockade run' to see what it waits for, or give it more time with --timeout.",
        )

    def _explained(self, error: BaseException, heard: _Heard | None) -> BaseException:
        """The error with what the server wrote in place of messages, and without a remedy that there isn't here."""
        if not isinstance(error, StockadeError):
            return error
        if isinstance(error, FrameTooLong):
            error.remedy = "A server's stdout is for messages only; logs belong on its stderr."
        noise = None if heard is None else heard.noise
        if noise is not None and "to stdout, where only messages belong" not in error.message:
            said = noise.message if noise.message.endswith(".") else f"{noise.message}."
            error.message = f"{error.message} {said}"
            error.remedy = error.remedy or noise.remedy
        return error

    def _reason(self, error: BaseException, report: ExitReport | None) -> BaseException:
        """The error as a sentence."""
        if isinstance(error, StockadeError):
            return error
        from anyio import BrokenResourceError, ClosedResourceError

        if _sdk.is_connection_lost(error) or isinstance(error, (BrokenResourceError, ClosedResourceError)):
            return ServerExited(f"Server {self._label!r} has ended: {report}.", report=report)
        answer = getattr(error, "error", None)
        if type(error).__module__.startswith("mcp") and answer is not None:
            said = one_line(str(answer.message), _QUOTED).rstrip(".")
            return StockadeError(
                f"Server {self._label!r} refused {self._asked!r}: {said!r} (code {answer.code}).",
                code="request-refused",
                remedy="Is it an MCP server?" if self._asked == "initialize" else "",
            )
        if isinstance(error, (ValueError, RuntimeError)):
            # The SDK's checks: an unknown protocol version, a result that isn't what MCP or the tool's schema says.
            return StockadeError(
                f"Server {self._label!r} gave an answer to {self._asked!r} that can't be used: {_detail(error)}.",
                code="answer-invalid",
                remedy="Report it to whoever wrote the server.",
            )
        return error


@final
class _Heard:
    """The server's messages for the SDK's session; of the lines that are none it keeps the first."""

    def __init__(self, reader: MessageReader) -> None:
        from anyio import Event

        self._reader = reader
        self.noise: UnreadableLine | None = None
        self.over = Event()
        """Set when the stream has told its end."""

    @property
    def failure(self) -> Exception | None:
        """Why the stream ended."""
        return self._reader.failure

    async def receive(self) -> Any:
        from stockade._transport import UnreadableLine

        while True:
            item = await self._reader.receive()
            if isinstance(item, UnreadableLine):
                self.noise = self.noise or item
                continue
            if isinstance(item, Exception):
                self.over.set()
            return item

    async def aclose(self) -> None:
        await self._reader.aclose()

    def __aiter__(self) -> _Heard:
        return self

    async def __anext__(self) -> Any:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Heard:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def _detail(error: BaseException) -> str:
    """Which field, where pydantic says it; the server's own values are not repeated."""
    listed: Any = getattr(error, "errors", None)
    if callable(listed):
        found = cast("list[dict[str, Any]]", listed())
        fields = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:3]]
        if fields:
            return one_line("; ".join(fields), _QUOTED)
    return one_line(str(error).partition("\n")[0], _QUOTED).rstrip(".")


def _leaf(error: BaseException) -> BaseException:
    """The first error in an exception group, which the SDK's task groups make."""
    inner = getattr(error, "exceptions", None)
    return _leaf(cast("tuple[BaseException, ...]", inner)[0]) if isinstance(inner, tuple) else error
