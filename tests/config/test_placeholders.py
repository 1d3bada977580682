from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stockade import ConfigError, StdioServer
from stockade._config import load


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITY", "Oslo")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("NESTED", "${CITY}")
    monkeypatch.setenv("file", "not this")
    monkeypatch.delenv("UNSET", raising=False)


def expanded(text: str) -> str:
    return StdioServer.from_config({"command": "cat", "args": [text]}).args[0]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("${CITY}", "Oslo"),
        ("${env:CITY}", "Oslo"),
        ("in ${CITY}, ${env:CITY}!", "in Oslo, Oslo!"),
        ("${EMPTY}", ""),
        ("${CITY:-Rome}", "Oslo"),
        ("${EMPTY:-Rome}", ""),
        ("${UNSET:-Rome}", "Rome"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b, c}", "a:-b, c"),
        ("${env:UNSET:-Rome}", "Rome"),
        ("${NESTED}", "${CITY}"),
        ("$CITY", "$CITY"),
        ("$$", "$$"),
        ("{CITY}", "{CITY}"),
        ("%CITY%", "%CITY%"),
        ("a}b{c", "a}b{c"),
        ("${/}", os.sep),
        ("${pathSeparator}", os.sep),
    ],
)
def test_what_a_placeholder_means(text: str, meaning: str) -> None:
    assert expanded(text) == meaning


def test_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")

    assert expanded("${userHome}/data") == "/home/ada/data"


def test_all_four_parts_are_expanded() -> None:
    entry = {"command": "${CITY}", "args": ["${CITY}"], "cwd": "/${CITY}", "env": {"A": "${CITY}"}}

    assert StdioServer.from_config(entry) == StdioServer("Oslo", ["Oslo"], cwd="/Oslo", env={"A": "Oslo"})


def test_names_of_variables_are_not_expanded() -> None:
    assert dict(StdioServer.from_config({"command": "x", "env": {"${CITY}": "1"}}).env) == {"${CITY}": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "${input:token}",
        "${workspaceFolder}",
        "${workspaceFolder:api}",
        "${file}",
        "${config:editor.fontSize}",
        "${command:pick}",
        "${CLAUDE PLUGIN}",
        "${}",
        "${env:}",
        "${CITY:+x}",
        "${CITY-x}",
        "${CITY#O}",
        "${1}",
        "${CITY",
        "${UNSET:-${CITY}}",
        "fine ${CITY} and ${bad:er}",
    ],
)
def test_what_has_no_exact_meaning_is_an_error_that_names_the_key(text: str) -> None:
    for entry, key in (
        ({"command": text}, "command"),
        ({"command": "x", "args": ["ok", text]}, "args[1]"),
        ({"command": "x", "cwd": text}, "cwd"),
        ({"command": "x", "env": {"TOKEN": text}}, "env['TOKEN']"),
    ):
        with pytest.raises(ConfigError) as raised:
            StdioServer.from_config(entry, name="files")

        assert key in str(raised.value)
        assert "files" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("${API_KEY-hunter2}", "'${API_KEY…}'"),
        ("letmein${x!hunter2}", "'${x…}'"),
        ("${!hunter2}", "'${…}'"),
        ("${config:editor.hunter2}", "'${config:editor…}'"),
        ("${hunter2", "without its own }"),
    ],
)
def test_of_a_wrong_placeholder_no_more_than_a_name_is_quoted(text: str, shown: str) -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer.from_config({"command": "x", "env": {"TOKEN": text}})

    assert shown in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert raised.value.remedy


def test_a_user_without_a_home_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)

    with pytest.raises(ConfigError, match="no home folder"):
        expanded("${userHome}/data")


def test_an_unset_variable_is_an_error_that_names_it() -> None:
    for text in ("${UNSET}", "${env:UNSET}"):
        with pytest.raises(ConfigError, match="UNSET") as raised:
            expanded(text)

        assert raised.value.code == "config-variable-unset"


@pytest.mark.parametrize("folder", [".vscode", ".cursor"])
def test_the_workspace_is_the_folder_that_holds_the_clients_own(folder: str, tmp_path: Path) -> None:
    file = tmp_path / folder / "mcp.json"
    file.parent.mkdir()
    entry = {"command": "${workspaceFolder}/run", "args": ["${workspaceFolderBasename}"]}
    file.write_text(json.dumps({"servers": {"a": entry}}))

    server = load(file, "a").server()

    assert server.command == f"{tmp_path}/run"
    assert server.args == (tmp_path.name,)


def test_elsewhere_there_is_no_workspace(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"servers": {"a": {"command": "${workspaceFolder}/run"}}}))

    with pytest.raises(ConfigError, match="workspaceFolder"):
        load(file, "a")


def test_arguments_can_be_shown_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"servers": {"a": {"command": "x", "args": ["--city=${CITY}", "plain"]}}}))

    entry = load(file, "a")

    assert entry.args == ("--city=Oslo", "plain")
    assert entry.shown_args == ("--city=${CITY}", "plain")
