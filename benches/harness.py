"""What all benches share: figures, contestants in turn, processes of their own, memory."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

ROOT = Path(__file__).parent.parent
T = TypeVar("T")
Better = Literal["less", "more"]


@dataclass(frozen=True)
class Figure:
    """One measured value, those who did the same work beside it, and the goal.

    `goal` is the limit in the figure's own unit, None where there is none; `rule` says in words where it comes from.
    """

    name: str
    value: float
    unit: str
    contestants: Mapping[str, float] = field(default_factory=dict[str, float])
    goal: float | None = None
    rule: str = ""
    better: Better = "less"
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "less" else self.value >= self.goal

    @property
    def verdict(self) -> str:
        """ "met", or by how much the goal was missed."""
        if self.goal is None:
            return ""
        if self.met:
            return "met"
        short = abs(self.value - self.goal)
        share = f" ({100 * short / self.goal:.0f} %)" if self.goal else ""
        return f"MISSED by {number(short)} {self.unit}{share}"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "contestants": dict(self.contestants),
            "goal": self.goal,
            "rule": self.rule,
            "better": self.better,
            "met": self.met,
            "note": self.note,
        }


def number(value: float) -> str:
    """Three figures that count, without an exponent."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def medians(samples: Mapping[str, list[float]], scale: float = 1.0) -> dict[str, float]:
    """The median of each contestant, times `scale`."""
    return {name: median(values) * scale for name, values in samples.items()}


async def take_turns(contestants: Mapping[str, Callable[[], Awaitable[T]]], rounds: int) -> dict[str, list[T]]:
    """Run all contestants once a round, each round in another order, so that nobody always comes after the same one."""
    order = list(contestants)
    results: dict[str, list[T]] = {name: [] for name in order}
    chance = Random(1)
    for _ in range(rounds):
        chance.shuffle(order)
        for name in order:
            results[name].append(await contestants[name]())
    return results


# Processes of their own


def environment() -> dict[str, str]:
    """This environment without what would make Python start slower than it does for a user."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def compile_python() -> None:
    """Put the .pyc files of the package in place: without them an import also compiles."""
    compileall.compile_dir(ROOT / "python" / "stockade", quiet=2)
    compileall.compile_dir(ROOT / "benches", quiet=2)


def alone(module: str, *arguments: object) -> Any:
    """What `python -m module arguments…` prints as JSON: for figures that need a fresh process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


class Host:
    """A process that measures on request: `python -m module arguments…`, which calls `serve`."""

    def __init__(self, module: str, *arguments: object) -> None:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the measuring process ended with status {self._process.wait()}")
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()


def serve(answer: Callable[[Any], object]) -> None:
    """The other side of `Host`: answers each request until there are no more."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


# Memory, as /proc has it


def _kib(path: str, name: str) -> int:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    raise LookupError(f"{path} has no {name}")


def resident(pid: int | str = "self") -> int:
    """Resident memory in KiB, counted exactly."""
    return _kib(f"/proc/{pid}/smaps_rollup", "Rss")


def proportional(pid: int | str) -> int:
    """Memory in KiB, with pages that several processes share divided among them."""
    return _kib(f"/proc/{pid}/smaps_rollup", "Pss")


def peak() -> int:
    """The most resident memory in KiB since the start, or since `forget_peak`."""
    return _kib("/proc/self/status", "VmHWM")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def children(pid: int | str = "self") -> list[int]:
    """The processes whose parent is `pid`."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def threads() -> list[str]:
    """The names of this process's threads."""
    return sorted((task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
