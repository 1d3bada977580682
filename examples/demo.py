"""What stockade does, shown on real servers. `make demo` sets everything up and runs this."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
from mcp import Client

from stockade import Shutdown, StdioServer, StdioTransport
from tests.support.servers import everything

SERVERS = Path(__file__).resolve().parent / "servers"


def say(text: str = "", indent: str = "") -> None:
    for line in text.splitlines() or [""]:
        body = line.lstrip()
        margin = indent + line[: len(line) - len(body)]
        wrapped = textwrap.fill(body, 110, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
        print(wrapped, flush=True)


def result(text: str) -> None:
    say(text, "   ")


def milliseconds(since: float) -> str:
    return f"{(perf_counter() - since) * 1000:.0f} ms"


def text_of(answer: Any) -> str:
    return " ".join(str(item.text) for item in answer.content if item.type == "text")


def example(name: str) -> StdioServer:
    return StdioServer(sys.executable, [SERVERS / f"{name}.py"], name=name)


async def python_server() -> None:
    say("1. A server written with the MCP Python SDK (examples/servers/greeter.py)")
    began = perf_counter()
    transport = StdioTransport(example("greeter"))
    async with Client(transport) as client:
        result(f"started and ready after {milliseconds(began)}, as process {transport.process.pid}")
        tools = (await client.list_tools()).tools
        for tool in tools:
            result(f"it offers the tool {tool.name!r}: {tool.description}")
        result(f"greet(name='Ada') answers: {text_of(await client.call_tool('greet', {'name': 'Ada'}))}")
    result(f"closed: {transport.exit}")


async def npx_server() -> None:
    say("2. A server from npm, started with npx (@modelcontextprotocol/server-everything)")
    began = perf_counter()
    transport = StdioTransport(everything().stdio())
    result(f"$ npx {' '.join(everything().args)}")
    async with Client(transport) as client:
        result(f"ready after {milliseconds(began)}")
        tools = (await client.list_tools()).tools
        result(f"it offers {len(tools)} tools: {', '.join(tool.name for tool in tools)}")
        result(f"echo answers: {text_of(await client.call_tool('echo', {'message': 'hi'}))}")

        async def show(progress: float, total: float | None, message: str | None) -> None:
            result(f"   … step {progress:g} of {total or 0:g} {message or ''}")

        result("a tool that takes its time reports progress:")
        long = {"duration": 1, "steps": 4}
        answer = await client.call_tool("trigger-long-running-operation", long, progress_callback=show)
        result(f"   {text_of(answer)}")
    result(f"closed, npx and its node with it: {transport.exit}")


async def crashing_server() -> None:
    say("3. A server that crashes while it starts (examples/servers/crashing.py)")
    transport = StdioTransport(example("crashing"))
    try:
        async with Client(transport):
            raise AssertionError("it wasn't meant to start")
    except Exception as error:
        cause = innermost(error)
    result(f"the MCP SDK's error: {type(cause).__name__}: {cause}")
    explained = "\n".join(getattr(cause, "__notes__", ()))
    if "exited with 3" not in explained or "no API key" not in explained:
        raise AssertionError(f"the error should name the exit status and the last lines of stderr: {explained!r}")
    result("with stockade it says why:")
    result(textwrap.indent(explained, "   "))


def innermost(error: BaseException) -> BaseException:
    """The SDK wraps what went wrong in exception groups."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return innermost(inner[0]) if inner else error


async def deaf_server() -> None:
    say("4. A server that won't end, with a grandchild hidden in a session of its own (examples/servers/deaf.py)")
    shutdown = Shutdown(close_grace=0.5, terminate_grace=0.5)
    transport = StdioTransport(example("deaf"), shutdown=shutdown)
    async with transport as (messages, _):
        # Its first message says who its grandchild is.
        first: Any = await messages.receive()
        grandchild = int(first.message.model_dump()["params"]["data"]["grandchild"])
        tree = {"server": transport.process.pid, "grandchild": grandchild}
        result("running: " + ", ".join(f"{name} {pid}" for name, pid in tree.items()))
        if not all(is_alive(pid) for pid in tree.values()):
            raise AssertionError("both should be running")
        result("closing it: end of input, wait 500 ms, SIGTERM to the tree, wait 500 ms, SIGKILL to the tree")
        began = perf_counter()
        await transport.aclose()
        result(f"closed after {milliseconds(began)}: {transport.exit}")
    left = [f"{name} {pid}" for name, pid in tree.items() if is_alive(pid)]
    if left:
        raise AssertionError(f"still running: {', '.join(left)}")
    result("nothing of its tree is left")


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie doesn't."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def main() -> None:
    for part in (python_server, npx_server, crashing_server, deaf_server):
        await part()
        say()
    say("Every server is gone, and so is everything they started.")


if __name__ == "__main__":
    anyio.run(main)
