"""A conversation with a server, for the commands that need one."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stockade import _sdk
from stockade._errors import ServerExited, StockadeError

from .notice import Starting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stockade._report import ExitReport
    from stockade._server import StdioServer
    from stockade._transport import MessageReader

    Work = Callable[[Any, dict[str, Any]], Awaitable["T"]]

T = TypeVar("T")


def converse(server: StdioServer, work: Work[T]) -> T:
    """Start the server, do the work (given the SDK's session and what `initialize` said), end the server.

    Raises:
        StockadeError: whatever went wrong, in one or two sentences.
    """
    _sdk.require()
    import anyio

    # Without any handler Python prints warnings and tracebacks that the SDK logs; what matters is raised.
    logging.getLogger().addHandler(logging.NullHandler())
    return anyio.run(_converse, server, work)


async def _converse(server: StdioServer, work: Work[T]) -> T:
    from stockade._transport import StdioTransport

    results: list[T] = []
    failure: Exception | None = None
    reader: MessageReader | None = None
    transport = StdioTransport(server, stderr=None)
    with Starting(server.label) as starting:
        try:
            async with transport as (reader, writer):
                starting.tail = transport.process.stderr.tail
                session_class: Any = importlib.import_module("mcp").ClientSession
                async with session_class(reader, writer) as session:
                    ready = await session.initialize()
                    starting.stop()
                    results.append(await work(session, as_dict(ready)))
        except Exception as error:  # noqa: BLE001 - sorted out below
            failure = error
    if results:
        return results[0]
    # Why the stream ended says more than the session's "connection closed".
    if reader is not None and isinstance(reader.failure, StockadeError):
        raise reader.failure
    assert failure is not None
    raise _reason(_leaf(failure), server.label, transport.exit)


def as_dict(model: Any) -> dict[str, Any]:
    """A result of the SDK as MCP spells it: the same for every version."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _reason(error: BaseException, label: str, report: ExitReport | None) -> BaseException:
    """The error as a sentence."""
    if isinstance(error, StockadeError):
        return error
    if _sdk.is_connection_lost(error):
        return ServerExited(f"Server {label!r} has ended: {report}.", report=report)
    answer = getattr(error, "error", None)
    if type(error).__module__.startswith("mcp") and answer is not None:
        return StockadeError(
            f"Server {label!r} refused: {answer.message} (code {answer.code}).", code="request-refused"
        )
    if isinstance(error, (ValueError, RuntimeError)):
        # The SDK's checks: an unknown protocol version, a result that isn't what MCP or the tool's schema says.
        detail = str(error).partition("\n")[0]
        return StockadeError(f"Server {label!r} gave an answer that can't be used: {detail}", code="answer-invalid")
    return error


def _leaf(error: BaseException) -> BaseException:
    """The first error in an exception group, which the SDK's task groups make."""
    inner = getattr(error, "exceptions", None)
    return _leaf(cast("tuple[BaseException, ...]", inner)[0]) if isinstance(inner, tuple) else error
