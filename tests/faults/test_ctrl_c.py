"""Ctrl-C on the host's terminal: the host ends its servers in order; the servers never see the signal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.hosts import PRELUDE, python_path

CTRL_C = b"\x03"

# Says on its stderr each signal that it gets; ends by itself when its input does, unless told not to.
WITNESS = """\
import os, signal, sys
def seen(number, frame):
    os.write(2, signal.Signals(number).name.encode() + b"\\n")
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, seen)
print("ready", flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
if len(sys.argv) > 1:
    while True:
        signal.pause()
os.write(2, b"ended in order\\n")
"""

RUNNING = """\
WITNESS, PHASE, BACKEND = sys.argv[1:4]

async def main():
    server = StdioServer(sys.executable, ["-I", "-S", "-c", WITNESS, *(["deaf"] if PHASE == "close" else [])])
    if PHASE == "launch":
        say(up=True)
        kept = []
        while True:
            async with await ServerProcess.launch(server, stderr=None) as process:
                await process.receive()
    process = await ServerProcess.launch(server, stderr=None, shutdown=Shutdown(0.5, 0.2, 30))
    try:
        await process.receive()
        say(up=True)
        if PHASE == "run":
            await process.receive()
    finally:
        report = await process.close()
        say(ended_by=report.ended_by, tail=report.stderr_tail)

try:
    anyio.run(main, backend=BACKEND)
except BaseException as error:
    say(error=type(error).__name__)
    raise SystemExit(0)
"""


class Terminal:
    """A host in the foreground of a terminal of its own."""

    def __init__(self, source: str, *args: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            # setsid --ctty makes it the terminal's foreground group, as a shell would.
            ["setsid", "--ctty", sys.executable, "-c", PRELUDE + source, *args],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
        os.close(theirs)

    def press(self, key: bytes) -> None:
        os.write(self._ours, key)

    def line(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        assert ready, "the host says nothing"
        return self.process.stdout.readline().decode()

    def rest(self) -> str:
        out, _ = self.process.communicate(timeout=60)
        return out.decode()

    def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._ours)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_ctrl_c_while_a_server_runs_ends_it_in_order_and_unsignalled(terminals: list[Terminal], backend: str) -> None:
    # fault 49
    terminal = Terminal(RUNNING, WITNESS, "run", backend)
    terminals.append(terminal)
    assert '"up"' in terminal.line()
    terminal.press(CTRL_C)
    rest = terminal.rest()
    assert '"ended_by": "close"' in rest
    assert '"tail": "ended in order"' in rest
    assert "SIGINT" not in rest
    assert terminal.process.returncode == 0


@pytest.mark.parametrize("presses", [1, 3])
def test_ctrl_c_while_a_server_is_launched_leaves_none(terminals: list[Terminal], presses: int) -> None:
    # fault 49
    terminal = Terminal(RUNNING, WITNESS, "launch", "asyncio")
    terminals.append(terminal)
    assert '"up"' in terminal.line()
    for _ in range(presses):
        terminal.press(CTRL_C)
    terminal.rest()
    wait_until_no_witness_lives()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_second_ctrl_c_in_the_shutdown_hangs_nothing(terminals: list[Terminal], backend: str) -> None:
    # fault 49
    terminal = Terminal(RUNNING, WITNESS, "close", backend)
    terminals.append(terminal)
    assert '"up"' in terminal.line()
    for _ in range(3):
        terminal.press(CTRL_C)
    rest = terminal.rest()
    assert "SIGINT" not in rest
    wait_until_no_witness_lives()


def test_a_closed_terminal_ends_the_host_and_its_servers(terminals: list[Terminal]) -> None:
    # fault 49, and the terminal window that was closed
    terminal = Terminal(RUNNING, WITNESS, "run", "asyncio")
    terminals.append(terminal)
    assert '"up"' in terminal.line()
    os.close(terminal._ours)
    terminal._ours = os.open("/dev/null", os.O_RDONLY)
    terminal.rest()
    wait_until_no_witness_lives()


def wait_until_no_witness_lives() -> None:
    for _ in range(3000):
        if not witnesses():
            return
        # The supervisor kills what is left when it hears of the host's end: no event to anybody else.
        select.select([], [], [], 0.01)
    raise AssertionError(f"servers outlive their host: {witnesses()}")


def witnesses() -> list[str]:
    """Servers of this test that still live; its own text is in no other process's arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if WITNESS.encode() in arguments and b"-S" in arguments and state != "Z":
            found.append(folder.name)
    return found
