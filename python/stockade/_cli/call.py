"""`stockade call`: one tool, called once."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, cast

from stockade._errors import StockadeError

from .output import clean, complain, dump, explain, flush, is_terminal, one_line, say
from .parser import QUOTED_JSON, UsageError
from .servers import described
from .session import as_dict, converse

if TYPE_CHECKING:
    from .parser import Options


def execute(options: Options) -> int:
    """Call it and print what it answers."""
    arguments = _arguments(options)
    if not options.tool.isprintable():
        raise UsageError("The tool's name isn't printable text.", command="call")

    async def call(session: Any, _ready: dict[str, Any]) -> dict[str, Any]:
        return as_dict(await session.call_tool(options.tool, arguments))

    try:
        server = described(options).server
        answer = converse(server, call, "tools/call", options.timeout)
    except StockadeError as error:
        explain(error, json=options.json)
        return 1
    if options.json:
        dump(answer)
    else:
        _show(answer)
    if not answer.get("isError"):
        return 0
    flush()
    complain(f"{options.tool} answered with an error.")
    return 1


def _arguments(options: Options) -> dict[str, Any]:
    if options.arguments is None:
        return {}
    try:
        value: object = json.loads(options.arguments)
        # Refuses what isn't JSON though Python reads it: NaN, and bytes or escapes that are no characters.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        # Without one, a shell has eaten them.
        remedy = "" if '"' in options.arguments else f" {QUOTED_JSON}"
        raise UsageError(
            f"The tool's arguments aren't JSON: {error.msg} at column {error.colno}.{remedy}", command="call"
        ) from None
    except (RecursionError, ValueError):
        raise UsageError(
            "The tool's arguments aren't JSON: invalid UTF-8, NaN or Infinity, or nested too deep.", command="call"
        ) from None
    if not isinstance(value, dict):
        raise UsageError("The tool's arguments must be a JSON object.", command="call")
    return cast("dict[str, Any]", value)


def _show(answer: dict[str, Any]) -> None:
    blocks: list[dict[str, Any]] = answer.get("content") or []
    for block in blocks:
        text = _text(block)
        # A terminal would obey what is hidden in it; a file or a pipe gets what was said.
        say(clean(text) if is_terminal(sys.stdout) else text)
    if not blocks and answer.get("structuredContent") is not None:
        dump(answer["structuredContent"])


def _text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "resource" if "text" in block["resource"]:
            return str(block["resource"]["text"])
        case "resource":
            return one_line(f"[resource {block['resource'].get('uri')}]", 2000)
        case "resource_link":
            return one_line(f"[resource {block.get('uri')}]", 2000)
        case kind:
            return one_line(f"[{kind}, {block.get('mimeType', 'unknown type')}]", 200)
