"""Reports about bytes on stdout: noise, encodings, sizes. What is about any split of bytes: tests/process."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest

from stockade import ServerProcess, StdioTransport
from tests.reports.clients import connected, text_of
from tests.reports.test_defects import dump
from tests.servers import script

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def items_of(written: bytes, **options: Any) -> list[Any]:
    """What a session would see of a server that writes this and ends; without its end."""
    server = script(f"import os\nfor at in range(0, {len(written)}, 4096): os.write(1, {written!r}[at:at + 4096])")
    async with StdioTransport(server, stderr=None, **options) as (read, _):
        with anyio.fail_after(30):
            return [item async for item in read][:-1]


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


NOISE = b"Listening on stdio\n" + line(PING) + b"\x1b[32mok\x1b[0m\n" + line({**PING, "id": 2})


async def test_noise_is_left_out_without_a_wrapper() -> None:
    # report 52
    assert [dump(item) for item in await items_of(NOISE, on_noise="ignore")] == [PING, {**PING, "id": 2}]


async def test_noise_is_reported_line_by_line_by_default() -> None:
    # report 52
    kinds = [isinstance(item, ValueError) for item in await items_of(NOISE)]
    assert kinds == [True, False, True, False]


@pytest.mark.parametrize("bad", [b"\xff\xfe", b"\xe2\x82", b"caf\xe9"], ids=["bom16", "half", "latin1"])
async def test_a_bad_line_is_one_diagnostic_and_the_next_message_is_read(bad: bytes) -> None:
    # report 53
    first, second = await items_of(bad + b"\n" + line(PING))
    assert isinstance(first, ValueError)
    assert dump(second) == PING


async def test_lines_that_end_as_on_windows_are_lines() -> None:
    # report 55
    assert [dump(item) for item in await items_of(line(PING).replace(b"\n", b"\r\n") * 2)] == [PING] * 2


async def test_unicode_line_separators_do_not_split_a_message() -> None:
    # report 56
    async with connected() as (client, _):
        with anyio.fail_after(30):
            said = "one\u2028two\u2029three\x85four\x0bfive\x0csix"
            assert text_of(await client.call_tool("echo", {"message": said})) == said
    raw = json.dumps({**PING, "params": {"_meta": {"a": "x\u2028y"}}}, ensure_ascii=False).encode() + b"\n"
    assert b"\xe2\x80\xa8" in raw
    assert len(await items_of(raw)) == 1


async def test_messages_split_and_packed_at_will_are_all_there() -> None:
    # report 58
    messages = [{**PING, "id": number} for number in range(50)]
    text = b"".join(line(message) for message in messages)
    source = (
        "import os, random\nchance = random.Random(58)\n"
        f"text = {text!r}\nwhile text:\n    count = chance.choice([1, 2, 7, 200])\n"
        "    os.write(1, text[:count]); text = text[count:]"
    )
    async with StdioTransport(script(source), stderr=None) as (read, _):
        with anyio.fail_after(30):
            items = [item async for item in read][:-1]
    assert [dump(item) for item in items] == messages


async def test_a_result_of_more_than_64_kib_is_no_matter() -> None:
    # report 59
    async with connected() as (client, _):
        with anyio.fail_after(30):
            for size in (65_535, 65_536, 130_000, 2_000_000):
                said = "x" * size
                assert text_of(await client.call_tool("echo", {"message": said})) == said


async def test_fifty_megabytes_cost_no_minute_of_processor_time() -> None:
    # report 61
    server = script("import os\nchunk = b'x' * (1 << 20)\nfor _ in range(50): os.write(1, chunk)\nos.write(1, b'\\n')")
    async with await ServerProcess.launch(server, stderr=None) as process:
        before = time.process_time()
        with anyio.fail_after(60):
            assert len(await process.receive()) == 50 << 20
        assert time.process_time() - before < 5


async def test_the_last_message_needs_no_newline() -> None:
    # report 62
    assert [dump(item) for item in await items_of(line(PING).rstrip())] == [PING]
