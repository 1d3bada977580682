"""The ten defects of the SDK's own stdio client, each as what happens here instead."""

from __future__ import annotations

import asyncio
import io
import json
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from stockade import ServerExited, ServerProcess, Shutdown, StartupTimeout, StdioTransport, stdio_client
from tests.reports.clients import connected, text_of
from tests.servers import program, script, shell
from tests.servers.lifeline import Lifeline

QUICK = Shutdown(0.1, 0.1, 30)


async def test_a_message_of_megabytes_costs_linear_time_and_stalls_no_loop() -> None:
    # F1
    server = script("import sys\nfor line in sys.stdin: print('x' * int(line), flush=True)")
    times = {}
    async with await ServerProcess.launch(server, stderr=None) as process:
        for size in (1 << 20, 32 << 20):
            best = 60.0
            for _ in range(3):
                begun = time.monotonic()
                with anyio.fail_after(60):
                    await process.send(b"%d" % size)
                    assert len(await process.receive()) == size
                best = min(best, time.monotonic() - begun)
            times[size] = best
    # Thirty-two times as much; a quadratic reader takes a thousand times as long.
    assert times[32 << 20] < 200 * times[1 << 20]
    assert times[32 << 20] < 5


NATIVE = [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})]


@pytest.mark.parametrize("anyio_backend", NATIVE, ids=["asyncio", "uvloop"])
async def test_a_native_cancel_that_lands_in_the_shutdown_hangs_nothing_and_ends_the_server(tmp_path: Path) -> None:
    # F2
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "stubborn", "child")

        async def use() -> None:
            async with StdioTransport(server, stderr=None, shutdown=Shutdown(0.3, 0.3, 30)):
                pass

        with anyio.fail_after(30):
            task = asyncio.get_running_loop().create_task(use())
            await lifeline.held_by(2)
            for _ in range(2):
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait([task])
            await lifeline.gone()


@pytest.mark.parametrize("anyio_backend", NATIVE, ids=["asyncio", "uvloop"])
async def test_a_timeout_that_expires_in_the_shutdown_is_kept(tmp_path: Path) -> None:
    # F2
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "stubborn")

        async def use() -> None:
            async with StdioTransport(server, stderr=None, shutdown=Shutdown(1, 1, 30)):
                await lifeline.held_by(1)

        begun = time.monotonic()
        with anyio.fail_after(30):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(use(), 0.5)
            assert time.monotonic() - begun < 20
            await lifeline.gone()


async def test_a_byte_that_is_no_utf8_costs_its_line_and_not_the_session() -> None:
    # F3
    async with connected() as (client, _):
        with anyio.fail_after(30):
            assert text_of(await client.call_tool("noise", {"hex": b"\xff\xfe\n".hex()})) == "noisy"
            assert text_of(await client.call_tool("echo", {"message": "still here"})) == "still here"


async def test_a_request_fails_at_once_when_the_server_dies_although_a_descendant_holds_its_stdout() -> None:
    # F4
    with pytest.raises(Exception) as caught:  # noqa: PT011 - a group or not, by the SDK's version
        async with connected() as (client, transport):
            with anyio.fail_after(20):
                await client.call_tool("leave-a-child", {})
    assert lost(caught.value)
    assert transport.exit is not None
    assert (transport.exit.returncode, transport.exit.descendants_killed) == (9, 1)


async def test_a_silent_server_fails_the_start_with_all_that_is_known() -> None:
    # F5
    server = shell("echo loading the model >&2; cat > /dev/null")
    async with StdioTransport(server, stderr=None, startup_timeout=0.3, shutdown=QUICK) as (read, _):
        with anyio.fail_after(30):
            item = await read.receive()
    assert isinstance(item, StartupTimeout)
    assert item.pid
    assert item.bytes_received == 0
    assert "loading the model" in str(item)
    assert item.stderr_tail == "loading the model"


async def test_a_silent_server_fails_the_first_request() -> None:
    # F5
    transport = StdioTransport(shell("cat > /dev/null"), stderr=None, startup_timeout=0.3, shutdown=QUICK)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        with anyio.fail_after(30):
            async with Client(transport, mode="legacy"):
                pass
    assert lost(caught.value)
    assert "sent no message within 0.3 s" in notes_of(caught.value)


