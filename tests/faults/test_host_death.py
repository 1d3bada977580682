"""A host that is killed, whenever, takes its servers along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess
from tests.faults import warden
from tests.faults.hosts import PRELUDE, Host, python_path
from tests.faults.processes import Watched, parent_of
from tests.servers import BARE, HERE
from tests.servers.lifeline import Lifeline

# Launches, uses and ends servers without a pause. They ignore everything, and hide a daemon.
BUSY = """\
async def main():
    nasty = StdioServer("sh", ["-c", 'trap "" TERM HUP INT; setsid sh -c "(exec sleep 1000) &" & echo ready; cat'])
    said = False
    while True:
        process = await ServerProcess.launch(nasty, stderr=None, shutdown=Shutdown(0.01, 0.01, 5))
        await process.receive()
        if not said:
            say(ready=True)
            said = True
        await process.send(b"x" * 1000)
        await process.receive()
        await process.close()

anyio.run(main)
"""
SEED = 20261201


def killed_at_random(times: int, folder: Path, source: str = BUSY, longest: float = 0.1) -> list[dict[str, float]]:
    """Kill so many hosts; what the warden says of each."""
    environment = {**os.environ, "TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": python_path()}
    command = [sys.executable, warden.__file__, str(SEED), str(times), str(longest)]
    done = subprocess.run(
        [*command, sys.executable, "-c", PRELUDE + source],
        capture_output=True,
        env=environment,
        timeout=100 + 10 * times,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_host_killed_at_random_points_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    # fault 8
    killed = killed_at_random(20, tmp_path)
    assert len(killed) == 20
    # The pass mark is 1 s.
    assert max(one["seconds"] for one in killed) < 5
    assert any(one["left"] > 0 for one in killed), "the hosts had no servers: this shows nothing"
    assert list(tmp_path.iterdir()) == []


def test_a_host_killed_while_it_launches_its_first_server_leaves_no_process(tmp_path: Path) -> None:
    # fault 8
    source = """\
say(ready=True)
async def main():
    server = StdioServer("sh", ["-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000"])
    while True:
        await ServerProcess.launch(server, stderr=None)
anyio.run(main)
"""
    killed = killed_at_random(10, tmp_path, source, 0.05)
    assert max(one["seconds"] for one in killed) < 5
    assert list(tmp_path.iterdir()) == []


RUNNING = """\
async def main():
    server = StdioServer(sys.executable, json.loads(sys.argv[1]))
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(1000, 1000, 1000))
    await process.receive()
    say(pid=process.pid)
    await getattr(process, sys.argv[2])()

anyio.run(main)
"""


@pytest.mark.parametrize("while_it", ["wait", "close"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_host_takes_the_whole_tree_along(tmp_path: Path, while_it: str) -> None:
    # fault 8: while the server runs, and in the middle of a close that would take an hour
    with Lifeline(tmp_path / "lifeline") as lifeline:
        family = [*BARE, str(HERE / "family.py"), str(lifeline.path), "stubborn", "child", "daemon"]
        with Host(RUNNING, json.dumps(family), while_it) as host:
            pid = host.heard()["pid"]
            await lifeline.held_by(3)
            with Watched(pid) as server, Watched(parent_of(pid)) as supervisor:
                host.kill()
                await lifeline.gone()
                assert server.gone()
                assert supervisor.gone()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_stopped_host_keeps_its_servers(tmp_path: Path) -> None:
    # fault 8, the other side: a host that is only suspended isn't dead
    with Host(RUNNING, json.dumps(["-c", "print('ready', flush=True); input()"]), "wait") as host:
        pid = host.heard()["pid"]
        with Watched(pid) as server:
            os.kill(host.pid, 19)
            os.waitpid(host.pid, os.WUNTRACED)
            assert not server.gone(0.3)
            os.kill(host.pid, 18)
            host.kill()
            assert server.gone()


def test_a_server_outlives_the_threads_that_launched_it() -> None:
    # fault 10
    launched: list[ServerProcess] = []

    async def launch() -> None:
        from tests.servers import shell

        launched.append(await ServerProcess.launch(shell("cat"), stderr=None))

    def work() -> None:
        anyio.run(launch)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    process = launched[0]
    # The executor's launching thread goes as well, once it has nothing to do.
    wait_until_no_thread_is_called("stockade-launch")

    async def use() -> None:
        with anyio.fail_after(30):
            await process.send(b"still here")
            assert await process.receive() == b"still here"
            report = await process.close()
            assert report.ended_by == "close"

    anyio.run(use)


def wait_until_no_thread_is_called(name: str) -> None:
    for _ in range(3000):
        threads = [thread / "comm" for thread in Path("/proc/self/task").iterdir()]
        if not any(name in thread.read_text() for thread in threads if thread.exists()):
            return
        threading.Event().wait(0.01)  # the end of a thread is no event to anybody
    raise AssertionError(f"a thread called {name} stays")
