"""A host without memory gets a typed error, keeps nothing of the attempt, and goes on when there is room again."""

from __future__ import annotations

from tests.faults.hosts import Host

STARVED = """
import resource
from pathlib import Path
from stockade import LaunchError

def size():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

def held():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

async def main():
    server = StdioServer("cat")
    async with await ServerProcess.launch(server, stderr=None):
        pass  # everything that is made once is there
    # The launching thread ends when it has had nothing to do for a second.
    with anyio.fail_after(60):
        while any("launch" in Path(f"/proc/self/task/{one}/comm").read_text() for one in os.listdir("/proc/self/task")):
            await anyio.sleep(0.05)
    before = held()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    # Room for small things, not for the stacks of so many threads.
    resource.setrlimit(resource.RLIMIT_AS, (size() + 3 * 1024 * 1024, limits[1]))
    errors = []

    async def launch():
        try:
            process = await ServerProcess.launch(server, stderr=None)
        except LaunchError as error:
            errors.append(error)
        else:
            await process.close()

    async with anyio.create_task_group() as tasks:
        for _ in range(16):
            tasks.start_soon(launch)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    say(failed=sorted({(error.operation, error.code, bool(error.remedy)) for error in errors}))
    with anyio.fail_after(60):
        while held() != before:
            await anyio.sleep(0.05)
    async with await ServerProcess.launch(server, stderr=None) as process:
        await process.send(b"again")
        say(answer=(await process.receive()).decode())

anyio.run(main)
"""


def test_a_launch_without_memory_for_a_thread_fails_with_a_typed_error_and_leaks_nothing() -> None:
    with Host(STARVED) as host:
        failed = host.heard()["failed"]
        assert failed
        for operation, code, remedy in failed:
            assert operation == "pthread_create"
            assert code in ("out-of-memory", "too-many-processes")
            assert remedy
        assert host.heard() == {"answer": "again"}
        assert host.ended() == (0, "")
