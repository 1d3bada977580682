"""The transport as the SDK uses it: a session over two streams, and an end that explains itself."""

from __future__ import annotations

import json
import pickle
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import mcp
import pytest
from mcp import ClientSession

from stockade import (
    ConfigError,
    ServerExited,
    Shutdown,
    StartupTimeout,
    StdioServer,
    StdioTransport,
    StockadeError,
    TransportUsedError,
    UnreadableLine,
)
from tests.servers import program, script, shell
from tests.servers.lifeline import Lifeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SERVER = program("mcp")
QUICK = Shutdown(0.2, 0.2, 5)


def notes(error: BaseException) -> list[str]:
    """Those of an exception and of all inside it."""
    found = list(getattr(error, "__notes__", []))
    for inner in getattr(error, "exceptions", ()):
        found += notes(inner)
    return found


def leaves(error: BaseException) -> list[BaseException]:
    inner = getattr(error, "exceptions", None)
    return [leaf for one in inner for leaf in leaves(one)] if inner else [error]


async def call(session: ClientSession, name: str, **arguments: Any) -> str:
    result = await session.call_tool(name, arguments)
    (content,) = result.content
    text: str = content.text  # type: ignore[union-attr]
    return text


async def test_a_session_over_the_transport_lists_and_calls_tools() -> None:
    transport = StdioTransport(SERVER)
    with anyio.fail_after(60):
        async with transport as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert "echo" in [tool.name for tool in tools.tools]
            assert await call(session, "echo", message="über\u2028all") == "über\u2028all"
    assert transport.exit is not None
    assert (transport.exit.returncode, transport.exit.ended_by) == (0, "close")


@pytest.mark.skipif(not hasattr(mcp, "Client"), reason="mcp 1.x has no Client")
async def test_the_high_level_client_takes_the_transport() -> None:
    with anyio.fail_after(60):
        async with mcp.Client(StdioTransport(SERVER)) as client:
            result = await client.call_tool("echo", {"message": "hi"})
            assert result.content[0].text == "hi"  # type: ignore[union-attr]


async def test_many_calls_at_once_are_all_answered() -> None:
    with anyio.fail_after(60):
        async with StdioTransport(SERVER) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            answers: dict[int, str] = {}
            async with anyio.create_task_group() as tasks:

                async def ask(number: int) -> None:
                    answers[number] = await call(session, "echo", message=str(number) * 1000)

                for number in range(100):
                    tasks.start_soon(ask, number)
    assert answers == {number: str(number) * 1000 for number in range(100)}


# Premature ends


@pytest.mark.parametrize(
    ("tool", "arguments", "returncode"),
    [("exit", {"status": 3}, 3), ("kill-itself", {}, -9), ("leave-a-child", {}, 9)],
)
async def test_a_pending_request_fails_when_the_server_dies_and_its_error_says_how(
    tool: str, arguments: dict[str, Any], returncode: int
) -> None:
    transport = StdioTransport(SERVER)
    items: list[Any] = []

    async def note(item: Any) -> None:
        if isinstance(item, Exception):
            items.append(item)

    with anyio.fail_after(60), pytest.raises(BaseException) as caught:  # noqa: PT011 - a group of the SDK's error
        async with (
            transport as (reader, writer),
            ClientSession(reader, writer, message_handler=note) as session,
        ):
            await session.initialize()
            await call(session, tool, **arguments)
    (error,) = leaves(caught.value)
    assert error.error.code == -32000  # type: ignore[attr-defined]
    assert transport.exit is not None
    assert (transport.exit.returncode, transport.exit.ended_by) == (returncode, "exit")
    (said,) = notes(caught.value)
    assert str(transport.exit) in said
    if tool == "exit":
        assert "exited with 3" in said
        assert "the server gives up" in said


