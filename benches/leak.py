"""Ten thousand launches in one process: nothing may stay, and the last ones may not be slower than the first."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from stockade import ServerProcess, StdioServer, _native

from .child import child
from .harness import Figure, alone, resident, threads

WARM_UP = 100
# The threads that launch linger for a second.
LINGER = 2.5


def figures(quick: bool) -> list[Figure]:
    launches = 200 if quick else 10_000
    found = alone("benches.leak", launches)
    leaked = {name: max(found["after"][name] - found["before"][name], 0) for name in ("descriptors", "threads")}
    leaked["children"] = found["after"]["children"]
    leaked["sessions"] = found["after"]["sessions"]
    return [
        Figure(
            f"left behind by {launches} launches",
            sum(leaked.values()),
            "things",
            dict(leaked),
            goal=0,
            rule="no descriptor, thread, child process or zombie, session",
        ),
        Figure(
            f"memory after {launches} launches",
            (found["after"]["resident"] - found["before"]["resident"]) / 1024,
            "MiB",
            goal=2,
            rule=f"less than 2 MiB more than after the first {WARM_UP}",
        ),
        Figure(
            "last 100 launches ÷ first 100",
            found["last"] / found["first"],
            "x",
            goal=1.2,
            rule="1.2",
            note=f"A launch, a frame and a close: {found['first'] * 1000:.2f} ms at first,"
            f" {found['last'] * 1000:.2f} ms at last; {found['median'] * 1000:.2f} ms over all.",
        ),
    ]


def held() -> dict[str, int]:
    gc.collect()
    tasks = Path("/proc/self/task")
    processes = [(task / "children").read_text().split() for task in tasks.iterdir()]
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(threads()),
        # Zombies are in the list as well.
        "children": sum(map(len, processes)),
        "sessions": _native.live_sessions(),
        "resident": resident(),
    }


async def one() -> float:
    began = perf_counter()
    process = await ServerProcess.launch(StdioServer(child(), ["speak"]))
    await process.receive()
    await process.close()
    return perf_counter() - began


async def measure(launches: int) -> dict[str, Any]:
    for _ in range(WARM_UP):
        await one()
    sleep(LINGER)
    before = held()
    times = [await one() for _ in range(launches)]
    sleep(LINGER)
    first, last = times[:100], times[-100:]
    # The list of the times is the bench's own memory.
    middle = median(times)
    del times
    return {"before": before, "after": held(), "first": median(first), "last": median(last), "median": middle}


def main() -> None:
    print(json.dumps(asyncio.run(measure(int(sys.argv[1])))))


if __name__ == "__main__":
    main()
