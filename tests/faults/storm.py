"""Many launches at once, and one after the other."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field

import anyio

from stockade import ServerProcess, Shutdown, StdioServer
from tests.faults.processes import resident_bytes
from tests.support.leaks import Held

PATIENT = Shutdown(60, 60, 60)


async def use_one(text: bytes) -> str:
    """Launch a server, see that it is ours alone, close it."""
    process = await ServerProcess.launch(StdioServer("cat"), stderr=None, shutdown=PATIENT)
    await process.send(text)
    answer = await process.receive()
    assert answer == text, f"{text!r} came back as {answer!r}"
    report = await process.close()
    # A server whose input somebody else holds open wouldn't see its end for a minute.
    return report.ended_by


def from_many_threads(threads: int, launches: int) -> list[str]:
    """So many launches in each of so many threads, each with an event loop of its own; how the servers ended."""
    ended: list[str] = []
    failures: list[BaseException] = []

    async def work(number: int) -> None:
        for turn in range(launches):
            ended.append(await use_one(b"%d-%d" % (number, turn)))

    def run(number: int) -> None:
        try:
            anyio.run(work, number)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=run, args=[number]) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return ended


@dataclass
class Growth:
    """What many launches one after the other have cost."""

    descriptors: int
    threads: int
    resident: int
    seconds: list[float] = field(repr=False)

    def slowdown(self, count: int) -> float:
        """The median of the last so many launches against that of the first."""
        return sorted(self.seconds[-count:])[count // 2] / sorted(self.seconds[:count])[count // 2]


async def one_after_the_other(launches: int) -> Growth:
    # What the first ones leave for good (imports, arenas of the allocator) isn't growth.
    for _ in range(20):
        await use_one(b"warm")
    before = await held()
    resident = resident_bytes()
    seconds = []
    for turn in range(launches):
        begun = time.perf_counter()
        await use_one(b"%d" % turn)
        seconds.append(time.perf_counter() - begun)
    after = await settled(before)
    return Growth(after[0] - before[0], after[1] - before[1], resident_bytes() - resident, seconds)


async def held() -> tuple[int, int]:
    """Descriptors and threads of this process, without the idle ones that trio and others keep for a while."""
    # What watches the executor for the loop goes in the loop's next turn.
    await anyio.wait_all_tasks_blocked()
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    return descriptors, len(Held.now().threads)


async def settled(before: tuple[int, int]) -> tuple[int, int]:
    """What is held once the executor's thread has let go of the last server too: a moment after its report."""
    with anyio.move_on_after(15):
        while (now := await held()) > before:
            await anyio.sleep(0.01)
    return now
