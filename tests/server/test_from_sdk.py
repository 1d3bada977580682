from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from mcp import StdioServerParameters

from stockade import ConfigError, StdioServer


def test_everything_is_taken_over() -> None:
    params = StdioServerParameters(command="npx", args=["-y", "x"], env={"A": "1"}, cwd="/srv")

    assert StdioServer.from_sdk(params) == StdioServer("npx", ["-y", "x"], env={"A": "1"}, cwd="/srv")


def test_the_defaults_are_the_sdks() -> None:
    assert StdioServer.from_sdk(StdioServerParameters(command="npx")) == StdioServer("npx")


def test_a_path_as_working_directory(tmp_path: Path) -> None:
    assert StdioServer.from_sdk(StdioServerParameters(command="npx", cwd=tmp_path)).cwd == str(tmp_path)


def test_mode_and_name_are_the_callers() -> None:
    server = StdioServer.from_sdk(StdioServerParameters(command="npx"), inherit="none", name="files")

    assert (server.inherit, server.name) == ("none", "files")


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "utf8", "utf_8"])
def test_utf_8_by_any_name(encoding: str) -> None:
    assert StdioServer.from_sdk(StdioServerParameters(command="x", encoding=encoding)) == StdioServer("x")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "ascii"])
def test_another_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(ConfigError, match="UTF-8"):
        StdioServer.from_sdk(StdioServerParameters(command="x", encoding=encoding))


def test_what_the_sdk_let_through_is_checked() -> None:
    with pytest.raises(ConfigError):
        StdioServer.from_sdk(StdioServerParameters(command=" "))
    with pytest.raises(ConfigError):
        StdioServer.from_sdk(StdioServerParameters(command="x", env={"A=B": "1"}))


@pytest.mark.parametrize("params", [None, {"command": "x"}, "x", SimpleNamespace(command="x")])
def test_something_else_is_refused(params: object) -> None:
    with pytest.raises(ConfigError, match="StdioServerParameters"):
        StdioServer.from_sdk(params)  # type: ignore[arg-type]
