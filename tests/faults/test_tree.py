"""Whatever a server starts, and however it hides it, ends with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, Shutdown
from tests.faults.processes import Watched, alive, parent_of
from tests.servers import program, shell
from tests.servers.lifeline import Lifeline


async def test_a_child_that_a_polite_server_leaves_is_killed_and_counted(tmp_path: Path) -> None:
    # fault 4
    with Lifeline(tmp_path / "lifeline") as lifeline:
        process = await ServerProcess.launch(program("family", lifeline.path, "child"), stderr=None)
        with anyio.fail_after(30):
            await lifeline.held_by(2)
            report = await process.close()
            await lifeline.gone()
    assert (report.ended_by, report.returncode, report.descendants_killed) == ("close", 0, 1)
    assert "1 of its processes killed" in str(report)


async def test_a_child_lives_on_where_descendants_are_to_be_left(tmp_path: Path) -> None:
    # fault 4
    server = shell("sleep 1000 >&- 2>&- & echo $!; cat")
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(descendants="leave"))
    with anyio.fail_after(30):
        left = int(await process.receive())
        report = await process.close()
    with Watched(left) as watched:
        assert (report.ended_by, report.descendants_killed) == ("close", 0)
        assert alive(left)
        os.kill(left, signal.SIGKILL)  # ours: started by this test's server, alive by the handle
        assert watched.gone()


@pytest.mark.parametrize("deaf", [False, True], ids=["polite", "deaf"])
async def test_a_child_in_a_session_of_its_own_is_killed(tmp_path: Path, deaf: bool) -> None:
    # fault 5
    with Lifeline(tmp_path / "lifeline") as lifeline:
        child = f'exec 9> {lifeline.path}; trap "" TERM HUP; printf x >&9; while :; do sleep 1000; done'
        rest = "trap '' TERM; while :; do sleep 1000; done" if deaf else "cat"
        server = shell(f"setsid sh -c '{child}' & echo ready; {rest}")
        process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.2, 0.2, 30))
        with anyio.fail_after(60):
            await process.receive()
            await lifeline.held_by(1)
            report = await process.close()
            await lifeline.gone()
    assert report.ended_by == ("kill" if deaf else "close")
    assert report.descendants_killed >= 1
    assert report.unkillable == 0


async def test_a_daemon_is_killed(tmp_path: Path) -> None:
    # fault 6: double fork, setsid, chdir, closed descriptors
    with Lifeline(tmp_path / "lifeline") as lifeline:
        process = await ServerProcess.launch(program("family", lifeline.path, "daemon"), stderr=None)
        with anyio.fail_after(30):
            await lifeline.held_by(2)
            report = await process.close()
            await lifeline.gone()
    assert (report.ended_by, report.descendants_killed) == ("close", 1)


async def test_a_daemon_of_a_crashed_server_is_killed_without_being_asked(tmp_path: Path) -> None:
    # fault 6
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "daemon", "child", "exits")
        async with await ServerProcess.launch(server, stderr=None) as process:
            with anyio.fail_after(30):
                await lifeline.held_by(3)
                await lifeline.gone()
                report = await process.wait()
    assert (report.ended_by, report.returncode, report.descendants_killed) == ("exit", 7, 2)


async def test_daemons_that_make_daemons_are_killed_to_the_last(tmp_path: Path) -> None:
    # fault 6
    source = """\
import os, signal, sys
for generation in range(20):
    if os.fork():
        os.open(sys.argv[1], os.O_WRONLY)
        break
    os.setsid()
line = os.open(sys.argv[1], os.O_WRONLY)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.write(line, b"x")
if generation == 0:
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
while True:
    signal.pause()
"""
    from tests.servers import script

    with Lifeline(tmp_path / "lifeline") as lifeline:
        process = await ServerProcess.launch(script(source, lifeline.path), stderr=None)
        with anyio.fail_after(60):
            await process.receive()
            await lifeline.held_by(20)
            report = await process.close()
            await lifeline.gone()
    assert report.ended_by == "close"
    assert report.descendants_killed >= 20


async def test_the_supervisor_is_gone_with_the_tree() -> None:
    # fault 4
    process = await ServerProcess.launch(shell("echo ready; cat"), stderr=None)
    with anyio.fail_after(30):
        await process.receive()
        with Watched(parent_of(process.pid)) as supervisor:
            assert supervisor.pid != os.getpid()
            await process.close()
            assert supervisor.gone()


async def test_a_killed_supervisor_takes_the_server_along_and_the_host_hears_of_it() -> None:
    # fault 8, with the supervisor in the host's place
    async with await ServerProcess.launch(shell("trap '' TERM; echo ready; cat"), stderr=None) as process:
        with anyio.fail_after(30):
            await process.receive()
            with Watched(process.pid) as server, Watched(parent_of(process.pid)) as supervisor:
                signal.pidfd_send_signal(supervisor._handle, signal.SIGKILL)
                assert server.gone()
                report = await process.wait()
    assert report.returncode is None or report.returncode == -signal.SIGKILL
    assert "supervisor" in report.cause
