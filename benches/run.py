"""`stockade run -- cat`: how much later it answers than an interpreter that does nothing, and what stays resident."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from .harness import Figure, children, environment, medians, resident

STOCKADE = str(Path(sys.executable).with_name("stockade"))
ENVIRONMENT = environment()
MS = 1000.0


def figures(quick: bool) -> list[Figure]:
    rounds = 3 if quick else 60
    contestants = {
        "run": lambda: answered([STOCKADE, "run", "--", "cat"]),
        "python -c pass": lambda: ended([sys.executable, "-c", "pass"]),
        "cat by itself": lambda: answered(["cat"]),
    }
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(2):  # the first start of each reads its files from the disk
        for measure in contestants.values():
            measure()
    for _ in range(rounds):
        for name, measure in contestants.items():
            samples[name].append(measure())
    times = medians(samples, MS)
    beside = [memory() for _ in range(rounds)]
    return [
        Figure(
            "stockade run -- cat, until it answers",
            times.pop("run"),
            "ms",
            times,
            goal=times["python -c pass"] + 20,
            rule="python -c pass + 20 ms",
        ),
        Figure(
            "stockade run -- cat, resident beside the server",
            median(front + supervisor for front, supervisor, _ in beside),
            "KiB",
            {
                "of that the front": median(front for front, _, _ in beside),
                "of that the supervisor": median(supervisor for _, supervisor, _ in beside),
                "(cat itself)": median(server for _, _, server in beside),
            },
            goal=1024,
            rule="1 MiB",
        ),
    ]


def start(command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRONMENT, bufsize=0)


def exchange(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"{}\n")
    line = process.stdout.readline()
    assert line == b"{}\n", line


def answered(command: list[str]) -> float:
    """Seconds from the start until it has echoed a line."""
    began = perf_counter()
    with start(command) as process:
        exchange(process)
        seconds = perf_counter() - began
        process.communicate()
    return seconds


def ended(command: list[str]) -> float:
    """Seconds from the start until it has ended."""
    began = perf_counter()
    subprocess.run(command, env=ENVIRONMENT, check=True)
    return perf_counter() - began


def wait_for_front(pid: int, limit: float = 10.0) -> None:
    """The server may answer before the process that started it has become the front, which names itself."""
    end = perf_counter() + limit
    while Path(f"/proc/{pid}/comm").read_text() != "stockade run\n":
        if perf_counter() > end:
            raise TimeoutError(f"process {pid} has not become the front within {limit:g} s")
        sleep(0.001)


def memory() -> tuple[int, int, int]:
    """KiB of the front, the supervisor and the server."""
    with start([STOCKADE, "run", "--", "cat"]) as process:
        exchange(process)
        wait_for_front(process.pid)
        (supervisor,) = children(process.pid)
        (server,) = children(supervisor)
        found = resident(process.pid), resident(supervisor), resident(server)
        process.communicate()
    return found
