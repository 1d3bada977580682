"""A host at its limits: a launch fails with a typed error, leaves nothing, and works again later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.hosts import Host

TOO_MANY_FILES = """\
import resource
from pathlib import Path
from stockade import LaunchError, StockadeError
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

def held():
    # One more by the listing itself.
    return len(os.listdir("/proc/self/fd")) - 1

def children():
    return [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]

async def attempt(server, sink):
    process = await ServerProcess.launch(server, stderr=sink)
    assert await process.receive() == b"hello"
    await process.close()

async def main():
    server = StdioServer("sh", ["-c", "echo hello; cat"])
    sink = sys.argv[1] or None
    for round in ("first", "later"):
        failed = []
        base = held()
        for room in range(60):
            before = held()
            resource.setrlimit(resource.RLIMIT_NOFILE, (base + room, hard))
            try:
                await attempt(server, sink)
            except StockadeError as error:
                problem = [type(error).__name__, error.code, error.operation, error.native_code]
            except OSError as error:
                import traceback
                problem = ["OSError", "", "".join(traceback.format_tb(error.__traceback__)), error.errno]
            else:
                problem = None
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            if problem is None:
                break
            failed.append(problem)
            for _ in range(1000):
                # What the executor has kept for good after a failure it needs anyway.
                if held() <= before + 8 and not children():
                    break
                await anyio.sleep(0.01)
            if round == "later":
                for _ in range(1000):
                    if held() <= before:
                        break
                    await anyio.sleep(0.01)
                assert held() <= before, (room, problem, held(), before)
        else:
            raise AssertionError("it never works again")
        assert children() == []
        await attempt(server, sink)
        say(round=round, failed=failed)

import gc
anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("sink", ["", "log"])
def test_a_launch_without_a_descriptor_to_spare_fails_at_each_step_with_a_typed_error(
    tmp_path: Path, sink: str, backend: str
) -> None:
    # fault 18
    path = tmp_path / sink if sink else ""
    with Host(TOO_MANY_FILES, path, backend) as host:
        for expected in ("first", "later"):
            facts = host.heard()
            assert facts["round"] == expected
            assert facts["failed"], "the limit was never reached: this shows nothing"
            for problem in facts["failed"]:
                assert problem[0] == "LaunchError", facts["failed"]
                assert problem[1] == "too-many-files"
                assert problem[2]
                assert problem[3] == 24
            assert len({problem[2] for problem in facts["failed"]}) > 1
        assert host.ended() == (0, "")


TOO_MANY_PROCESSES = """\
import resource
from stockade import LaunchError
async def attempt():
    server = StdioServer("/bin/sh", ["-c", "echo hello; read go"])
    async with await ServerProcess.launch(server, stderr=None) as process:
        return (await process.receive()).decode()

async def main():
    failed = []
    for room in range(1, 20):
        resource.setrlimit(resource.RLIMIT_NPROC, (room, 1000))
        try:
            worked = await attempt()
        except LaunchError as error:
            failed.append([error.code, error.operation, error.native_code])
        else:
            break
        finally:
            resource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000))
    say(failed=failed, worked=worked, again=await attempt())

# A first time as root: this user may not be allowed to read the interpreter's folder, to import anything more.
anyio.run(attempt)
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
anyio.run(main)
"""


def test_a_launch_at_the_limit_of_processes_fails_at_each_step_with_a_typed_error() -> None:
    # fault 18
    if os.getuid() != 0:
        pytest.skip("needs root: the limit counts the processes of a user, so the test takes one that has none")
    with Host(TOO_MANY_PROCESSES, 61000 + os.getpid() % 1000) as host:
        facts = host.heard()
        assert host.ended() == (0, "")
    assert facts["worked"] == facts["again"] == "hello"
    assert facts["failed"]
    for code, operation, number in facts["failed"]:
        assert (code, number) == ("too-many-processes", 11), facts["failed"]
        assert operation