async def test_a_request_to_a_server_that_does_not_read_keeps_its_timeout() -> None:
    # F6
    async with connected(shutdown=QUICK) as (client, _):
        with anyio.fail_after(30):
            await client.list_tools()  # else the SDK asks for them after the first call
            await client.call_tool("stop-reading", {})
            for _ in range(3):
                begun = time.monotonic()
                with pytest.raises(MCPError):
                    await client.call_tool("echo", {"message": "x" * 100_000}, read_timeout_seconds=0.3)
                # Its own time, not that of a write that never ends.
                assert time.monotonic() - begun < 5


async def test_a_line_without_an_end_is_bounded() -> None:
    # F7
    async with StdioTransport(
        script("import os\nwhile True: os.write(1, b'x' * 65536)"), stderr=None, max_frame_bytes=1 << 20
    ) as (read, _):
        with anyio.fail_after(30):
            item = await read.receive()
    assert getattr(item, "code", "") == "frame-too-long"


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(PING).encode(),
        b"\xef\xbb\xbf" + json.dumps(PING).encode() + b"\n",
        json.dumps(PING).encode() + b"\r\n",
        b"\n\n  \n" + json.dumps(PING).encode() + b"\n",
    ],
    ids=["no-newline", "bom", "crlf", "blank-lines"],
)
async def test_a_message_is_not_swallowed_by_what_stands_around_it(written: bytes) -> None:
    # F7
    server = script(f"import os\nos.write(1, {written!r})")
    async with StdioTransport(server, stderr=None) as (read, _):
        with anyio.fail_after(30):
            items = [item async for item in read]
    messages = [item for item in items if not isinstance(item, Exception)]
    assert [dump(one) for one in messages] == [PING]
    assert isinstance(items[-1], ServerExited)


async def test_a_batch_is_reported_and_not_lost_in_silence() -> None:
    # F7
    server = script(f"import os\nos.write(1, {json.dumps([PING, PING]).encode()!r} + b'\\n')")
    async with StdioTransport(server, stderr=None) as (read, _):
        with anyio.fail_after(30):
            items = [item async for item in read]
    assert len(items) == 2
    assert isinstance(items[0], ValueError)


async def test_a_daemon_and_the_children_of_a_polite_server_end_with_it(tmp_path: Path) -> None:
    # F8; the host's own death: tests/faults/test_host_death.py
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "child", "daemon")
        transport = StdioTransport(server, stderr=None)
        with anyio.fail_after(30):
            async with transport:
                await lifeline.held_by(3)
            await lifeline.gone()
    assert transport.exit is not None
    assert (transport.exit.ended_by, transport.exit.descendants_killed) == ("close", 2)


async def test_exit_status_and_stderr_reach_the_caller() -> None:
    # F9
    server = shell("echo no such database >&2; exit 3")
    transport = StdioTransport(server, stderr=None)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        with anyio.fail_after(30):
            async with Client(transport, mode="legacy"):
                pass
    assert lost(caught.value)
    assert "exited with 3" in notes_of(caught.value)
    assert "no such database" in notes_of(caught.value)
    assert transport.exit is not None
    assert (transport.exit.returncode, transport.exit.stderr_tail) == (3, "no such database")


async def test_a_crash_is_explained_whoever_notices_it_first() -> None:
    # F9: the end of its stdout, or a write that the dead server's stdin refuses
    unexplained = 0
    for _ in range(20):
        transport = StdioTransport(shell("echo no such database >&2; exit 3"), stderr=None)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            with anyio.fail_after(30):
                async with Client(transport, mode="legacy"):
                    pass
        unexplained += "exited with 3" not in notes_of(caught.value)
    assert unexplained == 0


async def test_an_errlog_without_a_descriptor_gets_what_the_server_says() -> None:
    # F10
    log = io.StringIO()
    with anyio.fail_after(30):
        async with stdio_client(shell("echo hello >&2; cat"), errlog=log) as (read, _):
            del read
    assert log.getvalue() == "hello\n"


def dump(item: object) -> object:
    message = getattr(item, "message")  # noqa: B009 - the SDK's type, by its version
    return json.loads(message.model_dump_json(by_alias=True, exclude_unset=True))


def flat(error: BaseException) -> list[BaseException]:
    inner = getattr(error, "exceptions", ())
    return [error, *(one for member in inner for one in flat(member))]


def lost(error: BaseException) -> bool:
    """Whether the SDK's error for a lost connection is among these."""
    return any(isinstance(one, MCPError) and "Connection closed" in str(one) for one in flat(error))


def notes_of(error: BaseException) -> str:
    return "\n".join(note for one in flat(error) for note in getattr(one, "__notes__", ()))
