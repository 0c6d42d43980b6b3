"""The steps of a streamed reply: send an event, send bytes, or wait."""

from __future__ import annotations

from codex_replay.core.value import Value
from codex_replay.core.wire.json_text import compact
from codex_replay.core.wire.sse import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Messages for the codes that the faults REAL-99 to REAL-109 name; authored, for no spec gives their words.
FAILURES = {
    "server_error": "The server had an error while processing your request.",
    "rate_limit_exceeded": "Rate limit reached. Please try again in 0.05s.",
    "context_length_exceeded": "Your input exceeds the context window of this model.",
    "insufficient_quota": "You exceeded your current quota, please check your plan and billing details.",
    "invalid_prompt": "The prompt was not accepted.",
}


class Send(Value):
    """Send one event; the name of the event is the value of its `type`."""

    event: Mapping[str, Any]

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.__dict__["event"] = event  # they are made by the hundred, and this is quicker


class Raw(Value):
    """Send these bytes unchanged."""

    data: bytes


class Wait(Value):
    """A pause of some milliseconds in a reply."""

    ms: float


class Gate(Value):
    """A pause in a reply until the gate with this name is released."""

    name: str


Step = Send | Raw | Wait | Gate


def event_bytes(event: Mapping[str, Any], *, newline: bytes = b"\n") -> bytes:
    """Encode one server-sent event like the real service: the name is the event's type, the data is compact JSON with unescaped
    non-ASCII characters.
    """
    data = compact(event).encode("utf-8", "surrogatepass")
    name = event.get("type")
    return encode(data, name.encode() if isinstance(name, str) else b"", newline=newline)
