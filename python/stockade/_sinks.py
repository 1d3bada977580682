"""Where a server's stderr goes: what `stderr=` accepts, as the executor takes it.

The executor drains stderr whatever a sink does; callables run on a thread of its own, a batch of lines at a time.
"""

from __future__ import annotations

import enum
import inspect
import io
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Union, cast, runtime_checkable

from ._errors import ConfigError
from ._text import printable

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


def native_sink(stderr: Stderr, name: str) -> _native.Sink:
    """What the executor takes for `stderr`; `name` is the server's, for the default logger."""
    if stderr is None:
        return None
    if stderr is LOGGER:
        return _to_logger(logging.getLogger(f"stockade.server.{name}"), name)
    if isinstance(stderr, logging.Logger):
        return _to_logger(stderr, name)
    if isinstance(stderr, bool):
        raise _unusable(stderr)
    if isinstance(stderr, int):
        if stderr < 0:
            raise ConfigError(f"stderr: {stderr} is not a descriptor.")
        return stderr
    if isinstance(stderr, str):
        return 2 if stderr == "inherit" else stderr
    if isinstance(stderr, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", stderr))
    if callable(getattr(stderr, "write", None)):
        return _to_file(cast("Writable", stderr), name)
    if callable(stderr):
        if inspect.iscoroutinefunction(stderr):
            raise ConfigError("stderr: a coroutine function can't be a sink; give a plain function.")
        return _each(stderr, name)
    raise _unusable(stderr)


def _unusable(stderr: object) -> ConfigError:
    return ConfigError(
        f"stderr: a {type(stderr).__name__} can't be a sink.",
        remedy='Give a callable, a logger, a path, a file object, a descriptor, "inherit" or None.',
    )


def _each(take: Callable[[bytes], object], name: str) -> Callable[[list[bytes]], object]:
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


def _to_logger(logger: logging.Logger, name: str) -> Callable[[list[bytes]], object]:
    def take(line: bytes) -> None:
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s", printable(line))

    return _each(take, name)


def _to_file(file: Writable, name: str) -> _native.Sink:
    descriptor = _descriptor(file)
    if descriptor is not None:
        return descriptor
    text = _takes_text(file)
    flush = getattr(file, "flush", None)

    def write(data: bytes) -> None:
        file.write(data.decode("utf-8", "replace") if text else data)
        if callable(flush):
            flush()

    whole = _each(write, name)
    return lambda lines: whole([b"".join(line + b"\n" for line in lines)])


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
