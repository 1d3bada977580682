"""Reports of servers that outlive their client."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, Shutdown, StdioServer
from tests.faults.hosts import Host
from tests.faults.processes import Watched
from tests.servers import BARE, program, shell
from tests.servers.lifeline import Lifeline

# A closed terminal window (report 16): tests/faults/test_ctrl_c.py.

CONNECTING = """\
from mcp import Client
from stockade import StdioTransport
async def main():
    transport = StdioTransport(StdioServer(sys.executable, json.loads(sys.argv[1])), stderr=None)
    async with Client(transport, mode="legacy"):
        pass
say(up=True)
anyio.run(main)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_that_is_still_connecting_ends_with_its_client(tmp_path: Path, how: signal.Signals) -> None:
    # reports 17 and 19: it never answers, and never looks at its stdin
    with Lifeline(tmp_path / "lifeline") as lifeline:
        source = (
            f"import os, signal\nline = os.open({str(lifeline.path)!r}, os.O_WRONLY)\n"
            "os.write(line, b'x')\nwhile True: signal.pause()"
        )
        with Host(CONNECTING, json.dumps([*BARE, "-c", source])) as host:
            host.heard()
            await lifeline.held_by(1)
            host.process.send_signal(how)
            with anyio.fail_after(30):
                await lifeline.gone()
            host.ended()


async def test_what_a_wrapper_starts_ends_with_the_wrapper(tmp_path: Path) -> None:
    # report 20: npx, and the node below it
    with Lifeline(tmp_path / "lifeline") as lifeline:
        inner = f'exec 9> {lifeline.path}; trap "" TERM INT HUP; printf x >&9; while :; do sleep 1000; done'
        wrapper = shell(f"sh -c '{inner}'; exit $?")
        process = await ServerProcess.launch(wrapper, stderr=None, shutdown=Shutdown(0.1, 0.1, 30))
        with anyio.fail_after(30):
            await lifeline.held_by(1)
            await process.close()
            await lifeline.gone()


async def test_a_grandchild_that_left_the_group_and_the_session_ends_too(tmp_path: Path) -> None:
    # report 22
    with Lifeline(tmp_path / "lifeline") as lifeline:
        process = await ServerProcess.launch(
            program("family", lifeline.path, "daemon", "stubborn"), stderr=None, shutdown=Shutdown(0.1, 0.1, 30)
        )
        with anyio.fail_after(30):
            await lifeline.held_by(2)
            report = await process.close()
            await lifeline.gone()
    assert report.unkillable == 0


async def test_reconnecting_often_leaves_one_server_at_a_time(tmp_path: Path) -> None:
    # report 23
    for number in range(10):
        with Lifeline(tmp_path / f"lifeline{number}") as lifeline:
            server = program("family", lifeline.path, "child", "daemon")
            async with await ServerProcess.launch(server, stderr=None):
                with anyio.fail_after(30):
                    await lifeline.held_by(3)
            with anyio.fail_after(30):
                await lifeline.gone()


async def test_a_container_client_has_time_to_stop_its_container(tmp_path: Path) -> None:
    # report 25: `docker run` stops the container when it gets SIGTERM or the end of its input, not when it is killed
    stopped = tmp_path / "stopped"
    docker = tmp_path / "docker"
    docker.write_text(
        f"#!/bin/sh\ntrap 'sleep 0.2; echo stopped > {stopped}; exit 143' TERM\necho up\n"
        "while :; do sleep 1000 & wait; done\n"
    )
    docker.chmod(0o755)
    server = StdioServer("docker", ["run", "-i", "--rm", "image"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.1, 30, 30))
    with anyio.fail_after(60):
        assert await process.receive() == b"up"
        report = await process.close()
    assert (report.ended_by, report.returncode) == ("terminate", 143)
    assert stopped.read_text() == "stopped\n"


async def test_a_handle_of_a_server_that_has_ended_signals_nobody() -> None:
    # report 23
    async with await ServerProcess.launch(shell("echo up; read go"), stderr=None) as process:
        with anyio.fail_after(30):
            await process.receive()
            with Watched(process.pid) as watched:
                await process.send(b"go")
                await process.wait()
                assert watched.gone()
            for _ in range(3):
                process.kill()
                await process.close()
    assert process.returncode == 0
