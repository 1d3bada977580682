"""`stockade call`: one tool, called once."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, cast

from stockade._errors import StockadeError

from .output import clean, complain, dump, explain, is_terminal
from .parser import UsageError
from .servers import described
from .session import as_dict, converse

if TYPE_CHECKING:
    from .parser import Options


def execute(options: Options) -> int:
    """Call it and print what it answers."""
    arguments = _arguments(options)

    async def call(session: Any, _ready: dict[str, Any]) -> dict[str, Any]:
        return as_dict(await session.call_tool(options.tool, arguments))

    try:
        server = described(options).server
        answer = converse(server, call)
    except StockadeError as error:
        explain(error, json=options.json)
        return 1
    if options.json:
        dump(answer)
    else:
        _show(answer)
    if not answer.get("isError"):
        return 0
    sys.stdout.flush()
    complain(f"{options.tool} answered with an error.")
    return 1


def _arguments(options: Options) -> dict[str, Any]:
    if options.arguments is None:
        return {}
    try:
        value: object = json.loads(options.arguments)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"The tool's arguments aren't JSON: {error.msg} at column {error.colno}.", command="call"
        ) from None
    except (RecursionError, ValueError):
        raise UsageError("The tool's arguments aren't usable JSON.", command="call") from None
    if not isinstance(value, dict):
        raise UsageError("The tool's arguments must be a JSON object.", command="call")
    return cast("dict[str, Any]", value)


def _show(answer: dict[str, Any]) -> None:
    blocks: list[dict[str, Any]] = answer.get("content") or []
    for block in blocks:
        text = _text(block)
        # A terminal would obey what is hidden in it; a file or a pipe gets what was said.
        print(clean(text) if is_terminal(sys.stdout) else text)
    if not blocks and answer.get("structuredContent") is not None:
        dump(answer["structuredContent"])


def _text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "resource" if "text" in block["resource"]:
            return str(block["resource"]["text"])
        case "resource":
            return f"[resource {block['resource'].get('uri')}]"
        case "resource_link":
            return f"[resource {block.get('uri')}]"
        case kind:
            return f"[{kind}, {block.get('mimeType', 'unknown type')}]"
