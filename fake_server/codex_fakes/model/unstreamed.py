"""Answer a request without `stream` with a turn: the response as one JSON body, with the delays, gates and faults of the turn.

A turn with parts that only a stream can have (an event, a comment, a fault that reorders events) is refused with a
sentence. The functions here are pure.
"""

from __future__ import annotations

from codex_fakes.model.faults import STREAM_FAULTS, Act, Cut, Idle, Reset, place_in
from codex_replay.protocol.responses.steps import FAILURES, Gate, Raw, Send, Step, Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from codex_replay.protocol.script.script import Turn

#: Items that are part of a stream and of nothing else.
_STREAM_ITEMS = ("queued", "audio", "event", "raw", "comment")
#: Faults that act on a body of JSON; the others are about events.
_AT_PLACE: dict[Any, type[Cut | Reset | Idle]] = {
    "cut": Cut,
    "cut_in_event": Cut,
    "cut_before_completed": Cut,
    "reset": Reset,
    "idle": Idle,
}
_AS_STREAMED = ("empty", "split_utf8", "slow_drip")
_FAULTS = ("missing_completed", "malformed_event", *_AT_PLACE, *_AS_STREAMED)
_WHOLE = 1 << 40  # characters
_STREAM = 'Send the request with "stream": true'
#: code of an `error` item -> the status of its answer; others get 500.
_STATUSES = {"rate_limit_exceeded": 429, "insufficient_quota": 429, "invalid_prompt": 400, "context_length_exceeded": 400}


def undivided(turn: Turn) -> Turn:
    """Return a turn with the same response and pauses, whose texts are not divided into thousands of deltas.

    A turn in which the number of events counts is returned as it is.
    """
    return turn if turn.delay_ms or turn.fault is not None else turn.but(delta=_WHOLE)


def refusal(turn: Turn) -> str | None:
    """Return the reason why a turn cannot answer a request without `stream`, or None."""
    for i, item in enumerate(turn.items):
        if item["type"] in _STREAM_ITEMS:
            return f'items[{i}] is "{item["type"]}", which only a stream has. {_STREAM}, or remove the item.'
    if turn.fault is not None and turn.items and turn.items[-1]["type"] == "error":
        return (
            'for a request without "stream", an "error" item becomes an HTTP error, which cannot have a fault. '
            "Remove the item or the fault."
        )
    name = (turn.fault or {}).get("name")
    if name is not None and name not in _FAULTS:
        return f'the fault "{name}" changes the events of a stream. {_STREAM}, or choose another fault.'
    return None


def as_error(turn: Turn) -> Turn | None:
    """Return the HTTP error that is sent without a stream for an `error` item at the end of the turn, or None."""
    last = turn.items[-1] if turn.items else None
    if last is None or last["type"] != "error" or turn.fault is not None:
        return None
    code = last.get("code", "server_error")
    message = last.get("message", FAILURES.get(code, FAILURES["server_error"]))
    error = {"message": message, "param": last.get("param"), "code": code}
    return turn.but(items=(), status=_STATUSES.get(code, 500), error=error)


def pauses(turn: Turn, steps: list[Step]) -> list[Wait | Gate]:
    """Return the waits before the answer: the delays and gates of all items, and the sum of the delays after events."""
    found = [step for step in steps if isinstance(step, Wait | Gate)]
    events = sum(isinstance(step, Send) for step in steps)
    return [*found, Wait(turn.delay_ms * events)] if turn.delay_ms else found


def response(turn: Turn, steps: list[Step]) -> Mapping[str, Any]:
    """Return the response object in the last event of a stream.

    With the fault `missing_completed`, return the response object in the event before it.
    """
    if turn.fault is not None and turn.fault["name"] == "missing_completed":
        steps = steps[:-1]
    events = (step.event for step in reversed(steps) if isinstance(step, Send) and "response" in step.event)
    last = next(events, None)
    return last["response"] if last is not None else {}


def faulty(fault: Mapping[str, Any] | None, steps: list[Step], data: bytes) -> list[Act]:
    """Apply a fault to the body of a response."""
    name = fault["name"] if fault is not None else None
    if fault is None or name == "missing_completed":
        return [Raw(data)]
    if name in _AS_STREAMED:
        return STREAM_FAULTS[str(name)](fault, [Raw(data)])
    place = len(data) - 1 if name == "cut_before_completed" else place_in(fault, len(data), len(steps))
    sent: list[Act] = [Raw(data[:place])]
    return [*sent, _AT_PLACE[name]()] if name in _AT_PLACE else sent
