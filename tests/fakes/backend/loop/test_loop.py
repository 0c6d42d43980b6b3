"""What the backend's loop does beyond asyncio: it reports exceptions, forgets cancelled timers, and works in a thread."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from codex_fakes.backend.loop.tasks import MOST_CANCELLED, CancelledError, Loop, Task, running_loop
from codex_fakes.backend.loop.threads import in_thread
from codex_fakes.backend.loop.waiting import Event, ended, sleep, timeout
from tests.support.loops import run_loop


def test_an_exception_that_nobody_handles_is_reported_and_the_loop_goes_on() -> None:
    reported: list[Exception] = []

    def fail() -> None:
        raise KeyError("call")

    async def failing() -> None:
        raise KeyError("task")

    async def run() -> str:
        running_loop().call_soon(fail)
        running_loop().call_later(0, fail)
        Task(failing())
        awaited = Task(failing())
        with pytest.raises(KeyError):
            await awaited  # this one is for the waiting task
        await sleep(0.01)
        return "goes on"

    assert Loop(reported.append).run(run()) == "goes on"
    assert sorted(map(repr, reported)) == ["KeyError('call')", "KeyError('call')", "KeyError('task')"]


def test_the_exception_of_the_whole_is_raised() -> None:
    async def fail() -> None:
        await sleep(0)
        raise OSError("no port")

    with pytest.raises(OSError, match="no port"):
        run_loop(fail())


def test_cancelled_timers_are_forgotten() -> None:
    """A connection that asks often makes a timer of two minutes for each message."""

    async def run() -> int:
        for _ in range(20 * MOST_CANCELLED):
            async with timeout(60):
                await sleep(0)
        return len(running_loop()._timers)

    assert run_loop(run()) <= 2 * MOST_CANCELLED


def test_timers_that_were_due_are_not_counted_as_cancelled() -> None:
    async def run() -> int:
        for _ in range(50):
            await sleep(0.0001)
        return running_loop()._cancelled

    assert run_loop(run()) == 0


def test_work_in_a_thread_has_its_result_or_exception_and_others_go_on() -> None:
    async def run() -> list[Any]:
        goes_on = Event()

        def work(number: int) -> int:
            assert threading.current_thread() is not threading.main_thread()
            return 10 // number

        found: list[Any] = [await in_thread(work, 5), await in_thread(work, number=2)]
        with pytest.raises(ZeroDivisionError):
            await in_thread(work, 0)
        slow = Task(in_thread(time.sleep, 0.2))
        running_loop().call_later(0.01, goes_on.set)
        await goes_on.wait()
        found.append(slow.done())
        await slow
        return found

    assert run_loop(run()) == [2, 5, False]


def test_a_task_that_leaves_does_not_stop_the_thread() -> None:
    async def run() -> list[Any]:
        leaves = Task(in_thread(time.sleep, 0.05))
        await sleep(0)
        leaves.cancel()
        await ended(leaves)
        with pytest.raises(CancelledError):
            leaves.result()
        return [await in_thread(len, "later")]

    assert run_loop(run()) == [5]


def test_each_loop_has_its_own_thread() -> None:
    async def run() -> int:
        return await in_thread(len, "abc")

    assert [run_loop(run()) for _ in range(2)] == [3, 3]
