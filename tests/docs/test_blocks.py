"""The reader of pages misses nothing: a block that it doesn't understand is an error, not silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.blocks import PageError, commands, matches, read_page, whole_source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.blocks import Block


def page(folder: Path, text: str) -> list[Block]:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path, "page.md")


def test_blocks_keep_language_line_and_source(tmp_path: Path) -> None:
    first, second = page(tmp_path, "# Title\n\n```python\nprint(1)\n```\n\n- item\n\n  ```sh\n  true\n  ```\n")
    assert (first.language, first.where, first.source) == ("python", "page.md:3", "print(1)\n")
    assert (second.language, second.source) == ("sh", "true\n")


def test_output_belongs_to_the_block_before(tmp_path: Path) -> None:
    (block,) = page(tmp_path, "```sh\necho hi\n```\n\n```output\nhi\n```\n")
    assert block.output == "hi\n"


def test_comments_above_a_block_direct_it(tmp_path: Path) -> None:
    text = "<!-- test: exit 3 -->\n<!-- test: in repository -->\n```sh\nexit 3\n```\n"
    text += "<!-- test: not run: needs a Mac -->\n```sh\nsw_vers\n```\n"
    text += "<!-- test: file mcp.json -->\n```json\n{}\n```\n"
    first, second, third = page(tmp_path, text)
    assert (first.exit, first.in_repository) == (3, True)
    assert second.not_run == "needs a Mac"
    assert third.file == "mcp.json"


def test_a_python_block_may_continue_the_one_before(tmp_path: Path) -> None:
    text = "```python\na = 1\n```\n```sh\ntrue\n```\n<!-- test: continues -->\n```python\nprint(a)\n```\n"
    assert whole_source(page(tmp_path, text)[2]) == "a = 1\nprint(a)\n"


def test_console_blocks_are_commands_with_their_output(tmp_path: Path) -> None:
    (block,) = page(tmp_path, "```console\n$ one \\\n> two\nout\n\nmore\n$ three\n```\n")
    assert commands(block) == [("one \\\ntwo", "out\n\nmore\n"), ("three", "")]


@pytest.mark.parametrize(
    "text",
    [
        "```\nno language\n```\n",
        "```bash\ntrue\n```\n",
        "```python\nno end\n",
        "```python title=x\n1\n```\n",
        "```console\nno command\n```\n",
        "<!-- test: sikp -->\n```sh\ntrue\n```\n",
        "<!-- test: not run: -->\n```sh\ntrue\n```\n",
        "<!-- test: exit 1 -->\nwords\n\n```sh\nfalse\n```\n",
        "<!-- test: exit 1 -->\n",
        "<!-- test: continues -->\n```python\n1\n```\n",
        "```sh\ntrue\n```\nwords\n```output\nhi\n```\n",
    ],
)
def test_what_cannot_be_understood_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"page\.md:\d+"):
        page(tmp_path, text)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("one\ntwo\n", "one\ntwo\n"),
        ("pid ...: gone\n", "pid 123: gone\n"),
        ("first\n...\nlast\n", "first\na\nb\nlast\n"),
        ("first\n...\n", "first\n"),
        ("a.b\n", "a.b  \n\n"),
        ("", ""),
    ],
)
def test_output_that_matches(expected: str, actual: str) -> None:
    assert matches(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("one\n", "one\ntwo\n"),
        ("a.b\n", "axb\n"),
        ("pid ...\n", "no pid\n"),
        ("first\n...\nlast\n", "first\nlast\nx\n"),
    ],
)
def test_output_that_does_not_match(expected: str, actual: str) -> None:
    assert not matches(expected, actual)
