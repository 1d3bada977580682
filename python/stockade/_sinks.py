"""Where a server's stderr goes: what `stderr=` accepts, as the executor takes it.

The executor drains stderr whatever a sink does; callables run on a thread of its own, a batch of lines at a time.
"""

from __future__ import annotations

import enum
import inspect
import io
import logging
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Union, cast, runtime_checkable

from ._errors import ConfigError
from ._text import printable

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

if TYPE_CHECKING:
    from . import _native

_log = logging.getLogger("stockade")


class _Default(enum.Enum):
    LOGGER = "LOGGER"

    def __repr__(self) -> str:
        return "LOGGER"


LOGGER: Final = _Default.LOGGER
"""The default sink: the logger `stockade.server.NAME`, at INFO."""


@runtime_checkable
class Writable(Protocol):
    """A file object, with a descriptor or without (`StringIO`, a notebook's output)."""

    def write(self, data: Any, /) -> object: ...


Stderr = Union[
    Literal[_Default.LOGGER],
    Callable[[bytes], object],
    logging.Logger,
    str,
    "os.PathLike[str]",
    Writable,
    int,
    None,
]
"""A callable (gets one line of bytes), a logger, a path (appended to), a file object, a descriptor, "inherit" (this
process's own stderr), or None (the ring only)."""

_Lines = Callable[[list[bytes]], object]


def native_sink(stderr: Stderr, name: str) -> tuple[_native.Sink, object]:
    """What the executor takes for `stderr`, and what is to be kept meanwhile.

    `name` is the server's, for the default logger. The executor's references are out of the garbage collector's sight:
    through a callable that refers to the server's owner they would keep an abandoned server for ever.
    """
    if isinstance(stderr, bool):
        raise _unusable(stderr)
    if stderr is None:
        return None, None
    if stderr is LOGGER:
        return _to_logger(logging.getLogger(f"stockade.server.{name}"), name), None
    if isinstance(stderr, logging.Logger):
        return _to_logger(stderr, name), None
    if isinstance(stderr, int):
        return _twice(_writable(stderr))
    if isinstance(stderr, str):
        return _twice(2 if stderr == "inherit" else _path(stderr))
    if isinstance(stderr, os.PathLike):
        return _twice(os.fspath(cast("os.PathLike[str]", stderr)))
    if callable(getattr(stderr, "write", None)):
        sink = _to_file(cast("Writable", stderr), name)
        return _twice(sink) if isinstance(sink, int) else (_held_weakly(sink), sink)
    if callable(stderr):
        if inspect.iscoroutinefunction(stderr):
            raise ConfigError("stderr: a coroutine function can't be a sink; give a plain function.")
        sink = _each(stderr, name)
        return _held_weakly(sink), sink
    raise _unusable(stderr)


def _twice(sink: int | str) -> tuple[_native.Sink, object]:
    return sink, sink


def report_lost(kept: object, lost: int, name: str) -> None:
    """Log, at the server's end, that the executor couldn't write lines; callables log their failures themselves."""
    if lost and isinstance(kept, (int, str)):
        where = f"descriptor {kept}" if isinstance(kept, int) else kept
        _log.warning("%d lines of the stderr of server %r could not be written to %s", lost, name, where)


def _held_weakly(sink: _Lines) -> _Lines:
    reference = weakref.ref(sink)

    def deliver(lines: list[bytes]) -> None:
        take = reference()
        if take is not None:
            take(lines)

    return deliver


def _unusable(stderr: object) -> ConfigError:
    return ConfigError(
        f"stderr: a {type(stderr).__name__} can't be a sink.",
        remedy='Give a callable, a logger, a path, a file object, a descriptor, "inherit" or None.',
    )


def _refused(why: str, remedy: str) -> ConfigError:
    message = f"The server's stderr can't go there: {why}."
    return ConfigError(message, code="sink-unusable", stage="launch", remedy=remedy)


def _writable(descriptor: int) -> int:
    if descriptor < 0:
        raise _refused(f"{descriptor} is not a descriptor", "Give None to keep it in memory alone.")
    if fcntl is not None:
        try:
            mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        except (OSError, OverflowError):
            return descriptor  # not open: the executor says so
        if mode == os.O_RDONLY:
            raise _refused(f"descriptor {descriptor} is open for reading only", "Open it for writing.")
    return descriptor


_INHERIT = "inherit"


def _path(path: str) -> str:
    """A path; not a misspelt "inherit", which would make a file of that name."""
    if os.sep not in path and _one_slip(path.lower()):
        raise _refused(
            f"{path!r} looks like a misspelt {_INHERIT!r}", f'Give "{_INHERIT}", or "./{path}" for a file of that name.'
        )
    return path


def _one_slip(word: str) -> bool:
    """Whether one letter is too many, missing, another, or has changed places with its neighbour."""
    shorter, longer = sorted((word, _INHERIT), key=len)
    same = next((at for at, letter in enumerate(shorter) if letter != longer[at]), len(shorter))
    if len(longer) > len(shorter):
        return shorter[same:] == longer[same + 1 :]
    swapped = longer[same + 1 : same + 2] + longer[same : same + 1] + longer[same + 2 :]
    return shorter[same + 1 :] == longer[same + 1 :] or shorter[same:] == swapped


def _each(take: Callable[[bytes], object], name: str) -> _Lines:
    """`take` for each line. Its first failure is logged; it gets the following lines all the same."""
    reported = False

    def sink(lines: list[bytes]) -> None:
        nonlocal reported
        for line in lines:
            try:
                take(line)
            except BaseException:  # noqa: BLE001 - on the executor's thread there is nobody above to handle it
                if not reported:
                    reported = True
                    _log.warning("the stderr sink of server %r failed; reported once", name, exc_info=True)

    return sink


def _to_logger(logger: logging.Logger, name: str) -> _Lines:
    def take(line: bytes) -> None:
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", printable(line))

    return _each(take, name)


def _to_file(file: Writable, name: str) -> int | _Lines:
    if getattr(file, "closed", None) is True:
        raise _refused("the file is closed", "Open it, and keep it open while the server runs.")
    if _only_reads(file):
        raise _refused("the file is open for reading only", "Open it for writing.")
    descriptor = _descriptor(file)
    if descriptor is not None:
        return _writable(descriptor)
    text = _takes_text(file)
    flush = getattr(file, "flush", None)

    def write(data: bytes) -> None:
        file.write(data.decode("utf-8", "replace") if text else data)
        if callable(flush):
            flush()

    whole = _each(write, name)
    return lambda lines: whole([b"".join(line + b"\n" for line in lines)])


def _only_reads(file: object) -> bool:
    # Python's own alone: a class of the user's may say so by default.
    return isinstance(file, (io.TextIOWrapper, io.BufferedReader, io.FileIO)) and not file.writable()


def _descriptor(file: Writable) -> int | None:
    try:
        descriptor = cast("Any", file).fileno()
        if isinstance(descriptor, bool) or not isinstance(descriptor, int) or descriptor < 0:
            return None
        # What the file still buffers comes before what the server writes.
        cast("Any", file).flush()
    except (AttributeError, OSError, ValueError):  # io.UnsupportedOperation is both of the latter
        return None
    return descriptor


def _takes_text(file: Writable) -> bool:
    if isinstance(file, io.TextIOBase):
        return True
    if isinstance(file, (io.RawIOBase, io.BufferedIOBase)):
        return False
    mode = getattr(file, "mode", None)
    return not (isinstance(mode, str) and "b" in mode)
