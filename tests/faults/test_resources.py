"""Memory that runs out, disks that are full, secrets that must not be seen, clocks that jump."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from stockade import CommandNotFoundError, LaunchError, ServerProcess, StdioServer, resolve
from tests.faults import hung_files
from tests.faults.hosts import ROOT, Host
from tests.faults.processes import parent_of
from tests.servers import script

GREEDY = """\
import os, sys
sys.stdin.readline()
print("eating", file=sys.stderr, flush=True)
held = []
while True:
    held.append(bytearray(os.urandom(1)) * (1 << 20))
"""


class MemoryLimit:
    """A control group below this process's own, with a limit; v2 where it can be had, else v1."""

    def __init__(self, limit: int) -> None:
        self.folder, file = self._place()
        self.folder.mkdir()
        try:
            (self.folder / file).write_text(str(limit))
            for swap in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
                if (self.folder / swap).exists():
                    (self.folder / swap).write_text("0" if swap.endswith("max") else str(limit))
        except OSError as error:
            self.folder.rmdir()
            pytest.skip(f"no memory limit can be set here: {error}")

    @staticmethod
    def _place() -> tuple[Path, str]:
        own = {}
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own[controllers] = path.lstrip("/")
        name = f"stockade-test-{os.getpid()}"
        v1 = Path("/sys/fs/cgroup/memory") / own.get("memory", "")
        v2 = Path("/sys/fs/cgroup") / own.get("", "")
        if "memory" in own and os.access(v1, os.W_OK):
            return v1 / name, "memory.limit_in_bytes"
        control = v2 / "cgroup.subtree_control"
        if os.access(v2, os.W_OK) and control.exists() and "memory" in control.read_text().split():
            return v2 / name, "memory.max"
        pytest.skip("no control group that limits memory can be made here: needs root, or a delegated group")

    def add(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(pid))

    def __enter__(self) -> MemoryLimit:
        return self

    def __exit__(self, *_: object) -> None:
        # Empty once the kernel has dropped the last of the dead.
        for _ in range(1000):
            try:
                self.folder.rmdir()
            except OSError:
                import select

                select.select([], [], [], 0.01)
            else:
                return


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_that_runs_out_of_memory_dies_alone_and_the_report_says_why() -> None:
    # fault 43
    own_score = Path("/proc/self/oom_score_adj").read_text()
    with MemoryLimit(48 << 20) as limit:
        async with await ServerProcess.launch(script(GREEDY), stderr=None) as process:
            supervisor = parent_of(process.pid)
            assert Path(f"/proc/{process.pid}/oom_score_adj").read_text() == own_score
            limit.add(process.pid)
            with anyio.fail_after(60):
                await process.send(b"go")
                report = await process.wait()
    assert supervisor != os.getpid()
    assert (report.signal, report.ended_by) == (signal.SIGKILL, "exit")
    assert "memory" in report.cause
    assert report.stderr_tail == "eating"
    assert Path("/proc/self/oom_score_adj").read_text() == own_score


READ_ONLY = """\
async def main():
    async with await ServerProcess.launch(StdioServer("cat"), stderr=None) as process:
        await process.send(b"fine")
        say(answer=(await process.receive()).decode())

anyio.run(main)
"""


