"""What a backend does next while it streams a reply: send an event, send bytes, or wait for something."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.core.sse import encode

#: Compact JSON with non-ASCII kept; one encoder for all, because making one costs more than using it.
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Send:
    """Send one event; its name is the event's own `type`."""

    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Raw:
    """Send these bytes as they stand."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Send nothing for this many milliseconds."""

    ms: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Send nothing until the gate of this name is released."""

    name: str


Step = Send | Raw | Wait | Gate


def event_bytes(event: Mapping[str, Any], *, newline: bytes = b"\n") -> bytes:
    """Write one event as the service does: its type as the name, its data in compact JSON with non-ASCII kept."""
    data = compact(event).encode("utf-8", "surrogatepass")
    name = event.get("type")
    return encode(data, name.encode() if isinstance(name, str) else b"", newline=newline)