async def test_the_end_of_the_server_is_an_item_and_then_the_end_of_the_stream() -> None:
    async with StdioTransport(shell("echo oops >&2; exit 5")) as (reader, _writer):
        with anyio.fail_after(30):
            items = [item async for item in reader]
            with pytest.raises(anyio.EndOfStream):
                await reader.receive()
    (item,) = items
    assert isinstance(item, ServerExited)
    assert item.report is not None
    assert (item.report.returncode, item.report.stderr_tail.strip()) == (5, "oops")


async def test_send_to_a_server_that_is_gone_is_a_broken_resource() -> None:
    async with StdioTransport(shell("exit 0")) as (reader, writer):
        with anyio.fail_after(30):
            assert isinstance(await reader.receive(), ServerExited)
            with pytest.raises(anyio.BrokenResourceError):
                await writer.send(message("ping"))


async def test_send_to_a_server_that_closed_its_stdin_is_a_broken_resource() -> None:
    server = script(
        "import os, signal\nos.close(0)\n"
        'print(\'{"jsonrpc": "2.0", "method": "notifications/x"}\', flush=True)\nsignal.pause()'
    )
    async with StdioTransport(server, shutdown=QUICK) as (reader, writer):
        with anyio.fail_after(30):
            assert not isinstance(await reader.receive(), Exception)
            with pytest.raises(anyio.BrokenResourceError):
                await writer.send(message("ping"))


async def test_a_request_to_a_server_that_stopped_reading_times_out_in_time() -> None:
    with anyio.fail_after(60):
        transport = StdioTransport(SERVER, shutdown=QUICK)
        async with transport as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            await session.list_tools()  # else the SDK asks for it after the first call
            await call(session, "stop-reading")
            # Send returns although nobody reads: so the caller's own time-out can begin.
            with anyio.fail_after(20):
                for _ in range(3):
                    with anyio.move_on_after(0.05) as scope:
                        await call(session, "echo", message="x" * 100_000)
                    assert scope.cancelled_caught


# Start-up


@pytest.mark.parametrize("server", [shell("exec sleep 1000"), shell("echo Starting up...; exec sleep 1000")])
async def test_a_server_that_sends_no_message_in_time_is_ended_and_the_item_says_so(server: StdioServer) -> None:
    transport = StdioTransport(server, startup_timeout=0.5, shutdown=QUICK, on_noise="ignore")
    async with transport as (reader, _writer):
        pid = transport.process.pid
        with anyio.fail_after(30):
            items = [item async for item in reader]
            await transport.process.wait()
    (item,) = items
    assert isinstance(item, StartupTimeout)
    assert isinstance(item, TimeoutError)
    assert item.pid == pid
    assert item.bytes_received == (0 if server.args[1].startswith("exec") else 15)
    assert "0.5 s" in str(item)


async def test_a_start_up_time_out_fails_initialize_and_its_error_says_why() -> None:
    server = shell("echo waiting for a licence >&2; exec sleep 1000")
    with anyio.fail_after(60), pytest.raises(BaseException) as caught:  # noqa: PT011
        transport = StdioTransport(server, startup_timeout=0.5, shutdown=QUICK)
        async with transport as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
    (said,) = notes(caught.value)
    assert "sent no message within 0.5 s" in said
    assert "waiting for a licence" in said


async def test_after_the_first_message_there_is_no_time_limit() -> None:
    server = script(
        "import sys\n"
        'print(\'{"jsonrpc": "2.0", "method": "notifications/x"}\', flush=True)\n'
        "sys.stdin.readline()\n"
        'print(\'{"jsonrpc": "2.0", "method": "notifications/y"}\', flush=True)\nsys.stdin.read()'
    )
    async with StdioTransport(server, startup_timeout=20) as (reader, writer):
        with anyio.fail_after(60):
            assert not isinstance(await reader.receive(), Exception)
            assert reader._deadline is None
            await writer.send(message("ping"))
            assert not isinstance(await reader.receive(), Exception)


# Noise


NOISE = rb"""
import sys
sys.stdout.buffer.write(b'Welcome to \x1b[1mthe server\x1b[0m\n\n\xff\xfe\n[]\n')
sys.stdout.buffer.write(b'{"jsonrpc": "2.0", "method": "notifications/x"}\r\n')
sys.stdout.flush()
sys.stdin.read()
""".decode()


