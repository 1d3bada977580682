"""Frames go in and come out whole, in order, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import os
import select
import signal

import anyio
import anyio.lowlevel
import pytest

from stockade import FrameTooLong, ServerClosedInput, ServerExited, ServerProcess, Shutdown, StdioServer
from stockade._stdout import AsyncioStdout
from tests.servers import script, shell
from tests.servers.stepping import Stepped

CAT = StdioServer("cat")
QUICK = Shutdown(0.2, 0.2, 5)
# Reads nothing until it gets SIGUSR1; then answers each line with its first byte.
GATED = script(
    "import sys, signal\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
    "print('ready', flush=True)\n"
    "signal.sigwait([signal.SIGUSR1])\n"
    "for line in sys.stdin.buffer:\n"
    "    sys.stdout.buffer.write(line[:1] + b'\\n'); sys.stdout.buffer.flush()\n"
)


async def test_frames_come_back_in_order() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            for number in range(500):
                await process.send(b"%d" % number)
            assert [await process.receive() for _ in range(500)] == [b"%d" % number for number in range(500)]


async def test_a_frame_that_comes_while_nobody_waits_is_there_for_the_next_receive() -> None:
    server = script(
        "import sys\nprint('1', flush=True)\nsys.stdin.readline()\nprint('2\\n3', flush=True)\nsys.stdin.read()"
    )
    async with await ServerProcess.launch(server) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"1"
            await process.send(b"go")
            # Readable now, and nobody waits: what watches stdout has to let go and come back.
            await anyio.wait_all_tasks_blocked()
            assert [await process.receive(), await process.receive()] == [b"2", b"3"]


async def test_only_a_newline_ends_a_frame() -> None:
    lines = ["a\u2028b\u2029c\x85d", "x\ry", '{"k": "\\u2028"}']
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            for line in lines:
                await process.send(line.encode())
                assert (await process.receive()).decode() == line


async def test_bom_carriage_return_and_blank_lines_are_stripped_and_an_unfinished_last_line_is_delivered() -> None:
    server = script(r"import sys; sys.stdout.buffer.write(b'\xef\xbb\xbf1\r\n\n  \n2\n3')")
    async with await ServerProcess.launch(server) as process:
        with anyio.fail_after(30):
            assert [await process.receive() for _ in range(3)] == [b"1", b"2", b"3"]
            with pytest.raises(ServerExited):
                await process.receive()


async def test_a_line_that_is_not_utf8_comes_as_its_bytes() -> None:
    server = script(r"import sys; sys.stdout.buffer.write(b'\xff\xfe\nok\n')")
    async with await ServerProcess.launch(server) as process:
        with anyio.fail_after(30):
            assert [await process.receive(), await process.receive()] == [b"\xff\xfe", b"ok"]


async def test_several_receivers_get_each_frame_once() -> None:
    got: list[bytes] = []
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def receiver() -> None:
                    for _ in range(25):
                        got.append(await process.receive())

                for _ in range(4):
                    tasks.start_soon(receiver)
                await anyio.wait_all_tasks_blocked()
                for number in range(100):
                    await process.send(b"%d" % number)
    assert sorted(got, key=int) == [b"%d" % number for number in range(100)]


async def test_a_receive_cancelled_at_any_await_point_loses_no_frame() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(60):
            expected = 0
            for at in range(3):
                for _ in range(40):
                    await process.send(b"%d" % expected)
                    with anyio.CancelScope() as scope:
                        assert await Stepped(process.receive(), at, scope.cancel) == b"%d" % expected
                        expected += 1
                        continue
                    assert await process.receive() == b"%d" % expected
                    expected += 1


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})])
async def test_a_frame_handed_to_a_task_that_is_cancelled_before_it_runs_is_kept() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(60):
            for number in range(50):
                task = asyncio.ensure_future(process.receive())
                await asyncio.sleep(0)
                stdout = process._stdout
                assert isinstance(stdout, AsyncioStdout)
                assert stdout._watch is not None
                await process.send(b"%d" % number)
                # What the loop does when the frame is there; the task has it, and hasn't run since.
                assert select.select([stdout._watch.fileno()], [], [], 30)[0]
                stdout._ready()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await process.receive() == b"%d" % number


async def test_receive_and_send_see_a_cancelled_scope_although_they_need_not_wait() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with anyio.fail_after(30):
            await process.send(b"1\t")
            await process.send(b"2\t")
            assert await process.receive() == b"1\t"
            with anyio.CancelScope() as scope:
                scope.cancel()
                await process.receive()
                pytest.fail("went on in a cancelled scope")
            with anyio.CancelScope() as scope:
                scope.cancel()
                await process.send(b"never sent")
                pytest.fail("went on in a cancelled scope")
            await process.send(b"3\t")
            assert [await process.receive(), await process.receive()] == [b"2\t", b"3\t"]


async def test_a_receiver_that_never_has_to_wait_lets_others_run() -> None:
    turns = 0
    server = script("import sys; sys.stdout.write('x\\n' * 2000); sys.stdout.flush(); sys.stdin.read()")
    async with await ServerProcess.launch(server) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def other() -> None:
                    nonlocal turns
                    while True:
                        turns += 1
                        await anyio.lowlevel.checkpoint()

                assert await process.receive() == b"x"
                tasks.start_soon(other)
                for _ in range(1999):
                    await process.receive()
                tasks.cancel_scope.cancel()
    assert turns >= 50


@pytest.mark.parametrize("mebibytes", [1, 20])
async def test_a_large_frame_comes_whole_also_after_a_cancelled_receive(mebibytes: int) -> None:
    size = mebibytes << 20
    server = script(
        "import sys\n"
        "for _ in range(2):\n"
        "    sys.stdout.write('x' * int(sys.argv[1]) + '\\n'); sys.stdout.flush()\n"
        "sys.stdin.read()",
        size,
    )
    async with await ServerProcess.launch(server) as process:
        with anyio.fail_after(60):
            at = 0
            frame = None
            while frame is None:
                # Cancelled at one await point after the other, until one gets through.
                with anyio.CancelScope() as scope:
                    frame = await Stepped(process.receive(), at, scope.cancel)
                at += 1
            assert frame == b"x" * size
            assert len(await process.receive()) == size


async def test_a_frame_over_the_limit_ends_the_server() -> None:
    server = script("import sys\nsys.stdout.write('ok\\n' + 'x' * 100000)\nsys.stdout.flush()\nsys.stdin.read()")
    process = await ServerProcess.launch(server, max_frame_bytes=10_000, shutdown=QUICK)
    async with process:
        with anyio.fail_after(30):
            assert await process.receive() == b"ok"
            with pytest.raises(FrameTooLong) as caught:
                await process.receive()
            assert caught.value.code == "frame-too-long"
            await process.wait()
            with pytest.raises(ServerExited):
                await process.receive()


async def test_after_the_end_of_the_server_receive_and_send_say_how_it_ended() -> None:
    async with await ServerProcess.launch(shell("echo last words >&2; echo 1; exit 3")) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"1"
            for _ in range(2):
                with pytest.raises(ServerExited) as caught:
                    await process.receive()
                assert caught.value.report is not None
                assert caught.value.report.returncode == 3
                assert caught.value.report.ended_by == "exit"
                assert "last words" in caught.value.report.stderr_tail
                assert "exited with 3" in str(caught.value)
            with pytest.raises(ServerExited):
                await process.send(b"too late")


async def test_a_server_that_closed_its_stdin_but_runs_is_told_apart_from_one_that_ended() -> None:
    server = script("import os, signal\nos.close(0)\nprint('closed', flush=True)\nsignal.pause()")
    async with await ServerProcess.launch(server, shutdown=QUICK) as process:
        with anyio.fail_after(30):
            assert await process.receive() == b"closed"
            with pytest.raises(ServerClosedInput) as caught:
                await process.send(b"anybody?")
            assert isinstance(caught.value, BrokenPipeError)
            assert process.returncode is None


async def test_after_close_send_and_receive_raise_closed_resource_error() -> None:
    process = await ServerProcess.launch(CAT)
    await process.send(b"unread")
    await process.close()
    with pytest.raises(anyio.ClosedResourceError):
        await process.receive()
    with pytest.raises(anyio.ClosedResourceError):
        await process.send(b"x")


async def test_close_wakes_who_waits_in_receive_and_in_send() -> None:
    woken: list[str] = []
    async with await ServerProcess.launch(script("import signal; signal.pause()"), shutdown=QUICK) as process:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def receiver() -> None:
                    with pytest.raises(anyio.ClosedResourceError):
                        await process.receive()
                    woken.append("receiver")

                async def sender() -> None:
                    with pytest.raises(anyio.ClosedResourceError):
                        while True:
                            await process.send(b"x" * 500_000)
                    woken.append("sender")

                tasks.start_soon(receiver)
                tasks.start_soon(receiver)
                tasks.start_soon(sender)
                tasks.start_soon(sender)
                await anyio.wait_all_tasks_blocked()
                await process.close()
    assert sorted(woken) == ["receiver", "receiver", "sender", "sender"]


async def test_a_newline_inside_a_frame_is_refused() -> None:
    async with await ServerProcess.launch(CAT) as process:
        with pytest.raises(ValueError, match="newline"):
            await process.send(b"1\n2")
        await process.send(b"3")
        assert await process.receive() == b"3"


async def test_a_server_that_never_reads_holds_up_the_sender_who_can_be_cancelled() -> None:
    async with await ServerProcess.launch(script("import signal; signal.pause()"), shutdown=QUICK) as process:
        sent = 0
        with anyio.fail_after(30):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:

                    async def send_all() -> None:
                        nonlocal sent
                        for _ in range(1000):
                            await process.send(b"x" * 100_000)
                            sent += 100_000

                    tasks.start_soon(send_all)
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
        assert scope.cancelled_caught
        # The queue and the kernel's pipe, not the hundred million bytes.
        assert 0 < sent < 20_000_000


async def test_senders_that_wait_for_room_go_first_come_first_served() -> None:
    order: list[bytes] = []
    async with await ServerProcess.launch(GATED) as process:
        with anyio.fail_after(60):
            assert await process.receive() == b"ready"
            async with anyio.create_task_group() as tasks:

                async def sender(mark: bytes) -> None:
                    # Far more than the queue holds together; each fits alone.
                    await process.send(mark + b"x" * 900_000)

                marks = [bytes([byte]) for byte in b"abcdefgh"]
                for mark in marks:
                    tasks.start_soon(sender, mark)
                    await anyio.wait_all_tasks_blocked()
                os.kill(process.pid, signal.SIGUSR1)
                for _ in marks:
                    order.append(await process.receive())
    assert order == marks


async def test_a_sender_cancelled_while_waiting_sends_nothing_and_blocks_nobody() -> None:
    async with await ServerProcess.launch(GATED) as process:
        with anyio.fail_after(60):
            assert await process.receive() == b"ready"
            sent: list[bytes] = []
            async with anyio.create_task_group() as tasks:
                scopes: dict[bytes, anyio.CancelScope] = {}

                async def sender(mark: bytes) -> None:
                    scopes[mark] = anyio.CancelScope()
                    with scopes[mark]:
                        await process.send(mark + b"x" * 900_000)
                        sent.append(mark)

                for mark in (b"a", b"b", b"c", b"d", b"e", b"f"):
                    tasks.start_soon(sender, mark)
                    await anyio.wait_all_tasks_blocked()
                waiting = [mark for mark in scopes if mark not in sent]
                assert len(waiting) >= 2, "the queue took everything: make the frames larger"
                scopes[waiting[0]].cancel()
                await anyio.wait_all_tasks_blocked()
                os.kill(process.pid, signal.SIGUSR1)
                expected = [mark for mark in scopes if mark != waiting[0]]
                assert [await process.receive() for _ in expected] == expected
            assert waiting[0] not in sent
