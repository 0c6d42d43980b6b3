"""Many streams and many requests keep no other client waiting: what is counted is the work in one round of the event loop."""

from __future__ import annotations

from collections import Counter

from codex_fakes.backend.loop.tasks import Task, running_loop
from codex_fakes.backend.loop.waiting import ended, sleep
from codex_fakes.backend.turns import MOST, Turns
from codex_replay.protocol.responses import items
from codex_replay.protocol.responses.items import steps_of
from codex_replay.protocol.script.script import parse
from tests.support.loops import run_loop


class Rounds:
    """Counts the rounds of the event loop, and what was done in each."""

    def __init__(self) -> None:
        self.number = 0
        self.done: list[tuple[int, str]] = []
        running_loop().call_soon(self._next)

    def _next(self) -> None:
        self.number += 1
        running_loop().call_soon(self._next)

    def note(self, what: str) -> None:
        self.done.append((self.number, what))


async def _answer(turns: Turns, rounds: Rounds, name: str, steps: int) -> None:
    for _ in range(steps):
        await turns.go_on()
        rounds.note(name)


async def _request(turns: Turns, rounds: Rounds, name: str) -> None:
    await turns.begin()
    rounds.note(name)


async def _rounds(streams: int, requests: int) -> list[tuple[int, str]]:
    turns, rounds = Turns(), Rounds()
    tasks = [Task(_answer(turns, rounds, f"stream {n}", 5)) for n in range(streams)]
    tasks += [Task(_request(turns, rounds, f"request {n}")) for n in range(requests)]
    await sleep(0)
    await sleep(0)
    begun = rounds.number
    late = Task(_request(turns, rounds, "late"))
    await late
    assert rounds.number - begun < 6, "a later request waits for those that came before it"
    for task in tasks:
        await ended(task)
    return rounds.done


def test_one_round_has_few_turns_and_a_later_request_comes_soon() -> None:
    for streams, requests in ((1000, 0), (0, 1000), (1000, 1000)):
        done = run_loop(_rounds(streams, requests))
        assert len(done) == 5 * streams + requests + 1
        assert max(Counter(number for number, _ in done).values()) <= MOST
        names = [name for _, name in done if name != "late"]
        if streams and requests:  # neither waits until the others have ended
            assert 4 * MOST <= sum(name.startswith("stream") for name in names[MOST : 11 * MOST]) <= 6 * MOST
        if requests:
            assert any(name == "request 0" for name in names[: 4 * MOST])  # the oldest do not wait for all newer ones
        each = [name for name in names if name.startswith("stream")]
        if not requests:  # all streams go on equally fast
            assert each[:streams] == [f"stream {n}" for n in range(streams)]


def test_who_leaves_takes_no_turn() -> None:
    async def run() -> int:
        turns, rounds = Turns(), Rounds()
        tasks = [Task(_answer(turns, rounds, "gone", 1)) for _ in range(500)]
        await sleep(0)
        for task in tasks:
            task.cancel()
        await _answer(turns, rounds, "stays", 1)
        return rounds.number

    assert run_loop(run()) < 5


def test_no_more_of_a_long_reply_is_made_than_was_sent(monkeypatch) -> None:
    """A stream of a thousand deltas was made as a whole before its first event was sent: a thousand of them took seconds."""
    made: list[str] = []
    send = items._Reply.send

    def counted(self: items._Reply, type_: str, **fields: object) -> object:
        made.append(type_)
        return send(self, type_, **fields)

    monkeypatch.setattr(items._Reply, "send", counted)
    (turn,) = parse([{"items": ["word " * 1000], "delta": 5, "delay_ms": 50}]).turns
    steps = steps_of(turn, {}, "1")
    for _ in range(10):
        next(steps)
    assert len(made) == 10
    assert len(list(steps)) > 990
