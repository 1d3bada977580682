"""A host that ends, in whatever way, takes its servers with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.servers import HERE
from tests.servers.lifeline import Lifeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A host of its own: argv is the loop, the lifeline, the server's program, and what to do.
HOST = r"""
import asyncio, os, sys
import anyio
from stockade import ServerProcess, Shutdown, StdioServer

backend, lifeline, family, deed = sys.argv[1:]
server = StdioServer(sys.executable, ["-I", "-S", family, lifeline, "stubborn", "daemon"])

async def main():
    process = await ServerProcess.launch(server, shutdown=Shutdown(60, 60, 5), stderr=None)
    assert await process.receive() == b"ready"
    print("up", flush=True)
    if deed == "wait":
        async with process:
            await anyio.sleep_forever()
    elif deed == "drop":
        global kept
        kept = process
    elif deed == "raise":
        raise RuntimeError("the host fails")

options = {"use_uvloop": True} if backend == "uvloop" else {}
anyio.run(main, backend="trio" if backend == "trio" else "asyncio", backend_options=options)
print("over", flush=True)
"""


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    with Lifeline(tmp_path / "lifeline") as lifeline:
        yield lifeline


def host(backend: str, lifeline: Lifeline, deed: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOST, backend, str(lifeline.path), str(HERE / "family.py"), deed]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    return running


@pytest.mark.parametrize("backend", ["asyncio", "uvloop", "trio"])
@pytest.mark.parametrize("deed", ["drop", "raise"])
def test_a_host_that_ends_with_servers_alive_takes_a_second_at_most(
    lifeline: Lifeline, backend: str, deed: str
) -> None:
    with host(backend, lifeline, deed) as running:
        anyio.run(lifeline.held_by, 2)
        start = time.monotonic()
        assert running.stdout is not None
        output = running.stdout.read()
        running.wait(30)
        took = time.monotonic() - start
    anyio.run(lifeline.gone)
    # Graces of two minutes, and a server that ignores everything: the exit doesn't wait for them.
    assert took < 10
    if deed == "drop":
        assert output == "over\n"
    else:
        assert output.count("the host fails") == 1
        assert output.count("Traceback") == 1


@pytest.mark.parametrize("backend", ["asyncio", "uvloop", "trio"])
def test_two_ctrl_c_end_a_host_whose_server_ignores_everything(lifeline: Lifeline, backend: str) -> None:
    with host(backend, lifeline, "wait") as running:
        anyio.run(lifeline.held_by, 2)
        start = time.monotonic()
        while running.poll() is None:
            # One leaves the block and waits for the end; another gives up waiting.
            running.send_signal(signal.SIGINT)
            try:
                running.wait(0.5)
            except subprocess.TimeoutExpired:
                assert time.monotonic() - start < 30, "the host hangs"
    anyio.run(lifeline.gone)
    assert running.returncode != 0


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_killed_host_takes_its_servers_with_it(lifeline: Lifeline, backend: str) -> None:
    with host(backend, lifeline, "wait") as running:
        anyio.run(lifeline.held_by, 2)
        running.kill()
    anyio.run(lifeline.gone)
