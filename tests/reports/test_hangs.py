"""Reports of clients that hang, at the start, in the middle or at the end. The numbers are those of the reports."""

from __future__ import annotations

import json
import os
import signal
import time

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from stockade import ServerExited, ServerProcess, Shutdown, StartupTimeout, StdioTransport
from tests.faults.hosts import Host
from tests.faults.processes import Watched
from tests.reports.clients import connected
from tests.reports.test_defects import lost, notes_of
from tests.servers import script, shell

QUICK = Shutdown(0.1, 0.1, 30)


async def test_a_server_that_sleeps_for_ever_does_not_keep_the_context_manager() -> None:
    # report 1
    transport = StdioTransport(shell("echo up >&2; exec sleep 1000"), stderr=None, shutdown=QUICK)
    with anyio.fail_after(30):
        async with transport:
            pass
    assert transport.exit is not None
    assert transport.exit.ended_by == "terminate"


def test_the_whole_budget_of_a_shutdown_is_bounded_by_default() -> None:
    # report 1
    default = Shutdown()
    assert default.close_grace + default.terminate_grace <= 5


async def test_a_server_that_exits_on_the_end_of_its_input_is_not_treated_as_hung_while_a_child_keeps_stdout() -> None:
    # report 2
    server = shell("sleep 1000 & cat > /dev/null; exit 4")
    transport = StdioTransport(server, stderr=None, shutdown=Shutdown(60, 60, 60))
    with anyio.fail_after(30):
        async with transport:
            pass
    assert transport.exit is not None
    assert (transport.exit.ended_by, transport.exit.returncode) == ("close", 4)


async def test_an_initialize_that_is_never_answered_says_what_is_known_of_the_server() -> None:
    # reports 4, 43 and 10: the limit is the transport's, whoever stands above it
    server = shell("echo 'waiting for the tty' >&2; printf half; cat > /dev/null")
    transport = StdioTransport(server, stderr=None, startup_timeout=0.3, shutdown=QUICK)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - a group or not, by the SDK's version
        with anyio.fail_after(30):
            async with Client(transport, mode="legacy"):
                pass
    assert lost(caught.value)
    for known in (f"pid {transport.process.pid}", "4 bytes", "waiting for the tty"):
        assert known in notes_of(caught.value)


