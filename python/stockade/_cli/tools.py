"""`stockade tools`: a server's tools."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from stockade._errors import StockadeError

from .output import complain, dump, explain, table
from .servers import described
from .session import as_dict, converse

if TYPE_CHECKING:
    from .parser import Options


class _Listing(NamedTuple):
    server: dict[str, Any]
    tools: list[dict[str, Any]]


def execute(options: Options) -> int:
    """List them."""
    try:
        server = described(options).server
        listing = converse(server, _list)
    except StockadeError as error:
        explain(error, json=options.json)
        return 1
    if options.json:
        dump({"server": listing.server, "tools": listing.tools})
    elif listing.tools:
        table([(tool["name"], _summary(tool)) for tool in listing.tools])
    else:
        complain(f"{server.label} has no tools.")
    return 0


async def _list(session: Any, ready: dict[str, Any]) -> _Listing:
    params_class: Any = importlib.import_module("mcp.types").PaginatedRequestParams
    tools: list[dict[str, Any]] = []
    cursors: set[str] = set()
    params: Any = None
    while True:
        page = as_dict(await session.list_tools(params=params))
        tools += page["tools"]
        cursor = page.get("nextCursor")
        # A cursor seen before would lead round and round.
        if not cursor or cursor in cursors:
            return _Listing(ready["serverInfo"], tools)
        cursors.add(cursor)
        params = params_class(cursor=cursor)


def _summary(tool: dict[str, Any]) -> str:
    text = tool.get("description") or tool.get("title") or ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
