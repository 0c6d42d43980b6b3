"""Decide when each part of a recorded answer is sent, by the chosen pace and the held frames."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from codex_fakes.backend.loop.tasks import running_loop
from codex_fakes.backend.loop.waiting import Event, sleep

if TYPE_CHECKING:
    from codex_fakes.backend.exchange import Exchange
    from codex_replay.core.replay.http_match import Recorded

Wait = Callable[[float], Awaitable[None]]


class Pace:
    """The pace at which the recordings of one session are played.

    `speed` is relative to the recorded speed; 0 means no waiting. `held` maps the number of a recorded frame to a gate: an
    answer stops before the frame until the gate is released.
    """

    def __init__(self, speed: float, held: Mapping[int, Event]) -> None:
        self._speed = speed
        self._held = held

    def waits(self, exchange: Exchange, one: Recorded) -> Wait:
        """Return a function that waits until the moment of a recorded time. The time is in seconds since the recording began."""
        clock = running_loop().time
        start, origin = clock(), one.request.t
        frames = [*one.answer, *([one.close] if one.close is not None else [])]
        gates = [(frame.t, self._held[frame.n]) for frame in frames if frame.n in self._held]

        async def wait(until: float) -> None:
            while gates and gates[0][0] <= until:
                await exchange.wait_for(gates.pop(0)[1].wait())
            if self._speed and (rest := start + (until - origin) / self._speed - clock()) > 0:
                await exchange.wait_for(sleep(rest))

        return wait
