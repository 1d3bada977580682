"""Loops that are closed, interpreters that shut down: the servers end, and quietly."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import anyio
import pytest

from tests.faults.hosts import Host
from tests.servers import BARE, HERE
from tests.servers.lifeline import Lifeline

LAUNCH = """\
import asyncio, gc, warnings
import stockade
warnings.simplefilter("ignore", ResourceWarning)  # an unclosed server is what this is about
FAMILY = json.loads(sys.argv[1])

async def launch():
    server = StdioServer(sys.executable, FAMILY)
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.1, 0.1, 30))
    await process.receive()
    return process

"""

WAYS = {
    "the loop is closed": "kept = asyncio.run(launch())\nsay(up=True)\ninput()\n",
    "trio has ended": "kept = anyio.run(launch, backend='trio')\nsay(up=True)\ninput()\n",
    "dropped after the loop": "asyncio.run(launch())\ngc.collect()\nsay(up=True)\ntime = __import__('time')\ninput()\n",
    "sys.exit in a task": """\
async def main():
    global kept
    kept = await launch()
    say(up=True)
    input()
    sys.exit(0)
asyncio.run(main())
""",
    "an error": """\
async def main():
    kept = await launch()
    say(up=True)
    input()
    raise SystemExit(0)
anyio.run(main, backend="trio")
""",
    "in a thread": """\
thread = threading.Thread(target=lambda: globals().update(kept=asyncio.run(launch())))
thread.start(); thread.join()
say(up=True)
input()
""",
    "a daemon thread still waits": """\
async def main():
    process = await launch()
    say(up=True)
    try:
        await process.receive()
    except stockade.ServerExited:  # what it is told while the interpreter ends the servers
        pass
threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
input()
""",
}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_an_interpreter_that_exits_ends_its_servers_in_time_and_in_silence(tmp_path: Path, way: str) -> None:
    # fault 48
    import json

    with Lifeline(tmp_path / "lifeline") as lifeline:
        family = [*BARE, str(HERE / "family.py"), str(lifeline.path), "stubborn", "child", "daemon"]
        with Host(LAUNCH + way, json.dumps(family)) as host:
            host.heard()
            await lifeline.held_by(3)
            begun = time.monotonic()
            host.tell()
            assert host.ended() == (0, "")
            # The pass mark is 1 s, with the interpreter's own end.
            assert time.monotonic() - begun < 10
            await lifeline.gone()


NEVER_CLOSED = """\
import asyncio, gc, warnings
async def drop():
    process = await ServerProcess.launch(StdioServer("cat"), stderr=None, shutdown=Shutdown(60, 60, 60))

async def main():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await drop()
        gc.collect()
        say(warned=[str(one.message) for one in caught if one.category is ResourceWarning])
    from stockade import _native
    while _native.live_sessions():
        await asyncio.sleep(0.01)
    say(ended=True)
asyncio.run(main())
"""


def test_a_server_that_nobody_holds_any_more_is_ended_with_a_warning() -> None:
    # fault 48
    with Host(NEVER_CLOSED) as host:
        facts = host.heard()
        assert host.heard() == {"ended": True}
        assert host.ended()[0] == 0
    (warning,) = facts["warned"]
    assert "unclosed" in warning


SINKS = """\
import logging
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
async def main():
    global kept
    kept = await ServerProcess.launch(StdioServer("sh", ["-c", "while :; do echo noise >&2; done"]))
    while not kept.stderr.lines_seen:
        await anyio.sleep(0.01)
    say(up=True)
anyio.run(main)
"""


def test_an_interpreter_that_exits_amid_a_flood_into_a_logger_raises_nothing() -> None:
    # fault 48
    with Host(SINKS) as host:
        host.heard()
        status, stderr = host.ended()
    assert status == 0
    assert "Traceback" not in stderr
    assert "Fatal" not in stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_host_ended_by_a_signal_takes_its_servers_along(tmp_path: Path, how: signal.Signals) -> None:
    # fault 48
    import json

    waits = """\
async def main():
    process = await launch()
    say(up=True)
    await process.receive()
asyncio.run(main())
"""
    with Lifeline(tmp_path / "lifeline") as lifeline:
        family = [*BARE, str(HERE / "family.py"), str(lifeline.path), "stubborn", "child", "daemon"]
        with Host(LAUNCH + waits, json.dumps(family)) as host:
            host.heard()
            await lifeline.held_by(3)
            host.process.send_signal(how)
            with anyio.fail_after(30):
                await lifeline.gone()
            status, _ = host.ended()
            assert status != 0
