"""Runs a file of Python, top-level `await` allowed, as a reader would paste it into `python -m asyncio`."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from pathlib import Path

path = Path(sys.argv[1])
code = compile(path.read_text(encoding="utf-8"), str(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
namespace: dict[str, object] = {"__name__": "__main__"}
# eval, because exec would drop the coroutine.
result = eval(code, namespace)
if inspect.iscoroutine(result):
    asyncio.run(result)
