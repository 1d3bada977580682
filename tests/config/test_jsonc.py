from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade._jsonc import plain

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('/*",]}\\\n ab', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('/*",\\', max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "text",
    ['"' + '\\"' * 500_000, "/*" * 500_000, ", " * 500_000, '"\\","' * 200_000, '"' + "x" * 2_000_000 + '"', '"\\'],
    ids=["escapes without an end", "comments without an end", "commas", "strings", "a long string", "a last backslash"],
)
def test_it_takes_no_longer_than_the_text_is_long(text: str) -> None:
    began = time.process_time()

    assert len(plain(text)) == len(text)
    # Quadratic would be an hour.
    assert time.process_time() - began < 10


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_strict_json_stays_as_it_is(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)

    assert plain(text) == text


@given(st.data(), VALUES)
def test_comments_anywhere_between_tokens_change_nothing(data: st.DataObject, value: Any) -> None:
    blanks = st.sampled_from(["", " ", "\n", '// a "b" ,]\n', '/* c " ,} */', "/**/", "/*\n*/"])

    def render(part: Any) -> str:
        gap = data.draw(blanks)
        comma = data.draw(st.sampled_from([",", ""]))
        if isinstance(part, list) and part:
            return gap + "[" + ",".join(render(item) for item in part) + comma + data.draw(blanks) + "]" + gap
        if isinstance(part, dict) and part:
            members = [f"{gap}{json.dumps(key)}{gap}:{render(item)}" for key, item in part.items()]
            return gap + "{" + ",".join(members) + comma + data.draw(blanks) + "}" + gap
        return gap + json.dumps(part) + gap

    text = render(value)
    strict = plain(text)

    assert json.loads(strict) == value
    assert len(strict) == len(text)
    assert [at for at, char in enumerate(strict) if char == "\n"] == [
        at for at, char in enumerate(text) if char == "\n"
    ]
