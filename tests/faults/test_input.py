"""What the host sends meets a server that doesn't read."""

from __future__ import annotations

import os
import time

import anyio
import pytest

from stockade import ServerClosedInput, ServerExited, ServerProcess, Shutdown
from tests.faults.hosts import Host
from tests.faults.processes import forget_peak, peak_bytes, resident_bytes
from tests.servers import script, shell

QUICK = Shutdown(0.1, 0.1, 30)


async def test_a_server_that_closes_its_input_and_runs_on_is_a_typed_error() -> None:
    # fault 23
    server = shell("exec 0<&-; echo closed; sleep 1000")
    async with await ServerProcess.launch(server, stderr=None, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"closed"
            for _ in range(2):
                with pytest.raises(ServerClosedInput) as caught:
                    while True:
                        await process.send(b"hello")
                assert isinstance(caught.value, BrokenPipeError)
                assert caught.value.code == "server-closed-input"
            assert process.returncode is None


async def test_a_sender_that_waits_is_told_when_the_server_closes_its_input() -> None:
    # fault 23
    server = script(
        "import os, signal, sys\nsys.stdout.write('ready\\n'); sys.stdout.flush()\n"
        "os.read(0, 1 << 20); os.close(0)\nwhile True: signal.pause()"
    )
    async with await ServerProcess.launch(server, stderr=None, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            await process.receive()
            with pytest.raises(ServerClosedInput):
                while True:
                    await process.send(b"x" * 100_000)


async def test_sending_to_a_dead_server_says_how_it_ended() -> None:
    # fault 23
    async with await ServerProcess.launch(shell("exit 3"), stderr=None) as process:
        with anyio.fail_after(30):
            await process.wait()
            with pytest.raises(ServerExited) as caught:
                await process.send(b"hello")
            assert caught.value.report is not None
            assert caught.value.report.returncode == 3


BROKEN_PIPE = """\
from stockade import ServerClosedInput

async def main():
    signal.signal(signal.SIGPIPE, getattr(signal, sys.argv[1]))
    server = StdioServer("sh", ["-c", "exec 0<&-; echo closed; sleep 1000"])
    async with await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0, 0, 30)) as process:
        await process.receive()
        try:
            while True:
                await process.send(b"hello")
        except ServerClosedInput:
            say(alive=True)
    # A broken pipe of the host's own is still its own affair.
    same = signal.getsignal(signal.SIGPIPE) == getattr(signal, sys.argv[1])
    say(same=same, pending=signal.SIGPIPE in signal.sigpending())

anyio.run(main)
"""


@pytest.mark.parametrize("handler", ["SIG_DFL", "SIG_IGN"])
def test_a_broken_pipe_never_kills_the_host(handler: str) -> None:
    # fault 23
    with Host(BROKEN_PIPE, handler) as host:
        assert host.heard() == {"alive": True}
        facts = host.heard()
        assert facts == {"same": True, "pending": False}
        assert host.ended() == (0, "")


async def test_a_server_that_never_reads_holds_up_its_sender_alone_and_costs_no_memory() -> None:
    # fault 24
    frame = b"x" * 65536
    sent = 0
    async with await ServerProcess.launch(shell("echo ready; sleep 1000"), stderr=None, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            await process.receive()
        resident = resident_bytes()
        forget_peak()

        async def flood() -> None:
            nonlocal sent
            for _ in range(1600):  # 100 MB
                await process.send(frame)
                sent += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood)
            # All that the pipe and the queue take is taken; then nothing moves.
            with anyio.fail_after(10):
                await anyio.wait_all_tasks_blocked()
            begun = time.monotonic()
            tasks.cancel_scope.cancel()
        assert time.monotonic() - begun < 5
        assert 0 < sent * len(frame) < 3 << 20
        assert peak_bytes() - resident < 8 << 20
        # The same server is still there, and still to be closed in order.
        assert process.returncode is None


async def test_a_sender_that_waits_costs_no_processor_time() -> None:
    # fault 24
    async with await ServerProcess.launch(shell("echo ready; sleep 1000"), stderr=None, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            await process.receive()
        with anyio.move_on_after(0.2):
            while True:
                await process.send(b"x" * 65536)
        before = time.process_time()
        with anyio.move_on_after(1):
            await process.send(b"x" * 65536)
        assert time.process_time() - before < 0.3


async def test_a_frame_greater_than_queue_and_pipe_arrives_whole() -> None:
    # fault 24
    frame = os.urandom(3 << 20).hex().encode()
    async with await ServerProcess.launch(shell("cat"), stderr=None) as process:
        with anyio.fail_after(60):
            await process.send(frame)
            assert await process.receive() == frame
            await process.send(b"after")
            assert await process.receive() == b"after"
