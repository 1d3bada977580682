from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import stockade


@pytest.mark.parametrize("name", stockade.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(importlib.import_module("stockade"), name) is not None


def test_the_public_names_are_listed() -> None:
    assert set(stockade.__all__) <= set(dir(stockade))


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Inventor"):
        stockade.Inventor  # noqa: B018


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys; old = set(sys.modules); import stockade; print(*sorted(set(sys.modules) - old))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    # `typing` and what it needs come with any program that has type hints.
    assert not {name for name in shown.split() if name.startswith("stockade.")}
    assert not {"mcp", "anyio", "asyncio", "pydantic", "pathlib", "json", "logging"} & set(shown.split())