async def test_each_line_that_is_no_message_is_reported_as_an_item() -> None:
    async with StdioTransport(script(NOISE)) as (reader, _writer):
        with anyio.fail_after(30):
            items = [await reader.receive() for _ in range(4)]
    assert [isinstance(item, ValueError) for item in items] == [True, True, True, False]
    assert all(isinstance(item, StockadeError) and item.code == "unreadable-line" for item in items[:3])
    assert "Welcome to the server" in str(items[0])
    assert "\x1b" not in str(items[0])
    assert str(items[0]) == (
        "Server 'script' wrote a line that is not an MCP message: 'Welcome to the server'. "
        "A server's stdout is for messages only; logs belong on its stderr."
    )
    assert isinstance(items[0], UnreadableLine)
    assert items[0].excerpt == "Welcome to the server"
    assert pickle.loads(pickle.dumps(items[0])).excerpt == "Welcome to the server"


async def test_noise_can_be_ignored() -> None:
    async with StdioTransport(script(NOISE), on_noise="ignore") as (reader, _writer):
        with anyio.fail_after(30):
            item = await reader.receive()
    assert not isinstance(item, Exception)


async def test_noise_can_be_raised_and_ends_the_server() -> None:
    transport = StdioTransport(script(NOISE), on_noise="raise")
    with anyio.fail_after(30), pytest.raises(ValueError, match="Welcome"):
        async with transport as (reader, _writer):
            items = [item async for item in reader]
            assert len(items) == 1
            await transport.process.wait()
    assert transport.exit is not None


async def test_a_session_goes_on_after_noise() -> None:
    with anyio.fail_after(60):
        async with StdioTransport(SERVER) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            assert await call(session, "noise", hex=b"junk\n\xff\n[1]\n".hex()) == "noisy"
            assert await call(session, "echo", message="still here") == "still here"


async def test_a_line_over_the_limit_is_an_item_and_ends_the_server() -> None:
    server = script("import sys\nsys.stdout.write('x' * 100000)\nsys.stdout.flush()\nsys.stdin.read()")
    async with StdioTransport(server, max_frame_bytes=10_000, shutdown=QUICK) as (reader, _writer):
        with anyio.fail_after(30):
            items = [item async for item in reader]
    assert [item.code for item in items if isinstance(item, StockadeError)] == ["frame-too-long"]


# Use


async def test_a_second_entry_is_refused_and_launches_nothing() -> None:
    transport = StdioTransport(SERVER)
    async with transport:
        process = transport.process
        with pytest.raises(TransportUsedError):
            await transport.__aenter__()
        assert transport.process is process
    with pytest.raises(RuntimeError):
        await transport.__aenter__()


async def test_entered_in_one_task_and_left_in_another() -> None:
    transport = StdioTransport(SERVER)
    streams: list[Any] = []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def enter() -> None:
                streams.extend(await transport.__aenter__())

            tasks.start_soon(enter)
        async with anyio.create_task_group() as tasks:

            async def use() -> None:
                reader, writer = streams
                await writer.send(message("ping"))
                assert not isinstance(await reader.receive(), Exception)

            tasks.start_soon(use)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.__aexit__, None, None, None)
    assert transport.exit is not None
    assert transport.exit.ended_by == "close"


async def test_several_transports_are_left_in_any_order() -> None:
    transports = [StdioTransport(SERVER) for _ in range(3)]
    with anyio.fail_after(60):
        for transport in transports:
            await transport.__aenter__()
        for transport in transports:  # first in, first out
            await transport.__aexit__(None, None, None)
        await anyio.lowlevel.checkpoint()
    assert all(transport.exit is not None for transport in transports)


