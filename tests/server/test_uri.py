from __future__ import annotations

import sys
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stockade import ConfigError, StdioServer

# What a program can be given: no NUL, no lone surrogate.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,8}", fullmatch=True)
COMMANDS = TEXTS.filter(str.strip)


def parsed(query: str, host: str = "") -> StdioServer:
    return StdioServer.from_uri(f"stdio://{host}?{query}")


def encoded(text: str, draw: st.DrawFn) -> str:
    """The text, with more or less of it percent-encoded."""
    safe = draw(st.sampled_from(["", "+", "=+/:@ é"]))
    return quote(text, safe=safe)


@st.composite
def endpoints(draw: st.DrawFn) -> tuple[str, StdioServer]:
    command = draw(COMMANDS)
    args = draw(st.lists(TEXTS, max_size=4))
    cwd = draw(st.none() | COMMANDS)
    env = draw(st.dictionaries(NAMES, TEXTS, max_size=3))

    def key(name: str) -> str:
        return "".join(draw(st.sampled_from([char.lower(), char.upper()])) for char in name)

    # The order of different keys says nothing; that within a key does.
    queues = [
        [f"{key('command')}={encoded(command, draw)}"],
        [f"{key('arg')}={encoded(arg, draw)}" for arg in args],
        [] if cwd is None else [f"{key('cwd')}={encoded(cwd, draw)}"],
        [f"{key('env')}={encoded(f'{name}={value}', draw)}" for name, value in env.items()],
    ]
    parts: list[str] = []
    while any(queues):
        parts.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return "stdio://?" + "&".join(parts), StdioServer(command, args, cwd=cwd, env=env)


@given(endpoints())
def test_what_is_written_is_what_is_read(endpoint: tuple[str, StdioServer]) -> None:
    uri, server = endpoint

    assert StdioServer.from_uri(uri) == server


@given(st.text(max_size=40))
@example("?command=a&command=\ud800")
@example("?command=%ed%a0%80")
@example("?arg=%00&command=a")
@example("[::1]:80/?x")
def test_any_text_is_a_server_or_a_config_error(text: str) -> None:
    for uri in (f"stdio://{text}", f"stdio://host?{text}", text):
        try:
            server = StdioServer.from_uri(uri)
        except ConfigError:
            pass
        else:
            assert server.command.strip()


@given(TEXTS, st.sampled_from(["arg", "cwd", "env"]))
def test_decoding_happens_once(text: str, key: str) -> None:
    twice = quote(quote("%" + text, safe=""), safe="")
    prefix = "N%3D" if key == "env" else ""

    server = parsed(f"command=x&{key}={prefix}{twice}")

    once = quote("%" + text, safe="")
    assert (server.args or (server.cwd or server.env.get("N"),))[0] == once


def test_every_argument_is_kept_in_order_empty_ones_too() -> None:
    assert parsed("arg=&command=x&arg=b&arg=a&arg=").args == ("", "b", "a", "")


def test_a_plus_is_a_plus() -> None:
    server = parsed("command=a+b&arg=c%2Bd+e&env=A%3D1+2")

    assert server.command == "a+b"
    assert server.args == ("c+d+e",)
    assert server.env["A"] == "1+2"


def test_the_first_equals_sign_separates() -> None:
    server = parsed("command=x&arg=--a=b=c&env=A=1=2")

    assert server.args == ("--a=b=c",)
    assert server.env["A"] == "1=2"


@pytest.mark.parametrize("key", ["ARG", "Arg", "%61rg", "%41RG"])
def test_keys_are_decoded_and_case_does_not_count(key: str) -> None:
    assert parsed(f"command=x&{key}=y").args == ("y",)


@pytest.mark.parametrize("scheme", ["stdio", "STDIO", "Stdio"])
def test_the_schemes_case_does_not_count(scheme: str) -> None:
    assert StdioServer.from_uri(f"{scheme}://cat").command == "cat"


