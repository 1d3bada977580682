from __future__ import annotations

from typing import Any

import pytest

from stockade import ConfigError, StdioServer


def test_an_entry_as_most_clients_write_it() -> None:
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "x"}, "cwd": "/srv"}

    server = StdioServer.from_config(entry, name="files")

    assert server == StdioServer("npx", ["-y", "server"], env={"TOKEN": "x"}, cwd="/srv", name="files")


def test_a_command_is_enough() -> None:
    assert StdioServer.from_config({"command": "cat"}) == StdioServer("cat")


def test_null_says_nothing() -> None:
    entry = {"command": "cat", "args": None, "env": None, "cwd": None, "type": None, "url": None}

    assert StdioServer.from_config(entry) == StdioServer("cat")


def test_the_mode_is_the_callers() -> None:
    assert StdioServer.from_config({"command": "cat"}, inherit="all").inherit == "all"


@pytest.mark.parametrize(
    "extra",
    [
        {"type": "stdio"},
        {"transport": "stdio"},
        {"transportType": "stdio"},
        {"type": "local", "tools": ["*"]},
        {"disabled": True, "alwaysAllow": ["a"], "timeout": 60, "watchPaths": ["/x"], "disabledTools": ["b"]},
        {"autoApprove": ["a"], "disabled": False},
        {"trust": True, "includeTools": ["a"], "excludeTools": ["b"], "description": "x"},
        {"enabled": True, "source": "custom"},
        {"startup_timeout_sec": 20, "tool_timeout_sec": 60, "enabled_tools": ["a"]},
        {"dev": {"watch": "src/**"}},
        {"_comment": "mine", "//": "a note", "$schema": "x"},
        {"url": "", "headers": {}, "envFile": "", "sandboxEnabled": False},
        {"encoding": "utf-8"},
    ],
    ids="+".join,
)
def test_what_only_the_client_acts_on_is_ignored(extra: dict[str, Any]) -> None:
    assert StdioServer.from_config({"command": "cat", **extra}) == StdioServer("cat")


def test_a_whole_number_as_a_variable_is_its_digits() -> None:
    assert StdioServer.from_config({"command": "cat", "env": {"PORT": 8080}}).env["PORT"] == "8080"


def test_zeds_older_form() -> None:
    entry = {"command": {"path": "npx", "args": ["-y"], "env": {"A": "1"}}, "settings": {}}

    assert StdioServer.from_config(entry) == StdioServer("npx", ["-y"], env={"A": "1"})


WRONG: dict[str, tuple[Any, str]] = {
    "a text": ("npx", "object"),
    "a list": (["npx"], "object"),
    "nothing": (None, "object"),
    "no command": ({"args": []}, "command"),
    "a command of null": ({"command": None}, "command"),
    "a blank command": ({"command": " "}, "blank"),
    "a list as command": ({"command": ["npx"]}, "command"),
    "args as text": ({"command": "x", "args": "-y"}, "args"),
    "args as object": ({"command": "x", "args": {"a": 1}}, "args"),
    "a number in args": ({"command": "x", "args": ["-p", 80]}, r"args\[1\]"),
    "null in args": ({"command": "x", "args": [None]}, r"args\[0\]"),
    "env as list": ({"command": "x", "env": ["A=1"]}, "env"),
    "null in env": ({"command": "x", "env": {"A": None}}, r"env\['A'\]"),
    "true in env": ({"command": "x", "env": {"A": True}}, r"env\['A'\]"),
    "a fraction in env": ({"command": "x", "env": {"A": 1.5}}, r"env\['A'\]"),
    "= in a name": ({"command": "x", "env": {"A=B": "1"}}, "="),
    "cwd as number": ({"command": "x", "cwd": 3}, "cwd"),
    "http": ({"type": "http", "url": "https://x"}, "type"),
    "sse": ({"type": "sse", "url": "https://x"}, "type"),
    "an unknown type": ({"command": "x", "type": "carrier-pigeon"}, "type"),
    "a type that isn't text": ({"command": "x", "type": 3}, "type"),
    "a transport": ({"command": "x", "transport": "streamable-http"}, "transport"),
    "url": ({"url": "https://x"}, "url says"),
    "url beside a command": ({"command": "x", "url": "https://x"}, "url says"),
    "serverUrl": ({"serverUrl": "https://x"}, "serverUrl says"),
    "httpUrl": ({"httpUrl": "https://x"}, "httpUrl says"),
    "headers": ({"command": "x", "headers": {"Authorization": "y"}}, "headers says"),
    "a file of variables": ({"command": "x", "envFile": ".env"}, "envFile"),
    "a sandbox": ({"command": "x", "sandboxEnabled": True}, "sandboxEnabled"),
    "a misspelt key": ({"command": "x", "arg": ["-y"]}, "'arg'"),
    "another encoding": ({"command": "x", "encoding": "latin-1"}, "encoding"),
}


@pytest.mark.parametrize(("entry", "names"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(entry: Any, names: str) -> None:
    with pytest.raises(ConfigError, match=names) as raised:
        StdioServer.from_config(entry, name="files")

    assert "files" in str(raised.value)


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ("npx", '{"command": "npx"'),
        ({"command": ["npx", "-y"]}, "a list of their own, args"),
        ({"command": "x", "args": "-y x"}, "an item of its own"),
        ({"command": "x", "args": [80]}, "in quotes"),
        ({"command": "x", "env": ["A=1"]}, '{"NAME": "value"}'),
        ({"command": "x", "env": {"A": 1.5}}, "in quotes"),
        ({"command": "x", "env": {"A": None}}, "Leave it out"),
        ({"url": "https://x"}, "started locally"),
        ({"type": "http"}, "started locally"),
        ({"mcpServers": {"a": {"command": "x"}}}, "document['mcpServers'][NAME]"),
    ],
)
def test_the_error_says_what_to_do(entry: Any, remedy: str) -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer.from_config(entry)

    assert remedy in raised.value.remedy


def test_an_unknown_key_without_a_value_says_nothing() -> None:
    for value in (None, False, "", [], {}):
        assert StdioServer.from_config({"command": "cat", "arg": value}) == StdioServer("cat")


def test_no_value_stands_in_an_error() -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer.from_config({"command": "x", "env": {"TOKEN": "hunter2\0"}})

    assert "hunter2" not in str(raised.value)
