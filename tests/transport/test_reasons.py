"""What is said, and logged, of an end that nobody wanted and of what came in place of messages."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import anyio
import pytest

from stockade import (
    ServerExited,
    ServerProcess,
    Shutdown,
    StartupTimeout,
    StdioServer,
    StdioTransport,
    StockadeError,
    UnreadableLine,
)
from stockade._sdk import sdk
from tests.servers import script, shell

CAT = StdioServer("cat")
QUICK = Shutdown(0.2, 0.2, 5)
FIRST = '{"jsonrpc": "2.0", "method": "notifications/x"}'


# Errors of send


async def test_no_error_but_a_streams_own_comes_out_of_send(monkeypatch: pytest.MonkeyPatch) -> None:
    async with StdioTransport(CAT) as (_reader, writer):

        async def refuse(_frame: bytes) -> None:
            raise StockadeError("This process can't wait for the server.", code="too-many-files")

        monkeypatch.setattr(ServerProcess, "queue_frame", lambda _self, frame: refuse(frame))
        with pytest.raises(anyio.BrokenResourceError) as caught:
            await writer.send(sdk().wrap(sdk().parse(FIRST.encode())))
        assert isinstance(caught.value.__cause__, StockadeError)
        writer._process._closed = True
        with pytest.raises(anyio.ClosedResourceError, match="the server was closed"):
            await writer.send(sdk().wrap(sdk().parse(FIRST.encode())))
        writer._process._closed = False


# The log


def ends(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    return [
        (record.name, record.levelno, record.getMessage())
        for record in caplog.records
        if record.getMessage().startswith("ended:")
    ]


@pytest.mark.parametrize("source", ["exit 3", "kill -9 $$", "exec >&-; exec sleep 1000"])
async def test_an_end_that_nobody_asked_for_is_logged_once(caplog: pytest.LogCaptureFixture, source: str) -> None:
    transport = StdioTransport(shell(source), shutdown=QUICK)
    with anyio.fail_after(30), caplog.at_level(logging.WARNING):
        async with transport as (reader, _writer):
            assert isinstance(await reader.receive(), ServerExited)
            with pytest.raises(anyio.EndOfStream):
                await reader.receive()
    assert ends(caplog) == [("stockade.server.shell", logging.WARNING, f"ended: {transport.exit}")]


async def test_an_end_that_was_asked_for_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(30), caplog.at_level(logging.WARNING):
        async with StdioTransport(CAT):
            pass
        async with StdioTransport(CAT) as (reader, _writer):
            reader._process.kill()
            assert isinstance(await reader.receive(), ServerExited)
    assert ends(caplog) == []


async def test_a_server_that_closed_its_stdout_and_lives_is_said_to_have_done_so() -> None:
    async with StdioTransport(shell("exec >&-; exec sleep 1000"), shutdown=QUICK) as (reader, _writer):
        with anyio.fail_after(30):
            item = await reader.receive()
    assert isinstance(item, ServerExited)
    assert str(item).startswith("Server 'shell' closed its stdout, so it was ended: ")


# The first message


WROTE = " It wrote 'Listening on :80' to stdout, where only messages belong."


@pytest.mark.parametrize("on_noise", ["report", "ignore"])
@pytest.mark.parametrize("then", ["exit 3", "exec sleep 1000"])
async def test_an_end_before_the_first_message_says_what_was_written_instead(on_noise: Any, then: str) -> None:
    server = shell(f"printf 'Listening on :80\\nsecond\\n'; {then}")
    transport = StdioTransport(server, startup_timeout=0.5, shutdown=QUICK, on_noise=on_noise)
    async with transport as (reader, _writer):
        with anyio.fail_after(30):
            items = [item async for item in reader]
    assert isinstance(items[-1], ServerExited if then == "exit 3" else StartupTimeout)
    assert items[-1].message.endswith(WROTE)


async def test_after_the_first_message_what_else_was_written_is_not_the_reason() -> None:
    async with StdioTransport(shell(f"echo noise; echo '{FIRST}'; exit 3")) as (reader, _writer):
        with anyio.fail_after(30):
            items = [item async for item in reader]
    assert isinstance(items[-1], ServerExited)
    assert "noise" not in str(items[-1])


async def test_a_start_up_time_out_quotes_and_keeps_a_bounded_part_of_stderr() -> None:
    server = script(
        "import sys, time\n"
        "for n in range(500): sys.stderr.write(f'{n} ' + 'x' * 3000 + '\\n')\n"
        "sys.stderr.flush()\ntime.sleep(1000)"
    )
    transport = StdioTransport(server, startup_timeout=3, shutdown=QUICK, stderr=None)
    async with transport as (reader, _writer):
        with anyio.fail_after(60):
            item = await reader.receive()
    assert isinstance(item, StartupTimeout)
    assert len(item.message) < 600
    assert "x" * 150 + "…" in item.message
    lines = item.stderr_tail.split("\n")
    assert [line.partition(" ")[0] for line in lines] == [str(n) for n in range(500 - len(lines), 500)]
    assert 3000 < len(item.stderr_tail) <= 16 * 1024


# Noise


@pytest.mark.parametrize(("on_noise", "logged"), [("report", 1), ("ignore", 0), ("raise", 0)])
async def test_the_first_line_that_is_no_message_is_logged_where_it_is_reported(
    caplog: pytest.LogCaptureFixture, on_noise: Any, logged: int
) -> None:
    transport = StdioTransport(
        shell(f"echo 'Welcome'; echo 'to the server'; echo '{FIRST}'; cat"), on_noise=on_noise, shutdown=QUICK
    )
    with anyio.fail_after(30), caplog.at_level(logging.WARNING), suppress(UnreadableLine):
        async with transport as (reader, _writer):
            item: Any = UnreadableLine("")
            while isinstance(item, UnreadableLine) and reader.failure is None:
                item = await reader.receive()
    records = [(record.name, record.levelno) for record in caplog.records]
    assert records == [("stockade.server.shell", logging.WARNING)] * logged
    assert ("'Welcome'" in caplog.text) == bool(logged)
