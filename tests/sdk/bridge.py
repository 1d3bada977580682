"""What stands in for the SDK's `stdio_client`, and what joins the SDK's fake processes to a real one."""

from __future__ import annotations

import struct
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from mcp.client import stdio

from stockade import ServerExited, ServerProcess, Shutdown, StdioServer, StdioTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stockade._transport import MessageReader, MessageWriter

PUPPET = Path(__file__).with_name("puppet.py")
GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

_bridges: list[Bridge] = []
_all_tasks_blocked = anyio.wait_all_tasks_blocked


@asynccontextmanager
async def stdio_client(server: Any, errlog: Any = None) -> AsyncIterator[tuple[Reader, Writer]]:
    process = await stdio._create_platform_compatible_process(
        command=await stdio._get_executable_command(server.command),
        args=server.args,
        env=stdio.get_default_environment() | (server.env or {}),
        errlog=sys.stderr if errlog is None else errlog,
        cwd=server.cwd,
    )
    transport = StdioTransport(StdioServer(server.command))
    if hasattr(process, "process"):  # not one of the SDK's fakes
        reader, writer = transport.attach(process.process)
        try:
            yield Reader(reader), Writer(writer)
        finally:
            with anyio.CancelScope(shield=True):
                await _end(transport, reader, writer)
                if transport.exit is not None and transport.exit.ended_by in ("terminate", "kill"):
                    # Over already: the tests count the calls.
                    await stdio._terminate_process_tree(process)
        return
    async with anyio.create_task_group() as tasks:
        bridge = await Bridge.build(process)
        tasks.start_soon(bridge.run)
        reader, writer = transport.attach(bridge.puppet)
        try:
            yield Reader(reader, bridge), Writer(writer, bridge)
        finally:
            bridge.drain()
            with anyio.CancelScope(shield=True):
                await _end(transport, reader, writer)
                await bridge.close()


async def _end(transport: StdioTransport, reader: MessageReader, writer: MessageWriter) -> None:
    # As the SDK has its times now; it leaves the children of a server that ends in time.
    await reader.aclose()
    await writer.aclose()
    await transport.process.close(
        Shutdown(
            stdio.PROCESS_TERMINATION_TIMEOUT, stdio.FORCE_KILL_TIMEOUT, stdio._KILL_REAP_TIMEOUT, descendants="leave"
        )
    )


