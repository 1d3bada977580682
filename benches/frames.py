"""One long frame: how long it takes, how long the event loop stands still, how much memory it needs.

Each sample is a process of its own, because the peak of the memory is that of a whole process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from stockade import ServerProcess, StdioServer, StdioTransport

from .child import child
from .harness import Figure, alone, forget_peak, peak, resident

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TICK = 0.0005
# Something that keeps a CPU busy for a moment, as the server does while it writes.
BUSY = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=4000", "status=none")
GO = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="go"))


def figures(quick: bool) -> list[Figure]:
    mib = 20 if quick else 50
    rounds, rounds_of_sdk = (1, 1) if quick else (9, 2)
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    for turn in range(rounds):
        for name, found in samples.items():
            # Its time grows with the square of the length: a quarter of a minute each.
            if name != "SDK stdio_client" or turn < rounds_of_sdk:
                found.append(alone("benches.frames", name, mib << 20))

    def figure(name: str, key: str, unit: str, goal: float, rule: str, note: str = "") -> Figure:
        values = {who: median(sample[key] for sample in found) for who, found in samples.items()}
        return Figure(name, values.pop("ServerProcess"), unit, values, goal, rule, note=note)

    quiet = median(sample["idle_stall"] for sample in samples["ServerProcess"])
    return [
        figure(f"{mib} MiB frame through ServerProcess", "seconds", "s", 0.3 * mib / 50, "0.3 s for 50 MiB"),
        figure(
            f"{mib} MiB frame, worst stall of the loop",
            "stall",
            "ms",
            5,
            "5 ms",
            f"An idle loop beside a busy process: {quiet:.2f} ms. StdioTransport and the SDK parse on the loop.",
        ),
        figure(
            f"{mib} MiB frame, memory at the peak",
            "memory",
            "MiB",
            2 * mib,
            "twice the frame",
            "Above what was resident before. A parsed message holds the text besides the frame.",
        ),
    ]


async def ticker(stalls: list[float]) -> None:
    """Notes for how long the loop did nothing else."""
    last = perf_counter()
    while True:
        await asyncio.sleep(TICK)
        now = perf_counter()
        stalls.append(now - last - TICK)
        last = now


async def stalls_while(work: Awaitable[Any]) -> tuple[Any, float]:
    """The result, and the worst stall in ms."""
    stalls: list[float] = []
    task = asyncio.create_task(ticker(stalls))
    await asyncio.sleep(0)
    result = await work
    # A stall that the work ends with counts as well.
    await asyncio.sleep(TICK)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return result, max(stalls) * 1000


async def measured(request: Callable[[], Awaitable[Any]], size: Callable[[Any], int], length: int) -> dict[str, float]:
    async def nothing() -> None:
        busy = await asyncio.create_subprocess_exec(*BUSY)
        await busy.wait()

    _, idle_stall = await stalls_while(nothing())
    before = resident()
    forget_peak()
    began = perf_counter()
    result, stall = await stalls_while(request())
    seconds = perf_counter() - began
    memory = (peak() - before) / 1024
    received = size(result)
    assert received >= length - 64, f"{received} bytes of {length}"
    return {"seconds": seconds, "stall": stall, "memory": memory, "idle_stall": idle_stall}


async def server_process(length: int) -> dict[str, float]:
    async with await ServerProcess.launch(StdioServer(child(), ["frames", "1", str(length)])) as process:

        async def request() -> bytes:
            await process.send(b"go")
            return await process.receive()

        return await measured(request, len, length)


async def stdio_transport(length: int) -> dict[str, float]:
    async with StdioTransport(StdioServer(child(), ["frames", "1", str(length)])) as streams:
        return await measured_messages(streams, length)


async def sdk(length: int) -> dict[str, float]:
    async with stdio_client(StdioServerParameters(command=child(), args=["frames", "1", str(length)])) as streams:
        return await measured_messages(streams, length)


async def measured_messages(streams: tuple[Any, Any], length: int) -> dict[str, float]:
    reader, writer = streams

    async def request() -> Any:
        await writer.send(GO)
        return await reader.receive()

    return await measured(request, lambda item: len(item.message.params["x"]), length)


async def blocking(length: int) -> dict[str, float]:
    pipe = subprocess.PIPE
    with subprocess.Popen([child(), "frames", "1", str(length)], stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout.fileno()

        async def request() -> bytearray:
            stdin.write(b"go\n")
            frame = bytearray()
            while not frame.endswith(b"\n"):
                frame += os.read(stdout, 1 << 20)
            return frame

        found = await measured(request, len, length)
        stdin.close()
    return found


CONTESTANTS: dict[str, Callable[[int], Awaitable[dict[str, float]]]] = {
    "ServerProcess": server_process,
    "StdioTransport": stdio_transport,
    "SDK stdio_client": sdk,
    "blocking Popen, loop stands still": blocking,
}


async def main() -> None:
    name, length = sys.argv[1:]
    print(json.dumps(await CONTESTANTS[name](int(length))))


if __name__ == "__main__":
    asyncio.run(main())
