"""The code blocks of README.md and docs/, and how each is to be run.

A block runs as it stands. What a reader shouldn't have to see goes into comments directly above it:

    <!-- test: continues -->          Python that goes on from the Python block before it on the page
    <!-- test: file NAME -->          not run, but written to the working folder for the page's later blocks
    <!-- test: exit N -->             its (last) command ends with this status instead of 0
    <!-- test: in repository -->      runs in the repository instead of an empty folder
    <!-- test: same as PATH -->       not run here: it stands word for word in that file, which is run elsewhere
    <!-- test: not run: REASON -->    can't be run; counted, see `NOT_RUN` in test_pages.py

An ```output block after a block is its expected output. In a ```console block lines that begin with "$ " are commands
("> " goes on from the line before), the lines below each are its output. In both, "..." stands for anything; alone on
a line, for any lines. A Python block's output is what it prints; of commands it is stdout and stderr together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = ("python", "sh", "console")
CHECKED = ("json", "rust")
TEXT = ("text", "toml", "output")

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w+-]*) *$")
DIRECTIVE = re.compile(r"^ *<!-- *test: *(.+?) *--> *$")


class PageError(ValueError):
    """A page that can't be read as this module describes."""


@dataclass
class Block:
    page: str
    line: int
    language: str
    source: str
    continues: bool = False
    file: str | None = None
    exit: int = 0
    in_repository: bool = False
    same_as: str | None = None
    not_run: str | None = None
    output: str | None = None
    before: list[Block] = field(default_factory=list["Block"], repr=False)

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def read_page(path: Path, name: str) -> list[Block]:
    """Every block of a page, in order; an output block belongs to the one before it."""
    blocks: list[Block] = []
    directives: list[tuple[int, str]] = []
    lines = iter(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    after_block = False
    for number, line in lines:
        directive = DIRECTIVE.match(line)
        fence = FENCE.match(line)
        if directive:
            directives.append((number, directive[1]))
        elif fence:
            source = _until_fence(lines, fence, f"{name}:{number}")
            if fence["language"] == "output" and after_block and not directives:
                blocks[-1].output = source
                continue
            block = Block(name, number, fence["language"], source, before=list(blocks))
            for at, text in directives:
                _direct(block, text, f"{name}:{at}")
            _check(block)
            blocks.append(block)
            directives.clear()
            after_block = True
        elif line.strip():
            if directives:
                raise PageError(f"{name}:{directives[-1][0]}: a test comment stands directly above a code block")
            if line.lstrip().startswith("```"):
                raise PageError(f"{name}:{number}: {line.strip()!r} is no fence that this test understands")
            after_block = False
    if directives:
        raise PageError(f"{name}:{directives[-1][0]}: a test comment without a code block")
    return blocks


def _until_fence(lines: Iterator[tuple[int, str]], fence: re.Match[str], where: str) -> str:
    source: list[str] = []
    indent = len(fence["indent"])
    for _, line in lines:
        if line.strip() == fence["ticks"]:
            return "".join(f"{text}\n" for text in source)
        source.append(line[indent:] if line[:indent].isspace() else line)
    raise PageError(f"{where}: the block has no end")


def _direct(block: Block, text: str, where: str) -> None:
    word, _, rest = text.partition(" ")
    if text == "continues":
        block.continues = True
    elif text == "in repository":
        block.in_repository = True
    elif word == "file" and rest:
        block.file = rest
    elif word == "exit" and rest.isdigit():
        block.exit = int(rest)
    elif text.startswith("same as "):
        block.same_as = text.removeprefix("same as ")
    elif text.startswith("not run: "):
        block.not_run = text.removeprefix("not run: ")
    else:
        raise PageError(f"{where}: unknown test comment {text!r}")


def _check(block: Block) -> None:
    if block.not_run or block.file or block.same_as:
        return
    if block.language not in RUN + CHECKED + TEXT:
        raise PageError(f"{block.where}: language {block.language!r} is none of {', '.join(RUN + CHECKED + TEXT)}")
    if block.language == "output":
        raise PageError(f"{block.where}: an output block stands directly after a block that is run")
    if block.language == "console" and not block.source.startswith("$ "):
        raise PageError(f"{block.where}: a console block begins with '$ '")
    if block.continues and not any(earlier.language == "python" for earlier in block.before):
        raise PageError(f"{block.where}: nothing to continue")


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with its expected output."""
    found: list[tuple[str, str]] = []
    for line in block.source.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def whole_source(block: Block) -> str:
    """A Python block with those that it continues in front."""
    if not block.continues:
        return block.source
    earlier = next(other for other in reversed(block.before) if other.language == "python")
    return whole_source(earlier) + block.source


def matches(expected: str, actual: str) -> bool:
    """Whether the output is the expected one, "..." standing for anything."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    text = actual.rstrip()
    return re.fullmatch(pattern, text and f"{text}\n") is not None
