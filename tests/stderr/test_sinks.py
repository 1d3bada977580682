"""stderr is drained whatever its sink does, and reaches everything that may be given as one."""

from __future__ import annotations

import gc
import io
import logging
import subprocess
import sys
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from stockade import ConfigError, ServerProcess, Shutdown
from tests.servers import program, script, shell
from tests.servers.lifeline import Lifeline

if TYPE_CHECKING:
    from collections.abc import Iterator

TWO_LINES = shell("echo one >&2; printf 'two' >&2")
QUICK = Shutdown(0.2, 0.2, 5)
NEWLINE = b"\n"


async def ended(stderr: Any, server: Any = TWO_LINES) -> ServerProcess:
    """A server that has run, with everything it wrote delivered."""
    process = await ServerProcess.launch(server, stderr=stderr)
    with anyio.fail_after(60):
        await process.wait()
    return process


async def test_a_callable_gets_each_line_as_bytes() -> None:
    lines: list[bytes] = []
    await ended(lines.append)
    assert lines == [b"one", b"two"]


async def test_without_a_choice_lines_go_to_a_logger_of_the_servers_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "stockade.server"):
        process = await ServerProcess.launch(TWO_LINES)
        await process.wait()
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        ("stockade.server.shell", logging.INFO, "one"),
        ("stockade.server.shell", logging.INFO, "two"),
    ]


async def test_a_server_without_a_name_logs_under_that_of_its_command(caplog: pytest.LogCaptureFixture) -> None:
    from stockade import StdioServer

    with caplog.at_level(logging.INFO, "stockade.server"):
        process = await ServerProcess.launch(StdioServer("/bin/sh", ["-c", "echo hello >&2"]))
        await process.wait()
    assert [record.name for record in caplog.records] == ["stockade.server.sh"]


async def test_a_logger_gets_no_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mine"):
        source = r"import os; os.write(2, b'\x1b[31mred\x1b[0m \xe2\x80\xaeback \x07bell \xff\ttab\n')"
        await ended(logging.getLogger("mine"), script(source))
    assert [record.getMessage() for record in caplog.records] == ["red back bell \ufffd\ttab"]


async def test_a_log_hides_nothing_that_the_report_shows(caplog: pytest.LogCaptureFixture) -> None:
    lines = [
        b"ok \x1b]deleting /home",
        b"\x1b(B\xe2\x80\xaeset",
        b"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
        b"\x9b31mx\xff",
    ]
    with caplog.at_level(logging.INFO, "stockade.server"):
        process = await ServerProcess.launch(script(f"import os; os.write(2, {NEWLINE.join(lines)!r})"))
        report = await process.wait()
    logged = [record.getMessage() for record in caplog.records]
    assert logged == report.stderr_tail.split("\n") == process.stderr.text().split("\n")
    assert logged[0] == "ok deleting /home"


