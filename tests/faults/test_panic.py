"""A failure inside the executor ends the session that it hits, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.hosts import ROOT, Host

PANICKING = """\
from stockade import ServerExited
async def main():
    nasty = StdioServer("sh", ["-c", '''
trap "" TERM HUP
setsid sh -c "sleep 1000 & wait" &
echo $!
read go
echo >&2
while :; do sleep 1000; done
'''])
    process = await ServerProcess.launch(nasty, stderr=None, shutdown=Shutdown(1000, 1000, 30))
    other = await ServerProcess.launch(StdioServer("cat"), stderr=None)
    child = int(await process.receive())
    from tests.faults.processes import Watched
    with Watched(process.pid) as server, Watched(child) as descendant:
        process._session.inject_panic()
        await process.send(b"go")  # whose answer on stderr is the next event
        with anyio.fail_after(30):
            try:
                await process.receive()
            except ServerExited as error:
                say(error=str(error), code=error.code, cause=error.report.cause, ended_by=error.report.ended_by)
        say(server_gone=server.gone(), descendant_gone=descendant.gone())
    await other.send(b"still here")
    say(other=(await other.receive()).decode(), closed=(await other.close()).ended_by)
    async with await ServerProcess.launch(StdioServer("cat"), stderr=None) as later:
        await later.send(b"later")
        say(later=(await later.receive()).decode())

anyio.run(main)
"""


def test_a_panic_of_the_serving_thread_ends_that_session_and_no_other(faults_path: Path) -> None:
    # fault 31
    path = os.pathsep.join([str(faults_path), str(ROOT)])
    with Host(PANICKING, env={"PYTHONPATH": path}) as host:
        facts = host.heard()
        assert facts["ended_by"] == "kill"
        assert "a failure inside stockade" in facts["cause"]
        assert host.heard() == {"server_gone": True, "descendant_gone": True}
        assert host.heard() == {"other": "still here", "closed": "close"}
        assert host.heard() == {"later": "later"}
        status, stderr = host.ended()
    assert status == 0
    assert stderr.count("panicked") <= 1, stderr


PANIC_WHILE_RECEIVING = """\
from stockade import ServerExited
async def main():
    process = await ServerProcess.launch(StdioServer("sh", ["-c", "read go; echo >&2; cat"]), stderr=None)
    async def interfere():
        await anyio.wait_all_tasks_blocked()
        process._session.inject_panic()
        await process.send(b"go")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(interfere)
        with anyio.fail_after(30):
            try:
                await process.receive()
            except ServerExited as error:
                say(cause=error.report.cause)
    say(report=str(await process.close()))

anyio.run(main, backend=sys.argv[1])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_panic_reaches_who_waits_for_a_frame(faults_path: Path, backend: str) -> None:
    # fault 31
    path = os.pathsep.join([str(faults_path), str(ROOT)])
    with Host(PANIC_WHILE_RECEIVING, backend, env={"PYTHONPATH": path}) as host:
        assert "a failure inside stockade" in host.heard()["cause"]
        assert "a failure inside stockade" in host.heard()["report"]
        assert host.ended()[0] == 0
