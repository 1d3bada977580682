"""Servers that don't want to end are ended in time, and the report says how."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, Shutdown
from tests.faults.processes import state_of
from tests.servers import program, script, shell
from tests.servers.lifeline import Lifeline

# Beyond the graces, on a busy machine. What it really takes is measured by the benches.
SLACK = 5.0


async def test_a_server_that_ignores_the_end_of_its_input_is_terminated_after_the_grace() -> None:
    # fault 2
    server = script("import signal\nprint('ready', flush=True)\nwhile True: signal.pause()")
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.3, 30, 30))
    with anyio.fail_after(60):
        assert await process.receive() == b"ready"
        begun = time.monotonic()
        report = await process.close()
        took = time.monotonic() - begun
    assert (report.ended_by, report.returncode) == ("terminate", -signal.SIGTERM)
    assert 0.3 <= took < 0.3 + SLACK
    assert "terminated" in str(report)


async def test_a_server_that_ignores_sigterm_too_is_killed_after_both_graces() -> None:
    # fault 3
    server = shell("trap '' TERM; echo ready; while :; do sleep 1000; done")
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.2, 0.3, 30))
    with anyio.fail_after(60):
        assert await process.receive() == b"ready"
        begun = time.monotonic()
        report = await process.close()
        took = time.monotonic() - begun
    assert (report.ended_by, report.returncode) == ("kill", -signal.SIGKILL)
    assert 0.5 <= took < 0.5 + SLACK
    assert report.unkillable == 0


async def test_a_server_that_heeds_sigterm_slowly_has_its_grace() -> None:
    # fault 2
    server = script(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.2), print('saved', file=sys.stderr), sys.exit(4)))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.05, 30, 30))
    with anyio.fail_after(60):
        await process.receive()
        report = await process.close()
    assert (report.ended_by, report.returncode, report.stderr_tail) == ("terminate", 4, "saved")


async def test_a_polite_server_waits_for_no_grace() -> None:
    # fault 2
    process = await ServerProcess.launch(shell("echo ready; cat"), stderr=None, shutdown=Shutdown(50, 50, 50))
    with anyio.fail_after(40):
        await process.receive()
        report = await process.close()
    assert (report.ended_by, report.returncode) == ("close", 0)


async def test_what_a_server_writes_while_it_ends_does_not_hold_it_up() -> None:
    # fault 2
    server = script(
        "import os, sys\nprint('ready', flush=True)\nsys.stdin.read()\n"
        "for _ in range(64): os.write(1, b'x' * 65536); os.write(2, b'y' * 65536 + b'\\n')\n"
        "os._exit(6)"
    )
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(50, 50, 50))
    with anyio.fail_after(40):
        await process.receive()
        report = await process.close()
    assert (report.ended_by, report.returncode) == ("close", 6)


async def test_a_stopped_server_is_closed_all_the_same() -> None:
    # fault 12
    server = shell("echo ready; kill -STOP $$; cat")
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.1, 30, 30))
    with anyio.fail_after(60):
        await process.receive()
        await stopped(process.pid)
        report = await process.close()
    # SIGTERM comes with a SIGCONT, so that it is heard.
    assert (report.ended_by, report.returncode) == ("terminate", -signal.SIGTERM)


async def test_a_stopped_server_that_ignores_sigterm_is_killed_and_the_report_says_so() -> None:
    # fault 12
    server = script(
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))\n"
        "print('ready', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True: signal.pause()"
    )
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.1, 0.5, 30))
    with anyio.fail_after(60):
        await process.receive()
        await stopped(process.pid)
        report = await process.close()
    assert (report.ended_by, report.returncode) == ("kill", -signal.SIGKILL)
    assert "SIGSTOP" in report.cause


async def test_a_stopped_descendant_dies_with_its_server(tmp_path: Path) -> None:
    # fault 12
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = shell(
            f"sh -c 'exec 9> {lifeline.path}; printf x >&9; kill -STOP $$' & echo ready; cat",
        )
        process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(30, 30, 30))
        with anyio.fail_after(60):
            await process.receive()
            await lifeline.held_by(1)
            report = await process.close()
            await lifeline.gone()
    assert (report.ended_by, report.descendants_killed) == ("close", 1)


async def test_a_second_close_may_hurry_the_first(tmp_path: Path) -> None:
    # fault 3
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "stubborn")
        process = await ServerProcess.launch(server, stderr=None)
        with anyio.fail_after(30):
            await lifeline.held_by(1)
            process.begin_close(Shutdown(1000, 1000, 30))
            report = await process.close(Shutdown(0, 0, 30))
            await lifeline.gone()
    assert report.ended_by == "kill"


async def test_kill_needs_no_grace_and_leaves_stdout_readable() -> None:
    # fault 3
    server = script(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('one\\ntwo', flush=True)\n"
        "while True: signal.pause()"
    )
    async with await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(50, 50, 50)) as process:
        with anyio.fail_after(40):
            assert await process.receive() == b"one"
            process.kill()
            report = await process.wait()
            assert (report.ended_by, report.signal) == ("kill", signal.SIGKILL)
            assert await process.receive() == b"two"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_graces_go_on_while_the_event_loop_is_busy(tmp_path: Path) -> None:
    # fault 3
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "stubborn", "child", "daemon")
        process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.1, 0.1, 30))
        with anyio.fail_after(30):
            await lifeline.held_by(3)
        process.begin_close()
        # Nothing of Python's runs on this thread until all are dead.
        os.set_blocking(lifeline._reader, True)
        assert os.read(lifeline._reader, 1) == b""
        with anyio.fail_after(30):
            report = await process.wait()
    assert report.ended_by == "kill"


async def stopped(pid: int) -> None:
    """Wait until a process has stopped. Only its parent, the supervisor, gets an event."""
    with anyio.fail_after(30):
        while state_of(pid) != "T":
            await anyio.lowlevel.checkpoint()
