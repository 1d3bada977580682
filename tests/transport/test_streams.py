"""The streams and their start-up time, with several tasks, threads and loops about them."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from stockade import (
    ServerExited,
    Shutdown,
    StartupTimeout,
    StdioServer,
    StdioTransport,
    UnreadableLine,
    _process,
    _transport,
)
from stockade._sdk import sdk
from tests.servers import shell
from tests.servers.stepping import Stepped

CAT = StdioServer("cat")
QUICK = Shutdown(0.2, 0.2, 5)
LOOPS: list[dict[str, Any]] = [
    {"backend": "asyncio"},
    {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    {"backend": "trio"},
]


def note(method: str) -> Any:
    return sdk().wrap(sdk().parse(b'{"jsonrpc": "2.0", "method": "notifications/%s"}' % method.encode()))


# Closed from elsewhere


@pytest.mark.parametrize("what", ["reader", "transport", "process", "begin_close"])
@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop", "trio"])
async def test_closed_from_another_loops_thread_who_waits_is_woken(what: str, loop: dict[str, Any]) -> None:
    transport = StdioTransport(CAT, shutdown=QUICK)
    woken = 0.0
    async with transport as (reader, _writer):
        debug()

        async def close() -> None:
            if what == "reader":
                await reader.aclose()
            elif what == "transport":
                await transport.aclose()
            elif what == "process":
                await transport.process.close()
            else:
                transport.process.begin_close()

        async def wait() -> None:
            nonlocal woken
            with pytest.raises(anyio.ClosedResourceError):
                await reader.receive()
            woken = time.monotonic()

        thread = threading.Thread(target=anyio.run, args=[close], kwargs=loop, daemon=True)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                # From here on nothing else wakes this loop.
                began = time.monotonic()
                thread.start()
        thread.join(30)
        assert woken - began < 20
        assert reader.failure is None
        if what == "transport":
            assert transport.exit is not None


def debug() -> None:
    """Have asyncio check which thread calls it."""
    import asyncio

    with suppress(RuntimeError):
        asyncio.get_running_loop().set_debug(True)


async def test_a_server_is_closed_whatever_becomes_of_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = StdioTransport(CAT, shutdown=QUICK)
    reader, _writer = await transport.__aenter__()

    async def refuse() -> None:
        raise RuntimeError("the loop refuses")

    monkeypatch.setattr(reader, "aclose", refuse)
    with pytest.raises(RuntimeError, match="refuses"):
        await transport.aclose()
    assert transport.process.closed
    with anyio.fail_after(30):
        assert (await transport.process.wait()).ended_by == "close"


async def test_closed_while_it_is_entered_a_transport_hands_out_nothing_and_ends_the_server() -> None:
    refused = 0
    with anyio.fail_after(60):
        for at in range(100):
            transport = StdioTransport(CAT, shutdown=QUICK)

            def close() -> None:
                # It doesn't wait: there is no server yet.
                with suppress(StopIteration):
                    transport.aclose().send(None)  # noqa: B023 - called within this turn

            entering = Stepped(transport.__aenter__(), at, close)
            try:
                await entering
            except anyio.ClosedResourceError:
                assert transport.exit is not None
                refused += 1
            else:
                assert entering.suspensions <= at
                break
            finally:
                await transport.aclose()
    assert refused >= 1


async def test_closed_before_it_is_entered_a_transport_launches_nothing() -> None:
    transport = StdioTransport(CAT)
    await transport.aclose()
    with pytest.raises(RuntimeError):
        await transport.__aenter__()


# The start-up time


async def test_the_start_up_time_is_over_for_every_task_with_the_first_message() -> None:
    got: list[Any] = []
    async with StdioTransport(CAT, startup_timeout=2, shutdown=QUICK) as (reader, writer):
        until = reader._deadline
        assert until is not None
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def receive() -> None:
                    got.append(await reader.receive())

                tasks.start_soon(receive)
                tasks.start_soon(receive)
                await anyio.wait_all_tasks_blocked()
                await writer.send(note("first"))
                # The other one goes on waiting, past the time that it had when it began.
                with anyio.move_on_after(until - time.monotonic() + 0.3):
                    await anyio.sleep_forever()
                assert len(got) == 1
                await writer.send(note("second"))
    assert [item.message for item in got] == [note("first").message, note("second").message]


@pytest.mark.parametrize("on_noise", ["report", "ignore"])
async def test_the_start_up_time_ends_although_the_server_never_stops_writing_noise(on_noise: Any) -> None:
    transport = StdioTransport(StdioServer("yes"), startup_timeout=0.5, on_noise=on_noise, shutdown=QUICK)
    async with transport as (reader, _writer):
        with anyio.fail_after(60):
            items = [type(await reader.receive())]
            while items[-1] is UnreadableLine:
                items[-1] = type(await reader.receive())
            assert items == [StartupTimeout]
            with pytest.raises(anyio.EndOfStream):
                await reader.receive()


async def test_the_import_of_the_sdk_is_not_counted_against_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = 0.0
    real, clock = _transport.sdk, time.monotonic

    def slow() -> Any:
        nonlocal spent
        spent += 1000
        return real()

    for module in (_transport, _process):
        monkeypatch.setattr(module, "monotonic", lambda: clock() + spent)
    transport = StdioTransport(CAT, startup_timeout=60)
    monkeypatch.setattr(_transport, "sdk", slow)
    streams = await transport.__aenter__()
    monkeypatch.setattr(_transport, "sdk", real)
    # The import takes its time once, whoever asks for the SDK afterwards.
    spent = 1000
    try:
        reader, writer = streams
        await writer.send(note("x"))
        assert (await reader.receive()).message == note("x").message  # type: ignore[union-attr]
    finally:
        await transport.aclose()


# What is said about the end


class Odd(Exception):
    """An error of the user's own, with a member that groups have too."""