@pytest.mark.parametrize("kind", [str, lambda path: path])
async def test_a_path_is_appended_to(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "log.txt"
    path.write_text("before\n")
    await ended(kind(path))
    assert path.read_text() == "before\none\ntwo\n"


async def test_a_file_with_a_descriptor_gets_the_lines_after_what_it_holds_itself(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with path.open("w") as file:
        file.write("buffered\n")
        await ended(file)
    assert path.read_text() == "buffered\none\ntwo\n"


async def test_a_descriptor_gets_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with path.open("wb") as file:
        await ended(file.fileno())
    assert path.read_bytes() == b"one\ntwo\n"


async def test_a_text_file_without_a_descriptor_gets_text() -> None:
    file = io.StringIO()
    await ended(file, script(r"import os; os.write(2, b'\xffgr\xc3\xbc\xc3\x9fe\n')"))
    assert file.getvalue() == "\ufffdgrüße\n"


async def test_a_binary_file_without_a_descriptor_gets_bytes() -> None:
    file = io.BytesIO()
    await ended(file)
    assert file.getvalue() == b"one\ntwo\n"


async def test_a_notebooks_output_gets_text_and_is_flushed() -> None:
    class Output:
        """As ipykernel's: neither a TextIOBase nor with a descriptor."""

        written = ""
        flushed = ""

        def write(self, text: str) -> int:
            assert isinstance(text, str)
            self.written += text
            return len(text)

        def flush(self) -> None:
            self.flushed = self.written

        def fileno(self) -> int:
            raise io.UnsupportedOperation("fileno")

    output = Output()
    await ended(output)
    assert output.flushed == "one\ntwo\n"


async def test_none_keeps_the_lines_in_the_ring_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        process = await ended(None)
    assert not [record for record in caplog.records if record.name.startswith("stockade")]
    ring = process.stderr
    assert ring.tail() == [b"one", b"two"]
    assert ring.tail(1) == [b"two"]
    assert ring.text().splitlines() == ["one", "two"]
    assert (ring.lines_seen, ring.bytes_seen, ring.dropped) == (2, 7, 0)


def test_inherit_is_the_stderr_of_this_process() -> None:
    host = (
        "import anyio\n"
        "from stockade import ServerProcess, StdioServer\n"
        "async def main():\n"
        "    process = await ServerProcess.launch(StdioServer('sh', ['-c', 'echo inherited >&2']), stderr='inherit')\n"
        "    await process.wait()\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", host], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "inherited\n")


async def test_a_sink_that_raises_is_reported_once_and_gets_the_following_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[bytes] = []

    def sink(line: bytes) -> None:
        seen.append(line)
        raise SystemExit("the sink fails")

    with caplog.at_level(logging.WARNING, "stockade"):
        process = await ended(sink, shell("for n in 1 2 3 4 5; do echo $n >&2; done; exit 3"))
    assert seen == [b"1", b"2", b"3", b"4", b"5"]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("stockade", logging.WARNING)
    assert "the sink fails" in caplog.text
    assert process.stderr.tail() == seen
    assert process.returncode == 3


async def test_a_file_closed_meanwhile_is_a_sink_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    file = io.StringIO()
    with caplog.at_level(logging.WARNING, "stockade"):
        process = await ServerProcess.launch(shell("read go; echo one >&2; echo two >&2"), stderr=file)
        file.close()
        with anyio.fail_after(60):
            await process.send(b"go")
            await process.wait()
    assert len(caplog.records) == 1
    assert process.stderr.tail() == [b"one", b"two"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("kind", ["path", "descriptor", "file"])
async def test_lines_that_could_not_be_written_are_logged_once(caplog: pytest.LogCaptureFixture, kind: str) -> None:
    with Path("/dev/full").open("w") as full, caplog.at_level(logging.WARNING):
        process = await ended({"path": "/dev/full", "descriptor": full.fileno(), "file": full}[kind])
        await process.wait()
    ((name, level, message),) = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    assert (name, level) == ("stockade", logging.WARNING)
    assert message.startswith("2 lines of the stderr of server 'shell' could not be written to ")
    assert process.stderr.tail() == [b"one", b"two"]


async def test_a_sink_that_hangs_holds_up_neither_the_server_nor_the_tail() -> None:
    release = threading.Event()
    entered = threading.Event()

    def sink(_line: bytes) -> None:
        entered.set()
        release.wait(60)

    flood = script(
        "import sys\n"
        "for n in range(20000): sys.stderr.write(f'line {n} ' + 'x' * 80 + '\\n')\n"
        "sys.stderr.flush()\nprint('answer', flush=True)\nsys.stdin.read()"
    )
    try:
        async with await ServerProcess.launch(flood, stderr=sink, shutdown=QUICK) as process:
            with anyio.fail_after(60):
                # Far more than a pipe holds: the answer comes only because stderr is drained.
                assert await process.receive() == b"answer"
                await anyio.to_thread.run_sync(entered.wait)
                while process.stderr.lines_seen < 20000:
                    await anyio.lowlevel.checkpoint()
            assert process.stderr.tail(1)[0].startswith(b"line 19999 ")
            release.set()
    finally:
        release.set()


@pytest.mark.parametrize("sink", [3.5, True, -1, object(), b"path", [1]])
def test_what_can_not_be_a_sink_is_refused_before_anything_starts(sink: Any) -> None:
    async def launch() -> None:
        await ServerProcess.launch(TWO_LINES, stderr=sink)

    with pytest.raises(ConfigError):
        anyio.run(launch)


@contextmanager
def read_mode(path: Path) -> Iterator[Any]:
    with path.open() as file:
        yield file


@contextmanager
def read_mode_descriptor(path: Path) -> Iterator[Any]:
    with path.open() as file:
        yield file.fileno()


@contextmanager
def unbuffered_read_mode(path: Path) -> Iterator[Any]:
    with path.open("rb", buffering=0) as file:
        yield file


@contextmanager
def closed_file(path: Path) -> Iterator[Any]:
    with path.open("w") as file:
        pass
    yield file


@contextmanager
def closed_stream(_path: Path) -> Iterator[Any]:
    stream = io.StringIO()
    stream.close()
    yield stream


@contextmanager
def no_such_folder(path: Path) -> Iterator[Any]:
    yield path / "below" / "a" / "file"


@contextmanager
def negative(_path: Path) -> Iterator[Any]:
    yield subprocess.DEVNULL


@pytest.mark.parametrize(
    "made",
    [read_mode, read_mode_descriptor, unbuffered_read_mode, closed_file, closed_stream, no_such_folder, negative],
)
async def test_what_can_not_be_written_to_is_refused_at_the_launch(tmp_path: Path, made: Any) -> None:
    path = tmp_path / "log"
    path.write_text("before")
    with made(path) as sink, pytest.raises(ConfigError) as caught:
        await ServerProcess.launch(TWO_LINES, stderr=sink)
    assert caught.value.code == "sink-unusable"
    assert caught.value.stage == "launch"
    assert caught.value.remedy
    if made is negative:
        assert "Give None" in str(caught.value)


@pytest.mark.parametrize(
    "word", ["Inherit", "INHERIT", "inhert", "inheritt", "inherid", "nherit", "inehrit", "inherti"]
)
async def test_a_misspelt_inherit_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match='"inherit"') as caught:
        await ServerProcess.launch(TWO_LINES, stderr=word)
    assert caught.value.code == "sink-unusable"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["./inhert", "inherit.log", "err", "in", "inheritance", "merit"])
