"""A program that inherits whatever outlives its host: so it knows for certain when the last of a tree is dead.

Kills hosts with SIGKILL at random points; says for each how many processes were left behind and how long they lived.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import select
import subprocess
import sys
import time
from typing import Any

PR_SET_CHILD_SUBREAPER = 36


def become_heir() -> None:
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl")


def wait_for_all() -> int:
    """Wait until no child is left, inherited ones included; how many there were."""
    count = 0
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return count
        count += 1


def kill_once(host: list[str], wait: float) -> dict[str, Any]:
    process = subprocess.Popen(host, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    # The random point: something is under way, whatever it is.
    select.select([], [], [], wait)
    process.kill()
    begun = time.monotonic()
    left = wait_for_all() - 1
    process.returncode = -9  # reaped above
    process.stdin.close()
    process.stdout.close()
    return {"left": left, "seconds": time.monotonic() - begun}


def main() -> None:
    seed, times, longest = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    chance = random.Random(seed)
    become_heir()
    for _ in range(times):
        print(json.dumps(kill_once(sys.argv[4:], chance.uniform(0, longest))), flush=True)


if __name__ == "__main__":
    main()
