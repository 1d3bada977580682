"""The `stockade` command: one module per command, each loaded when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .output import complain
from .parser import UsageError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .parser import Options

FAILED = 1
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit status."""
    try:
        status = _main(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone (`stockade tools … | head -1`); the interpreter's own flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _main(arguments: list[str]) -> int:
    try:
        options = parse(arguments)
    except UsageError as error:
        complain(str(error))
        return error.status
    try:
        return _execute(options)
    except UsageError as error:
        complain(str(error))
        return error.status
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        if os.environ.get("STOCKADE_TRACEBACK"):
            raise
        complain(f"internal error ({_place(error)}). Set STOCKADE_TRACEBACK=1 to see where, and please report it.")
        return options.failure


def _execute(options: Options) -> int:
    command: Any = import_module(f"{__name__}.{options.command}")
    return command.execute(options)


def _place(error: BaseException) -> str:
    """The type and line of an error, without its text: that may hold anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__}, {os.path.split(trace.tb_frame.f_code.co_filename)[1]}:{trace.tb_lineno}"
