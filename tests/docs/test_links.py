"""What the pages point to is there: links, the files that ARCHITECTURE.md names, the unsafe code of SAFETY.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.node import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"`([\w./-]+\.(?:rs|py))`")
# Where ARCHITECTURE.md and SAFETY.md look for a name, as the former says.
ROOMS = [
    ROOT,
    *(ROOT / room for room in ("rust/stockade/src", "rust/stockade", "python/stockade", "tests")),
]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name}: {target}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "SAFETY.md"])
def test_every_file_that_is_named_exists(page: str) -> None:
    names = FILE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert names
    missing = [name for name in names if not any((room / name).is_file() for room in ROOMS)]
    assert missing == []


def test_all_unsafe_code_is_in_the_table_of_safety() -> None:
    table = (ROOT / "SAFETY.md").read_text(encoding="utf-8")
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    rooms = [f"/{room}" for cell in first_cells for room in re.findall(r"`([^`]+)`", cell)]
    assert all(room.endswith(("/", ".rs")) for room in rooms)
    for source in sorted((ROOT / "rust").rglob("*.rs")):
        name = str(source.relative_to(ROOT))
        text = re.sub(r"^\s*//.*$", "", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if re.search(r"\bunsafe\b", text) and "tests" not in name:
            listed = any(room in f"/{name}" if room.endswith("/") else f"/{name}".endswith(room) for room in rooms)
            assert listed, f"{name} has unsafe code and isn't in SAFETY.md"


def test_the_pages_are_found() -> None:
    assert {"README.md", "ARCHITECTURE.md", "errors.md"} <= {page.name for page in PAGES}
