"""docs/errors.md has a row for each code that the sources can raise, and none for a code that they can't."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

import stockade
from stockade._errors import Stage, StockadeError
from tests.support.node import ROOT

PAGE = ROOT / "docs" / "errors.md"
PYTHON = ROOT / "python" / "stockade"
RUST = (ROOT / "rust" / "stockade" / "src", ROOT / "rust" / "stockade-python" / "src")

CODE = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
# Where the Rust sources write a code: the constructor, and what the modules wrap around it.
RUST_PLACES = (
    re.compile(rf'Error::new\(\s*(?:crate::)?ErrorKind::\w+,\s*"({CODE})"'),
    re.compile(rf'\b(?:config|launch)\(\s*"({CODE})"'),
    re.compile(rf'[{{(>;]\s*\(\s*"({CODE})",'),  # refusal.rs: a code with its message and remedy
    re.compile(rf'^\s*(?:Errno::\w+(?: \| Errno::\w+)*|_) => "({CODE})",?$', re.MULTILINE),  # failure.rs
)
# Hyphenated literals of the Rust sources that are no codes. Any other must be found by a pattern above, so that a new
# way to write a code doesn't go unseen.
NO_CODES = {"node-shim", "stockade-launch", "stockade-sink"}


class Row(NamedTuple):
    code: str
    stages: tuple[str, ...]
    classes: tuple[str, ...]
    meaning: str
    remedy: str


def rows() -> list[Row]:
    found: list[Row] = []
    within = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            within = False
        elif line.startswith("| code |"):
            within = True
        elif within and not line.startswith("|--"):
            cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")]
            assert len(cells) == 5, f"code, stage, class, meaning, remedy: {line}"
            code, stages, classes, meaning, remedy = (cell.replace("`", "") for cell in cells)
            assert re.fullmatch(CODE, code), line
            found.append(Row(code, tuple(stages.split(", ")), tuple(classes.split(", ")), meaning, remedy))
    return found


def without_tests(text: str) -> str:
    """Rust without comments and without the tests at its end."""
    text = text.partition("#[cfg(test)]\nmod ")[0]
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


def rust_sources() -> list[str]:
    files = [file for folder in RUST for file in folder.rglob("*.rs")]
    files = [file for file in files if not file.stem.endswith("_tests") and file.stem != "model_files"]
    return [without_tests(file.read_text(encoding="utf-8")) for file in files]


def rust_codes() -> set[str]:
    return {code for text in rust_sources() for place in RUST_PLACES for code in place.findall(text)}


def python_codes() -> set[str]:
    found: set[str] = set()
    for file in PYTHON.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case (
                    ast.keyword(arg="code", value=ast.Constant(value=str(code)))
                    | ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code)))
                    | ast.AnnAssign(target=ast.Name(id="code"), value=ast.Constant(value=str(code)))
                ):
                    found.add(code)
                case _:
                    pass
    return found


def test_the_page_lists_every_code_of_the_sources_and_no_other() -> None:
    listed = {row.code for row in rows()}
    raised = rust_codes() | python_codes()
    assert sorted(raised - listed) == [], "raised, but missing in docs/errors.md"
    assert sorted(listed - raised) == [], "in docs/errors.md, but never raised"


def test_no_code_of_the_rust_sources_is_overlooked() -> None:
    """The patterns know every hyphenated literal, or the list above says that it is no code."""
    literals = {code for text in rust_sources() for code in re.findall(rf'"({CODE})"', text) if "-" in code}
    assert sorted(literals - rust_codes() - NO_CODES) == []


def test_each_code_has_one_row_with_all_five_cells() -> None:
    codes = [row.code for row in rows()]
    assert len(codes) == len(set(codes)), "a code is listed twice"
    assert len(codes) > 30
    for row in rows():
        assert row.meaning, row
        assert row.remedy, row


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.code)
def test_a_row_names_real_stages_and_public_classes(row: Row) -> None:
    assert set(row.stages) <= set(get_args(Stage))
    for name in row.classes:
        assert issubclass(getattr(stockade, name), StockadeError)


@pytest.mark.parametrize("name", [name for name in stockade.__all__ if name[0].isupper()])
def test_the_code_that_a_class_has_by_itself_stands_beside_that_class(name: str) -> None:
    cls = getattr(stockade, name)
    if not (isinstance(cls, type) and issubclass(cls, StockadeError)):
        return
    (row,) = [row for row in rows() if row.code == cls.code]
    assert name in row.classes
    assert cls.stage in row.stages


def test_the_sources_are_found() -> None:
    assert Path(PYTHON / "_errors.py").is_file()
    assert {"command-not-found", "cwd-missing", "too-many-files", "not-executable", "no-interpreter"} <= rust_codes()
    assert {"error", "config", "config-unreadable", "unreadable-line"} <= python_codes()
