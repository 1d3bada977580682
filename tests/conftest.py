"""What holds for every test: three event loops, nothing left behind, examples that can be repeated."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

try:
    from tests.support.leaks import Held, leaked_since, start_executor
except ImportError as error:
    raise pytest.UsageError(f"the extension isn't built: run `make build` ({error})") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.support.fixtures"]

# The leak check is a function-scoped fixture of every test; it isn't meant to run between examples.
settings.register_profile(
    "dev", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


BACKENDS: dict[str, tuple[str, dict[str, object]]] = {
    "asyncio": ("asyncio", {"use_uvloop": False}),
    "uvloop": ("asyncio", {"use_uvloop": True}),
    "trio": ("trio", {}),
}


@pytest.fixture(scope="module", params=list(BACKENDS.values()), ids=list(BACKENDS))
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """Every coroutine test runs on each of the three.

    A test about one event loop says so: `@pytest.mark.parametrize("anyio_backend", ["trio"])`.
    """
    chosen: tuple[str, dict[str, object]] = request.param
    return chosen


@pytest.fixture(scope="session")
def _executor() -> None:
    start_executor()


@pytest.fixture(autouse=True)
def _nothing_left_behind(_executor: None, request: pytest.FixtureRequest) -> Iterator[None]:
    before = Held.now()
    yield
    marker = request.node.get_closest_marker("may_leak")
    if marker is not None:
        assert marker.kwargs.get("reason") or marker.args, "may_leak needs a reason"
        return
    left = leaked_since(before)
    assert not left, "left behind:\n  " + "\n  ".join(left)
