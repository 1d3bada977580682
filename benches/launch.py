"""Starting and ending a server: the call, the first frame, the polite close; from a small host and from a large one.

Each host is a process of its own. The large one has a GiB resident in pages of 4 KiB, which is what a copy of the
address space would have to pay for. The hosts take turns, and in each the launchers do.
"""

from __future__ import annotations

import asyncio
import mmap
import sys
from typing import Any

from . import parts
from .harness import Figure, Host, medians, resident, serve, take_turns
from .launchers import CONTESTANTS, Life

MS = 1000.0
GIB = 1024


def figures(quick: bool) -> list[Figure]:
    blocks, rounds = (2, 5) if quick else (20, 25)
    small: dict[str, list[Life]] = {name: [] for name in CONTESTANTS}
    large: dict[str, list[Life]] = {name: [] for name in CONTESTANTS}
    with Host("benches.launch", 0) as small_host, Host("benches.launch", GIB) as large_host:
        # The first launch of each kind imports and sets up.
        for host in (small_host, large_host):
            host.ask({"rounds": 3})
        for _ in range(blocks):
            for host, lives in ((small_host, small), (large_host, large)):
                for name, samples in host.ask({"rounds": rounds})["lives"].items():
                    lives[name] += [Life(*sample) for sample in samples]
        large_mib = large_host.ask({"rounds": 0})["resident"] / 1024
        small_mib = small_host.ask({"rounds": 0})["resident"] / 1024
        explained = parts.explain(small_host.ask({"parts": 100 if quick else 1000}))
    calls, large_calls = _medians(small, "call"), _medians(large, "call")
    first, closes = _medians(small, "first_frame"), _medians(small, "close")
    call = calls.pop("ServerProcess")
    large_call = large_calls.pop("ServerProcess")
    first_frame = first.pop("ServerProcess")
    close = closes.pop("ServerProcess")
    return [
        Figure(
            f"launch call, small host ({small_mib:.0f} MiB)",
            call,
            "ms",
            calls,
            goal=2.5 * calls["posix_spawn"],
            rule="2.5 times posix_spawn with three pipes, same binary",
            note=explained,
        ),
        Figure(
            f"launch call, large host ({large_mib:.0f} MiB)",
            large_call,
            "ms",
            large_calls,
            goal=1.5 * call,
            rule="1.5 times the small host",
        ),
        Figure(
            "launch to first frame, native child",
            first_frame,
            "ms",
            first,
            goal=1.4 * first["blocking Popen"],
            rule="1.4 times the raw floor: a blocking Popen and readline",
            note="StdioTransport and the SDK parse the frame as well; the others give bytes.",
        ),
        Figure(
            "polite close",
            close,
            "ms",
            closes,
            goal=closes["posix_spawn"] + 1,
            rule="the child's own exit (stdin closed to waitpid, raw) + 1 ms",
        ),
    ]


def _medians(lives: dict[str, list[Life]], what: str) -> dict[str, float]:
    return medians({name: [getattr(life, what) for life in samples] for name, samples in lives.items()}, MS)


def fill(mib: int) -> mmap.mmap | None:
    """Memory that is resident, page by page."""
    if not mib:
        return None
    memory = mmap.mmap(-1, mib << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # Huge pages would make a copy of the page tables, which nobody here should make, 50 times cheaper.
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
    return memory


def main() -> None:
    memory = fill(int(sys.argv[1]))
    loop = asyncio.new_event_loop()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "parts" in request:
            return loop.run_until_complete(parts.measure(request["parts"]))
        lives = loop.run_until_complete(take_turns(CONTESTANTS, request["rounds"]))
        return {"lives": lives, "resident": resident()}

    serve(answer)
    loop.close()
    del memory


if __name__ == "__main__":
    main()
