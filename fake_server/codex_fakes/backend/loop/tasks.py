"""The event loop of the backend, and the tasks that it runs.

The backend does not use asyncio, because importing asyncio takes longer than the rest of the start of the backend: asyncio loads
thread pools, subprocesses, streams and logging. This package has the few parts of asyncio that the backend needs, with the same
names and the same behaviour, so the documentation of asyncio explains them.

Strategy: a coroutine that waits yields a `Future`. The `Task` of the coroutine resumes the coroutine in the round of the loop
after the future is done. A round of the loop waits for sockets and timers, and then makes the calls that were due when the round
began, in order.
"""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from heapq import heapify, heappop, heappush
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Call = Callable[..., object]
#: So many cancelled timers, and more than half of all timers, are removed before they are due.
MOST_CANCELLED = 100

_running: Loop | None = None


class CancelledError(BaseException):
    """The task was cancelled while it waited."""


def running_loop() -> Loop:
    """Return the loop that runs at the moment."""
    assert _running is not None, "no event loop runs"
    return _running


class Future(Generic[T]):
    """A result that comes later."""

    def __init__(self) -> None:
        self._loop = running_loop()
        self._done = self._cancelled = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], object]] = []

    def done(self) -> bool:
        """Return True if the future has a result or an exception, or is cancelled."""
        return self._done

    def result(self) -> T:
        """Return the result, or raise the exception of a future that is done."""
        if self._cancelled:
            raise CancelledError
        if self._error is not None:
            try:
                raise self._error
            finally:
                del self  # otherwise the exception keeps this frame, which keeps the exception, and all that its traceback has
        found: T = self._result
        return found

    def set_result(self, result: T) -> None:
        """Set the result, and resume the waiting tasks."""
        self._result = result
        self._finish()

    def set_exception(self, error: BaseException) -> None:
        """Set an exception, which the waiting tasks get."""
        self._error = error
        self._finish()

    def cancel(self) -> bool:
        """Cancel the future, so that the waiting tasks get `CancelledError`. Return False if the future was already done."""
        if self._done:
            return False
        self._cancelled = True
        self._finish()
        return True

    def add_done_callback(self, function: Callable[[], object]) -> None:
        """Call the function in the next round of the loop after the future is done."""
        if self._done:
            self._loop.call_soon(function)
        else:
            self._callbacks.append(function)

    def _finish(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for function in callbacks:
            self._loop.call_soon(function)

    def __await__(self) -> Generator[Future[T], None, T]:
        if not self._done:
            yield self
        try:
            return self.result()
        finally:
            del self


class Task(Future[T]):
    """A running coroutine, and its result. The loop reports an exception that nothing waits for."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self._waits: Future[Any] | None = None
        self._throw = False  # True if the coroutine must get a CancelledError at its next step
        #: How often the task was cancelled, without the time limits that ended; see `timeout`.
        self.cancels = 0
        self._loop.call_soon(self._step)

    def cancel(self) -> bool:
        """Raise `CancelledError` in the coroutine. Return False if the coroutine has already ended."""
        if self._done:
            return False
        self.cancels += 1
        if self._waits is None or not self._waits.cancel():
            self._throw = True
        return True

    def _step(self) -> None:
        """Run the coroutine until it waits or ends."""
        loop = self._loop
        loop.task, self._waits = self, None
        try:
            if self._throw:
                self._throw = False
                waits = self._coroutine.throw(CancelledError())
            else:
                waits = self._coroutine.send(None)
        except StopIteration as end:
            self.set_result(end.value)
        except CancelledError:
            super().cancel()
        except Exception as error:
            if not self._callbacks:
                loop.report(error)
            self.set_exception(error)
        else:
            if waits is None:
                loop.call_soon(self._step)
                return
            self._waits = waits
            waits.add_done_callback(self._step)
            if self._throw and waits.cancel():  # it was cancelled by itself, before it waited
                self._throw = False
        finally:
            loop.task = None


class Timer:
    """A call at a later time."""

    __slots__ = ("_loop", "function", "when")

    def __init__(self, loop: Loop, when: float, function: Callable[[], object]) -> None:
        self._loop = loop
        self.when = when
        self.function: Callable[[], object] | None = function

    def cancel(self) -> None:
        """Cancel the call, unless the loop has already made it."""
        if self.function is not None:
            self.function = None
            self._loop.forget_timer()

    def __lt__(self, other: Timer) -> bool:
        return self.when < other.when


class Loop:
    """An event loop. `report` gets each exception that no task handles."""

    #: The clock of the timers, in seconds.
    time = staticmethod(monotonic)

    def __init__(self, report: Callable[[Exception], object]) -> None:
        self.report = report
        #: The task whose coroutine runs at the moment.
        self.task: Task[Any] | None = None
        self._selector = selectors.DefaultSelector()
        self._ready: deque[tuple[Call, tuple[Any, ...]]] = deque()
        self._timers: list[Timer] = []
        self._cancelled = 0  # timers that are still in the list

    def call_soon(self, function: Call, *given: Any) -> None:
        """Call the function in the next round."""
        self._ready.append((function, given))

    def call_later(self, seconds: float, function: Callable[[], object]) -> Timer:
        """Call the function after the given number of seconds."""
        timer = Timer(self, monotonic() + seconds, function)
        heappush(self._timers, timer)
        return timer

    def forget_timer(self) -> None:
        """Count a cancelled timer. If there are many cancelled timers, free their memory."""
        self._cancelled += 1
        if self._cancelled > max(MOST_CANCELLED, len(self._timers) // 2):
            self._timers = [timer for timer in self._timers if timer.function is not None]
            heapify(self._timers)
            self._cancelled = 0

    def watch(self, file: int, reader: Call | None, writer: Call | None = None) -> None:
        """Call `reader` while a file descriptor is readable, and `writer` while it is writable.

        A second call of `watch` for the same file descriptor replaces the first. Without `reader`
        and `writer`, the file descriptor is not watched any more.
        """
        events = (selectors.EVENT_READ if reader else 0) | (selectors.EVENT_WRITE if writer else 0)
        known = file in self._selector.get_map()
        if not events:
            if known:
                self._selector.unregister(file)
        elif known:
            self._selector.modify(file, events, (reader, writer))
        else:
            self._selector.register(file, events, (reader, writer))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the loop until a coroutine ends; return its result. Drop the tasks that still run at that time."""
        global _running
        before, _running = _running, self
        try:
            task = Task(coroutine)
            task.add_done_callback(lambda: None)  # its exception is for the caller
            while not task.done():
                self._round()
            return task.result()
        finally:
            _running = before
            self._selector.close()

    def _round(self) -> None:
        ready, timers = self._ready, self._timers
        patience = 0.0 if ready else max(0.0, timers[0].when - monotonic()) if timers else None
        for key, events in self._selector.select(patience):
            reader, writer = key.data
            if reader is not None and events & selectors.EVENT_READ:
                ready.append((reader, ()))
            if writer is not None and events & selectors.EVENT_WRITE:
                ready.append((writer, ()))
        now = monotonic()
        while timers and timers[0].when <= now:
            timer = heappop(timers)
            function, timer.function = timer.function, None
            if function is None:
                self._cancelled -= 1
            else:
                ready.append((function, ()))
        for _ in range(len(ready)):
            call, given = ready.popleft()
            try:
                call(*given)
            except Exception as error:
                self.report(error)
