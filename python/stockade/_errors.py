"""The errors: one root, a stable code each, and what to do about it."""

from __future__ import annotations

import errno as _errno
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._report import ExitReport

Stage = Literal["resolve", "compile", "probe", "launch", "handshake", "run", "close"]


class StockadeError(Exception):
    """Something failed. `str()` is one or two plain sentences: what happened and, where one is known, the remedy.

    Attributes:
        code: stable, for programs, such as `"command-not-found"`; docs/errors.md lists all.
        stage: where it failed.
        message: what happened, without the remedy.
        remedy: what to do, a plain sentence; empty where nothing can be said.
        operation: the call to the operating system that failed, where there was one.
        native_code: its error number (errno), where there was one.
    """

    code: str = "error"
    stage: Stage = "run"

    # What an instance keeps outside its __dict__ (OSError's fields live in C) and pickling must carry besides.
    _carried: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        stage: Stage | None = None,
        remedy: str = "",
        operation: str | None = None,
        native_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if stage is not None:
            self.stage = stage
        self.remedy = remedy
        self.operation = operation
        self.native_code = native_code

    def __str__(self) -> str:
        if self.remedy and self.remedy not in self.message:
            return f"{self.message} {self.remedy}"
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, code={self.code!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own way calls the class with `args`, which loses OSError's fields and needs every subclass
        # to be constructible from a message alone.
        state = dict(self.__dict__)
        for name in self._carried:
            state[name] = getattr(self, name)
        return _rebuild, (type(self), self.message), state

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        for name, value in (state or {}).items():
            setattr(self, name, value)


def _rebuild(cls: type[StockadeError], message: str) -> StockadeError:
    error = cls.__new__(cls, message)
    error.args = (message,)
    return error


class ConfigError(StockadeError, ValueError):
    """What to start, or how, was described wrongly. Nothing was started."""

    code = "config"
    stage: Stage = "resolve"


class QuotingError(StockadeError, ValueError):
    """An argument can't be passed on without loss. Nothing was started."""

    code = "quoting"
    stage: Stage = "resolve"


# What the system would have said, had it been asked.
_ERRNO = {
    "cwd-missing": _errno.ENOENT,
    "cwd-not-a-directory": _errno.ENOTDIR,
    "cwd-no-access": _errno.EACCES,
    "is-a-directory": _errno.EACCES,
    "not-executable": _errno.EACCES,
    "no-interpreter": _errno.ENOENT,
    "no-shebang": _errno.ENOEXEC,
    "not-a-program": _errno.ENOEXEC,
}


class _OSStockadeError(StockadeError, OSError):
    """An error that is an OSError too: `errno` and `filename` are set, `str()` stays ours."""

    _carried = ("errno", "filename")
    _default_errno: ClassVar[int | None] = None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        stage: Stage | None = None,
        remedy: str = "",
        operation: str | None = None,
        native_code: int | None = None,
        filename: str | None = None,
    ) -> None:
        super().__init__(message, code=code, stage=stage, remedy=remedy, operation=operation, native_code=native_code)
        self.errno: int | None = native_code if native_code is not None else _ERRNO.get(self.code, self._default_errno)
        self.filename = filename


class Candidate(NamedTuple):
    """A place where the command was looked for."""

    path: str
    reason: str
    """Why it wasn't taken, in a few plain words."""


class CommandNotFoundError(_OSStockadeError, FileNotFoundError):
    """There is no such command. Nothing was started.

    Attributes:
        tried: every place where it was looked for, in order, and why it wasn't taken.
    """

    code = "command-not-found"
    stage: Stage = "resolve"
    _default_errno = _errno.ENOENT

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        stage: Stage | None = None,
        remedy: str = "",
        operation: str | None = None,
        native_code: int | None = None,
        filename: str | None = None,
        tried: Iterable[Candidate] = (),
    ) -> None:
        super().__init__(
            message,
            code=code,
            stage=stage,
            remedy=remedy,
            operation=operation,
            native_code=native_code,
            filename=filename,
        )
        # Whatever the last candidate failed with, the command as a whole wasn't found.
        self.errno: int | None = _errno.ENOENT
        self.tried: tuple[Candidate, ...] = tuple(tried)


class LaunchError(_OSStockadeError):
    """The command was found but couldn't be started; `code`, `operation` and `errno` say where and why."""

    code = "launch"
    stage: Stage = "launch"


class TransportUsedError(StockadeError, RuntimeError):
    """A transport is for one use; the second entry launches nothing."""

    code = "transport-used"
    stage: Stage = "launch"


class StartupTimeout(_OSStockadeError, TimeoutError):
    """The server sent no frame within the start-up time; it was ended.

    Attributes:
        pid: the server's process.
        bytes_received: what had come from its stdout.
        stderr_tail: its last stderr lines, sanitised.
    """

    code = "startup-timeout"
    stage: Stage = "handshake"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        stage: Stage | None = None,
        remedy: str = "",
        operation: str | None = None,
        native_code: int | None = None,
        pid: int | None = None,
        bytes_received: int = 0,
        stderr_tail: str = "",
    ) -> None:
        super().__init__(message, code=code, stage=stage, remedy=remedy, operation=operation, native_code=native_code)
        self.pid = pid
        self.bytes_received = bytes_received
        self.stderr_tail = stderr_tail


class ServerExited(StockadeError):
    """The server has ended.

    Attributes:
        report: how it ended; None only where it isn't known (yet).
    """

    code = "server-exited"
    stage: Stage = "run"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        stage: Stage | None = None,
        remedy: str = "",
        operation: str | None = None,
        native_code: int | None = None,
        report: ExitReport | None = None,
    ) -> None:
        super().__init__(message, code=code, stage=stage, remedy=remedy, operation=operation, native_code=native_code)
        self.report = report


class ServerClosedInput(_OSStockadeError, BrokenPipeError):
    """The server doesn't read its stdin any more."""

    code = "server-closed-input"
    stage: Stage = "run"
    _default_errno = _errno.EPIPE


class FrameTooLong(StockadeError):
    """The server wrote a frame longer than `max_frame_bytes`; it is being ended."""

    code = "frame-too-long"
    stage: Stage = "run"


_KINDS: dict[str, type[StockadeError]] = {
    "config": ConfigError,
    "command-not-found": CommandNotFoundError,
    "quoting": QuotingError,
    "launch": LaunchError,
    "frame-too-long": FrameTooLong,
    "server-closed-input": ServerClosedInput,
    "internal": StockadeError,
}


def from_native(kind: str, message: str, fields: Mapping[str, Any]) -> StockadeError:
    """The Python error for one of the executor's; `fields` as the binding gives them."""
    cls = _KINDS.get(kind, StockadeError)
    details: dict[str, Any] = {name: fields.get(name) for name in ("code", "stage", "operation", "native_code")}
    details["remedy"] = fields.get("remedy") or ""
    if issubclass(cls, _OSStockadeError):
        details["filename"] = fields.get("filename")
    if issubclass(cls, CommandNotFoundError):
        # Plain tuples: the executor's own objects don't pickle.
        details["tried"] = [Candidate(found.path, found.reason) for found in fields.get("tried") or ()]
    return cls(message, **details)
