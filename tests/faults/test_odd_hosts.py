"""Hosts that are set up in unusual ways: what holds on an ordinary one holds there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.hosts import Host
from tests.faults.processes import Watched

LAUNCH_AND_CLOSE = """
async def main():
    server = StdioServer("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"])
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.05, 0.05, 30))
    with anyio.fail_after(60):
        assert await process.receive() == b"ready"
        report = await process.close()
    say(returncode=report.returncode, unkillable=report.unkillable, cause=report.cause)

anyio.run(main)
"""


def unshare(*options: str) -> tuple[str, ...]:
    under = ("unshare", "--user", "--map-root-user", *options)
    tried = subprocess.run([*under, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"this machine allows no user namespaces: {tried.stderr.strip()}")
    return under


def test_a_host_that_ignores_sigchld_still_hears_of_an_exit() -> None:
    source = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

async def main():
    with anyio.fail_after(60):
        process = await ServerProcess.launch(StdioServer("sh", ["-c", "exit 7"]), stderr=None)
        report = await process.wait()
    say(returncode=report.returncode, cause=report.cause)

anyio.run(main)
"""
    with Host(source) as host:
        assert host.heard() == {"returncode": 7, "cause": "exited with 7"}
        assert host.ended() == (0, "")


def test_a_server_is_killed_where_proc_is_missing() -> None:
    under = (*unshare("--mount"), "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
    with Host(LAUNCH_AND_CLOSE, under=under) as host:
        assert host.heard() == {"returncode": -9, "unkillable": 0, "cause": "killed by SIGKILL"}
        assert host.ended() == (0, "")


def test_a_server_is_killed_and_no_stranger_where_proc_shows_other_processes() -> None:
    # In a pid namespace of its own with the outer /proc, the numbers there mean other processes.
    under = unshare("--pid", "--fork")
    with subprocess.Popen(["sleep", "1000"]) as stranger, Host(LAUNCH_AND_CLOSE, under=under) as host:
        assert host.heard() == {"returncode": -9, "unkillable": 0, "cause": "killed by SIGKILL"}
        assert host.ended() == (0, "")
        assert stranger.poll() is None
        stranger.kill()


def test_a_close_that_races_the_exit_never_loses_the_status() -> None:
    source = """
async def main():
    seen = set()
    server = StdioServer("sh", ["-c", "read line; exit 7"])
    for turn in range(300):
        with anyio.fail_after(60):
            process = await ServerProcess.launch(server, stderr=None)
            await process.send(b"x")
            if turn % 2:
                process.kill()
            report = await process.close()
        seen.add((report.returncode, report.cause))
    say(seen=sorted(seen))

anyio.run(main)
"""
    with Host(source) as host:
        allowed = [[-9, "killed by SIGKILL"], [7, "exited with 7"]]
        assert all(one in allowed for one in host.heard(120)["seen"])
        assert host.ended() == (0, "")


def test_what_a_sink_starts_has_no_signal_blocked() -> None:
    source = """
import subprocess

async def main():
    told = threading.Event()
    def sink(line):
        status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
        say(blocked=[line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")])
        told.set()
    async with await ServerProcess.launch(StdioServer("sh", ["-c", "echo x >&2; cat"]), stderr=sink):
        assert await anyio.to_thread.run_sync(told.wait, 60)

anyio.run(main)
"""
    with Host(source) as host:
        assert host.heard() == {"blocked": ["0000000000000000"]}
        assert host.ended() == (0, "")


def test_a_sink_that_is_being_called_does_not_abort_the_end_of_the_interpreter() -> None:
    source = """
import time

async def main():
    begun = threading.Event()
    def sink(line):
        begun.set()
        time.sleep(2)  # asleep in Python while it ends: that is the case
    process = await ServerProcess.launch(StdioServer("sh", ["-c", "seq 100 >&2; cat"]), stderr=sink)
    assert await anyio.to_thread.run_sync(begun.wait, 60)
    await process.close()

anyio.run(main)
"""
    with Host(source) as host:
        assert host.ended() == (0, "")


def test_a_descriptor_that_does_not_block_gets_every_line() -> None:
    # More bytes than the pipe holds, and fewer lines than the ring.
    source = """
expected = b"".join(b"line %d, as long as this\\n" % number for number in range(1, 4001))

async def main():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    got = []
    def read():
        while part := os.read(reader, 65536):
            got.append(part)
    thread = threading.Thread(target=read)
    server = StdioServer("sh", ["-c", "seq -f 'line %.0f, as long as this' 4000 >&2; echo written; cat"])
    process = await ServerProcess.launch(server, stderr=writer)
    os.close(writer)
    assert await process.receive() == b"written"
    thread.start()
    with anyio.fail_after(60):
        while sum(map(len, got)) < len(expected):
            await anyio.lowlevel.checkpoint()
    await process.close()
    await anyio.to_thread.run_sync(thread.join)
    say(right=b"".join(got) == expected)

anyio.run(main)
"""
    with Host(source) as host:
        assert host.heard() == {"right": True}
        assert host.ended() == (0, "")


def test_a_named_pipe_without_a_reader_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    source = """
from stockade import ConfigError

async def main():
    try:
        await ServerProcess.launch(StdioServer("cat"), stderr=sys.argv[1])
    except ConfigError as error:
        say(code=error.code)

anyio.run(main)
"""
    with Host(source, tmp_path / "fifo") as host:
        assert host.heard() == {"code": "sink-unusable"}
        assert host.ended() == (0, "")


def test_run_outlives_a_hangup_under_nohup(tmp_path: Path) -> None:
    script = "import sys; print(sys.stdin.readline(), end='', flush=True)"
    command = [sys.executable, "-m", "stockade", "run", "--", sys.executable, "-c", script]
    with subprocess.Popen(
        ["nohup", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        comm = Path(f"/proc/{process.pid}/comm")
        while comm.read_text() != "stockade run\n":
            assert process.poll() is None
        process.send_signal(signal.SIGHUP)
        process.stdin.write(b"still here\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"still here\n"
        assert process.wait(60) == 0


def test_a_server_that_stops_its_supervisor_outlives_neither_close_nor_the_host() -> None:
    source = """
from tests.faults.processes import Watched, parent_of

# Not before it is the supervisor: what is on its way is another test's affair.
STOPS = (
    "until grep -q stockade /proc/$PPID/comm; do :; done; "
    "kill -STOP $PPID; echo stopped; while :; do sleep 1000; done"
)

async def main():
    with anyio.fail_after(60):
        process = await ServerProcess.launch(
            StdioServer("sh", ["-c", STOPS]), stderr=None, shutdown=Shutdown(0.05, 0.05, 30)
        )
        assert await process.receive() == b"stopped"
        report = await process.close()
        say(returncode=report.returncode, unkillable=report.unkillable)
        other = await ServerProcess.launch(StdioServer("sh", ["-c", STOPS]), stderr=None)
        assert await other.receive() == b"stopped"
    say(pid=other.pid)
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""
    with Host(source) as host:
        first = host.heard()
        assert first["unkillable"] == 0
        assert first["returncode"] < 0
        with Watched(host.heard()["pid"]) as server:
            assert host.ended()[0] == -9
            assert server.gone(60)


def test_a_server_cannot_spoil_the_supervisors_program_for_others() -> None:
    source = """
async def main():
    with anyio.fail_after(60):
        bad = await ServerProcess.launch(
            StdioServer("sh", ["-c", "chmod 000 /proc/$PPID/exe 2>/dev/null; echo tried; cat"]), stderr=None
        )
        assert await bad.receive() == b"tried"
        good = await ServerProcess.launch(StdioServer("cat"), stderr=None)
        await good.send(b"fine")
        say(answer=(await good.receive()).decode())
        await bad.close()
        await good.close()

anyio.run(main)
"""
    with Host(source) as host:
        assert host.heard() == {"answer": "fine"}
        assert host.ended() == (0, "")


def test_a_launch_that_its_server_has_stopped_is_given_up_and_leaves_nothing() -> None:
    # Started without a shell, the stop meets the launch in the middle now and then; however it comes out, it ends.
    source = """
STOPS = "kill -STOP $PPID; while :; do sleep 1000; done"

async def main():
    with anyio.fail_after(100):
        for _ in range(20):
            with anyio.move_on_after(0.5):
                process = await ServerProcess.launch(
                    StdioServer("sh", ["-c", STOPS]), stderr=None, shutdown=Shutdown(0.01, 0.01, 30)
                )
                report = await process.close()
                assert report.unkillable == 0
    say(done=True)

anyio.run(main)
"""
    with Host(source) as host:
        assert host.heard(120) == {"done": True}
        assert host.ended() == (0, "")
