from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stockade import ConfigError, StdioServer
from stockade._config import load

ENTRY = {"command": "npx", "args": ["-y"]}


def written(folder: Path, document: Any) -> Path:
    file = folder / "mcp.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"files": ENTRY}},
        {"inputs": [], "servers": {"files": ENTRY}},
        {"theme": "x", "context_servers": {"files": ENTRY}},
        {"mcp": {"servers": {"files": ENTRY}}},
        {"amp.mcpServers": {"files": ENTRY}},
        {"mcpServers": {"other": ENTRY}, "servers": {"files": ENTRY}},
        {"mcpServers": None, "servers": {"files": ENTRY}},
        {"mcpServers": {"broken": {"url": "https://x"}, "files": ENTRY}},
    ],
    ids=["most", "VS Code", "Zed", "VS Code settings", "Amp", "two sections", "null", "beside a broken one"],
)
def test_the_server_is_found_where_clients_keep_it(document: dict[str, Any], tmp_path: Path) -> None:
    server = load(written(tmp_path, document), "files").server()

    assert server == StdioServer("npx", ["-y"], name="files")


def test_comments_and_trailing_commas_are_allowed(tmp_path: Path) -> None:
    text = """
    // kept by hand
    {
      "servers": {
        /* the one
           that matters */
        "files": {
          "command": "npx", // from npm
          "args": ["https://x//y", "/* kept */", "a,]",], // all three
        },
      },
    }
    """

    assert load(written(tmp_path, text), "files").args == ("https://x//y", "/* kept */", "a,]")


def test_what_stands_twice_elsewhere_is_none_of_our_business(tmp_path: Path) -> None:
    text = (
        '{"theme": 1, "theme": 2, "servers": {"other": {}, "other": {}, "files": {"command": "npx", "args": ["-y"]}}}'
    )

    assert load(written(tmp_path, text), "files").command == "npx"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encodings_that_editors_write(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(json.dumps({"servers": {"blåbær": ENTRY}}, ensure_ascii=False).encode(encoding))

    assert load(file, "blåbær").name == "blåbær"


def test_text_and_path_both_name_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, {"servers": {"files": ENTRY}})

    assert load(str(file), "files") == load(file, "files")


WRONG: dict[str, tuple[Any, str]] = {
    "not JSON": ("{", "line 1"),
    "the right line": ('{\n // x\n "servers": nope\n}', "line 3, column 13"),
    "empty": ("", "JSON"),
    "a list": ("[]", "object"),
    "no servers": ({"other": {}}, "mcpServers"),
    "servers as a list": ({"servers": [ENTRY]}, "servers must be an object"),
    "mcp as a text": ({"mcp": "x"}, "mcp must be an object"),
    "no such server": ({"servers": {"file": ENTRY, "time": ENTRY}}, "It has: file, time"),
    "none at all": ({"servers": {}}, "none"),
    "the same name twice": ({"servers": {"files": ENTRY}, "mcpServers": {"files": ENTRY}}, "several"),
    "an entry that isn't one": ({"servers": {"files": "npx"}}, "'files': expected an object"),
    "a wrong key": ({"servers": {"files": {"command": "x", "args": "y"}}}, "'files': args"),
    "a blank command": ({"servers": {"files": {"command": ""}}}, "'files': .*blank"),
    "an entry twice": (
        '{"servers": {"files": {"command": "a"}, "files": {"command": "b"}}}',
        "'files' stands there twice",
    ),
    "a section twice": ('{"servers": {"files": {"command": "a"}}, "servers": {}}', "'servers' stands there twice"),
    "a key twice": ('{"servers": {"files": {"command": "a", "command": "b"}}}', "'command' stands there twice"),
    "a variable twice": (
        '{"servers": {"files": {"command": "a", "env": {"A": "1", "A": "2"}}}}',
        "env: the key 'A' stands there twice",
    ),
    "nested too deep": ('{"servers":' * 100_000, "deep"),
}


@pytest.mark.parametrize(("document", "names"), WRONG.values(), ids=WRONG)
def test_an_unusable_file_is_named_with_what_is_wrong(document: Any, names: str, tmp_path: Path) -> None:
    file = written(tmp_path, document)

    with pytest.raises(ConfigError, match=names) as raised:
        load(file, "files").server()

    assert str(file) in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for file in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(ConfigError, match="can't be read") as raised:
            load(file, "files")

        assert str(file) in str(raised.value)


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    big = tmp_path / "mcp.json"
    with big.open("wb") as file:
        file.truncate(5 * 1024 * 1024)

    for path in (big, Path("/dev/zero")):
        with pytest.raises(ConfigError, match="has more than") as raised:
            load(path, "files")
        assert raised.value.code == "config-unreadable"


def test_a_path_with_a_nul_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load("a\0b", "files")


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b'{"servers": "\xff\xfe\xfa"}')

    with pytest.raises(ConfigError, match="UTF-8"):
        load(file, "files")


def test_no_value_of_the_file_stands_in_an_error(tmp_path: Path) -> None:
    secret = "hunter2"
    for entry in (
        {"command": "x", "env": {"TOKEN": f"{secret}\0"}},
        {"command": "x", "env": {"TOKEN": [secret]}},
        {"command": "x", "token": secret},
        {"command": "x", "headers": {"Authorization": secret}},
    ):
        with pytest.raises(ConfigError) as raised:
            load(written(tmp_path, {"servers": {"files": entry}}), "files").server()

        assert secret not in str(raised.value)
