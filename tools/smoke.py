"""Tries an installed stockade: it loads, says what it is, and starts a server and ends it. Knows no sources."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import anyio

import stockade
from stockade import StdioServer, StdioTransport, _native

SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"asked": request["method"]}}), flush=True)
"""


async def main() -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCRequest

    message = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
    transport = StdioTransport(StdioServer(sys.executable, ["-c", SERVER]))
    async with transport as (reader, writer):
        await writer.send(message)
        with anyio.fail_after(30):
            answer = await reader.receive()
        assert "ping" in repr(answer), answer
    report = transport.exit
    assert report is not None, "no report"
    assert report.returncode == 0, report
    print(f"   a server was started, asked and closed: {report}")


if __name__ == "__main__":
    assert not any(shutil.which(tool) for tool in ("cargo", "rustc")), "there is Rust on PATH"
    package = Path(stockade.__file__).parent
    assert Path(sys.prefix) in package.parents, f"this is not the installed one: {package}"
    print(f"   stockade {stockade.__version__}: {_native.build_info()}")
    anyio.run(main)
    assert _native.live_sessions() == 0
