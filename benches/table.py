"""The table on stdout and target/bench.json."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from stockade import _native

from .harness import Figure, number

if TYPE_CHECKING:
    from pathlib import Path

NAME, VALUE, GOAL = 46, 14, 16


def header() -> str:
    return f"{'figure':<{NAME}}{'stockade':>{VALUE}}{'goal':>{GOAL}}   verdict"


def rows(figure: Figure) -> str:
    """The figure's line, then one for each contestant."""
    value = f"{number(figure.value)} {figure.unit}"
    goal = ""
    if figure.goal is not None:
        goal = f"{'≤' if figure.better == 'less' else '≥'} {number(figure.goal)} {figure.unit}"
    lines = [f"{figure.name:<{NAME}}{value:>{VALUE}}{goal:>{GOAL}}   {figure.verdict}".rstrip()]
    for name, other in figure.contestants.items():
        lines.append(f"{'    ' + name:<{NAME}}{number(other) + ' ' + figure.unit:>{VALUE}}")
    lines += [f"    {text}" for text in (figure.rule and f"goal: {figure.rule}", figure.note) if text]
    return "\n".join(lines)


def summary(figures: list[Figure]) -> str:
    judged = [figure for figure in figures if figure.met is not None]
    missed = [figure for figure in judged if not figure.met]
    lines = [f"{len(judged) - len(missed)} of {len(judged)} goals met."]
    lines += [f"  {figure.name}: {figure.verdict}" for figure in missed]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "mcp": version("mcp"),
        "load": os.getloadavg()[0],
        "build": _native.build_info(),
    }


def save(figures: list[Figure], path: Path, quick: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "quick": quick, "figures": [figure.as_json() for figure in figures]}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def warn_if_unfit(quick: bool) -> None:
    """Say what makes the figures worth less."""
    if quick:
        print("--quick: far too few samples to believe in.", file=sys.stderr)
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if load > cpus / 2:
        print(f"The load is {load:.1f} on {cpus} CPUs: others are running, the figures will suffer.", file=sys.stderr)
    if _native.build_info().get("profile") != "release":
        print("The extension is not a release build: run `make build`.", file=sys.stderr)
