"""A small MCP server without the SDK, so that it starts at once. How it behaves is said by its first argument."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

FORGED = "red \x1b[31malert\x1b[0m \u202eevil\u202c\rgone"

TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "description": "Says it again.\nAt length.", "inputSchema": {"type": "object"}},
    {"name": "environment", "title": "Shows a variable", "inputSchema": {"type": "object"}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "picture", "inputSchema": {"type": "object"}},
    {"name": "numbers", "inputSchema": {"type": "object"}},
    {"name": "forge", "description": FORGED, "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def die() -> None:
    for line in ("one", "two", "the last straw"):
        print(line, file=sys.stderr, flush=True)
    os._exit(9)


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "echo":
            return text(arguments.get("message", json.dumps(arguments)))
        case "environment":
            return text(os.environ.get(arguments["name"], "(unset)"))
        case "fail":
            return text("it went wrong", isError=True)
        case "picture":
            return {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
        case "numbers":
            return {"content": [], "structuredContent": {"sum": 3}}
        case "forge":
            return text(FORGED)
        case "die":
            die()
        case _:
            pass
    raise LookupError(name)


def answer(method: str, params: dict[str, Any], mode: str) -> dict[str, Any]:
    match method:
        case "initialize":
            if mode == "gated":
                print("fetching half of the internet", file=sys.stderr, flush=True)
                with open(sys.argv[2]):  # noqa: PTH123 - blocks until the test opens the other end
                    pass
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "1.2"},
            }
        case "tools/list" if mode == "empty":
            return {"tools": []}
        case "tools/list" if mode == "pages":
            at = int(params.get("cursor", 0))
            return {"tools": TOOLS[at : at + 3], **({"nextCursor": str(at + 3)} if at + 3 < len(TOOLS) else {})}
        case "tools/list" if mode == "more":
            at = int(params.get("cursor", 0)) + 1
            return {"tools": [{"name": f"tool{at}", "inputSchema": {"type": "object"}}] * 100, "nextCursor": str(at)}
        case "tools/list" if mode == "forging":
            return {"tools": [{"name": "a\nstockade: forged", "description": "x", "inputSchema": {"type": "object"}}]}
        case "tools/list" if mode == "misshapen":
            return {"tools": [{"name": 3, "inputSchema": {"type": "object"}}]}
        case "tools/list" if mode == "dumb":
            print("thinking", file=sys.stderr, flush=True)
            sys.stdin.buffer.read()
            os._exit(0)
        case "tools/list" if mode == "circle":
            return {"tools": TOOLS[:1], "nextCursor": "again"}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(params["name"], params.get("arguments") or {})
        case _:
            raise LookupError(method)


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "plain"
    if mode == "crash":
        die()
    if mode == "endless":
        while True:
            sys.stdout.write("x" * (1 << 20))
    if mode == "noisy":
        print("Welcome to the server!", flush=True)
    if mode == "garbage":
        print("Listening on port 8080", flush=True)
        os._exit(0)
    if mode == "deafening":
        # Something valid, that answers nothing.
        print(
            '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}', flush=True
        )
        sys.stdin.buffer.read()
    if mode == "rude":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(request["method"], request.get("params") or {}, mode)
        except LookupError as error:
            reply["error"] = {"code": -32601, "message": f"no such thing: {error}"}
            if mode == "forging":
                reply["error"]["message"] = "no\nstockade: forged: \x1b[2J" + "x" * 100_000
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()
    if mode == "rude":
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
