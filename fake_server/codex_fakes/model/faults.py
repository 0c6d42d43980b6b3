"""The faults (mistakes on purpose) of the fake backend by name.

A fault is a wrong or broken answer that a client must be able to handle.

A turn of a script names a fault: `"fault": "reset"` or `{"name": "reset", "after": 3, "seed": 7}`. A fault occurs at one
place in the stream: after a number of events (`after`), at a place that the `seed` determines, or in the middle. The
functions here are pure: they take steps and return steps. The module `backend.stream` performs three kinds of steps that
only faults contain: `Cut`, `Reset` and `Idle`. REAL-99 to REAL-109 list the effect of each fault on the real client.
"""

from __future__ import annotations

from codex_replay.core.value import Value
from codex_replay.protocol.responses.steps import FAILURES, Raw, Send, Step, Wait, event_bytes
from codex_replay.protocol.script.hints import named, near, rewritten
from codex_replay.protocol.script.keys import CHECKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from codex_replay.protocol.script.script import Turn

    Parameters = Mapping[str, Any]


class Cut(Value):
    """Close the connection at the current step, without the end of the body that HTTP requires."""


class Reset(Value):
    """Reset the connection (RST) at the current step."""


class Idle(Value):
    """Stop sending, and keep the connection open until the client disconnects."""


class Message(Value):
    """A fault that exists only on a WebSocket: `close_CODE`, `binary`, `text`, `deflate`, or the code of an error message."""

    name: str


Act = Step | Cut | Reset | Idle | Message

#: Parameters that a fault may be given, and what each must be: a name of `CHECKS`.
PARAMETERS = {
    "seed": "count",
    "after": "count",
    "bytes": "bytes",
    "ms": "duration",
    "message": "string",
    "retry_after": "retry",
}
#: status -> (code, message) of the answers that are errors at once.
STATUSES = {
    400: ("invalid_request", "The request is invalid."),
    401: ("token_expired", "The access token has expired."),
    403: ("forbidden", "This is not allowed."),
    404: ("not_found", "There is no such model."),
    429: ("rate_limit_exceeded", "Too many requests."),
    500: ("server_error", "The server had an error."),
    502: ("bad_gateway", "The upstream is not there."),
    503: ("overloaded", "The service is overloaded."),
}
#: status -> the `type` of an error object, where it is not `invalid_request_error` (OpenAI's guide on error codes).
ERROR_TYPES = {429: "rate_limit_error", 503: "service_unavailable_error"}


def error_type(turn: Turn) -> str:
    """Return the documented `type` of a turn's error object."""
    if turn.error is not None and turn.error.get("code") == "insufficient_quota":
        return "insufficient_quota"
    return ERROR_TYPES.get(turn.status, "server_error" if turn.status >= 500 else "invalid_request_error")


def parameters(name: str) -> tuple[str, ...]:
    """Return the parameters that have an effect on a fault."""
    if name.startswith("http_"):
        return ("message", "retry_after")
    return ("message",) if name.startswith("failed_") else _PARAMETERS_OF.get(name, ())


def fault_error(fault: Parameters | None, where: str) -> str | None:
    """Return a sentence about an invalid fault in a script, or None."""
    if fault is None:
        return None
    name = fault.get("name")
    if not isinstance(name, str) or name not in NAMES:
        hint = near(name, NAMES) if isinstance(name, str) else ""
        return f"{where}.fault: {name!r} is not a fault{hint}. The faults are {', '.join(NAMES)}."
    known = parameters(name)
    for key, value in fault.items():
        if key == "name":
            continue
        if key not in known:
            return f'{where}.fault: "{key}" is not a parameter of the fault "{name}"{near(key, known)}. ' + (
                f"The parameters of the fault are {', '.join(known)}." if known else "The fault has no parameters."
            )
        meaning, test = CHECKS[PARAMETERS[key]]
        if not test(value):
            return f"{where}.fault.{key} must be {meaning}, not {named(value)}.{rewritten(value, test)}"
    return None


def as_status(turn: Turn) -> Turn:
    """Convert a turn with a `http_*` or `failed_*` fault to a turn without a fault that has the same effect.

    A turn without a `http_*` or `failed_*` fault is returned unchanged.
    """
    fault = turn.fault or {}
    name = str(fault.get("name", ""))
    if name.startswith("http_"):
        status = int(name[5:])
        code, message = STATUSES[status]
        wait = fault.get("retry_after", "1" if status == 429 else None)
        headers = [] if wait is None else [("retry-after", str(wait))]
        error = {"code": code, "message": fault.get("message", message)}
        return turn.but(items=(), status=status, headers=(*turn.headers, *headers), error=error, fault=None)
    if name.startswith("failed_"):
        code = name.removeprefix("failed_")
        end = {"type": "failed", "code": code, "message": fault.get("message", FAILURES[code])}
        return turn.but(items=(*turn.items, end), fault=None)
    return turn


