"""The grace after SIGTERM is the whole tree's, and SIGTERM comes once."""

from __future__ import annotations

import sys

import anyio

from stockade import ServerProcess, Shutdown, StdioServer

POLITE = """\
import os, signal, sys
def end(number, frame):
    os.write(2, b"asked\\n")
    reader, writer = os.pipe()
    # Longer than it takes to see that the wrapper is dead.
    import select
    select.select([reader], [], [], 0.3)
    os.write(2, b"saved\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    signal.pause()
"""

SHUTDOWN = Shutdown(close_grace=0, terminate_grace=60, kill_wait=60)


async def test_a_wrapper_that_dies_of_sigterm_leaves_its_server_the_grace() -> None:
    server = StdioServer("sh", ["-c", '"$0" -c "$1"; exit $?', sys.executable, POLITE])
    process = await ServerProcess.launch(server, stderr=None, shutdown=SHUTDOWN)
    with anyio.fail_after(60):
        assert await process.receive() == b"ready"
        report = await process.close()
    assert process.stderr.tail() == [b"asked", b"saved"]
    assert (report.ended_by, report.descendants_killed) == ("terminate", 0)


async def test_a_deaf_process_behind_a_dead_wrapper_is_killed_after_the_grace() -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 1000; done"
    server = StdioServer("sh", ["-c", f'sh -c "{deaf}"; exit 3'])
    shutdown = Shutdown(close_grace=0, terminate_grace=0.1, kill_wait=60)
    process = await ServerProcess.launch(server, stderr=None, shutdown=shutdown)
    with anyio.fail_after(60):
        assert await process.receive() == b"ready"
        report = await process.close()
    assert report.descendants_killed >= 1
    assert report.unkillable == 0


async def test_each_process_of_the_tree_gets_one_sigterm() -> None:
    child = """\
import os, signal
asked = {signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, asked)
os.write(1, b"ready\\n")
signal.sigwait(asked)
# Long enough for another one that is on its way.
again = signal.sigtimedwait(asked, 0.3)
os.write(2, b"once\\n" if again is None else b"twice\\n")
"""
    script = 'for number in 1 2 3 4 5 6; do "$0" -c "$1" & done; wait'
    process = await ServerProcess.launch(
        StdioServer("sh", ["-c", script, sys.executable, child]), stderr=None, shutdown=SHUTDOWN
    )
    with anyio.fail_after(60):
        for _ in range(6):
            assert await process.receive() == b"ready"
        await process.close()
    assert process.stderr.tail() == [b"once"] * 6
