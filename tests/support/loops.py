"""Run a coroutine in the event loop of the backend."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from codex_fakes.backend.loop.tasks import Loop

T = TypeVar("T")


def run_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of the coroutine. Fail if the loop reported an exception."""
    reported: list[Exception] = []
    result = Loop(reported.append).run(coroutine)
    assert reported == []
    return result
