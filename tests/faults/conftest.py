"""Besides what holds for every test: no task is left in the event loop either."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import anyio
import pytest


def tasks_here() -> int:
    """Tasks of the running event loop, system tasks included."""
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())


@pytest.fixture
async def count_of_tasks() -> AsyncIterator[None]:
    before = tasks_here()
    yield
    # Those that end in the loop's next turn aren't left behind.
    await anyio.wait_all_tasks_blocked()
    assert tasks_here() <= before, "a task was left behind"


@pytest.fixture(autouse=True)
def _no_task_left_behind(request: pytest.FixtureRequest) -> None:
    if "anyio_backend" in request.fixturenames:
        request.getfixturevalue("count_of_tasks")
