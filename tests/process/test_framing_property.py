"""However a server's bytes arrive, its frames are the same: any bytes, any sizes, any split points."""

from __future__ import annotations

from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stockade import ServerExited, ServerProcess
from tests.servers import script

# Writes what it is told, a line of hex each, in one call where the pipe takes it; ends with its input.
PUPPET = script(
    "import os, sys\n"
    "for line in sys.stdin:\n"
    "    data = bytes.fromhex(line)\n"
    "    while data: data = data[os.write(1, data):]\n"
)
BOM = b"\xef\xbb\xbf"

# What framing may trip over, whole and in pieces, and sizes about those of its buffers.
pieces = st.one_of(
    st.sampled_from(
        [b"\n", b"\r", b"\r\n", b" ", b"\t", BOM, BOM[:1], BOM[1:], b"\x00", "ü\u2028\u0085".encode(), b"\xff"]
    ),
    st.binary(max_size=12),
    st.builds(
        lambda size, off, byte: byte * (size + off),
        st.sampled_from([4096, 32768, 65536]),
        st.integers(-2, 2),
        st.sampled_from([b"x", b" ", b"\xc3", b"\n"]),
    ),
)
streams = st.lists(pieces, max_size=12).map(b"".join)


@st.composite
def chunked(draw: st.DrawFn) -> list[bytes]:
    """A stream, cut anywhere."""
    stream = draw(streams)
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=6))
    edges = [0, *sorted(cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if start < end]


def frames(stream: bytes) -> list[bytes]:
    """What framing is, in words that are simple and slow."""
    found: list[bytes] = []
    for line in stream.split(b"\n"):
        payload = line.removeprefix(BOM)
        if payload.endswith(b"\r"):
            payload = payload[:-1]
        if payload.strip(b" \t\r"):
            found.append(payload)
    return found


async def arrived(chunks: list[bytes]) -> list[bytes]:
    """The frames of a server that writes these chunks, each only when the one before has been read."""
    got: list[bytes] = []
    async with await ServerProcess.launch(PUPPET, stderr=None) as process:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:

                async def receive() -> None:
                    try:
                        while True:
                            got.append(await process.receive())
                    except ServerExited:
                        pass

                tasks.start_soon(receive)
                read = 0
                for chunk in chunks:
                    await process.send(chunk.hex().encode())
                    read += len(chunk)
                    while process.bytes_received < read:
                        await anyio.lowlevel.checkpoint()
                # It ends for want of hex; what it has written is still to be read.
                await process.send(b"!")
    return got


@pytest.mark.parametrize("text", [b'{"a": 1}\n', BOM + "{ü}\r\n".encode() + BOM + b" \r\nlast\r", b"\xff\n \n\xc3"])
async def test_every_split_point_gives_the_same_frames(text: bytes) -> None:
    for cut in range(len(text) + 1):
        assert await arrived([part for part in (text[:cut], text[cut:]) if part]) == frames(text)


@settings(max_examples=60)
@given(chunks=chunked())
@example(chunks=[BOM[:1], BOM[1:2], BOM[2:] + b"x\r", b"\n"])
@example(chunks=[b"x" * 65536, b"\n"])
async def test_any_bytes_in_any_chunks_give_the_frames_of_the_whole(chunks: list[bytes]) -> None:
    assert await arrived(chunks) == frames(b"".join(chunks))


@settings(max_examples=8)
@given(size=st.integers((1 << 20) - 3, (1 << 20) + 3), cut=st.integers(0, 1 << 20), after=st.binary(max_size=9))
async def test_about_the_size_from_which_frames_are_large(size: int, cut: int, after: bytes) -> None:
    text = b"x" * size + b"\n" + after
    assert await arrived([part for part in (text[:cut], text[cut:]) if part]) == frames(text)