class Property(Exception):
    @property
    def exceptions(self) -> Any:
        raise ValueError("not now")


def method() -> Exception:
    class Method(Exception):
        def exceptions(self) -> list[int]:
            return []

    return Method()


def with_member(value: Any) -> Exception:
    error = Odd("the user's")
    error.exceptions = value  # type: ignore[attr-defined]
    return error


def holding_itself() -> Exception:
    error = Odd("the user's")
    error.exceptions = (error, error)  # type: ignore[attr-defined]
    return error


ODD = {
    "a method": method(),
    "a property that raises": Property(),
    "None": with_member(None),
    "a number": with_member(3),
    "text": with_member("abc"),
    "a tuple of what is no exception": with_member((1, "a", None)),
    "a list that holds anything": with_member([object()]),
    "itself": holding_itself(),
}


@pytest.mark.parametrize("error", ODD.values(), ids=ODD.keys())
async def test_an_error_of_the_users_own_comes_out_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        async with StdioTransport(shell("exit 3")) as (reader, _writer):
            with anyio.fail_after(30):
                assert isinstance(await reader.receive(), ServerExited)
            raise error
    assert caught.value is error


async def test_the_end_is_told_in_the_same_words_wherever_it_is_told() -> None:
    with pytest.raises(anyio.BrokenResourceError) as caught:
        transport = StdioTransport(shell("exit 3"))
        async with transport:
            with anyio.fail_after(30):
                await transport.process.wait()
            # Nobody has read the end: the transport says it, not the stream.
            raise anyio.BrokenResourceError
    with pytest.raises(ServerExited) as exited:
        async with await _process.ServerProcess.launch(shell("exit 3")) as process:
            await process.receive()
    (said,) = caught.value.__notes__
    words = str(exited.value).partition(" after ")[0]
    assert words == "Server 'shell' has ended: exited with 3"
    assert said.startswith(words)
