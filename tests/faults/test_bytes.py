"""Whatever the bytes, and however they come, frames are exact."""

from __future__ import annotations

import random

import anyio
import pytest

from stockade import FrameTooLong, ServerExited, ServerProcess, Shutdown
from tests.faults.hosts import Host
from tests.faults.processes import forget_peak, peak_bytes, processor_seconds, resident_bytes
from tests.servers import BARE, script, shell

ENDLESS = """\
import os
chunk = b"x" * (1 << 20)
try:
    for _ in range(1024):
        view = memoryview(chunk)
        while view:
            view = view[os.write(1, view):]
except BrokenPipeError:
    pass
"""


async def test_a_frame_without_an_end_is_refused_at_the_limit() -> None:
    # fault 27: a gigabyte that has no newline
    resident = resident_bytes()
    forget_peak()
    async with await ServerProcess.launch(script(ENDLESS), stderr=None, max_frame_bytes=4 << 20) as process:
        with anyio.fail_after(60):
            with pytest.raises(FrameTooLong) as caught:
                await process.receive()
            assert caught.value.code == "frame-too-long"
            report = await process.wait()
    assert report.ended_by in ("kill", "limit")
    assert "limit" in report.cause
    assert peak_bytes() - resident < 16 << 20


async def test_a_frame_of_exactly_the_limit_is_a_frame() -> None:
    # fault 27
    server = script("import os\nos.write(1, b'x' * 1000 + b'\\n' + b'y' * 1000 + b'\\r\\n' + b'z' * 1001 + b'\\n')")
    async with await ServerProcess.launch(server, stderr=None, max_frame_bytes=1000) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"x" * 1000
            assert await process.receive() == b"y" * 1000
            with pytest.raises(FrameTooLong):
                await process.receive()


ODD = b"".join(
    [
        b"\xff\xfe\n",
        b"nul\x00inside\n",
        b"crlf\r\n",
        b"lone\rcr\n",
        "\u2028line\u2029separators\x85\n".encode(),
        "\u20ac".encode()[:2] + b"\n",
        "\U0001f600 whole\n".encode(),
        b"\n",
        b"last without newline",
    ]
)
FRAMES = [
    b"\xff\xfe",
    b"nul\x00inside",
    b"crlf",
    b"lone\rcr",
    "\u2028line\u2029separators\x85".encode(),
    b"\xe2\x82",
    "\U0001f600 whole".encode(),
    b"last without newline",
]


async def test_odd_bytes_written_one_by_one_are_framed_exactly() -> None:
    # fault 28, and a partial code point at every edge
    server = script(f"import os\nfor byte in {ODD!r}: os.write(1, bytes([byte]))")
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30):
            assert [await process.receive() for _ in FRAMES] == FRAMES
            with pytest.raises(ServerExited):
                await process.receive()


async def test_odd_bytes_sent_arrive_as_they_are() -> None:
    # fault 28
    frames = [frame for frame in FRAMES if frame] + [b"crlf\r", b"\r"]
    server = script("import sys\nfor line in sys.stdin.buffer: print(line.hex(), flush=True)")
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30):
            for frame in frames:
                await process.send(frame)
                assert bytes.fromhex((await process.receive()).decode()) == frame + b"\n"


TRICKLE = """\
import os, sys, time
for byte in sys.argv[1].encode():
    os.write(1, bytes([byte]))
    time.sleep(0.001)
os.write(1, b"\\n")
for size in (1 << 20, 3 << 20):
    os.write(1, b"y" * size + b"\\n")
sys.stdin.read()
"""


async def test_a_trickle_and_bursts_arrive_and_an_idle_server_costs_nothing() -> None:
    # fault 29: a byte a millisecond, then megabytes
    import os

    text = "0123456789" * 50
    async with await ServerProcess.launch(script(TRICKLE, text), stderr=None) as process:
        with anyio.fail_after(60):
            assert await process.receive() == text.encode()
            assert await process.receive() == b"y" * (1 << 20)
            assert await process.receive() == b"y" * (3 << 20)
            before = processor_seconds(os.getpid())
            with anyio.move_on_after(1):
                await process.receive()
            # One second with nobody writing.
            assert processor_seconds(os.getpid()) - before <= 0.1


INTERRUPTED = """\
import random, time
chance = random.Random(int(sys.argv[1]))
frames = [bytes(chance.choices(range(32, 256), k=int(chance.expovariate(1 / 20000)) + 1)) for _ in range(300)]
frames = [frame.replace(b"\\x7f", b"") + b"." for frame in frames]
count = 0

def interrupt(number, frame):
    global count
    count += 1

async def main():
    server = StdioServer(sys.executable, json.loads(sys.argv[2]))
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(60, 60, 60))
    got = []
    async def receive():
        for _ in frames:
            got.append(await process.receive())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        for frame in frames:
            await process.send(frame)
    report = await process.close()
    say(same=got == frames, interruptions=count, lines=process.stderr.lines_seen, ended_by=report.ended_by)

signal.signal(signal.SIGCHLD, interrupt)
signal.signal(signal.SIGALRM, interrupt)
signal.siginterrupt(signal.SIGALRM, True)
signal.siginterrupt(signal.SIGCHLD, True)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
anyio.run(main, backend=sys.argv[3])
signal.setitimer(signal.ITIMER_REAL, 0)
"""

# Storms itself too: every one of its reads and writes is cut short.
INTERRUPTED_SERVER = """\
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for line in sys.stdin.buffer:
    sys.stderr.buffer.write(b"a line\\n"); sys.stderr.buffer.flush()
    sys.stdout.buffer.write(line); sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_storm_of_signals_loses_and_doubles_no_byte(backend: str) -> None:
    # fault 30
    import json

    with Host(INTERRUPTED, 20261201, json.dumps([*BARE, "-c", INTERRUPTED_SERVER]), backend) as host:
        facts = host.heard()
        assert host.ended() == (0, "")
    assert facts["same"]
    assert facts["lines"] == 300
    assert facts["ended_by"] == "close"
    assert facts["interruptions"] > 20


async def test_frames_of_random_sizes_in_both_directions_at_once_are_neither_lost_nor_doubled() -> None:
    # fault 30: EAGAIN on all ends
    chance = random.Random(30)
    frames = [bytes([97 + number % 26]) * chance.randrange(1, 200_000) for number in range(100)]
    quick = Shutdown(30, 5, 30)
    async with await ServerProcess.launch(shell("cat"), stderr=None, shutdown=quick) as process:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def send() -> None:
                    for frame in frames:
                        await process.send(frame)

                tasks.start_soon(send)
                for frame in frames:
                    assert await process.receive() == frame