@pytest.mark.parametrize("order", ["rwt", "wrt", "trw", "twr", "rtw"])
async def test_streams_and_transport_are_closed_in_any_order_and_twice(order: str) -> None:
    transport = StdioTransport(SERVER)
    reader, writer = await transport.__aenter__()
    closers: dict[str, Callable[[], Any]] = {"r": reader.aclose, "w": writer.aclose, "t": transport.aclose}
    for which in order + order:
        await closers[which]()
    with pytest.raises(anyio.ClosedResourceError, match="this stream was closed"):
        await reader.receive()
    with pytest.raises(anyio.ClosedResourceError, match="this stream was closed"):
        await writer.send(message("ping"))


async def test_closing_the_read_stream_wakes_who_waits_in_it() -> None:
    async with StdioTransport(SERVER) as (reader, _writer):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    with pytest.raises(anyio.ClosedResourceError):
                        await reader.receive()

                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await reader.aclose()


async def test_leaving_the_transport_with_messages_unread_is_clean() -> None:
    server = script(
        'import sys\nfor _ in range(5000): print(\'{"jsonrpc": "2.0", "method": "notifications/x"}\')\n'
        "sys.stdout.flush()\nsys.stdin.read()"
    )
    transport = StdioTransport(server)
    with anyio.fail_after(30):
        async with transport as (reader, _writer):
            await reader.receive()
    # It could end by itself, because what it still wrote was read.
    assert transport.exit is not None
    assert transport.exit.ended_by == "close"


async def test_what_was_sent_just_before_the_end_reaches_the_server(tmp_path: Path) -> None:
    path = tmp_path / "got"
    server = script("import sys\nopen(sys.argv[1], 'wb').write(sys.stdin.buffer.read())", path)
    async with StdioTransport(server) as (_reader, writer):
        for _ in range(100):
            await writer.send(message("ping", padding="x" * 1000))
    assert len(path.read_bytes().splitlines()) == 100


async def test_the_whole_tree_is_gone_after_a_cancelled_session(tmp_path: Path) -> None:
    with Lifeline(tmp_path / "lifeline") as lifeline:
        with anyio.CancelScope() as scope:
            async with StdioTransport(program("family", lifeline.path, "deaf", "daemon"), shutdown=QUICK):
                await lifeline.held_by(2)
                scope.cancel()
                await anyio.sleep_forever()
        await lifeline.gone()


@pytest.mark.parametrize(
    "options",
    [
        {"startup_timeout": 0},
        {"startup_timeout": -1.0},
        {"startup_timeout": "5"},
        {"startup_timeout": timedelta(seconds=5)},
        {"startup_timeout": True},
        {"startup_timeout": float("nan")},
        {"startup_timeout": float("inf")},
        {"max_frame_bytes": 0},
        {"max_frame_bytes": 1.5},
        {"max_frame_bytes": True},
        {"max_frame_bytes": "5"},
        {"max_frame_bytes": sys.maxsize + 1},
        {"max_frame_bytes": 10**30},
        {"shutdown": 5},
        {"shutdown": "leave"},
        {"on_noise": "shout"},
    ],
)
def test_wrong_options_are_refused_when_the_transport_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        StdioTransport(SERVER, **options)


@pytest.mark.parametrize("given", ["npx -y x", {"command": "x"}, mcp.StdioServerParameters(command="x"), None])
def test_what_is_no_server_is_refused_when_the_transport_is_made(given: Any) -> None:
    with pytest.raises(ConfigError, match="A StdioTransport takes a StdioServer") as caught:
        StdioTransport(given)
    assert caught.value.remedy


def test_before_the_entry_there_is_no_process_and_the_error_says_what_to_do() -> None:
    with pytest.raises(StockadeError) as caught:
        _ = StdioTransport(SERVER).process
    assert caught.value.code == "not-entered"
    assert caught.value.remedy == 'Use it with "async with transport" first.'


def test_the_sdks_own_description_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="from_sdk"):
        StdioTransport(mcp.StdioServerParameters(command="x"))  # type: ignore[arg-type]


def message(method: str, **params: Any) -> Any:
    """A request as the SDK's streams carry it, in either major version."""
    from stockade._sdk import sdk

    request = {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}
    return sdk().wrap(sdk().parse(json.dumps(request).encode()))
