from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stockade import ConfigError, Shutdown, StdioServer, resolve
from stockade._server import checked_shutdown, checked_timeout

SECRET = "hunter2-7f3a"


def full() -> StdioServer:
    return StdioServer(
        "npx",
        ["-y", "server", f"--token={SECRET}"],
        cwd="/srv",
        env={"TOKEN": SECRET, "MODE": "x"},
        inherit=["HTTPS_PROXY", "XDG_*"],
        name="files",
    )


def test_it_keeps_what_it_was_given() -> None:
    server = full()

    assert server.command == "npx"
    assert server.args == ("-y", "server", f"--token={SECRET}")
    assert server.cwd == "/srv"
    assert dict(server.env) == {"TOKEN": SECRET, "MODE": "x"}
    assert server.inherit == ("HTTPS_PROXY", "XDG_*")
    assert server.name == "files"


def test_the_defaults() -> None:
    server = StdioServer("cat")

    assert (server.args, server.cwd, dict(server.env), server.inherit, server.name) == ((), None, {}, "safe", None)


def test_paths_are_taken_for_texts(tmp_path: Path) -> None:
    server = StdioServer(tmp_path / "server", [tmp_path / "data"], cwd=tmp_path)

    assert server.command == str(tmp_path / "server")
    assert server.args == (str(tmp_path / "data"),)
    assert server.cwd == str(tmp_path)


def test_texts_reach_the_executor_as_plain_str() -> None:
    class Text(str):
        __slots__ = ()

    server = StdioServer(Text("cat"), [Text("-n")], env={Text("A"): Text("b")}, name=Text("x"))

    kinds = {type(text) for text in (server.command, *server.args, *server.env, *server.env.values(), server.name)}
    assert kinds == {str}


def test_empty_arguments_and_values_are_kept() -> None:
    server = StdioServer("cat", ["", " ", ""], env={"EMPTY": ""})

    assert server.args == ("", " ", "")
    assert dict(server.env) == {"EMPTY": ""}


