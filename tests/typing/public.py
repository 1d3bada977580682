"""What a type checker makes of the public API: checked by pyright in strict mode, never run."""

from __future__ import annotations

import io
import logging
import sys
from pathlib import Path
from signal import Signals
from typing import Literal

from mcp import Client, ClientSession, StdioServerParameters
from mcp.shared.message import SessionMessage
from typing_extensions import assert_type

import stockade
from stockade import (
    LOGGER,
    CommandNotFoundError,
    ConfigError,
    ExitReport,
    FrameTooLong,
    LaunchError,
    ResolvedCommand,
    ServerClosedInput,
    ServerExited,
    ServerProcess,
    Shutdown,
    StartupTimeout,
    StdioServer,
    StdioTransport,
    StockadeError,
    TransportUsedError,
    UnreadableLine,
    resolve,
    stdio_client,
)

server = StdioServer("npx", ["-y", "some-server"], cwd=Path(), env={"A": "b"}, inherit=["HTTPS_PROXY"], name="some")
StdioServer("x", inherit="all")
StdioServer("x", (), Path())  # pyright: ignore[reportCallIssue]
assert_type(StdioServer.from_uri("stdio://x"), StdioServer)
assert_type(StdioServer.from_config({"command": "x"}, name="x"), StdioServer)
assert_type(StdioServer.from_sdk(StdioServerParameters(command="x")), StdioServer)
server.command = "y"  # pyright: ignore[reportAttributeAccessIssue]

assert_type(stockade.__version__, str)
assert_type(resolve(server), ResolvedCommand)
assert_type(resolve(server).kind, Literal["executable", "node-shim", "batch"])
assert_type(resolve(server).argv, list[str])


def line(data: bytes) -> None: ...


StdioTransport(server, stderr=line)
StdioTransport(server, stderr=logging.getLogger("x"))
StdioTransport(server, stderr=Path("log"))
StdioTransport(server, stderr=io.StringIO())
StdioTransport(server, stderr=sys.stderr)
StdioTransport(server, stderr=2)
StdioTransport(server, stderr="inherit")
StdioTransport(server, stderr=None)
StdioTransport(server, stderr=LOGGER)
StdioTransport(server, stderr=2.0)  # pyright: ignore[reportArgumentType]
StdioTransport(server, on_noise="raise", startup_timeout=None, max_frame_bytes=1 << 20)
StdioTransport(server, on_noise="log")  # pyright: ignore[reportArgumentType]
StdioTransport(server, shutdown=Shutdown(close_grace=1, descendants="leave"))


async def transport() -> None:
    one = StdioTransport(server)
    async with Client(one) as client:
        await client.list_tools()
    async with StdioTransport(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
    async with stdio_client(StdioServerParameters(command="x"), errlog=sys.stderr) as (read, write):
        async for item in read:
            assert_type(item, SessionMessage | Exception)
    async with stdio_client(server) as (read, write):
        await write.aclose()
    assert_type(one.process, ServerProcess)
    assert_type(one.exit, ExitReport | None)
    await one.aclose()


async def process() -> None:
    async with await ServerProcess.launch(server, stderr=None) as running:
        await running.send(b"{}")
        assert_type(await running.receive(), bytes)
        assert_type(running.pid, int)
        assert_type(running.command, ResolvedCommand)
        assert_type(running.returncode, int | None)
        assert_type(running.stderr.tail(lines=3), list[bytes])
        assert_type(running.stderr.text(), str)
        assert_type(running.stderr.sink_lost, int)
        assert_type(running.stderr.lines_seen + running.stderr.bytes_seen + running.stderr.dropped, int)
        running.kill()
        assert_type(await running.close(Shutdown()), ExitReport)
        report = await running.wait()
    assert_type(report.returncode, int | None)
    assert_type(report.signal, Signals | None)
    assert_type(report.ended_by, Literal["exit", "close", "terminate", "kill", "limit"])
    assert_type(report.cause + report.stderr_tail, str)
    assert_type(report.duration, float)


def errors(error: StockadeError) -> None:
    assert_type(error.code, str)
    assert_type(error.stage, Literal["resolve", "compile", "probe", "launch", "handshake", "run", "close"])
    assert_type(error.remedy, str)
    assert_type(error.operation, str | None)
    assert_type(error.native_code, int | None)


def roots(
    a: ConfigError, b: CommandNotFoundError, c: LaunchError, d: TransportUsedError, e: StartupTimeout, f: ServerExited
) -> tuple[ValueError, FileNotFoundError, OSError, RuntimeError, TimeoutError, ExitReport | None]:
    return a, b, c, d, e, f.report


def more_roots(
    a: ServerClosedInput, b: FrameTooLong, c: UnreadableLine
) -> tuple[BrokenPipeError, StockadeError, ValueError]:
    return a, b, c
