"""The MCP SDK, versions 1.24 to 2.x, behind one face: parse, dump, wrap. Imported on first use."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import StockadeError

if TYPE_CHECKING:
    from collections.abc import Callable

CONNECTION_CLOSED = -32000
"""The JSON-RPC error code with which the SDK fails the requests of a lost connection."""


class Sdk(NamedTuple):
    """What the transport needs of the SDK."""

    parse: Callable[[bytes], Any]
    """A message from a frame; ValueError where the frame isn't one."""
    dump: Callable[[Any], bytes]
    """The frame of a message, without a newline."""
    wrap: Callable[[Any], Any]
    """A message as the streams carry it (`SessionMessage`)."""


def require() -> None:
    """Refuse early, and cheaply, where there is no SDK."""
    if "mcp" not in sys.modules and importlib.util.find_spec("mcp") is None:
        raise StockadeError(
            "The MCP SDK is not installed.",
            code="sdk-missing",
            stage="launch",
            remedy="Install it with: pip install 'mcp>=1.24,<3'",
        )


@lru_cache(maxsize=1)
def sdk() -> Sdk:
    """The installed SDK. The first call imports it, which takes up to a second."""
    types: Any = importlib.import_module("mcp.types")
    wrap: Callable[[Any], Any] = importlib.import_module("mcp.shared.message").SessionMessage
    adapter: Any = getattr(types, "jsonrpc_message_adapter", None)
    if adapter is not None:
        # A union of message classes; what is unset stays absent on the wire.
        validate = adapter.validate_json

        def parse(frame: bytes) -> Any:
            return validate(frame, by_name=False)

        def dump(message: Any) -> bytes:
            return message.model_dump_json(by_alias=True, exclude_unset=True).encode()

        return Sdk(parse, dump, wrap)

    # 1.x: one root model, and None stands for absent.
    def dump_root(message: Any) -> bytes:
        return message.model_dump_json(by_alias=True, exclude_none=True).encode()

    return Sdk(types.JSONRPCMessage.model_validate_json, dump_root, wrap)


def is_connection_lost(error: BaseException) -> bool:
    """Whether this is how the SDK reports a lost connection (`MCPError`, `McpError` in 1.x)."""
    if not type(error).__module__.startswith("mcp"):
        return False
    return getattr(getattr(error, "error", None), "code", None) == CONNECTION_CLOSED
