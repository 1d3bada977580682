"""Launching often leaves nothing behind; tests/soak does it ten thousand times."""

from __future__ import annotations

import anyio
import pytest

from stockade import ServerProcess
from tests.faults import storm
from tests.servers import shell


async def test_hundreds_of_launches_leave_no_descriptor_thread_or_memory() -> None:
    # fault 20
    with anyio.fail_after(100):
        growth = await storm.one_after_the_other(150)
    assert growth.descriptors <= 0
    assert growth.threads <= 0
    assert growth.resident < 2 << 20, growth


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_ended_servers_that_are_kept_hold_no_descriptor() -> None:
    # fault 20
    await storm.one_after_the_other(0)
    before = await storm.held()
    kept: list[ServerProcess] = []
    with anyio.fail_after(60):
        for _ in range(20):
            process = await ServerProcess.launch(shell("exit 3"), stderr=None)
            await process.wait()
            await process.close()
            kept.append(process)
    assert [process.returncode for process in kept] == [3] * 20
    assert (await storm.settled(before))[0] <= before[0]