async def test_a_wrapper_that_ignores_sigterm_ends_with_its_whole_tree() -> None:
    # report 5
    server = shell("trap '' TERM; sleep 999 & echo $!; wait; sleep 999")
    async with await ServerProcess.launch(server, stderr=None, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            child = int(await process.receive())
            with Watched(child) as watched:
                report = await process.close()
                assert watched.gone()
    assert report.ended_by == "kill"


async def test_a_tool_that_kills_its_server_fails_the_call_with_the_signal() -> None:
    # report 7
    with pytest.raises(Exception) as caught:  # noqa: PT011
        async with connected() as (client, transport):
            with anyio.fail_after(20):
                await client.call_tool("kill-itself", {})
    assert lost(caught.value)
    assert "SIGKILL" in notes_of(caught.value)
    assert transport.exit is not None
    assert transport.exit.signal == signal.SIGKILL


async def test_every_pending_request_fails_when_a_server_dies_although_a_grandchild_holds_stdout() -> None:
    # report 8
    failed: list[BaseException] = []

    async def call(client: Client, name: str) -> None:
        try:
            await client.call_tool(name, {})
        except MCPError as error:
            failed.append(error)

    with anyio.fail_after(30):
        async with connected() as (client, transport):
            await client.list_tools()
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(call, client, "silence")
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(call, client, "leave-a-child")
    assert len(failed) == 6
    assert transport.exit is not None
    assert transport.exit.returncode == 9


RETRYING = """\
import resource
from stockade import StdioTransport
async def main():
    # Room for the loop and a server or two.
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    server = StdioServer("sh", ["-c", "echo garbage; sleep 1000 & sleep 1000"])
    for _ in range(40):
        with anyio.move_on_after(0.02):
            async with StdioTransport(server, stderr=None, shutdown=Shutdown(0, 0, 30)) as (read, _):
                async for item in read:
                    pass
    from stockade import _native
    while _native.live_sessions():
        await anyio.sleep(0.01)
    children = [pid for task in os.listdir("/proc/self/task") for pid in pids(task)]
    say(children=children, descriptors=len(os.listdir("/proc/self/fd")))

def pids(task):
    try:
        with open(f"/proc/self/task/{task}/children") as file:
            return file.read().split()
    except OSError:
        return []

anyio.run(main)
"""


def test_a_retry_loop_of_failing_starts_leaks_neither_processes_nor_descriptors() -> None:
    # report 11
    with Host(RETRYING) as host:
        facts = host.heard()
        status, written = host.ended()
    assert status == 0
    # The garbage is told of, where nobody has set logging up; nothing else is.
    assert set(written.splitlines()) <= {"wrote a line to stdout that is not an MCP message: 'garbage'"}
    assert facts["children"] == []
    assert facts["descriptors"] < 30


EXITING = """\
async def main():
    process = await ServerProcess.launch(StdioServer("sh", ["-c", "trap '' TERM; echo up; sleep 1000"]), stderr=None)
    await process.receive()
    say(pid=process.pid)
    input()
    os._exit(0)
anyio.run(main)
"""


def test_an_abrupt_exit_of_the_host_leaves_no_server() -> None:
    # report 13
    with Host(EXITING) as host, Watched(host.heard()["pid"]) as server:
        host.tell()
        assert host.ended()[0] == 0
        assert server.gone()


async def test_a_host_that_is_slow_to_read_does_not_stop_the_server_from_answering() -> None:
    # report 14: a handler is busy while progress and a big result come
    notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    pong = {"jsonrpc": "2.0", "id": 1, "result": {}}
    server = script(
        "import json, os, sys\n"
        f"for _ in range(200): os.write(1, {json.dumps(notification).encode()!r} + b'\\n')\n"
        f"sys.stdin.readline()\nprint('pinged', file=sys.stderr)\nos.write(1, {json.dumps(pong).encode()!r} + b'\\n')\n"
        "sys.stdin.read()"
    )
    from mcp.shared.message import SessionMessage

    from stockade._sdk import sdk

    async with StdioTransport(server, stderr=None) as (read, write):
        with anyio.fail_after(30):
            # Nobody has read anything; the ping gets through all the same.
            ping = sdk().parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode())
            await write.send(SessionMessage(ping))
            items = [await read.receive() for _ in range(201)]
    assert not any(isinstance(item, Exception) for item in items)


async def test_a_server_that_exits_before_it_says_anything_is_told_at_once() -> None:
    # report 43: the wrong working directory, so the script isn't there
    server = script("import runpy\nrunpy.run_path('./server.py')", cwd=os.path.sep)
    begun = time.monotonic()
    async with StdioTransport(server, stderr=None) as (read, _):
        with anyio.fail_after(30):
            item = await read.receive()
    assert time.monotonic() - begun < 20
    assert isinstance(item, ServerExited)
    assert item.report is not None
    assert item.report.returncode == 1
    assert "server.py" in item.report.stderr_tail


async def test_the_start_up_time_runs_from_the_launch_and_only_until_the_first_message() -> None:
    # reports 4 and 77
    pong = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
    server = shell(f"echo '{pong}'; sleep 1000")
    async with StdioTransport(server, stderr=None, startup_timeout=0.5, shutdown=QUICK) as (read, _):
        with anyio.fail_after(30):
            assert not isinstance(await read.receive(), Exception)
            with anyio.move_on_after(1) as scope:
                item = await read.receive()
                assert not isinstance(item, StartupTimeout)
            assert scope.cancelled_caught
