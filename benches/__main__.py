"""`python -m benches [--quick] [GROUP …]`: measure, print the table, write target/bench.json."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from . import frames, idle, launch, leak, roundtrip, run, stderr, table
from .harness import ROOT, Figure, compile_python

if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS: dict[str, Callable[[bool], list[Figure]]] = {
    "launch": launch.figures,
    "roundtrip": roundtrip.figures,
    "frames": frames.figures,
    "stderr": stderr.figures,
    "idle": idle.figures,
    "run": run.figures,
    "leak": leak.figures,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches", description="Measure, and compare with others.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"only these: {', '.join(GROUPS)}")
    parser.add_argument("--quick", action="store_true", help="few samples: to see that it works, not what it measures")
    options = parser.parse_args()
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no such group: {', '.join(unknown)}")
    if sys.platform != "linux":
        sys.exit("These benches read /proc and need Linux. The Rust ones don't: cargo bench --package stockade")
    table.warn_if_unfit(options.quick)
    compile_python()
    figures: list[Figure] = []
    print(table.header())
    for name in options.groups or GROUPS:
        for figure in GROUPS[name](options.quick):
            figures.append(figure)
            print(f"\n{table.rows(figure)}", flush=True)
    # A part of the figures must not replace all of them.
    path = ROOT / "target" / ("bench-part.json" if options.groups else "bench.json")
    table.save(figures, path, options.quick)
    print(f"\n{table.summary(figures)}\nWritten to {path.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
