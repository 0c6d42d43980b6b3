"""Tasks, events, timers and time limits of the backend's loop do the same as those of asyncio, in the same order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from codex_fakes.backend.loop import tasks, waiting
from tests.support.loops import run_loop

#: Seconds that are long enough to be told apart on a busy machine, and seconds that never pass.
SHORT, LONG, NEVER = 0.01, 0.2, 60.0


class Ours:
    """The names of this loop that the scenarios use."""

    Task: Any = tasks.Task
    Future: Any = tasks.Future
    CancelledError = tasks.CancelledError
    Event: Any = waiting.Event
    sleep: Any = staticmethod(waiting.sleep)
    timeout: Any = waiting.timeout
    ended: Any = staticmethod(waiting.ended)
    run: Any = staticmethod(run_loop)

    @staticmethod
    def call_soon(function: Callable[[], object]) -> None:
        tasks.running_loop().call_soon(function)


class Theirs:
    """The same names of asyncio."""

    Task: Any = staticmethod(asyncio.create_task)
    CancelledError = asyncio.CancelledError
    Event: Any = asyncio.Event
    sleep: Any = staticmethod(asyncio.sleep)
    timeout: Any = staticmethod(asyncio.timeout)
    run: Any = staticmethod(asyncio.run)

    @staticmethod
    def Future() -> Any:  # noqa: N802 - it stands for a class
        return asyncio.get_running_loop().create_future()

    @staticmethod
    async def ended(task: Any) -> None:
        await asyncio.wait([task])

    @staticmethod
    def call_soon(function: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(function)


Trace = list[object]
Scenario = Callable[[Any, Trace], Coroutine[Any, Any, object]]


async def turns(api: Any, trace: Trace) -> None:
    """Three tasks and a call, step by step."""

    async def steps(name: str) -> str:
        for i in range(3):
            trace.append((name, i))
            await api.sleep(0)
        return name

    each = [api.Task(steps(name)) for name in "abc"]
    api.call_soon(lambda: trace.append("call"))
    trace.append("made")
    trace.append([await task for task in each])


async def times(api: Any, trace: Trace) -> None:
    """Timers in another order than their times."""

    async def after(seconds: float) -> None:
        await api.sleep(seconds)
        trace.append(seconds)

    each = [api.Task(after(seconds)) for seconds in (LONG, 0, SHORT, -1)]
    for task in each:
        await task


async def events(api: Any, trace: Trace) -> None:
    """Waiting tasks, a set event, a cleared event, and one that is set and cleared at once."""
    event = api.Event()

    async def wait(name: str) -> None:
        await event.wait()
        trace.append((name, event.is_set()))

    each = [api.Task(wait("first")), api.Task(wait("second"))]
    await api.sleep(0)
    event.set()
    event.set()
    each.append(api.Task(wait("set already")))
    await api.sleep(0)
    await api.sleep(0)
    event.clear()
    each.append(api.Task(wait("cleared")))
    await api.sleep(0)
    trace.append("still waits")
    event.set()
    event.clear()
    for task in each:
        await task


async def results(api: Any, trace: Trace) -> None:
    """A result and an exception, for two tasks each, and after the end."""

    async def fail() -> None:
        await api.sleep(0)
        raise KeyError("no")

    async def get(name: str, waiting: Any) -> None:
        try:
            trace.append((name, await waiting))
        except KeyError as error:
            trace.append((name, repr(error)))

    future, failing = api.Future(), api.Task(fail())
    each = [api.Task(get(name, one)) for name, one in (("1", future), ("2", future), ("3", failing), ("4", failing))]
    await api.sleep(0)
    trace.append(future.done())
    future.set_result("value")
    trace.append(future.done())
    for task in each:
        await task
    await get("late", failing)


async def cancels(api: Any, trace: Trace) -> None:
    """A task is cancelled before its first step, while it waits, when its wait is over, by itself, and after its end."""

    async def one(name: str, waiting: Any) -> None:
        trace.append(f"{name} begins")
        try:
            await waiting.wait() if hasattr(waiting, "wait") else await waiting
            trace.append(f"{name} goes on")
        except api.CancelledError:
            trace.append(f"{name} is cancelled")
            await api.sleep(0)
            raise
        finally:
            trace.append(f"{name} ends")

    async def myself() -> None:
        me.cancel()
        trace.append("it still runs")
        await api.Event().wait()

    early = api.Task(one("early", api.Event()))
    trace.append(early.cancel())
    ready = api.Future()
    waits, over, me = api.Task(one("waits", api.Event())), api.Task(one("over", ready)), api.Task(myself())
    await api.sleep(0)
    trace.append(waits.cancel())
    ready.set_result(None)
    trace.append(over.cancel())
    for task in (early, waits, over, me):
        await api.ended(task)
        trace.append((task.done(), task.cancel()))
        try:
            await task
        except api.CancelledError:
            trace.append("it raises")


async def swallows(api: Any, trace: Trace) -> None:
    """A task that goes on after it was cancelled, and the cancelled waiter of a task."""

    async def stubborn() -> str:
        try:
            await api.sleep(NEVER)
        except api.CancelledError:
            trace.append("cancelled")
        await api.sleep(0)
        return "done"

    async def waiter(task: Any) -> None:
        await api.ended(task)

    inner = api.Task(stubborn())
    outer = api.Task(waiter(inner))
    await api.sleep(0)
    await api.sleep(0)
    outer.cancel()
    await api.ended(outer)
    trace.append(inner.done())
    inner.cancel()
    trace.append(await inner)


async def limits(api: Any, trace: Trace) -> None:
    """Time limits that are kept and exceeded, nested ones, an exception in one, and none at all."""

    async def within(seconds: float, waits: float) -> None:
        try:
            async with api.timeout(seconds):
                await api.sleep(waits)
                trace.append(("in time", seconds, waits))
        except TimeoutError:
            trace.append(("late", seconds, waits))

    await within(NEVER, SHORT)
    await within(SHORT, NEVER)
    await within(0, NEVER)
    for inner, outer in ((SHORT, NEVER), (NEVER, SHORT), (SHORT, LONG)):
        try:
            async with api.timeout(outer):
                await within(inner, NEVER)
                trace.append("after the inner")
                await api.sleep(NEVER if outer == LONG else 0)
        except TimeoutError:
            trace.append("the outer")
    try:
        async with api.timeout(NEVER):
            raise KeyError("other")
    except KeyError:
        trace.append("an exception")
    await api.sleep(0)


async def cancelled_in_limit(api: Any, trace: Trace) -> None:
    """A task with a time limit is cancelled, alone and in the same round in which its time is over."""

    async def limited(seconds: float) -> None:
        try:
            async with api.timeout(seconds):
                await api.Event().wait()
        except TimeoutError:
            trace.append("late")
        except api.CancelledError:
            trace.append("cancelled")
            raise

    alone = api.Task(limited(NEVER))
    await api.sleep(0)
    alone.cancel()
    await api.ended(alone)
    both = api.Task(limited(0))
    await api.sleep(0)  # its timer is due in the next round
    both.cancel()
    await api.ended(both)


SCENARIOS: list[Scenario] = [turns, times, events, results, cancels, swallows, limits, cancelled_in_limit]


def traced(api: Any, scenario: Scenario) -> Trace:
    trace: Trace = []
    api.run(scenario(api, trace))
    return trace


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.__name__ for scenario in SCENARIOS])
def test_it_does_what_asyncio_does(scenario: Scenario) -> None:
    assert traced(Ours, scenario) == traced(Theirs, scenario)


class Broken(Ours):
    """A broken loop: `sleep(0)` does not wait, a set event stays set, and a time limit hides that its task is cancelled."""

    @staticmethod
    async def sleep(seconds: float) -> None:
        if seconds:
            await waiting.sleep(seconds)

    class Event(waiting.Event):
        def clear(self) -> None:
            pass

    class timeout(waiting.timeout):  # noqa: N801 - as in asyncio
        async def __aenter__(self) -> None:
            await super().__aenter__()
            self._before += 1


@pytest.mark.parametrize("scenario", [turns, events, cancelled_in_limit], ids=["turns", "events", "cancelled_in_limit"])
def test_a_loop_that_differs_is_noticed(scenario: Scenario) -> None:
    assert traced(Broken, scenario) != traced(Theirs, scenario)
