"""Where the time of a launch call goes. Minimum times: what the machine adds is left out."""

from __future__ import annotations

import asyncio
import json
import select
from time import perf_counter
from typing import TYPE_CHECKING, Any

from stockade import ServerProcess, StdioServer, _native
from stockade._errors import StockadeError

from .child import child
from .harness import ROOT
from .launchers import posix_spawn

if TYPE_CHECKING:
    from pathlib import Path

# Written by `cargo bench`, which `make bench` runs before.
CRITERION = ROOT / "target" / "criterion"


async def measure(rounds: int) -> dict[str, float]:
    """Microseconds."""
    lists: dict[str, list[float]] = {name: [] for name in ("whole", "spawn", "start", "ready", "take", "refused")}
    server = StdioServer(child(), ["speak"])
    missing = StdioServer(child() + "-that-is-not-there")
    for _ in range(rounds):
        began = perf_counter()
        process = await ServerProcess.launch(server, stderr=None)
        lists["whole"].append(perf_counter() - began)
        await process.close()
        del process  # else the next one's time would have this one's cleaning up in it
        lists["spawn"].append((await posix_spawn()).call)
        started, ready, taken, session = native(server)
        lists["start"].append(started)
        lists["ready"].append(ready)
        lists["take"].append(taken)
        assert session is not None
        session.close(2, 2, 2, False)
        while session.report() is None:
            await asyncio.sleep(0.0005)
        del session
        lists["refused"].append(native(missing)[1])
    return {name: min(values) * 1e6 for name, values in lists.items()}


def native(server: StdioServer) -> tuple[float, float, float, _native.Session | None]:
    """A launch below the event loop: seconds in `start`, from its beginning until the answer is there, in `take`."""
    waker = _native.Waker()
    poll = select.poll()
    poll.register(waker.fileno(), select.POLLIN)
    began = perf_counter()
    pending = _native.start(server._native, None, 1 << 20, 2, 2, 2, False, waker, 1)
    started = perf_counter()
    poll.poll()
    ready = perf_counter()
    try:
        session = pending.take()
    except StockadeError:
        session = None
    taken = perf_counter()
    waker.close()
    return started - began, ready - began, taken - ready, session


def explain(parts: dict[str, float]) -> str:
    python = parts["whole"] - parts["ready"] - parts["take"]
    text = (
        f"where it goes (minima, µs): {parts['whole']:.0f} in all = {python:.0f} Python and event loop"
        f" + {parts['refused']:.0f} handed to the launch thread, looked up and answered"
        f" + {parts['ready'] - parts['refused']:.0f} pipes, two clones and two execs"
        f" + {parts['take']:.0f} taking the session; posix_spawn {parts['spawn']:.0f}"
    )
    rust = criterion("launch/session")
    return f"{text}; the Rust call alone (cargo bench) {rust:.0f}" if rust is not None else text


def criterion(name: str) -> float | None:
    """A median of `cargo bench` in microseconds, where it was run."""
    path: Path = CRITERION / name / "new" / "estimates.json"
    try:
        estimates: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return estimates["median"]["point_estimate"] / 1000
