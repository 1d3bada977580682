"""Runs a coroutine and interferes at its n-th suspension: how a cancellation is tried at every await point."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Stepped:
    """Awaitable; calls `interfere` when `coroutine` suspends for the `at`-th time (from 0)."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], at: int, interfere: Callable[[], object]) -> None:
        self._coroutine = coroutine
        self._at = at
        self._interfere = interfere
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        try:
            waiting = next(inner)
        except StopIteration as stop:
            return stop.value
        while True:
            if self.suspensions == self._at:
                self._interfere()
            self.suspensions += 1
            try:
                value = yield waiting
            except BaseException as error:
                try:
                    waiting = inner.throw(error)
                except StopIteration as stop:
                    return stop.value
            else:
                try:
                    waiting = inner.send(value)
                except StopIteration as stop:
                    return stop.value