@pytest.mark.parametrize("name", ["command", "args", "cwd", "env", "inherit", "name", "label", "invented"])
def test_nothing_can_be_set_on_it(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(full(), name, "x")


def test_its_env_is_a_read_only_copy() -> None:
    given = {"A": "1"}
    server = StdioServer("cat", env=given)
    given["A"] = "2"

    assert server.env["A"] == "1"
    with pytest.raises(TypeError):
        server.env["A"] = "3"  # type: ignore[index]


def test_it_is_equal_and_hashes_by_value() -> None:
    assert full() == full()
    assert hash(full()) == hash(full())
    assert {full(), full()} == {full()}
    assert full() != "npx"


@pytest.mark.parametrize(
    "change",
    [
        {"command": "node"},
        {"args": []},
        {"cwd": None},
        {"env": {"TOKEN": "other", "MODE": "x"}},
        {"inherit": "all"},
        {"name": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_part_counts_for_equality(change: dict[str, Any]) -> None:
    assert full().replace(**change) != full()


def test_the_order_of_variables_does_not_count() -> None:
    one, other = StdioServer("a", env={"A": "1", "B": "2"}), StdioServer("a", env={"B": "2", "A": "1"})

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_pickles(protocol: int) -> None:
    again = pickle.loads(pickle.dumps(full(), protocol))

    assert again == full()
    assert again.inherit == full().inherit


def test_copies_are_the_same_object() -> None:
    server = full()

    assert copy.copy(server) is server
    assert copy.deepcopy([server])[0] is server


def test_replace_checks_and_leaves_the_original() -> None:
    server = full()

    assert server.replace(cwd="/tmp").cwd == "/tmp"
    assert server.cwd == "/srv"
    with pytest.raises(ConfigError):
        server.replace(command="")
    with pytest.raises(TypeError, match="arguments"):
        server.replace(arguments=[])


def test_it_matches_a_pattern() -> None:
    match StdioServer("npx", ["-y"]):
        case StdioServer(command, args):
            assert (command, args) == ("npx", ("-y",))


def test_its_repr_names_variables_and_shows_no_values() -> None:
    for text in (repr(full()), str(full()), f"{full()}"):
        assert SECRET not in text
        assert "TOKEN" in text
        assert "'npx'" in text
        assert "'files'" in text


def test_a_plain_servers_repr_is_short() -> None:
    assert repr(StdioServer("cat")) == "StdioServer('cat')"


@pytest.mark.parametrize(
    ("server", "label"),
    [
        (StdioServer("npx", name="files"), "files"),
        (StdioServer("npx"), "npx"),
        (StdioServer("/usr/bin/npx"), "npx"),
        (StdioServer("/"), "/"),
    ],
)
def test_its_label_is_never_empty(server: StdioServer, label: str) -> None:
    assert server.label == label


WRONG: dict[str, dict[str, Any]] = {
    "command: nothing": {"command": None},
    "command: bytes": {"command": b"cat"},
    "command: a number": {"command": 3},
    "command: a list": {"command": ["cat"]},
    "command: empty": {"command": ""},
    "command: blank": {"command": " \t"},
    "command: NUL": {"command": "c\0at"},
    "command: lone surrogate": {"command": "c\ud800at"},
    "args: a text": {"args": "-y"},
    "args: bytes": {"args": b"-y"},
    "args: nothing": {"args": None},
    "args: a number": {"args": 3},
    "args: a set": {"args": {"-y"}},
    "args: a number inside": {"args": ["-p", 8080]},
    "args: bytes inside": {"args": [b"-y"]},
    "args: nothing inside": {"args": [None]},
    "args: NUL": {"args": ["a\0b"]},
    "args: lone surrogate": {"args": ["a\ud800"]},
    "cwd: bytes": {"cwd": b"/tmp"},
    "cwd: a number": {"cwd": 3},
    "cwd: empty": {"cwd": ""},
    "cwd: NUL": {"cwd": "/t\0mp"},
    "env: a list": {"env": [("A", "1")]},
    "env: a text": {"env": "A=1"},
    "env: a name of bytes": {"env": {b"A": "1"}},
    "env: a value of bytes": {"env": {"A": b"1"}},
    "env: a number": {"env": {"A": 1}},
    "env: nothing": {"env": {"A": None}},
    "env: an empty name": {"env": {"": "1"}},
    "env: = in a name": {"env": {"A=B": "1"}},
    "env: NUL in a name": {"env": {"A\0": "1"}},
    "env: NUL in a value": {"env": {"A": "1\0"}},
    "env: lone surrogate": {"env": {"A": "\udfff"}},
    "inherit: an unknown mode": {"inherit": "some"},
    "inherit: a name as a text": {"inherit": "HTTPS_PROXY"},
    "inherit: nothing": {"inherit": None},
    "inherit: true": {"inherit": True},
    "inherit: a number inside": {"inherit": [3]},
    "inherit: an empty name": {"inherit": [""]},
    "inherit: = in a name": {"inherit": ["A=1"]},
    "inherit: NUL in a name": {"inherit": ["A\0"]},
    "inherit: a mode in a list": {"inherit": ["all"]},
    "inherit: a mode in capitals in a list": {"inherit": ["HTTPS_PROXY", "SAFE"]},
    "name: bytes": {"name": b"x"},
    "name: empty": {"name": ""},
    "name: blank": {"name": "  "},
    "name: a newline": {"name": "a\nb"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_a_config_error_when_it_is_built(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer(**{"command": "cat", **wrong})

    assert raised.value.stage == "resolve"
    assert str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"args": ["fine", f"{SECRET}\0"]},
        {"args": [f"{SECRET}\ud800"]},
        {"args": [SECRET.encode()]},
        {"env": {"TOKEN": f"{SECRET}\0"}},
        {"env": {"TOKEN": f"{SECRET}\ud800"}},
        {"env": {"TOKEN": SECRET.encode()}},
        {"inherit": SECRET},
    ],
)
def test_no_value_stands_in_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer("cat", **wrong)

    for text in (str(raised.value), repr(raised.value), repr(raised.value.args), repr(raised.value.__dict__)):
        assert SECRET not in text


def test_a_single_name_as_text_says_how_to_write_it() -> None:
    with pytest.raises(ConfigError, match=r'inherit=\["NAME"\]'):
        StdioServer("cat", inherit="HTTPS_PROXY")


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ({"command": ["npx", "-y"]}, "StdioServer(command, [argument, …])"),
        ({"args": "-y x"}, "an item of its own"),
        ({"args": ["-p", 80]}, "in quotes"),
        ({"args": [b"x"]}, "os.fsdecode"),
        ({"env": {"PORT": 80}}, "in quotes"),
        ({"env": {"PORT": None}}, "Leave the variable out"),
        ({"env": ["A=1"]}, 'env={"NAME": "value"}'),
        ({"inherit": ["ALL"]}, 'inherit="all"'),
    ],
)
def test_a_wrong_type_says_what_to_write(wrong: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer(**{"command": "cat", **wrong})

    assert remedy in raised.value.remedy


@pytest.mark.parametrize("given", ["cat", {"command": "cat"}, None, 3, ["cat"]])
def test_resolve_takes_nothing_but_a_server(given: Any) -> None:
    with pytest.raises(ConfigError, match="resolve takes a StdioServer") as raised:
        resolve(given)

    assert raised.value.remedy


def test_what_is_given_as_shutdown_or_timeout_is_checked() -> None:
    assert checked_shutdown(None) == Shutdown()
    assert checked_shutdown(Shutdown(1)) == Shutdown(1)
    assert (checked_timeout(None, "t"), checked_timeout(3, "t")) == (None, 3.0)
    for wrong in (3, "3", {"close_grace": 3}):
        with pytest.raises(ConfigError, match="shutdown must be a Shutdown"):
            checked_shutdown(wrong)
    for wrong in ("5", timedelta(seconds=5), True, 0, -1, float("nan"), float("inf"), 1e300):
        with pytest.raises(ConfigError, match="some_timeout must be"):
            checked_timeout(wrong, "some_timeout")


def test_a_grace_that_no_clock_can_hold_is_refused() -> None:
    assert Shutdown(close_grace=1e9).close_grace == 1e9
    with pytest.raises(ConfigError, match="close_grace must be at most"):
        Shutdown(close_grace=1e300)
