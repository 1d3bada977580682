"""What takes minutes: the same faults as in tests/faults, in earnest. Each has a bounded time."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, Shutdown
from tests.faults import storm
from tests.faults.hosts import Host
from tests.faults.processes import resident_bytes
from tests.faults.test_bytes import INTERRUPTED, INTERRUPTED_SERVER
from tests.faults.test_host_death import BUSY, killed_at_random
from tests.faults.test_stderr import flooded, one_long_line
from tests.servers import BARE, shell

pytestmark = pytest.mark.soak
SECONDS = float(os.environ.get("STOCKADE_SOAK_SECONDS", "600"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False})], ids=["asyncio"])
async def test_ten_thousand_launches_leave_nothing_and_stay_as_quick() -> None:
    # fault 20
    with anyio.fail_after(800):
        growth = await storm.one_after_the_other(10_000)
    assert growth.descriptors <= 0
    assert growth.threads <= 0
    assert growth.resident < 2 << 20, growth
    assert growth.slowdown(100) <= 1.2, growth


@pytest.mark.timeout(900)
def test_eight_threads_of_a_thousand_launches_cross_no_pipes() -> None:
    # fault 17
    assert storm.from_many_threads(8, 1000) == ["close"] * 8000


LIVES = """read how
case $how in
exit) exit 7 ;;
segv) kill -SEGV $$ ;;
child) sleep 1000 & exit 8 ;;
esac
cat
"""


async def one_life(chance: random.Random) -> str | None:
    """A server that ends in one of many ways; None, or what was wrong with its report."""
    quick = Shutdown(chance.choice([0.1, 5.0]), 5, 30)
    async with await ServerProcess.launch(shell(LIVES), stderr=None, shutdown=quick) as process:
        way = chance.choice(["exit", "segv", "child", "kill", "signal", "close"])
        await anyio.sleep(chance.uniform(0, 0.5))
        expected: set[tuple[str, int]]
        if way == "kill":
            process.kill()
            # Its input ends as well, and it may be the quicker.
            report, expected = await process.wait(), {("kill", -9), ("kill", 0)}
        elif way == "signal":
            # By its own parent's number it is ours alone; it lives, since nothing has ended it.
            os.kill(process.pid, signal.SIGKILL)
            report, expected = await process.wait(), {("exit", -9)}
        elif way == "close":
            await process.send(b"stay")
            report, expected = await process.close(), {("close", 0)}
        else:
            await process.send(way.encode())
            report, expected = await process.wait(), {("exit", {"exit": 7, "segv": -11, "child": 8}[way])}
    if (report.ended_by, report.returncode) in expected:
        return None
    return f"{way}: {report!r}"


@pytest.mark.timeout(SECONDS + 200)
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False}), ("trio", {})], ids=["asyncio", "trio"])
async def test_two_hundred_servers_that_die_at_random_lose_no_report() -> None:
    # fault 21
    before = await storm.held()
    resident = 0
    end = time.monotonic() + SECONDS / 2
    wrong: list[str] = []
    lives = 0

    async def keep_one(seed: int) -> None:
        nonlocal lives
        chance = random.Random(seed)
        while time.monotonic() < end:
            with anyio.fail_after(120):
                outcome = await one_life(chance)
            lives += 1
            if outcome is not None:
                wrong.append(outcome)

    async def note_memory() -> None:
        nonlocal resident
        await anyio.sleep(SECONDS / 8)
        resident = resident_bytes()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(note_memory)
        for seed in range(200):
            tasks.start_soon(keep_one, seed)
    after = await storm.settled(before)
    assert wrong == []
    assert lives > 200
    assert after <= before
    # From when all two hundred were there: nothing grows with the number of lives.
    assert resident_bytes() - resident < 8 << 20


@pytest.mark.timeout(900)
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False})], ids=["asyncio"])
async def test_ten_gigabytes_of_short_lines_on_stderr() -> None:
    # fault 25
    with anyio.fail_after(800):
        assert await flooded(500_000_000) < 5


@pytest.mark.timeout(300)
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False})], ids=["asyncio"])
async def test_a_gigabyte_on_stderr_without_a_newline() -> None:
    # fault 26
    with anyio.fail_after(250):
        await one_long_line(1 << 30)


@pytest.mark.timeout(600)
def test_two_hundred_hosts_killed_at_random_leave_no_process(tmp_path: Path) -> None:
    # fault 8
    killed = killed_at_random(200, tmp_path, BUSY, 0.3)
    assert len(killed) == 200
    assert max(one["seconds"] for one in killed) < 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(600)
def test_a_long_storm_of_signals_loses_no_byte() -> None:
    # fault 30
    import json

    for seed in range(20):
        with Host(INTERRUPTED, seed, json.dumps([*BARE, "-c", INTERRUPTED_SERVER]), "asyncio") as host:
            assert host.heard(120)["same"]
            assert host.ended() == (0, "")
