"""A tree that grows as fast as it is killed is ended all the same."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from stockade import ServerProcess, Shutdown, StdioServer

PIDS = Path("/sys/fs/cgroup/pids")
LIMIT = 80

# Joins the group given, then forks without end, each child in a session of its own and deaf to SIGTERM.
BOMB = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    char pid[20];
    int group = open(arguments[1], O_WRONLY);
    if (group < 0 || write(group, pid, sprintf(pid, "%d", getpid())) < 0) return 1;
    close(group);
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (int told = 0;;) {
        int child = fork();
        if (child == 0) setsid();
        if (child < 0 && !told) { write(1, "full\n", 5); told = 1; }
    }
}
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of few processes, so that a bomb that gets away can be put out here."""
    path = PIDS / f"stockade-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no limit of processes can be set here, so a fork bomb isn't safe: {error}")
    (path / "pids.max").write_text(str(LIMIT))
    try:
        yield path
    finally:
        # What can't fork can be killed one by one.
        (path / "pids.max").write_text("0")
        while left := (path / "cgroup.procs").read_text().split():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
        path.rmdir()


@pytest.fixture
def bomb(tmp_path: Path) -> Path:
    source = tmp_path / "bomb.c"
    source.write_text(BOMB)
    subprocess.run(["cc", "-O2", "-o", tmp_path / "bomb", source], check=True)
    return tmp_path / "bomb"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_fork_bomb_of_sessions_of_their_own_is_put_out(bomb: Path, group: Path) -> None:
    # fault 7, with the limit set from outside
    process = await ServerProcess.launch(StdioServer(str(bomb), [str(group / "cgroup.procs")]), stderr=None)
    with anyio.fail_after(60):
        assert await process.receive() == b"full"
        report = await process.close(Shutdown(close_grace=0, terminate_grace=0, kill_wait=50))
    assert report.unkillable == 0
    assert report.descendants_killed > 0
    assert (group / "cgroup.procs").read_text() == ""
