"""A server's stderr can't hold it up, whatever it writes and whatever becomes of it."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, Shutdown
from tests.faults.processes import forget_peak, peak_bytes, resident_bytes
from tests.servers import script

# Answers every line; a thread of its own floods stderr with so many lines of 20 bytes, then says so.
FLOOD = """\
import os, sys, threading
total = int(sys.argv[1])

def flood():
    text = b"".join(b"%019d\\n" % number for number in range(1000))
    for _ in range(total // 1000):
        view = memoryview(text)
        while view:
            view = view[os.write(2, view):]
    os.write(1, b"flooded\\n")

threading.Thread(target=flood).start()
for line in sys.stdin.buffer:
    os.write(1, line)
"""


async def flooded(lines: int) -> float:
    """Let a server flood its stderr while it answers; the slowest answer, in seconds."""
    quick = Shutdown(5, 5, 30)
    async with await ServerProcess.launch(script(FLOOD, lines), stderr=None, shutdown=quick) as process:
        resident = resident_bytes()
        forget_peak()
        slowest = 0.0
        done = False
        number = 0
        while not done:
            begun = time.monotonic()
            await process.send(b"%d" % number)
            while (answer := await process.receive()) == b"flooded":
                done = True
            assert answer == b"%d" % number
            slowest = max(slowest, time.monotonic() - begun)
            number += 1
        report = await process.close()
        ring = process.stderr
        assert ring.lines_seen == lines
        assert ring.bytes_seen == 20 * lines
        kept = ring.tail(lines)
        assert ring.dropped == lines - len(kept)
        assert report.stderr_dropped == ring.dropped
        assert kept[-1] == b"%019d" % 999
        assert len(kept) > 100
        assert peak_bytes() - resident < 16 << 20
    return slowest


async def test_a_flood_of_stderr_lets_the_answers_through_and_counts_every_line() -> None:
    # fault 25; gigabytes of it: tests/soak
    with anyio.fail_after(100):
        assert await flooded(1_000_000) < 5


LONG_LINE = """\
import os, sys
size = int(sys.argv[1])
chunk = b"x" * 65536
os.write(2, b"first\\nbegin")
for _ in range(size // len(chunk)):
    view = memoryview(chunk)
    while view:
        view = view[os.write(2, view):]
os.write(2, b"end\\nlast\\n")
"""


async def one_long_line(size: int) -> None:
    async with await ServerProcess.launch(script(LONG_LINE, size), stderr=None) as process:
        resident = resident_bytes()
        forget_peak()
        await process.wait()
        first, long, last = process.stderr.tail()
        assert (first, last) == (b"first", b"last")
        assert long.startswith(b"beginxxx")
        assert len(long) < 100_000
        assert not long.endswith(b"x"), "no marker says that it was cut"
        assert process.stderr.bytes_seen == size + len(b"first\nbeginend\nlast\n")
        assert peak_bytes() - resident < 16 << 20


async def test_a_line_without_an_end_is_cut_with_a_marker() -> None:
    # fault 26; a gigabyte of it: tests/soak
    with anyio.fail_after(100):
        await one_long_line(64 << 20)


async def test_stderr_is_lossless_as_bytes() -> None:
    # fault 28
    lines = [b"\xff\xfe\x00", b"cr\rinside", "\u2028\u2029\x85".encode(), b"\xe2\x82", b"", b"last without newline"]
    text = b"\n".join(lines)
    source = f"import os\nfor byte in {text!r}: os.write(2, bytes([byte]))"
    async with await ServerProcess.launch(script(source), stderr=None) as process:
        with anyio.fail_after(30):
            report = await process.wait()
        assert process.stderr.tail() == lines
    # In the report it is text to be shown: nothing that moves the cursor or turns the text around.
    assert "\ufffd" in report.stderr_tail
    assert not any(character in report.stderr_tail for character in "\x00\r\x85\u2028\u2029")


async def test_a_slow_sink_holds_up_neither_the_server_nor_its_end() -> None:
    # fault 25
    import threading

    go = threading.Event()
    taken: list[bytes] = []

    def slow(line: bytes) -> None:
        go.wait(60)
        taken.append(line)

    source = "import os\nfor _ in range(100): os.write(2, b'x' * 65535 + b'\\n')\nos.write(1, b'done\\n')"
    process = await ServerProcess.launch(script(source), stderr=slow)
    try:
        with anyio.fail_after(30):
            assert await process.receive() == b"done"
            report = await process.wait()
            await process.close()
    finally:
        go.set()
    assert report.returncode == 0
    assert report.stderr_tail.endswith("x")


async def test_a_sink_that_raises_loses_nothing_of_the_tail(caplog: pytest.LogCaptureFixture) -> None:
    # fault 25
    def broken(line: bytes) -> None:
        raise ValueError("no")

    async with await ServerProcess.launch(script("import os\nos.write(2, b'one\\ntwo\\n')"), stderr=broken) as process:
        with anyio.fail_after(30):
            report = await process.wait()
    assert report.stderr_tail == "one\ntwo"
    assert sum("sink" in record.getMessage() for record in caplog.records) == 1


async def test_a_full_disk_under_the_sink_disturbs_nobody() -> None:
    # fault 44
    source = "import os, sys\nos.write(2, b'one\\ntwo\\n')\nprint('done', flush=True)\nsys.stdin.read()"
    async with await ServerProcess.launch(script(source), stderr=Path("/dev/full")) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"done"
            report = await process.close()
    assert (report.ended_by, report.stderr_tail) == ("close", "one\ntwo")
