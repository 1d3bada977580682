"""One life of a server, the same for each launcher: started, its first frame read, closed; and how long each took."""

from __future__ import annotations

import asyncio
import os
import subprocess
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from stockade import ServerProcess, StdioServer, StdioTransport

from .child import child

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ENVIRONMENT = {name: os.environ[name] for name in ("HOME", "LOGNAME", "PATH", "SHELL", "USER") if name in os.environ}


class Life(NamedTuple):
    """Seconds."""

    call: float
    """Until the launching call returned."""
    first_frame: float
    """From before the launch until the first frame was there."""
    close: float
    """From the wish to end it until it was gone."""


async def stockade_process() -> Life:
    server = StdioServer(child(), ["speak"])
    began = perf_counter()
    process = await ServerProcess.launch(server)
    called = perf_counter()
    await process.receive()
    read = perf_counter()
    await process.close()
    return Life(called - began, read - began, perf_counter() - read)


async def stockade_transport() -> Life:
    transport = StdioTransport(StdioServer(child(), ["speak"]))
    began = perf_counter()
    reader, _ = await transport.__aenter__()
    called = perf_counter()
    await reader.receive()
    read = perf_counter()
    await transport.__aexit__(None, None, None)
    return Life(called - began, read - began, perf_counter() - read)


async def sdk() -> Life:
    client = stdio_client(StdioServerParameters(command=child(), args=["speak"]))
    began = perf_counter()
    reader, _ = await client.__aenter__()
    called = perf_counter()
    await reader.receive()
    read = perf_counter()
    await client.__aexit__(None, None, None)
    return Life(called - began, read - began, perf_counter() - read)


async def asyncio_process() -> Life:
    pipe = subprocess.PIPE
    began = perf_counter()
    process = await asyncio.create_subprocess_exec(
        child(), "speak", stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=ENVIRONMENT
    )
    called = perf_counter()
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    read = perf_counter()
    process.stdin.close()
    await process.wait()
    return Life(called - began, read - began, perf_counter() - read)


async def blocking_popen() -> Life:
    pipe = subprocess.PIPE
    began = perf_counter()
    process = subprocess.Popen(
        [child(), "speak"], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=ENVIRONMENT
    )
    called = perf_counter()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    read = perf_counter()
    process.stdin.close()
    process.wait()
    life = Life(called - began, read - began, perf_counter() - read)
    process.stdout.close()
    process.stderr.close()
    return life


async def posix_spawn() -> Life:
    program = child()
    began = perf_counter()
    pairs = [os.pipe() for _ in range(3)]
    (their_in, our_in), (our_out, their_out), (our_err, their_err) = pairs
    theirs = (their_in, their_out, their_err)
    pid = os.posix_spawn(
        program,
        [program, "speak"],
        ENVIRONMENT,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(theirs)],
        setsid=True,
    )
    for fd in theirs:
        os.close(fd)
    called = perf_counter()
    os.read(our_out, 4096)
    read = perf_counter()
    os.close(our_in)
    os.waitpid(pid, 0)
    life = Life(called - began, read - began, perf_counter() - read)
    os.close(our_out)
    os.close(our_err)
    return life


CONTESTANTS: dict[str, Callable[[], Awaitable[Life]]] = {
    "ServerProcess": stockade_process,
    "StdioTransport": stockade_transport,
    "SDK stdio_client": sdk,
    "asyncio subprocess": asyncio_process,
    "blocking Popen": blocking_popen,
    "posix_spawn": posix_spawn,
}