@pytest.mark.parametrize(
    ("uri", "command"),
    [
        ("stdio://cat", "cat"),
        ("stdio://Cat?", "Cat"),
        ("stdio://cat/?arg=x", "cat"),
        ("stdio://cat?command=", "cat"),
        ("stdio://cat?command=%20&command=%09", "cat"),
        ("stdio://cat?command=dog", "dog"),
        ("stdio://cat?command=&command=dog&command=cow", "dog"),
        ("stdio://?command=/usr/bin/cat", "/usr/bin/cat"),
        ("stdio://my%20cat", "my cat"),
        ("stdio://%2Fusr%2Fbin%2Fcat", "/usr/bin/cat"),
    ],
)
def test_the_command_is_the_first_non_blank_one_else_the_host(uri: str, command: str) -> None:
    assert StdioServer.from_uri(uri).command == command


def test_absent_parts_are_inherited() -> None:
    server = StdioServer.from_uri("stdio://cat")

    assert (server.args, server.cwd, dict(server.env), server.inherit) == ((), None, {}, "safe")


def test_the_last_of_a_repeated_variable_wins() -> None:
    assert dict(parsed("command=x&env=A%3D1&env=B%3D&env=A%3D2").env) == {"A": "2", "B": ""}


def test_variables_that_differ_in_case_are_two_except_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dict(parsed("command=x&env=a%3D1&env=A%3D2").env) == {"a": "1", "A": "2"}

    monkeypatch.setattr(sys, "platform", "win32")

    assert dict(parsed("command=x&env=a%3D1&env=A%3D2").env) == {"A": "2"}


def test_mode_and_name_are_the_callers() -> None:
    server = StdioServer.from_uri("stdio://cat", inherit="all", name="kitty")

    assert (server.inherit, server.name) == ("all", "kitty")


WRONG = {
    "no command": "stdio://",
    "no command, only arguments": "stdio://?arg=x",
    "a blank host": "stdio://%20",
    "another scheme": "http://cat",
    "no scheme": "cat",
    "one slash": "stdio:/cat",
    "a path": "stdio://usr/bin/cat",
    "a fragment": "stdio://cat?arg=a#b",
    "an unknown key": "stdio://cat?argument=x",
    "a look-alike key": "stdio://cat?ar\u0261=x",
    "a capital look-alike": "stdio://cat?\u212a=x",
    "% at the end": "stdio://cat?arg=100%",
    "% before one digit": "stdio://cat?arg=%4",
    "% before no digits": "stdio://cat?arg=%zz",
    "% in a key": "stdio://cat?%zz=x",
    "% in the host": "stdio://%zz",
    "a byte that isn't UTF-8": "stdio://cat?arg=%ff",
    "an encoded surrogate": "stdio://cat?arg=%ED%A0%80",
    "an overlong form": "stdio://cat?arg=%C0%80",
    "a raw surrogate": "stdio://cat?arg=\ud800",
    "NUL": "stdio://cat?arg=%00",
    "a variable without =": "stdio://cat?env=A",
    "a variable without a name": "stdio://cat?env=%3Dx",
    "two folders": "stdio://cat?cwd=/a&cwd=/b",
}


@pytest.mark.parametrize("uri", WRONG.values(), ids=WRONG)
def test_what_breaks_the_grammar_is_a_config_error(uri: str) -> None:
    with pytest.raises(ConfigError):
        StdioServer.from_uri(uri)


@pytest.mark.parametrize("uri", [None, 3, b"stdio://cat", ["stdio://cat"]])
def test_only_text_is_an_endpoint(uri: object) -> None:
    with pytest.raises(ConfigError):
        StdioServer.from_uri(uri)  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["env=TOKEN%3Dhunter2%00", "env=hunter2", "env=TOKEN%3Dhunter2%ff", "arg=hunter2%"])
def test_no_value_stands_in_an_error(query: str) -> None:
    with pytest.raises(ConfigError) as raised:
        StdioServer.from_uri(f"stdio://cat?{query}")

    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "query",
    [
        "env=TOKEN%3Dabc&hunter2",
        "env=TOKEN%3Dabc&hunter2=x",
        "env=TOKEN%3Dabc&rest-of-hunter2=",
        "env=TOKEN%3Dabc&a-long-rest%3Dhunter2",
    ],
)
def test_the_rest_of_a_value_after_an_unescaped_ampersand_is_not_quoted(query: str) -> None:
    with pytest.raises(ConfigError, match=r"Part number 3 .* has no known key") as raised:
        parsed(f"command=x&{query}")

    assert "hunter2" not in str(raised.value)
    assert "%26" in str(raised.value)


def test_a_misspelt_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Part number 2 .*\('args'\)"):
        parsed("command=x&args=y")
