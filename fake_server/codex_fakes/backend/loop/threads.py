"""Run long work in a thread while the event loop continues. This module is imported when a thread is first needed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future as Job
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

from codex_fakes.backend.loop.tasks import Future, Loop, running_loop

P = ParamSpec("P")
T = TypeVar("T")


class _Worker:
    """The thread of an event loop, which calls one function after another, and the pipe by which the thread wakes the loop."""

    def __init__(self, loop: Loop) -> None:
        self._pool = ThreadPoolExecutor(1, "worker")
        self._done: deque[Callable[[], None]] = deque()
        self._woken, self._wakes = os.pipe()
        loop.watch(self._woken, self._wake)

    def _wake(self) -> None:
        os.read(self._woken, 4096)
        while self._done:
            self._done.popleft()()

    def start(self, future: Future[T], work: Callable[[], T]) -> None:
        """Call the function `work` in the thread. The future gets the result or the exception of the call."""

        def finish(job: Job[T]) -> None:  # in the thread
            self._done.append(lambda: settle(job))
            os.write(self._wakes, b"\0")

        def settle(job: Job[T]) -> None:  # in the loop
            if future.done():
                return  # nobody waits any more
            error = job.exception()
            if error is None:
                future.set_result(job.result())
            else:
                future.set_exception(error)

        self._pool.submit(work).add_done_callback(finish)


@cache
def _worker(loop: Loop) -> _Worker:
    return _Worker(loop)


async def in_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call a function in a thread, and wait for its result or exception."""
    future: Future[T] = Future()
    _worker(running_loop()).start(future, lambda: function(*given, **named))
    try:
        return await future
    finally:
        del future  # see `Future.result`
