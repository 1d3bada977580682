"""Every code block of README.md and docs/ does what the page says; see blocks.py for how a page says it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.blocks import RUN, Block, commands, matches, read_page, whole_source
from tests.support.node import ROOT, path_with_node
from tests.support.servers import NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark.structures import ParameterSet

# Blocks that can't be run here, per page. A new one needs a new number, so that none slips in.
NOT_RUN: dict[str, int] = {}

PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]
BLOCKS = [block for page in PAGES for block in read_page(page, str(page.relative_to(ROOT)))]


def chosen(condition: Callable[[Block], object]) -> list[ParameterSet]:
    return [pytest.param(block, id=block.where) for block in BLOCKS if condition(block)]


def is_run(block: Block) -> bool:
    return block.language in RUN and not (block.not_run or block.file or block.same_as)


@pytest.fixture
def folder(tmp_path: Path, installed_servers: Path, request: pytest.FixtureRequest) -> Path:
    """An empty folder, with the page's files up to the block; npx finds the installed servers there."""
    (tmp_path / "package.json").write_text("{}", encoding="utf-8")
    (tmp_path / ".npmrc").write_text("update-notifier=false\n", encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    block: Block = request.getfixturevalue("block")
    for earlier in block.before:
        if earlier.file:
            (tmp_path / earlier.file).write_text(earlier.source, encoding="utf-8")
    return tmp_path


@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", chosen(is_run))
def test_block_does_what_the_page_says(block: Block, folder: Path) -> None:
    if block.language == "console":
        given = commands(block)
        for number, (command, expected) in enumerate(given, start=1):
            status = block.exit if number == len(given) else 0
            run(block, folder, ["sh", "-c", command], status, expected)
    elif block.language == "sh":
        run(block, folder, ["sh", "-e", "-c", block.source], block.exit, block.output)
    else:
        script = folder / "block.py"
        script.write_text(whole_source(block), encoding="utf-8")
        run(block, folder, [sys.executable, "-W", "error", str(script)], block.exit, block.output)


def run(block: Block, folder: Path, command: list[str], status: int, expected: str | None) -> None:
    process = subprocess.Popen(
        command,
        cwd=ROOT if block.in_repository else folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if block.language != "python" else subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=540)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    output = out.decode("utf-8", "replace")
    everything = output + (error or b"").decode("utf-8", "replace")
    assert process.returncode == status, f"{block.where} ended with {process.returncode}, not {status}:\n{everything}"
    if expected is not None:
        assert matches(expected, output), f"{block.where} should print:\n{expected}\nand printed:\n{output}"


def environment(folder: Path) -> dict[str, str]:
    home = os.environ.get("HOME", "/")
    # A `make` in a block is not a part of the `make` that runs this test.
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return dict(
        outer,
        PATH=os.pathsep.join([str(ROOT / ".venv" / "bin"), path_with_node()]),
        # Whatever a block leaves at home is left in the folder; the Rust toolchain stays where it is.
        HOME=str(folder),
        CARGO_HOME=os.environ.get("CARGO_HOME", f"{home}/.cargo"),
        RUSTUP_HOME=os.environ.get("RUSTUP_HOME", f"{home}/.rustup"),
        PYTHONUNBUFFERED="1",
        COLUMNS="100",
    )


@pytest.mark.parametrize("block", chosen(lambda block: block.language == "json"))
def test_json_is_well_formed(block: Block) -> None:
    json.loads(block.source)


@pytest.mark.parametrize("block", chosen(lambda block: block.same_as))
def test_block_stands_in_the_file_it_names(block: Block) -> None:
    assert block.same_as is not None
    text = (ROOT / block.same_as).read_text(encoding="utf-8")
    assert squeezed(block.source) in squeezed(text), f"{block.where} isn't in {block.same_as} any more"


def squeezed(text: str) -> str:
    """Indentation aside: the example may stand in a function there."""
    return "\n".join(line.strip() for line in text.strip().splitlines() if line.strip())


@pytest.mark.parametrize(
    "block", chosen(lambda block: block.language == "rust" and not (block.not_run or block.same_as))
)
def test_rust_block_is_a_documentation_test(block: Block) -> None:
    """`cargo test` runs the Rust blocks of a page that the crate includes as documentation."""
    include = re.compile(r'include_str!\("(?:\.\./)*' + re.escape(block.page) + r'"\)')
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "rust" / "stockade" / "src").rglob("*.rs")]
    assert any(include.search(source) for source in sources), f"no include_str!({block.page!r}) in the crate"


def test_what_is_not_run_is_counted() -> None:
    found = Counter(block.page for block in BLOCKS if block.not_run)
    reasons = "\n".join(f"  {block.where}: {block.not_run}" for block in BLOCKS if block.not_run)
    assert dict(found) == NOT_RUN, f"not run:\n{reasons}"


def test_there_are_blocks_to_run() -> None:
    assert (ROOT / "README.md") in PAGES
    assert any(is_run(block) for block in BLOCKS)
