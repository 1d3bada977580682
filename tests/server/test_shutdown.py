from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from stockade import ConfigError, Shutdown


def test_the_defaults() -> None:
    shutdown = Shutdown()

    assert (shutdown.close_grace, shutdown.terminate_grace, shutdown.kill_wait) == (2.0, 2.0, 2.0)
    assert shutdown.descendants == "kill"


def test_it_is_a_value() -> None:
    shutdown = Shutdown(0, 1.5, kill_wait=3, descendants="leave")

    assert shutdown == Shutdown(0.0, 1.5, 3.0, "leave")
    assert hash(shutdown) == hash(Shutdown(0.0, 1.5, 3.0, "leave"))
    assert shutdown != Shutdown()
    assert pickle.loads(pickle.dumps(shutdown)) == shutdown
    assert eval(repr(shutdown), {"Shutdown": Shutdown}) == shutdown
    with pytest.raises(AttributeError):
        shutdown.close_grace = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", ["close_grace", "terminate_grace", "kill_wait"])
@pytest.mark.parametrize("value", [-1, -0.001, math.nan, math.inf, "2", None, True, 10**400])
def test_a_wrong_time_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        Shutdown(**{name: value})


@pytest.mark.parametrize("value", ["keep", None, True, ["kill"]])
def test_descendants_are_killed_or_left(value: Any) -> None:
    with pytest.raises(ConfigError, match="descendants"):
        Shutdown(descendants=value)
