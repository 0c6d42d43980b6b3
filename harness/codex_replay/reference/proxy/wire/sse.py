"""Server-sent events, encoded. The data is ASCII JSON, so that no reader of lines can cut it in the wrong place."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.wire.json_text import for_client

DONE = b"data: [DONE]\n\n"


def data(value: Any) -> bytes:
    """An event without a name, as chat completions have them."""
    return b"data: " + for_client(value) + b"\n\n"


def event(value: dict[str, Any]) -> bytes:
    """An event named by its `type`, as the Responses API has them."""
    return b"event: " + str(value["type"]).encode() + b"\n" + data(value)
