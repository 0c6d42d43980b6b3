"""What a coroutine can wait for: an event, some time, the end of a task."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Any

from codex_fakes.backend.loop.tasks import CancelledError, Future, Task, Timer, running_loop


class Event:
    """A flag that tasks wait for."""

    def __init__(self) -> None:
        self._set = False
        self._waiting: dict[Future[None], None] = {}  # in the order in which they came

    def is_set(self) -> bool:
        """Return True if the event is set."""
        return self._set

    def set(self) -> None:
        """Set the event, and resume all waiting tasks."""
        self._set = True
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """Let tasks wait again."""
        self._set = False

    async def wait(self) -> None:
        """Wait until the event is set."""
        if self._set:
            return
        future: Future[None] = Future()
        self._waiting[future] = None
        try:
            await future
        finally:
            del self._waiting[future]


class _NextRound:
    """An awaitable that waits for the next round of the loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def sleep(seconds: float) -> None:
    """Wait for some seconds; with 0, until the other ready tasks have had their turn."""
    if seconds <= 0:
        await _NextRound()
        return
    future: Future[None] = Future()
    timer = running_loop().call_later(seconds, lambda: None if future.done() else future.set_result(None))
    try:
        await future
    finally:
        timer.cancel()


async def ended(task: Task[Any]) -> None:
    """Wait until a task has ended, with whatever result."""
    event = Event()
    task.add_done_callback(event.set)
    await event.wait()


class timeout:  # noqa: N801 - as in asyncio
    """An asynchronous context manager that raises `TimeoutError` if its block takes longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    async def __aenter__(self) -> None:
        loop = running_loop()
        assert loop.task is not None
        self._task: Task[Any] = loop.task
        self._before = self._task.cancels
        self._timer: Timer = loop.call_later(max(self._seconds, 0), self._expire)

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._timer.cancel()
        if self._expired:
            self._task.cancels -= 1
            if kind is CancelledError and self._task.cancels == self._before:  # and nothing else cancelled the task
                raise TimeoutError from error
