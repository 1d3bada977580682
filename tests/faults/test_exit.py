"""A server that ends by itself, politely or not."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import anyio
import pytest

from stockade import ServerExited, ServerProcess, Shutdown
from tests.faults.hosts import Host
from tests.faults.processes import Watched, alive
from tests.servers import program, script, shell
from tests.servers.lifeline import Lifeline


async def test_an_exit_is_reported_at_once_and_leaves_no_zombie() -> None:
    # fault 1
    server = shell("read go; echo last; echo bye >&2; exit 3")
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30), Watched(process.pid) as watched:
            await process.send(b"go")
            assert await process.receive() == b"last"
            assert watched.gone()
            seen_dead = time.monotonic()
            report = await process.wait()
            assert time.monotonic() - seen_dead < 1  # the figure itself (5 ms) is measured by the benches
            assert (report.returncode, report.ended_by, report.cause) == (3, "exit", "exited with 3")
            assert report.signal is None
            assert report.stderr_tail == "bye"
            assert process.returncode == 3
            with pytest.raises(ServerExited) as caught:
                await process.receive()
            assert caught.value.report == report
            with pytest.raises(ProcessLookupError):
                signal.pidfd_send_signal(watched._handle, 0)


def test_an_exit_is_an_event_that_nobody_polls_for() -> None:
    # fault 1, in a host of its own: what other tests have left running would count as well
    source = """
import resource

async def main():
    async with await ServerProcess.launch(StdioServer("sh", ["-c", "read go"]), stderr=None) as process:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        with anyio.move_on_after(3):
            await process.wait()
        turns = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
        say(turns=turns, returncode=process.returncode)

anyio.run(main)
"""
    with Host(source) as host:
        heard = host.heard()
        # A poll every 10 ms would be three hundred turns.
        assert heard["turns"] < 60
        assert heard["returncode"] is None
        assert host.ended() == (0, "")


async def test_what_was_written_before_the_exit_is_read_after_it() -> None:
    # fault 1
    server = script("import os\nos.write(1, b'x' * 70000 + b'\\n' + b'y\\n' * 100)\nos._exit(0)")
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30):
            await process.wait()
            assert await process.receive() == b"x" * 70000
            assert [await process.receive() for _ in range(100)] == [b"y"] * 100
            with pytest.raises(ServerExited):
                await process.receive()


@pytest.mark.parametrize(
    ("crash", "killer"),
    [
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
        ("import os; os.abort()", signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", signal.SIGILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGBUS)", signal.SIGBUS),
    ],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else "",
)
async def test_a_crash_is_named_with_its_signal_and_the_last_of_stderr(crash: str, killer: signal.Signals) -> None:
    # fault 15
    server = script(f"import sys\nprint('the last straw', file=sys.stderr, flush=True)\n{crash}")
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30), pytest.raises(ServerExited) as caught:
            await process.receive()
    report = caught.value.report
    assert report is not None
    assert (report.returncode, report.signal, report.ended_by) == (-killer, killer, "exit")
    assert report.cause == f"killed by {killer.name}"
    assert report.stderr_tail == "the last straw"
    assert killer.name in str(caught.value)
    assert "the last straw" in str(caught.value)


SECCOMP = """\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# Load the system call's number; getppid kills, everything else is allowed.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(program)))):
    sys.exit(77)
print("filtered", flush=True)
print("about to do what is forbidden", file=sys.stderr, flush=True)
os.getppid()
"""


async def test_a_server_killed_by_seccomp_is_named_with_sigsys() -> None:
    # fault 15
    import platform

    numbers = {"x86_64": 110, "aarch64": 173}
    number = numbers.get(platform.machine())
    if number is None:
        pytest.skip("the number of getppid is not known here for this machine")
    async with await ServerProcess.launch(script(SECCOMP, number), stderr=None) as process:
        with anyio.fail_after(30):
            report = await process.wait()
    if report.returncode == 77:
        pytest.skip("this kernel has no seccomp filters")
    assert (report.signal, report.cause) == (signal.SIGSYS, "killed by SIGSYS")
    assert report.stderr_tail == "about to do what is forbidden"


async def test_a_server_killed_by_somebody_else_is_not_taken_for_ours() -> None:
    # fault 15
    server = script("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    async with await ServerProcess.launch(server, stderr=None) as process:
        with anyio.fail_after(30):
            report = await process.wait()
    assert (report.signal, report.ended_by) == (signal.SIGKILL, "exit")
    assert "somebody else" in report.cause


HANDS_ON = """\
read go
sleep 1000 &
echo $!
exit 5
"""


async def test_a_death_is_seen_although_a_descendant_still_holds_stdout() -> None:
    # fault 22
    async with await ServerProcess.launch(shell(HANDS_ON), stderr=None) as process:
        with anyio.fail_after(30):
            await process.send(b"go")
            grandchild = int(await process.receive())
            with pytest.raises(ServerExited) as caught:
                await process.receive()
    report = caught.value.report
    assert report is not None
    assert (report.returncode, report.ended_by, report.descendants_killed) == (5, "exit", 1)
    assert not alive(grandchild)


async def test_a_descendant_that_is_left_alone_with_stdout_holds_up_neither_the_reader_nor_the_close(
    tmp_path: Path,
) -> None:
    # fault 22
    with Lifeline(tmp_path / "lifeline") as lifeline:
        server = program("family", lifeline.path, "child", "exits")
        shutdown = Shutdown(descendants="leave")
        async with await ServerProcess.launch(server, stderr=None, shutdown=shutdown) as process:
            with anyio.fail_after(30):
                await lifeline.held_by(2)
                with pytest.raises(ServerExited) as caught:
                    await process.receive()
                report = await process.close()
        assert caught.value.report == report
        assert (report.returncode, report.descendants_killed) == (7, 0)
        # It was told to be left alone: still there. The test ends it by its own means.
        left = holders_of(lifeline.path)
        assert len(left) == 1
        signal.pidfd_send_signal(left[0]._handle, signal.SIGKILL)
        assert left[0].gone()
        left[0].__exit__(None, None, None)


def holders_of(path: Path) -> list[Watched]:
    """Other processes that have `path` open."""
    import os

    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        try:
            if any(os.readlink(fd) == str(path) for fd in (folder / "fd").iterdir()):  # noqa: PTH115
                found.append(Watched(int(folder.name)))
        except OSError:
            continue
    return found
