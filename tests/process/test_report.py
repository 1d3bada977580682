"""A report is a plain value, and one readable line."""

from __future__ import annotations

import pickle
import signal
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from stockade import ExitReport, ServerProcess
from tests.servers import shell

EXITED = ExitReport(returncode=3, ended_by="exit", cause="exited with 3", duration=0.0123)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "exited with 3 after 12 ms"),
        ({"duration": 0.99949}, "exited with 3 after 999 ms"),
        ({"duration": 0.9995}, "exited with 3 after 1.0 s"),
        ({"duration": 61.26}, "exited with 3 after 61.3 s"),
        ({"ended_by": "close"}, "exited with 3 after 12 ms"),
        (
            {"ended_by": "terminate"},
            "exited with 3 after 12 ms; it ignored the end of its input and was terminated",
        ),
        ({"ended_by": "kill"}, "exited with 3 after 12 ms; it was killed"),
        ({"ended_by": "limit"}, "exited with 3 after 12 ms; it passed a limit"),
        ({"descendants_killed": 2}, "exited with 3 after 12 ms; 2 of its processes killed"),
        ({"unkillable": 1}, "exited with 3 after 12 ms; 1 of its processes could not be killed"),
        ({"stderr_tail": "one\n  two  \n"}, "exited with 3 after 12 ms; last stderr line: two"),
        ({"stderr_tail": "one\n \n"}, "exited with 3 after 12 ms"),
        ({"stderr_tail": "x" * 9000}, f"exited with 3 after 12 ms; last stderr line: {'x' * 200}…"),
        (
            {"ended_by": "kill", "descendants_killed": 1, "unkillable": 1, "stderr_tail": "bye"},
            "exited with 3 after 12 ms; it was killed; 1 of its processes killed; "
            "1 of its processes could not be killed; last stderr line: bye",
        ),
    ],
)
def test_it_is_one_readable_line(changes: dict[str, Any], line: str) -> None:
    assert str(replace(EXITED, **changes)) == line


@pytest.mark.parametrize(
    ("returncode", "expected"),
    [(None, None), (0, None), (15, None), (-15, signal.SIGTERM), (-9, signal.SIGKILL), (-40, None), (-1000, None)],
)
def test_the_signal_is_that_of_a_negative_return_code(returncode: int | None, expected: object) -> None:
    assert replace(EXITED, returncode=returncode).signal is expected


def test_it_is_a_value() -> None:
    same = replace(EXITED)
    assert same == EXITED
    assert hash(same) == hash(EXITED)
    assert replace(EXITED, returncode=4) != EXITED
    assert pickle.loads(pickle.dumps(EXITED)) == EXITED
    with pytest.raises(FrozenInstanceError):
        same.returncode = 4  # type: ignore[misc]


def test_what_the_server_wrote_is_not_in_its_repr() -> None:
    assert "secret" not in repr(replace(EXITED, stderr_tail="secret"))


async def test_all_that_the_executor_knows_is_in_it() -> None:
    async with await ServerProcess.launch(shell("echo one >&2; printf '\\033[31mtwo\\n' >&2; exit 5")) as process:
        report = await process.wait()
        native = process._session.report()
    assert native is not None
    for name in ExitReport.__dataclass_fields__:
        assert getattr(report, name) == getattr(native, name), name
    assert (report.returncode, report.ended_by, report.descendants_killed, report.unkillable) == (5, "exit", 0, 0)
    assert report.stderr_tail.splitlines()[0] == "one"
    assert "\x1b" not in report.stderr_tail
    assert 0 < report.duration < 60
    assert report.user_time + report.system_time < 60