def apply(fault: Parameters | None, steps: Iterable[Step]) -> Iterable[Act]:
    """Apply a fault to the steps of a reply. Without a fault, the steps are not computed in advance."""
    return steps if fault is None else STREAM_FAULTS[str(fault["name"])](fault, list(steps))


def place_in(fault: Parameters, size: int, events: int) -> int:
    """Return the byte offset of the fault in an answer that is not streamed.

    `size` is the length of the body in bytes; `events` is the number of events that the answer would have as a stream.

    The returned offset is at least 1.
    """
    if "bytes" in fault:
        return min(int(fault["bytes"]), size)
    if "after" in fault:
        return size * min(int(fault["after"]), events - 1) // max(1, events)
    if "seed" in fault:
        import random  # only for a seed: it would cost every start

        return random.Random(fault["seed"]).randrange(1, max(2, size))
    return size // 2


def _place(fault: Parameters, steps: list[Step]) -> int:
    """Return the index of the step at which the fault occurs: after the first event and before the last."""
    events = [i for i, step in enumerate(steps) if isinstance(step, Send)]
    if not events:
        return 0
    if "after" in fault:
        return events[min(int(fault["after"]), len(events) - 1)]
    if "seed" in fault:
        import random  # only for a seed: it would cost every start

        return events[random.Random(fault["seed"]).randrange(1, len(events))] if len(events) > 1 else events[0]
    return events[len(events) // 2]


def _missing_completed(fault: Parameters, steps: list[Step]) -> list[Act]:
    return list(steps[:-1])


def _cut_before_completed(fault: Parameters, steps: list[Step]) -> list[Act]:
    return [*steps[:-1], Cut()]


def _cut(fault: Parameters, steps: list[Step]) -> list[Act]:
    return [*steps[: _place(fault, steps)], Cut()]


def _cut_in_event(fault: Parameters, steps: list[Step]) -> list[Act]:
    place = _place(fault, steps)
    data = _bytes(steps[place])
    return [*steps[:place], Raw(data[: int(fault.get("bytes", len(data) // 2))]), Cut()]


def _reset(fault: Parameters, steps: list[Step]) -> list[Act]:
    return [*steps[: _place(fault, steps)], Reset()]


def _idle(fault: Parameters, steps: list[Step]) -> list[Act]:
    return [*steps[: _place(fault, steps)], Idle()]


def _empty(fault: Parameters, steps: list[Step]) -> list[Act]:
    return []


def _split_utf8(fault: Parameters, steps: list[Step]) -> list[Act]:
    """Split every event inside each character that has more than one byte."""
    acts: list[Act] = []
    for step in steps:
        data = _bytes(step)
        start = 0
        for i in range(1, len(data)):
            if data[i] & 0xC0 == 0x80:
                acts += [Raw(data[start:i]), Wait(float(fault.get("ms", 0)))]
                start = i
        acts.append(Raw(data[start:]) if data else step)
    return acts


def _crlf(fault: Parameters, steps: list[Step]) -> list[Act]:
    acts: list[Act] = [Raw(event_bytes(step.event, newline=b"\r\n")) if isinstance(step, Send) else step for step in steps]
    return acts


def _comments(fault: Parameters, steps: list[Step]) -> list[Act]:
    return [act for step in steps for act in (Raw(b": keep-alive\n\n"), step)]


def _inserted(data: bytes) -> Callable[[Parameters, list[Step]], list[Act]]:
    def insert(fault: Parameters, steps: list[Step]) -> list[Act]:
        place = _place(fault, steps)
        return [*steps[:place], Raw(data), *steps[place:]]

    return insert


def _delta_before_added(fault: Parameters, steps: list[Step]) -> list[Act]:
    """Move the first delta before all other events except `response.created`."""
    deltas = [i for i, step in enumerate(steps) if isinstance(step, Send) and str(step.event.get("type")).endswith(".delta")]
    if not deltas:
        return list(steps)
    return [steps[0], steps[deltas[0]], *steps[1 : deltas[0]], *steps[deltas[0] + 1 :]]


def _missing_type(fault: Parameters, steps: list[Step]) -> list[Act]:
    """Remove the type of one event from the name and the data of the event."""
    place = _place(fault, steps)
    step = steps[place]
    event = {key: value for key, value in step.event.items() if key != "type"} if isinstance(step, Send) else {}
    return [*steps[:place], Raw(event_bytes(event)), *steps[place + 1 :]]


def _duplicated(fault: Parameters, steps: list[Step]) -> list[Act]:
    """Send each event twice, except the last event."""
    return [*(act for step in steps[:-1] for act in (step, step)), *steps[-1:]]


def _huge_event(fault: Parameters, steps: list[Step]) -> list[Act]:
    """Send one event of 16 MB (or of `bytes` bytes). The type of the event is unknown to clients."""
    size = int(fault.get("bytes", 16 * 1024 * 1024))
    event = {"type": "response.codex_replay.huge", "padding": "x" * size}
    return _inserted(event_bytes(event))(fault, steps)


def _slow_drip(fault: Parameters, steps: list[Step]) -> list[Act]:
    """Send a few bytes at a time, with a pause after each."""
    size, pause = max(1, int(fault.get("bytes", 64))), Wait(float(fault.get("ms", 1)))
    data = b"".join(_bytes(step) for step in steps)
    acts: list[Act] = [act for i in range(0, len(data), size) for act in (Raw(data[i : i + size]), pause)]
    return acts[:-1]


def _refused(fault: Parameters, steps: list[Step]) -> list[Act]:
    return [Reset()]


def _message(name: str, *, ends: bool) -> Callable[[Parameters, list[Step]], list[Act]]:
    def fail(fault: Parameters, steps: list[Step]) -> list[Act]:
        place = _place(fault, steps)
        return [*steps[:place], Message(name), *([] if ends else steps[place:])]

    return fail


def _instead(name: str) -> Callable[[Parameters, list[Step]], list[Act]]:
    return lambda fault, steps: [Message(name)]


def _bytes(step: Step) -> bytes:
    return event_bytes(step.event) if isinstance(step, Send) else step.data if isinstance(step, Raw) else b""


STREAM_FAULTS: dict[str, Callable[[Parameters, list[Step]], list[Act]]] = {
    "missing_completed": _missing_completed,
    "cut_before_completed": _cut_before_completed,
    "cut": _cut,
    "cut_in_event": _cut_in_event,
    "reset": _reset,
    "idle": _idle,
    "empty": _empty,
    "split_utf8": _split_utf8,
    "crlf": _crlf,
    "comments": _comments,
    "malformed_event": _inserted(b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":\n\n'),
    "unknown_event": _inserted(b'event: response.codex_replay.unknown\ndata: {"type":"response.codex_replay.unknown"}\n\n'),
    "delta_before_added": _delta_before_added,
    "missing_type": _missing_type,
    "duplicated_frames": _duplicated,
    "huge_event": _huge_event,
    "slow_drip": _slow_drip,
    "refused": _refused,
    "ws_close_1000": _message("close_1000", ends=True),
    "ws_close_1008": _message("close_1008", ends=True),
    "ws_close_1011": _message("close_1011", ends=True),
    "ws_binary": _message("binary", ends=False),
    "ws_bad_json": _message("text", ends=False),
    "ws_bad_deflate": _message("deflate", ends=False),
    "ws_connection_limit": _instead("websocket_connection_limit_reached"),
    "ws_previous_response_not_found": _instead("previous_response_not_found"),
}
_AT_PLACE = ("after", "seed")
#: Fault -> its parameters; `http_*` and `failed_*` have others, and the rest none.
_PARAMETERS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cut", "cut_in_event", "reset", "idle", "malformed_event", "huge_event"), (*_AT_PLACE, "bytes")),
    **dict.fromkeys(("unknown_event", "missing_type", "ws_binary", "ws_bad_json", "ws_bad_deflate"), _AT_PLACE),
    **dict.fromkeys(("ws_close_1000", "ws_close_1008", "ws_close_1011"), _AT_PLACE),
    "split_utf8": ("ms",),
    "slow_drip": ("bytes", "ms"),
}
#: These are of a WebSocket; a turn with one cannot answer over HTTP.
WEBSOCKET_FAULTS = tuple(name for name in STREAM_FAULTS if name.startswith("ws_"))
NAMES = (*STREAM_FAULTS, *(f"http_{status}" for status in STATUSES), *(f"failed_{code}" for code in FAILURES))
#: These act on the connection before any answer, so that not even a status is sent.
BEFORE_ANSWER = ("refused",)