@pytest.mark.parametrize("fault", ["full", "read-only", "missing"])
def test_a_launch_needs_no_temporary_file(tmp_path: Path, fault: str) -> None:
    # fault 44
    under: tuple[str, ...] = ()
    folder = tmp_path / "temporary"
    if fault != "missing":
        folder.mkdir()
        why = hung_files.missing() if not shutil.which("unshare") else None
        tried = subprocess.run([*hung_files.UNDER, "true"], capture_output=True, check=False)
        if why or tried.returncode != 0:
            pytest.skip("this machine allows no mount namespaces")
        options = "size=4k" if fault == "full" else "ro"
        fill = f"head -c 4096 /dev/zero > {folder}/full" if fault == "full" else ":"
        # Not over what the host itself is made of.
        needed = [str(ROOT), sys.prefix, sys.base_prefix]
        common = [
            place
            for place in ("/tmp", "/var/tmp", "/dev/shm")
            if not any(path.startswith(f"{place}/") for path in needed)
        ]
        mounts = "".join(f"mount -t tmpfs -o {options} tmpfs {place}; " for place in (folder, *common))
        under = (*hung_files.UNDER, "sh", "-c", f'{mounts}{fill}; exec "$@"', "sh")
        if any(str(tmp_path).startswith(f"{place}/") for place in common):
            # Covered by the mount itself.
            under = (*hung_files.UNDER, "sh", "-c", mounts.split("; ", 1)[1] + 'exec "$@"', "sh")
    environment = {"TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    with Host(READ_ONLY, under=under, env=environment) as host:
        assert host.heard() == {"answer": "fine"}
        assert host.ended() == (0, "")


SECRET = "hunter2-correct-horse"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_secret_is_in_no_log_repr_error_or_report(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # fault 45
    monkeypatch.setenv("INHERITED_SECRET", SECRET)
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    options = {"env": {"TOKEN": SECRET}, "inherit": "all"}
    server = StdioServer("sh", ["-c", "echo ready; cat; exit 3", "sh", f"--token={SECRET}"], **options)  # type: ignore[arg-type]
    process = await ServerProcess.launch(server)
    with anyio.fail_after(30):
        await process.receive()
        supervisor = Path(f"/proc/{parent_of(process.pid)}")
        seen_by_all = (supervisor / "cmdline").read_bytes() + (supervisor / "environ").read_bytes()
        shown += [seen_by_all.decode(), repr(server), repr(process), repr(process._session), repr(server._native)]
        report = await process.close()
        shown += [repr(report), str(report), repr(process), repr(process.stderr)]
        broken = tmp_path / "broken"
        broken.write_text("#!/nonexistent/interpreter\n")
        broken.chmod(0o755)
        for command, cwd in (("nothing-like-this", None), (str(broken), None), ("cat", str(tmp_path / "no"))):
            with pytest.raises((CommandNotFoundError, LaunchError)) as caught:
                await ServerProcess.launch(StdioServer(command, [SECRET], cwd=cwd, **options))  # type: ignore[arg-type]
            shown += [str(caught.value), repr(caught.value), repr(vars(caught.value)), repr(pickle.dumps(caught.value))]
        with pytest.raises(CommandNotFoundError) as missing:
            resolve(StdioServer("nothing-like-this", [SECRET], **options))  # type: ignore[arg-type]
        shown.append(str(missing.value))
    shown += [record.getMessage() for record in caplog.records]
    assert [text for text in shown if SECRET in text] == []
    assert seen_by_all.rstrip(b"\0") == b"stockade"


JUMPING_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
/* Every look at the wall clock is an hour off, forwards and backwards in turn. */
static long jump(void) { static int turn; return (__sync_fetch_and_add(&turn, 1) & 1) ? 3600 : -3600; }
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (!result && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += jump();
    return result;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""

GRACES = """\
import time
async def main():
    say(jumps=abs(time.time() - time.time()) > 3000)
    for graces, script in (((0.2, 0.2, 30), "trap '' TERM; echo ready; while :; do sleep 1000; done"),
                           ((60, 60, 60), "echo ready; cat")):
        process = await ServerProcess.launch(StdioServer("sh", ["-c", script]), stderr=None, shutdown=Shutdown(*graces))
        await process.receive()
        begun = time.monotonic()
        report = await process.close()
        say(took=time.monotonic() - begun, ended_by=report.ended_by, duration=report.duration)

anyio.run(main)
"""


def test_graces_are_kept_while_the_wall_clock_jumps(tmp_path: Path) -> None:
    # fault 46
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a jumping clock with")
    (tmp_path / "clock.c").write_text(JUMPING_CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "clock.c", "-ldl"], check=True)
    with Host(GRACES, env={"LD_PRELOAD": str(library)}) as host:
        assert host.heard() == {"jumps": True}
        deaf, polite = host.heard(), host.heard()
        assert host.ended() == (0, "")
    assert deaf["ended_by"] == "kill"
    assert 0.4 <= deaf["took"] < 20
    assert 0 <= deaf["duration"] < 60
    assert polite["ended_by"] == "close"
    assert polite["took"] < 20


SUSPENDED = """\
async def main():
    server = StdioServer("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"])
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.3, 0.3, 30))
    await process.receive()
    process.begin_close()
    say(pid=process.pid)
    os.kill(os.getpid(), signal.SIGSTOP)
    report = await process.close()
    say(ended_by=report.ended_by)

anyio.run(main)
"""


def test_a_host_suspended_during_the_graces_goes_on_where_it_was() -> None:
    # fault 46: all of it sleeps for longer than both graces
    with Host(SUSPENDED) as host:
        host.heard()
        assert os.waitpid(host.pid, os.WUNTRACED)[1] & 0xFF == 0x7F
        import select

        select.select([], [], [], 1)
        os.kill(host.pid, signal.SIGCONT)
        assert host.heard() == {"ended_by": "kill"}
        assert host.ended() == (0, "")
