"""The `stockade` command: one module per command, each loaded when it is asked for."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .output import Unwritable, complain, flush
from .parser import UsageError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .parser import Options

FAILED = 1
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit status."""
    _replace_closed()
    try:
        status = _main(sys.argv[1:] if arguments is None else list(arguments))
        flush()
    except BrokenPipeError:
        # Whoever read our output has gone (`stockade tools … | head -1`).
        _give_up_stdout()
        return FAILED
    except Unwritable as error:
        _give_up_stdout()
        complain(f"The result can't be written: {error}.")
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
    except (BrokenPipeError, Unwritable, KeyboardInterrupt):
        raise
    except Exception as error:
        if os.environ.get("STOCKADE_TRACEBACK"):
            raise
        complain(f"internal error ({_place(error)}). Set STOCKADE_TRACEBACK=1 to see where, and please report it.")
        return options.failure


def _execute(options: Options) -> int:
    command: Any = import_module(f"{__name__}.{options.command}")
    return command.execute(options)


class _Nowhere(io.TextIOBase):
    """Takes the place of an output that the caller has closed (`>&-`)."""

    def write(self, text: str, /) -> int:
        return len(text)


def _replace_closed() -> None:
    # No /dev/null: it would take the number of the closed descriptor, which `run` hands on as it is.
    given: Any = sys
    for name in ("stdout", "stderr"):
        if getattr(given, name) is None:
            setattr(given, name, _Nowhere())


def _give_up_stdout() -> None:
    """The interpreter's own flush, when it ends, must not fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = _Nowhere()


def _place(error: BaseException) -> str:
    """The type and line of an error, without its text: that may hold anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__}, {os.path.split(trace.tb_frame.f_code.co_filename)[1]}:{trace.tb_lineno}"
