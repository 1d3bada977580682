"""A message to `cat` and back, and a thousand of them at once, on each event loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, jsonrpc_message_adapter

from stockade import ServerProcess, StdioServer, StdioTransport

from .harness import Figure, alone, medians, take_turns

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPS = ("asyncio", "uvloop", "trio")
US, MS = 1e6, 1e3
ROUND_TRIPS = 50
FRAMES = 1000
MESSAGE = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
FRAME = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def figures(quick: bool) -> list[Figure]:
    found: list[Figure] = []
    pipelined: list[Figure] = []
    for loop in LOOPS:
        samples = alone("benches.roundtrip", loop, 2 if quick else 60)
        trips = medians(samples["round trips"], US)
        thousands = medians(samples["pipelined"], MS)
        found.append(
            Figure(
                f"transport round trip against cat, {loop}",
                trips.pop("StdioTransport"),
                "µs",
                trips,
                goal=55,
                rule="55 µs",
                note="ServerProcess and the blocking pipe carry bytes; the others parse and dump JSON.",
            )
        )
        pipelined.append(
            Figure(
                f"{FRAMES} pipelined frames through cat, {loop}",
                thousands.pop("StdioTransport"),
                "ms",
                thousands,
                goal=20,
                rule="20 ms",
            )
        )
    return found + pipelined


class Blocking:
    """The raw floor: a Popen, a write and a read."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def write(self, data: bytes) -> None:
        os.write(self.stdin.fileno(), data)

    def read(self, lines: int) -> bytes:
        data = b""
        while data.count(b"\n") < lines:
            data += os.read(self.stdout.fileno(), 65536)
        return data

    def close(self) -> None:
        self.process.communicate()


async def round_trips_of_messages(reader: Any, writer: Any) -> list[float]:
    times: list[float] = []
    for _ in range(ROUND_TRIPS):
        began = perf_counter()
        await writer.send(MESSAGE)
        await reader.receive()
        times.append(perf_counter() - began)
    return times


async def round_trips_of_bytes(process: ServerProcess) -> list[float]:
    times: list[float] = []
    for _ in range(ROUND_TRIPS):
        began = perf_counter()
        await process.send(FRAME)
        await process.receive()
        times.append(perf_counter() - began)
    return times


async def blocking_round_trips(pipe: Blocking, work: Callable[[bytes], object]) -> list[float]:
    times: list[float] = []
    for _ in range(ROUND_TRIPS):
        began = perf_counter()
        pipe.write(FRAME + b"\n")
        work(pipe.read(1))
        times.append(perf_counter() - began)
    return times


def parse_and_dump(line: bytes) -> None:
    jsonrpc_message_adapter.validate_json(line, by_name=False)
    MESSAGE.message.model_dump_json(by_alias=True, exclude_unset=True).encode()


async def thousand_messages(reader: Any, writer: Any) -> float:
    async def send_all() -> None:
        for number in range(FRAMES):
            await writer.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="ping")))

    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all)
        for _ in range(FRAMES):
            await reader.receive()
    return perf_counter() - began


async def thousand_frames(process: ServerProcess) -> float:
    async def send_all() -> None:
        for _ in range(FRAMES):
            await process.send(FRAME)

    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all)
        for _ in range(FRAMES):
            await process.receive()
    return perf_counter() - began


async def thousand_blocking(pipe: Blocking) -> float:
    # All of it fits into the pipes, so nobody has to read meanwhile.
    began = perf_counter()
    pipe.write((FRAME + b"\n") * FRAMES)
    pipe.read(FRAMES)
    return perf_counter() - began


async def measure(blocks: int) -> dict[str, dict[str, list[float]]]:
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(StdioTransport(StdioServer("cat")))
        process = await stack.enter_async_context(await ServerProcess.launch(StdioServer("cat")))
        theirs: Any = await stack.enter_async_context(stdio_client(StdioServerParameters(command="cat")))
        pipe = Blocking()
        stack.callback(pipe.close)
        trips = await take_turns(
            {
                "StdioTransport": lambda: round_trips_of_messages(*ours),
                "ServerProcess": lambda: round_trips_of_bytes(process),
                "SDK stdio_client": lambda: round_trips_of_messages(*theirs),
                "blocking pipe + JSON": lambda: blocking_round_trips(pipe, parse_and_dump),
                "blocking pipe": lambda: blocking_round_trips(pipe, len),
            },
            blocks,
        )
        thousands = await take_turns(
            {
                "StdioTransport": lambda: thousand_messages(*ours),
                "ServerProcess": lambda: thousand_frames(process),
                "SDK stdio_client": lambda: thousand_messages(*theirs),
                "blocking pipe": lambda: thousand_blocking(pipe),
            },
            max(blocks // 2, 1),
        )
    flat = {name: [one for block in times for one in block] for name, times in trips.items()}
    return {"round trips": flat, "pipelined": thousands}


def main() -> None:
    loop, blocks = sys.argv[1], int(sys.argv[2])
    backend = "trio" if loop == "trio" else "asyncio"
    options = {} if loop == "trio" else {"use_uvloop": loop == "uvloop"}
    print(json.dumps(anyio.run(measure, blocks, backend=backend, backend_options=options)))


if __name__ == "__main__":
    main()
