"""Server-sent events, encoded. The data is ASCII JSON, so that no line reader can cut it in the wrong place."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.wire.json_text import for_client

DONE = b"data: [DONE]\n\n"


def data(value: Any) -> bytes:
    """Return an event without a name, as in chat completions."""
    return b"data: " + for_client(value) + b"\n\n"


def event(value: dict[str, Any]) -> bytes:
    """Return an event that is named by its `type`, as in the Responses API."""
    return b"event: " + str(value["type"]).encode() + b"\n" + data(value)
