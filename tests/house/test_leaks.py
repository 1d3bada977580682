"""The check after every test sees what a test leaves behind."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from stockade import _native
from tests.support.leaks import Held, launch, leaked_since


@pytest.fixture
def before() -> Held:
    return Held.now()


def test_nothing_is_reported_where_nothing_is_left(before: Held) -> None:
    assert leaked_since(before) == []


def test_an_open_descriptor_is_found(before: Held) -> None:
    reader, writer = os.pipe()
    try:
        (one, two) = leaked_since(before, deadline=0)
        assert {one.split()[1], two.split()[1]} == {str(reader), str(writer)}
        assert "pipe:" in one
    finally:
        os.close(reader)
        os.close(writer)
    assert leaked_since(before) == []


def test_a_running_thread_is_found(before: Held) -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        (line,) = leaked_since(before, deadline=0)
        assert line.startswith(f"thread {thread.native_id} ")
    finally:
        end.set()
        thread.join()
    assert leaked_since(before) == []


def test_a_zombie_is_found(before: Held) -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has reaped it
    try:
        assert leaked_since(before, deadline=0) == [f"child process {child.pid} (true)"]
    finally:
        child.wait()
    assert leaked_since(before) == []


def test_a_child_of_another_thread_is_found(before: Held) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def launch() -> None:
        started.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    (child,) = started
    try:
        assert f"child process {child.pid} (cat)" in leaked_since(before, deadline=0)
    finally:
        child.communicate()
    assert leaked_since(before) == []


def test_a_live_session_is_found(before: Held) -> None:
    waker = _native.Waker()
    session = launch("cat", waker)
    try:
        left = leaked_since(before, deadline=0)
        assert "1 live session(s)" in left
        assert any(line.startswith("child process") for line in left)
    finally:
        session.close(2.0, 2.0, 2.0, False)
        waker.close()
        del session
    assert leaked_since(before) == []
