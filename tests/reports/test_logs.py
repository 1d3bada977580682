"""Reports about what servers write to stderr."""

from __future__ import annotations

import io
import logging
import os
import threading
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, StdioTransport, stdio_client
from tests.reports.clients import connected, small_server, text_of
from tests.servers import script, shell

# A quarter of a megabyte of logs before each answer.
LOUD = """\
import os, sys
for line in sys.stdin.buffer:
    for _ in range(256):
        os.write(2, b"x" * 1023 + b"\\n")
    os.write(1, line)
"""


async def test_a_quarter_megabyte_of_logs_before_an_answer_blocks_nothing() -> None:
    # report 44
    async with await ServerProcess.launch(script(LOUD), stderr=None) as process:
        with anyio.fail_after(30):
            for number in range(5):
                await process.send(b"%d" % number)
                assert await process.receive() == b"%d" % number


async def test_a_slow_reader_of_the_logs_never_blocks_the_server() -> None:
    # report 46
    reader, writer = os.pipe()
    try:
        # Nobody reads this pipe; it is full soon.
        async with await ServerProcess.launch(script(LOUD), stderr=writer) as process:
            with anyio.fail_after(30):
                for number in range(5):
                    await process.send(b"%d" % number)
                    assert await process.receive() == b"%d" % number
                drained = threading.Thread(target=read_all, args=[reader])
                drained.start()
                await process.close()
    finally:
        os.close(writer)
        drained.join()


def read_all(descriptor: int) -> None:
    with open(descriptor, "rb") as stream:
        while stream.read(65536):
            pass


async def test_log_lines_carry_the_name_of_their_server(caplog: pytest.LogCaptureFixture) -> None:
    # report 46
    caplog.set_level(logging.INFO)
    async with await ServerProcess.launch(shell("echo 'cache is cold' >&2")) as process:
        with anyio.fail_after(30):
            await process.wait()
    assert ("stockade.server.shell", logging.INFO, "cache is cold") in caplog.record_tuples


class Notebook(io.TextIOBase):
    """As a notebook's output: no descriptor."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def writable(self) -> bool:
        return True


@pytest.mark.parametrize("kind", ["StringIO", "BytesIO", "notebook", "callable", "path", "file", "descriptor"])
async def test_logs_may_go_to_anything_that_can_be_written_to(kind: str, tmp_path: Path) -> None:
    # report 47
    path = tmp_path / "log"
    taken: list[bytes] = []
    with path.open("w") as file:
        sinks = {
            "StringIO": io.StringIO(),
            "BytesIO": io.BytesIO(),
            "notebook": Notebook(),
            "callable": taken.append,
            "path": path,
            "file": file,
            "descriptor": file.fileno(),
        }
        sink = sinks[kind]
        async with await ServerProcess.launch(shell("echo one >&2; echo two >&2"), stderr=sink) as process:  # type: ignore[arg-type]
            with anyio.fail_after(30):
                await process.wait()
    if isinstance(sink, (io.StringIO, io.BytesIO)):
        written: object = sink.getvalue()
    elif isinstance(sink, Notebook):
        written = sink.text
    else:
        written = path.read_text() if kind != "callable" else b"".join(line + b"\n" for line in taken)
    assert written in ("one\ntwo\n", b"one\ntwo\n")


async def test_the_sdks_drop_in_takes_a_stream_without_a_descriptor() -> None:
    # report 47
    from mcp import Client

    log = io.StringIO()
    with anyio.fail_after(30):
        async with Client(stdio_client(small_server(), errlog=log), mode="legacy") as client:
            assert text_of(await client.call_tool("echo", {"message": "hi"})) == "hi"


async def test_the_last_lines_can_be_read_while_the_server_runs() -> None:
    # report 49
    async with connected(script("import sys\nprint('one\\ntwo', file=sys.stderr, flush=True)\n" + mcp_source())) as (
        client,
        transport,
    ):
        with anyio.fail_after(30):
            await client.list_tools()
            assert transport.process.stderr.tail(1) == [b"two"]
            assert transport.process.stderr.text() == "one\ntwo"
            assert transport.process.stderr.lines_seen == 2


def mcp_source() -> str:
    from tests.servers import HERE

    return (HERE / "mcp.py").read_text()


def test_by_default_nothing_of_a_server_appears_on_the_terminal() -> None:
    # report 50
    from tests.faults.hosts import Host

    source = """\
async def main():
    server = StdioServer("sh", ["-c", "echo 'a wreck of a TUI' >&2; echo done"])
    async with await ServerProcess.launch(server) as process:
        await process.receive()
        await process.wait()
        say(tail=process.stderr.text())
anyio.run(main)
"""
    with Host(source) as host:
        assert host.heard() == {"tail": "a wreck of a TUI"}
        assert host.ended() == (0, "")


async def test_a_transport_takes_the_same_sinks() -> None:
    # report 47
    log = io.StringIO()
    async with StdioTransport(shell("echo hello >&2; cat > /dev/null"), stderr=log):
        pass
    assert log.getvalue() == "hello\n"
