"""A server that writes lines to stderr as fast as it can: how fast they are taken.

stockade reads and indexes them. The raw drain reads and forgets, with a pipe of the same size. asyncio's StreamReader
gives line by line, as somebody who wants lines would have it today.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from time import perf_counter
from typing import TYPE_CHECKING

from stockade import ServerProcess, StdioServer

from .child import child
from .harness import Figure, alone, medians, take_turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LENGTHS = (80, 200)
PIPE = 256 * 1024
F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)  # named since Python 3.10 only on Linux
MIB = 1 << 20


def figures(quick: bool) -> list[Figure]:
    found: list[Figure] = []
    rounds, mib = (2, 32) if quick else (15, 512)
    for length in LENGTHS:
        rates = medians(alone("benches.stderr", length, mib, rounds))
        raw = rates["raw drain"]
        found.append(
            Figure(
                f"stderr drained and indexed, lines of {length} B",
                rates.pop("stockade"),
                "GB/s",
                rates,
                goal=min(2.0, 0.5 * raw),
                rule="2 GB/s, or half of the raw drain where that is less",
                better="more",
            )
        )
    return found


def whole_chunks(length: int, size: int) -> int:
    """The child writes whole chunks of whole lines."""
    chunk = 65536 // length * length
    return size // chunk * chunk


async def stockade(length: int, size: int) -> float:
    server = StdioServer(child(), ["lines", str(length), str(size)])
    async with await ServerProcess.launch(server, stderr=None) as process:
        began = perf_counter()
        await process.send(b"go")
        await process.receive()
        # The frame comes when everything was written; what the pipe still holds counts too.
        while process.stderr.bytes_seen < size:
            await asyncio.sleep(0)
        seconds = perf_counter() - began
        assert process.stderr.lines_seen == size // length
    return size / seconds / 1e9


def start(length: int, size: int) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [child(), "lines", str(length), str(size)], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
    )
    assert process.stderr is not None
    fcntl.fcntl(process.stderr.fileno(), F_SETPIPE_SZ, PIPE)
    return process


def finish(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    process.wait()
    process.stdout.close()
    process.stderr.close()


async def raw_drain(length: int, size: int) -> float:
    process = start(length, size)
    assert process.stdin is not None
    assert process.stderr is not None
    fd, buffer, left = process.stderr.fileno(), bytearray(PIPE), size
    began = perf_counter()
    process.stdin.write(b"go\n")
    while left > 0:
        left -= os.readv(fd, [buffer])
    seconds = perf_counter() - began
    finish(process)
    return size / seconds / 1e9


async def blocking_lines(length: int, size: int) -> float:
    """`for line in process.stderr`, blocking."""
    process = start(length, size)
    assert process.stdin is not None
    assert process.stderr is not None
    left = size
    with open(process.stderr.fileno(), "rb", buffering=65536, closefd=False) as lines:
        began = perf_counter()
        process.stdin.write(b"go\n")
        while left > 0:
            left -= len(lines.readline())
        seconds = perf_counter() - began
    finish(process)
    return size / seconds / 1e9


async def asyncio_lines(length: int, size: int) -> float:
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        child(), "lines", str(length), str(size), stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdin is not None
    assert process.stderr is not None
    left = size
    began = perf_counter()
    process.stdin.write(b"go\n")
    while left > 0:
        left -= len(await process.stderr.readline())
    seconds = perf_counter() - began
    process.stdin.close()
    await process.wait()
    return size / seconds / 1e9


async def measure(length: int, mib: int, rounds: int) -> dict[str, list[float]]:
    # The slow ones get less to read: it is a rate that is measured.
    sizes: dict[Callable[[int, int], Awaitable[float]], int] = {
        stockade: mib,
        raw_drain: mib,
        blocking_lines: mib // 8,
        asyncio_lines: mib // 16,
    }

    def bind(take: Callable[[int, int], Awaitable[float]]) -> Callable[[], Awaitable[float]]:
        size = whole_chunks(length, sizes[take] * MIB)
        return lambda: take(length, size)

    return await take_turns(
        {
            "stockade": bind(stockade),
            "raw drain": bind(raw_drain),
            "blocking readline": bind(blocking_lines),
            "asyncio readline": bind(asyncio_lines),
        },
        rounds,
    )


def main() -> None:
    length, mib, rounds = map(int, sys.argv[1:])
    print(json.dumps(asyncio.run(measure(length, mib, rounds))))


if __name__ == "__main__":
    main()
