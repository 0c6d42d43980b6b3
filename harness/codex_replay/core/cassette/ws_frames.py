"""The payloads of WebSocket frames in a cassette: the content of one message or control frame after an upgrade.

`{"json": value}` is a text message whose bytes are the compact JSON of the value. `{"text": text, "view"?}` is any other
text message; "view" is its decoded value, if the text is JSON. `{"base64": data}` is a binary message. `{"ping": data}` and
`{"pong": data}` have the data in Latin-1: each character is a byte. `{"close": {"code", "reason"}}` is a close frame; the
object is empty if the frame has no code. `{"omitted": size, "why": text}` is a message that could not be decoded or was too
long, and therefore could not be searched for secrets.

The mark "compressed" means that the message was compressed (with the parameters in the 101 response). The mark "fragments"
lists the sizes of the WebSocket frames of a message that was sent in several frames. The mark "began" is the time of the
message's first byte, if its last byte came later.

Source: DESIGN.md, "The cassette".
"""

from __future__ import annotations

import base64
from typing import Any

from codex_replay.core.wire.json_text import NotJson, dumps, loads

#: The kinds of a payload by its first key.
KINDS = {"json": "text", "text": "text", "base64": "binary", "ping": "ping", "pong": "pong", "close": "close", "omitted": "lost"}


def payload(kind: str, data: bytes, size: int = 0, why: str = "") -> dict[str, Any]:
    """Return the cassette payload of a WebSocket message.

    `kind` is one of the words in `KINDS`. For a message that could not be decoded, `size` is its size in bytes and `why` is
    the reason.
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
    """Return the exact bytes of a message, or b"" if the recording omitted the message."""
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
    """Return a name of a message to show to people: its `type`, or its kind if it has no `type`."""
    value = value_of(payload)
    kind = value.get("type") if type(value) is dict else None
    if type(kind) is str:
        return kind
    if "close" in payload:
        return f"close {payload['close'].get('code', '')}".rstrip()
    return {"lost": "omitted"}.get(kind_of(payload), kind_of(payload))
