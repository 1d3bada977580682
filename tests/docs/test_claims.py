"""Each claim in README.md's table names the test that proves it, and that test exists."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import pytest

from tests.support.node import ROOT

HEADER = "| With other launchers | With stockade | Proof |"
TEST_ID = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


class Claim(NamedTuple):
    line: int
    text: str
    tests: list[tuple[str, str]]


def claims(text: str) -> list[Claim]:
    found: list[Claim] = []
    within = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("|"):
            within = False
        elif line == HEADER:
            within = True
        elif within and not line.startswith("|--"):
            proof = line.removesuffix("|").rpartition("|")[2]
            found.append(Claim(number, line, TEST_ID.findall(proof)))
    return found


CLAIMS = claims((ROOT / "README.md").read_text(encoding="utf-8"))


def functions(path: str) -> set[str]:
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def unproven(claim: Claim) -> list[str]:
    return [f"{path}::{name}" for path, name in claim.tests if name not in functions(path)]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"README.md:{claim.line}")
def test_a_claim_names_a_test_that_exists(claim: Claim) -> None:
    assert claim.tests, f"no proof: {claim.text}"
    assert all(name.startswith("test_") for _, name in claim.tests)
    assert unproven(claim) == [], "there is no such test (any more)"


def test_there_are_claims() -> None:
    assert len(CLAIMS) >= 15


def test_a_claim_whose_test_is_gone_is_found() -> None:
    row = "| it hangs | it ends | `tests/docs/test_claims.py::test_that_nobody_wrote` |"
    (claim,) = claims(f"{HEADER}\n|---|---|---|\n{row}\n")
    assert unproven(claim) == ["tests/docs/test_claims.py::test_that_nobody_wrote"]
    (claim,) = claims(f"{HEADER}\n|---|---|---|\n| it hangs | it ends | we promise |\n")
    assert claim.tests == []
