"""What a server costs that only sits there: memory in the host, the supervisor beside it, threads."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from contextlib import AsyncExitStack
from time import sleep
from typing import TYPE_CHECKING, Any

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from stockade import ServerProcess, StdioServer

from .child import child
from .harness import Figure, alone, children, proportional, resident, threads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# The threads that launch linger for a second.
LINGER = 2.5


def figures(quick: bool) -> list[Figure]:
    servers = 5 if quick else 50
    ours, theirs = alone("benches.idle", "stockade", servers), alone("benches.idle", "sdk", servers)
    supervisor = ours["supervisor"]
    return [
        Figure(
            f"memory of an idle server ({servers} of them)",
            ours["host"] + supervisor,
            "KiB",
            {
                "of that in the host": ours["host"],
                "of that its supervisor (resident)": supervisor,
                "its supervisor (proportional)": ours["supervisor_pss"],
                "SDK stdio_client, in the host": theirs["host"],
            },
            goal=1024,
            rule="1 MiB in the host and the supervisor together",
        ),
        Figure(
            "the same, after half of them were replaced",
            ours["later"] + supervisor,
            "KiB",
            {"SDK stdio_client, in the host": theirs["later"]},
            goal=1024,
            rule="1 MiB in the host and the supervisor together",
            note="All that the host has gained, for each server that runs: what an allocator keeps counts as well.",
        ),
        Figure(
            f"library threads for {servers} servers",
            len(ours["threads"]),
            "threads",
            {"SDK stdio_client on asyncio": len(theirs["threads"])},
            goal=1,
            rule="one for all servers",
            note=f"stockade's: {', '.join(sorted(set(ours['threads']))) or 'none'}",
        ),
    ]


async def replaced(start: Callable[[AsyncExitStack], Awaitable[None]], servers: int) -> float:
    """KiB that the host has gained for each of so many servers, every other of which came after another had gone."""
    resident_before = resident()
    # The SDK's clients can only be left in the opposite order: the ones that go come last.
    async with AsyncExitStack() as staying:
        for _ in range(servers - servers // 2):
            await start(staying)
        async with AsyncExitStack() as going:
            for _ in range(servers // 2):
                await start(going)
        for _ in range(servers // 2):
            await start(staying)
        gc.collect()
        sleep(LINGER)
        return (resident() - resident_before) / servers


async def stockade(stack: AsyncExitStack) -> None:
    process = await stack.enter_async_context(await ServerProcess.launch(StdioServer(child(), ["speak"])))
    await process.receive()


async def sdk(stack: AsyncExitStack) -> None:
    streams: Any = await stack.enter_async_context(stdio_client(StdioServerParameters(command=child(), args=["speak"])))
    await streams[0].receive()


async def measure(contestant: str, servers: int) -> dict[str, Any]:
    start = {"stockade": stockade, "sdk": sdk}[contestant]
    before = threads()
    async with AsyncExitStack() as first:
        await start(first)
        async with AsyncExitStack() as stack:
            gc.collect()
            sleep(LINGER)
            resident_before = resident()
            for _ in range(servers):
                await start(stack)
            sleep(LINGER)
            gc.collect()
            host = (resident() - resident_before) / servers
            added = threads()
            for name in before:
                added.remove(name)
            supervisors = [pid for pid in children() if contestant == "stockade"]
            rss = [resident(pid) for pid in supervisors]
            pss = [proportional(pid) for pid in supervisors]
        later = await replaced(start, servers)
    return {
        "host": host,
        "later": later,
        "threads": added,
        "supervisor": sum(rss) / len(rss) if rss else 0.0,
        "supervisor_pss": sum(pss) / len(pss) if pss else 0.0,
    }


def main() -> None:
    print(json.dumps(asyncio.run(measure(sys.argv[1], int(sys.argv[2])))))


if __name__ == "__main__":
    main()
