from __future__ import annotations

import copy
import errno
import pickle
import traceback
from typing import Any

import pytest

import stockade
from stockade import (
    Candidate,
    CommandNotFoundError,
    ConfigError,
    ExitReport,
    FrameTooLong,
    LaunchError,
    QuotingError,
    ServerClosedInput,
    ServerExited,
    StartupTimeout,
    StdioServer,
    StockadeError,
    TransportUsedError,
)

REPORT = ExitReport(returncode=3, ended_by="exit", cause="exited with 3", stderr_tail="boom\n")

ERRORS: list[StockadeError] = [
    StockadeError("It failed.", code="forked", stage="close", remedy="Try again.", operation="read", native_code=5),
    ConfigError("The command is blank."),
    QuotingError("The argument can't be passed on."),
    CommandNotFoundError("There is no npx.", remedy="Install it.", tried=[Candidate("/bin/npx", "not there")]),
    LaunchError(
        "It can't be started.", code="not-executable", operation="execve", native_code=errno.EACCES, filename="/x"
    ),
    TransportUsedError("It has been used."),
    StartupTimeout("Nothing came.", pid=7, bytes_received=12, stderr_tail="waiting\n"),
    ServerExited("It has ended.", report=REPORT),
    ServerClosedInput("It doesn't read.", native_code=errno.EPIPE, operation="write"),
    FrameTooLong("The line is too long."),
]


def state(error: StockadeError) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": type(error),
        "str": str(error),
        "args": error.args,
        "code": error.code,
        "stage": error.stage,
    }
    fields.update(vars(error))
    if isinstance(error, OSError):
        fields.update(errno=error.errno, filename=error.filename)
    return fields


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_everything(error: StockadeError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))

    assert state(again) == state(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_copying_keeps_everything(error: StockadeError) -> None:
    assert state(copy.copy(error)) == state(error)
    assert state(copy.deepcopy(error)) == state(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_its_text_is_the_sentence_and_the_remedy(error: StockadeError) -> None:
    assert str(error).startswith(error.message)
    assert str(error).endswith(error.remedy)
    assert "Errno" not in str(error)
    assert str(error) in "".join(traceback.format_exception_only(type(error), error))


def test_a_remedy_is_said_once() -> None:
    assert str(StockadeError("It failed. Try again.", remedy="Try again.")) == "It failed. Try again."


@pytest.mark.parametrize(
    ("cls", "base"),
    [
        (ConfigError, ValueError),
        (QuotingError, ValueError),
        (CommandNotFoundError, FileNotFoundError),
        (LaunchError, OSError),
        (TransportUsedError, RuntimeError),
        (StartupTimeout, TimeoutError),
        (ServerExited, StockadeError),
        (ServerClosedInput, BrokenPipeError),
        (FrameTooLong, StockadeError),
    ],
)
def test_it_is_the_built_in_class_that_callers_expect(cls: type[StockadeError], base: type[Exception]) -> None:
    assert issubclass(cls, StockadeError)
    assert issubclass(cls, base)
    with pytest.raises(base):
        raise cls("It failed.")


def test_a_class_has_a_code_and_a_stage_of_its_own() -> None:
    codes = {type(error).code for error in ERRORS}

    assert len(codes) == len(ERRORS)
    assert all(code == code.lower() and " " not in code for code in codes)


def test_the_numbers_of_the_operating_system() -> None:
    by_type: dict[type[Any], Any] = {type(error): error for error in ERRORS}

    assert by_type[CommandNotFoundError].errno == errno.ENOENT
    assert by_type[LaunchError].errno == errno.EACCES
    assert by_type[LaunchError].native_code == errno.EACCES
    assert by_type[LaunchError].filename == "/x"
    assert by_type[ServerClosedInput].errno == errno.EPIPE
    assert ServerClosedInput("It doesn't read.").errno == errno.EPIPE


def test_a_missing_command_lists_where_it_was_looked_for(tmp_path: object) -> None:
    server = StdioServer("no-such-command-anywhere", env={"PATH": f"{tmp_path}/a:{tmp_path}/b"})

    with pytest.raises(FileNotFoundError) as raised:
        stockade.resolve(server)

    error = raised.value
    assert isinstance(error, CommandNotFoundError)
    assert (error.code, error.stage, error.errno) == ("command-not-found", "resolve", errno.ENOENT)
    assert "no-such-command-anywhere" in str(error)
    assert [place.path for place in error.tried] == [
        f"{tmp_path}/a/no-such-command-anywhere",
        f"{tmp_path}/b/no-such-command-anywhere",
    ]
    assert all(place.reason for place in error.tried)
    assert state(pickle.loads(pickle.dumps(error))) == state(error)


def test_an_error_of_the_executor_that_python_does_not_know_is_still_ours() -> None:
    from stockade._errors import from_native

    error = from_native("invented", "It failed.", {"code": "new", "stage": "run", "remedy": "", "native_code": 5})

    assert type(error) is StockadeError
    assert (error.code, error.native_code) == ("new", 5)


@pytest.mark.parametrize(
    ("code", "number"),
    [("no-interpreter", errno.ENOENT), ("is-a-directory", errno.EACCES), ("no-shebang", errno.ENOEXEC)],
)
def test_a_launch_error_found_before_the_start_has_the_number_that_exec_would_give(code: str, number: int) -> None:
    error = LaunchError("It can't be started.", code=code)
    assert (error.errno, error.native_code) == (number, None)
