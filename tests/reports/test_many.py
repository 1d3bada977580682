"""Reports about Ctrl-C, pipes that siblings hold, slow starts and many servers."""

from __future__ import annotations

import json
import os

import anyio
import pytest

from stockade import ServerProcess, Shutdown, StdioTransport
from tests.reports.clients import connected, text_of
from tests.servers import script, shell

# Ctrl-C in the client (report 74): tests/faults/test_ctrl_c.py.


async def test_servers_are_out_of_the_reach_of_the_terminal() -> None:
    # report 74
    async with await ServerProcess.launch(shell("ps -o sid=,tty= -p $$ 2>/dev/null; cat"), stderr=None) as process:
        assert os.getsid(process.pid) != os.getsid(0)
        assert os.getpgid(process.pid) != os.getpgid(0)


async def test_no_sibling_holds_another_servers_pipes() -> None:
    # report 76: each sees the end of its input at once, whichever goes first
    patient = Shutdown(60, 60, 60)
    with anyio.fail_after(30):
        processes = [await ServerProcess.launch(shell("cat"), stderr=None, shutdown=patient) for _ in range(6)]
        for index in (3, 0, 5, 1, 4, 2):
            assert (await processes[index].close()).ended_by == "close"


async def test_a_tools_child_with_an_inherited_stdin_does_not_hang_the_server() -> None:
    # report 76
    server = script(
        "import subprocess, sys\nfor line in sys.stdin:\n"
        "    subprocess.run(['true'])\n    print(line, end='', flush=True)"
    )
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30):
            for number in range(3):
                await process.send(b"%d" % number)
                assert await process.receive() == b"%d" % number


async def test_the_start_up_time_of_each_of_many_servers_begins_with_its_own_launch() -> None:
    # reports 77 and 79: eleven servers on a busy machine
    pong = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
    messages = 0

    async def start() -> None:
        nonlocal messages
        server = script(f"print({pong!r}, flush=True)\nimport sys; sys.stdin.read()")
        async with StdioTransport(server, stderr=None, startup_timeout=60) as (read, _):
            item = await read.receive()
            assert not isinstance(item, Exception)
            messages += 1

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(11):
                tasks.start_soon(start)
    assert messages == 11


async def test_many_calls_are_one_process() -> None:
    # report 80
    async with connected() as (client, transport):
        pid = transport.process.pid
        with anyio.fail_after(30):
            for number in range(20):
                assert text_of(await client.call_tool("echo", {"message": str(number)})) == str(number)
        assert transport.process.pid == pid
        assert transport.process.returncode is None


@pytest.mark.parametrize("count", [20])
async def test_many_servers_at_once_end_together(count: int) -> None:
    # report 77
    with anyio.fail_after(60):
        processes = [await ServerProcess.launch(shell("cat"), stderr=None) for _ in range(count)]
        reports = []

        async def close(process: ServerProcess) -> None:
            reports.append(await process.close())

        async with anyio.create_task_group() as tasks:
            for process in processes:
                tasks.start_soon(close, process)
    assert [report.ended_by for report in reports] == ["close"] * count