async def test_another_word_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    await ended(name)
    assert (tmp_path / name).read_text() == "one\ntwo\n"


def test_a_coroutine_function_is_no_sink() -> None:
    async def sink(_line: bytes) -> None: ...

    with pytest.raises(ConfigError, match="coroutine"):
        anyio.run(ended, sink)


async def test_what_a_sink_was_too_slow_for_is_counted() -> None:
    entered, release = threading.Event(), threading.Event()
    got: list[bytes] = []

    def sink(line: bytes) -> None:
        got.append(line)
        entered.set()
        release.wait(60)

    # More than the ring holds, once the sink hangs with what it was given first.
    flood = script(
        "import sys\nsys.stderr.write('first\\n'); sys.stderr.flush(); sys.stdin.readline()\n"
        "for n in range(60000): sys.stderr.write('x' * 100 + '\\n')\n"
        "sys.stderr.flush(); print('written', flush=True); sys.stdin.read()"
    )
    try:
        async with await ServerProcess.launch(flood, stderr=sink) as process:
            with anyio.fail_after(60):
                await anyio.to_thread.run_sync(entered.wait)
                assert process.stderr.sink_lost == 0
                await process.send(b"go")
                assert await process.receive() == b"written"
                while process.stderr.lines_seen < 60001:
                    await anyio.lowlevel.checkpoint()
                release.set()
                await process.close()
    finally:
        release.set()
    assert process.stderr.sink_lost > 0
    assert len(got) + process.stderr.sink_lost == process.stderr.lines_seen == 60001


class Owner:
    """As an agent has it: its process, and a method of its own as the sink."""

    process: ServerProcess

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def take(self, line: bytes) -> None:
        self.lines.append(line)

    def write(self, data: str) -> None:
        self.lines.append(data.encode())


@pytest.mark.parametrize("kind", ["method", "file"])
async def test_an_abandoned_owner_whose_method_is_the_sink_is_collected_and_its_server_ended(
    tmp_path: Path, kind: str
) -> None:
    with Lifeline(tmp_path / "lifeline") as lifeline:
        owner = Owner()
        owner.process = await ServerProcess.launch(
            program("family", lifeline.path, "ready"), stderr=owner.take if kind == "method" else owner, shutdown=QUICK
        )
        with anyio.fail_after(60):
            await lifeline.held_by(1)
            gone = weakref.ref(owner)
            with pytest.warns(ResourceWarning, match="unclosed"):  # noqa: PT031 - a cycle holds it
                del owner
                gc.collect()
            assert gone() is None
            await lifeline.gone()


async def test_a_sink_that_nobody_else_holds_gets_everything() -> None:
    lines: list[bytes] = []
    process = await ServerProcess.launch(
        shell("read go; echo one >&2; echo two >&2"), stderr=lambda line: lines.insert(len(lines), line)
    )
    gc.collect()
    with anyio.fail_after(60):
        await process.send(b"go")
        await process.wait()
    assert lines == [b"one", b"two"]


async def test_a_sink_is_let_go_with_the_end() -> None:
    owner = Owner()
    process = await ended(owner.take)
    assert owner.lines == [b"one", b"two"]
    assert process.report is not None
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
