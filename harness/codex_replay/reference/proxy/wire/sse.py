"""Encode server-sent events. The data of an event is ASCII JSON, so that no character in it looks like a line end to a client."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.wire.json_text import for_client

DONE = b"data: [DONE]\n\n"


def data(value: Any) -> bytes:
    """Return a server-sent event without a name, as in the chat completions API."""
    return b"data: " + for_client(value) + b"\n\n"


def event(value: dict[str, Any]) -> bytes:
    """Return a server-sent event whose name is the `type` of its data, as in the Responses API."""
    return b"event: " + str(value["type"]).encode() + b"\n" + data(value)
