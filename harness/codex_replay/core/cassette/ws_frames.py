"""The payloads of WebSocket frames: the content of one message or control frame after an upgrade.

    {"json": value}            a text message whose bytes are the compact JSON of the value
    {"text": text, "view"?}    another text message, its decoded JSON next to it if it is JSON
    {"base64": data}           a binary message
    {"ping": data}, {"pong": data}    the payload in Latin-1: each character is a byte
    {"close": {"code", "reason"}}     {} without a code
    {"omitted": size, "why": text}    a message that could not be decoded or was too long, so that it could not be searched

Marks of a frame: "compressed" if the message was compressed (with the parameters of the 101), "fragments" with the sizes of its
frames if it had several, "began" with the time of its first byte if that was earlier.

Source: DESIGN.md, "The cassette".
"""

from __future__ import annotations

import base64
from typing import Any

from codex_replay.core.wire.json_text import NotJson, dumps, loads

#: The kinds of a payload by its first key.
KINDS = {"json": "text", "text": "text", "base64": "binary", "ping": "ping", "pong": "pong", "close": "close", "omitted": "lost"}


def payload(kind: str, data: bytes, size: int = 0, why: str = "") -> dict[str, Any]:
    """Return the payload of a message.

    `kind` is one of `KINDS`. For a lost message, `size` is its size in bytes and `why` the reason.
    """
    if kind == "lost":
        return {"omitted": size, "why": why}
    if kind == "binary":
        return {"base64": base64.b64encode(data).decode()}
    if kind in ("ping", "pong"):
        return {kind: data.decode("latin-1")}
    if kind == "close":
        if len(data) < 2:
            return {"close": {}}
        return {"close": {"code": int.from_bytes(data[:2], "big"), "reason": data[2:].decode("utf-8", "replace")}}
    return _text(data)


def _text(data: bytes) -> dict[str, Any]:
    text = data.decode()
    try:
        value = loads(data)
    except NotJson:
        return {"text": text}
    try:
        if dumps(value) == data:
            return {"json": value}
    except ValueError:  # a lone surrogate: the text alone has all the data
        return {"text": text}
    return {"text": text, "view": value}


def kind_of(payload: dict[str, Any]) -> str:
    """Return the kind of a message: text, binary, ping, pong, close or lost."""
    return next((kind for key, kind in KINDS.items() if key in payload), "lost")


def data_of(payload: dict[str, Any]) -> bytes:
    """Return the exact bytes of a message, b"" for an omitted message."""
    if "json" in payload:
        return dumps(payload["json"])
    if "text" in payload:
        return str(payload["text"]).encode()
    if "base64" in payload:
        return base64.b64decode(payload["base64"])
    if "close" in payload:
        close = payload["close"]
        return int(close["code"]).to_bytes(2, "big") + str(close.get("reason", "")).encode()[:123] if "code" in close else b""
    return str(payload.get("ping", payload.get("pong", ""))).encode("latin-1", "replace")[:125]


def value_of(payload: dict[str, Any]) -> Any:
    """Return the decoded JSON of a message, or None if it is not JSON."""
    return payload["json"] if "json" in payload else payload.get("view")


def name_of(payload: dict[str, Any]) -> str:
    """Return the name of a message for people: its `type`, otherwise its kind."""
    value = value_of(payload)
    kind = value.get("type") if type(value) is dict else None
    if type(kind) is str:
        return kind
    if "close" in payload:
        return f"close {payload['close'].get('code', '')}".rstrip()
    return {"lost": "omitted"}.get(kind_of(payload), kind_of(payload))
