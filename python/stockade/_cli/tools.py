"""`stockade tools`: a server's tools."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from stockade._errors import StockadeError

from .output import complain, dump, explain, flush, one_line, table
from .servers import described
from .session import as_dict, converse

if TYPE_CHECKING:
    from .parser import Options


# A server can always name another page.
_MOST_PAGES = 1000
_MOST_TOOLS = 10_000


class _Listing(NamedTuple):
    server: dict[str, Any]
    tools: list[dict[str, Any]]
    complete: bool


def execute(options: Options) -> int:
    """List them."""
    try:
        server = described(options).server
        listing = converse(server, _list, "tools/list", options.timeout)
    except StockadeError as error:
        explain(error, json=options.json)
        return 1
    if options.json:
        dump({"server": listing.server, "tools": listing.tools, "complete": listing.complete})
    elif listing.tools:
        table([(one_line(tool["name"], 128), one_line(_summary(tool), 1000)) for tool in listing.tools])
    else:
        complain(f"{server.label} has no tools.")
    if not listing.complete:
        flush()
        complain(f"{server.label} never comes to an end of its list; these are the first {len(listing.tools)} tools.")
    return 0


async def _list(session: Any, ready: dict[str, Any]) -> _Listing:
    params_class: Any = importlib.import_module("mcp.types").PaginatedRequestParams
    tools: list[dict[str, Any]] = []
    cursors: set[str] = set()
    params: Any = None
    for _ in range(_MOST_PAGES):
        page = as_dict(await session.list_tools(params=params))
        tools += page["tools"]
        cursor = page.get("nextCursor")
        # A cursor seen before would lead round and round.
        if not cursor or cursor in cursors:
            return _Listing(ready["serverInfo"], tools, complete=not cursor)
        if len(tools) >= _MOST_TOOLS:
            break
        cursors.add(cursor)
        params = params_class(cursor=cursor)
    return _Listing(ready["serverInfo"], tools[:_MOST_TOOLS], complete=False)


def _summary(tool: dict[str, Any]) -> str:
    text = tool.get("description") or tool.get("title") or ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