class Reader:
    """Our read stream, without what the SDK's own doesn't have: the item that explains the end."""

    def __init__(self, reader: MessageReader, bridge: Bridge | None = None) -> None:
        self._reader = reader
        self._bridge = bridge
        self._next: list[Any] = []

    async def receive(self) -> Any:
        if self._next:
            return self._next.pop()
        if self._bridge is None:
            item = await self._reader.receive()
        else:
            with self._bridge.reading():
                item = await self._reader.receive()
        if isinstance(item, ServerExited):
            raise anyio.EndOfStream
        if isinstance(item, ValueError):
            # An unfinished last line is reported by ours and dropped by the SDK's.
            following = await self.receive()
            self._next.append(following)
        return item

    async def aclose(self) -> None:
        await self._reader.aclose()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Writer:
    """Our write stream, counting."""

    def __init__(self, writer: MessageWriter, bridge: Bridge | None = None) -> None:
        self._writer = writer
        self._bridge = bridge

    async def send(self, item: Any) -> None:
        await self._writer.send(item)
        if self._bridge is not None:
            self._bridge.sent += 1

    async def aclose(self) -> None:
        await self._writer.aclose()

    async def __aenter__(self) -> Writer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Bridge:
    """Carries bytes and death between one of the SDK's fake processes and the puppet."""

    def __init__(self, fake: Any, puppet: ServerProcess, strings: anyio.abc.SocketStream) -> None:
        self.puppet = puppet
        self.sent = 0
        self._arrived = 0
        self._fake = fake
        self._strings = strings
        self._scope = anyio.CancelScope(shield=True)
        self._news = anyio.Event()
        self._receivers = 0
        self._ahead = 0
        self._draining = False
        self._told_exit = False
        self._lines, self._queue = anyio.create_memory_object_stream[bytes](1000)
        self._flushed = anyio.Event()

    @classmethod
    async def build(cls, fake: Any) -> Bridge:
        with tempfile.TemporaryDirectory() as folder:
            async with await anyio.create_unix_listener(Path(folder, "strings")) as listener:
                server = StdioServer(sys.executable, ["-I", "-S", "-E", str(PUPPET), str(Path(folder, "strings"))])
                puppet = await ServerProcess.launch(server, stderr="inherit")
                bridge = cls(fake, puppet, await listener.accept())  # type: ignore[attr-defined]
        _bridges.append(bridge)
        return bridge

    def reading(self) -> _Reading:
        return _Reading(self)

    def drain(self) -> None:
        self._draining = True
        self.tell()

    def tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def settled(self) -> None:
        """Wait until what was sent has reached the fake's stdin (where it may be stuck)."""
        while self._arrived < self.sent and not self._told_exit:
            await self._news.wait()

    async def close(self) -> None:
        _bridges.remove(self)
        self._scope.cancel()
        self._lines.close()
        self._queue.close()
        with suppress(*GONE):
            await self._fake.stdout.aclose()
        with suppress(*GONE):
            await self._strings.aclose()

    async def run(self) -> None:
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._carry_output)
                tasks.start_soon(self._carry_input)
                tasks.start_soon(self._write)

    async def _order(self, kind: bytes, data: bytes = b"") -> None:
        with suppress(*GONE):
            await self._strings.send(kind + struct.pack("!I", len(data)) + data)

    async def _follow_exit(self) -> None:
        if self._fake.returncode is not None and not self._told_exit:
            self._told_exit = True
            await self._order(b"X", b"%d" % self._fake.returncode)
            self.tell()

    async def _carry_output(self) -> None:
        # As the SDK's reader does, one chunk is taken ahead of whoever receives.
        while True:
            while not (self._draining or self._receivers or self._ahead == 0):
                await self._news.wait()
            try:
                chunk = await self._fake.stdout.receive()
            except GONE:
                break
            self._ahead += 1
            await self._order(b"O", chunk)
        await self._order(b"C")
        await self._follow_exit()

    async def _carry_input(self) -> None:
        buffer = b""
        try:
            while True:
                kind = await self._take(1)
                data = await self._take(struct.unpack("!I", await self._take(4))[0])
                if kind == b"I":
                    *lines, buffer = (buffer + data).split(b"\n")
                    for line in lines:
                        self._lines.send_nowait(line + b"\n")
                        self._arrived += 1
                    self.tell()
                elif kind == b"E":
                    self._lines.close()
                    with anyio.move_on_after(stdio._WRITER_FLUSH_TIMEOUT):
                        await self._flushed.wait()
                    with suppress(*GONE):
                        await self._fake.stdin.aclose()
                    await self._follow_exit()
                elif kind == b"T":
                    await stdio._terminate_process_tree(self._fake)
                    await self._follow_exit()
        except GONE:
            pass

    async def _write(self) -> None:
        async for line in self._queue:
            try:
                await self._fake.stdin.send(line)
            except GONE:
                await self._order(b"S")
                break
        self._flushed.set()

    async def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += await self._strings.receive(count - len(data))
        return data


class _Reading:
    """Somebody receives: more may be taken from the fake's stdout."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def __enter__(self) -> None:
        self._bridge._receivers += 1
        self._bridge.tell()

    def __exit__(self, *_: object) -> None:
        self._bridge._receivers -= 1


async def settled() -> None:
    """In place of `anyio.wait_all_tasks_blocked`: bytes on their way through a pipe count as work, too."""
    for bridge in list(_bridges):
        await bridge.settled()
    await _all_tasks_blocked()
