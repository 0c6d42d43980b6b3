"""The payloads of http frames in a cassette: a request, the head of a response, and the parts of its body.

`request` is {"method", "path", "headers", "trailers"?, BODY?, "version"?}. `response` is {"status", "headers", "reason"?,
"version"?}. `sse` is one server-sent event: {"event"?, "data"} or {"event"?, EXACT, "view"?}. `chunk` is a piece of a body
that is not an event stream: BODY. `close` is "end", "cut" (the connection closed before the end of the body) or "reset".

BODY is {"body": value} if the compact JSON of the value equals the bytes of the body, otherwise EXACT. EXACT is {"text"} or
{"base64"}; if the body is JSON, its decoded value is next to it under "view". The "data" of an event follows the rule for
BODY: the value if its compact JSON equals the bytes, otherwise EXACT. Headers and trailers are pairs in their original
order and case, in Latin-1. The keys `reason` and `version` exist only if their value is unusual. A compressed body is
stored with its exact bytes (EXACT); its decompressed content is under "view". The key "encoding" names the compression of a
body if the first bytes do not show it. If a secret in a compressed body was redacted, the body is stored decompressed and
marked "packed". A player compresses a "packed" body before it sends the body. A body that cannot be decoded cannot be
redacted, so only its length in bytes is stored: {"omitted": length}.

The mark "cuts" of a frame lists the places in the frame's bytes at which an HTTP chunk ended, each with its time. The mark
"joined" means that the last chunk of the frame continues in the next frame. The mark "truncated" means that a request is
incomplete.

Source: DESIGN.md, "The cassette".
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire import content_encoding
from codex_replay.core.wire.json_text import dumps, value_or_none
from codex_replay.core.wire.sse import Block, Decoder, encode

Redact = Callable[[bytes], bytes]
Headers = Sequence[Sequence[str]]

_REASONS = {
    100: "Continue",
    101: "Switching Protocols",
    200: "OK",
    201: "Created",
    204: "No Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def header(headers: Headers, name: str) -> str | None:
    """Return the value of the first header with the given name (in upper or lower case), or None."""
    return next((value for key, value in headers if key.lower() == name), None)


def request_payload(
    method: str,
    path: str,
    headers: Headers,
    body: bytes,
    version: str = "1.1",
    redact: Redact | None = None,
    trailers: Headers = (),
) -> dict[str, Any]:
    """Return the payload of a whole request.

    The function `redact` removes the secrets of base64 and compressed content, which the caller cannot redact later (see
    `body_fields`).
    """
    payload: dict[str, Any] = {"method": method, "path": path, "headers": [list(pair) for pair in headers]}
    if trailers:
        payload["trailers"] = [list(pair) for pair in trailers]
    if body:
        payload |= body_fields(body, header(headers, "content-encoding"), redact)
    if version != "1.1":
        payload["version"] = version
    return payload


def response_payload(status: int, headers: Headers, reason: str, version: str = "1.1") -> dict[str, Any]:
    """Return the payload of a response's head."""
    payload: dict[str, Any] = {"status": status, "headers": [list(pair) for pair in headers]}
    if reason != usual_reason(status):
        payload["reason"] = reason
    if version != "1.1":
        payload["version"] = version
    return payload


def usual_reason(status: int) -> str:
    """Return the standard reason phrase of an HTTP status (RFC 9110, section 15), or "" for an unknown status."""
    return _REASONS.get(status, "")


def body_fields(raw: bytes, encoding: str | None = None, redact: Redact | None = None) -> dict[str, Any]:
    """Return BODY (see the top of the module) for the bytes of a body; `encoding` is the content-encoding of the body.

    `redact` is called only for base64 and compressed content, because a later redaction of the payload does not see such
    content.
    """
    name = (encoding or "").lower()
    return _plain_fields(raw, redact) if name in content_encoding.IDENTITY else _packed_fields(raw, name, redact)


def _plain_fields(raw: bytes, redact: Redact | None) -> dict[str, Any]:
    value = value_or_none(raw)
    if value is not None and _is_form_of(raw, value):
        return {"body": value}
    return _with_view(_exact(raw, redact), value)


def _with_view(fields: dict[str, Any], value: Any) -> dict[str, Any]:
    """Add the decoded view of a body to its fields, if the view can be written as JSON.

    A view with a lone surrogate cannot be written as JSON.
    """
    if value is None:
        return fields
    try:
        dumps(value)
    except ValueError:
        return fields
    return {**fields, "view": value}


def _exact(raw: bytes, redact: Redact | None) -> dict[str, Any]:
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(redact(raw) if redact else raw).decode()}


def _packed_fields(raw: bytes, encoding: str, redact: Redact | None) -> dict[str, Any]:
    plain = content_encoding.decode_partial(raw, encoding)
    if plain is None:  # what cannot be decoded cannot be redacted
        return {"omitted": len(raw)} if redact else {"base64": base64.b64encode(raw).decode()}
    clean = redact(plain) if redact else plain
    if clean != plain:
        return {**_plain_fields(clean, None), "packed": encoding}
    fields = {"base64": base64.b64encode(raw).decode()}
    if content_encoding.detect(raw) != encoding.removeprefix("x-"):
        fields["encoding"] = encoding  # the bytes do not show it
    return _with_view(fields, value_or_none(plain))


def body_bytes(payload: dict[str, Any]) -> bytes:
    """Return the exact bytes of the body of a request or of a chunk; raise `ValueError` if the recording omitted the body."""
    if "omitted" in payload:
        raise ValueError(f"a body of {payload['omitted']} bytes could not be redacted, so it is not in the recording")
    raw = _bytes(payload, "body")
    return content_encoding.encode(raw, payload.get("packed"))


def body_value(payload: dict[str, Any]) -> Any:
    """Return the decoded JSON of a body, or None if it is not JSON."""
    return payload["body"] if "body" in payload else payload.get("view")


def _bytes(payload: dict[str, Any], name: str) -> bytes:
    if name in payload:
        return dumps(payload[name])
    if "text" in payload:
        return str(payload["text"]).encode()
    return base64.b64decode(payload.get("base64", ""))


def sse_payload(block: Block, redact: Redact | None = None) -> dict[str, Any]:
    """Return the payload of a server-sent event, or of a block without an event (a comment, half an event)."""
    name = block.event.decode("utf-8", "replace")
    payload: dict[str, Any] = {"event": name} if name else {}
    value = value_or_none(block.data)
    if value is not None and block.data is not None and _is_form_of(block.data, value) and _usual(block):
        payload["data"] = value
        return payload
    return _with_view({**payload, **_exact(block.raw, redact)}, value)


def _usual(block: Block) -> bool:
    try:
        return block.complete and block.data is not None and encode(block.data, block.event) == block.raw
    except ValueError:
        return False


def sse_bytes(payload: dict[str, Any]) -> bytes:
    """Return the exact bytes of a server-sent event."""
    if "data" in payload:
        return encode(dumps(payload["data"]), str(payload.get("event", "")).encode())
    return _bytes(payload, "data")


def sse_value(payload: dict[str, Any]) -> Any:
    """Return the decoded JSON data of an event, or None if the data are not JSON."""
    return payload["data"] if "data" in payload else payload.get("view")


def sse_blocks(raw: bytes) -> list[Block]:
    """Return the blocks of a whole event stream, including an incomplete last block."""
    decoder = Decoder()
    return decoder.feed(raw) + decoder.close()


def body_chunks(frames: Iterable[Frame]) -> list[tuple[float, bytes]]:
    """Return the HTTP chunks of a body from its "sse" and "chunk" frames, each chunk with the time of its end."""
    found: list[tuple[float, bytes]] = []
    begun = b""
    for frame in frames:
        raw = sse_bytes(frame.payload) if frame.kind == "sse" else body_bytes(frame.payload)
        at = 0
        for cut, when in frame.extra.get("cuts", ()):
            # A redacted event may be shorter than what was cut.
            found.append((when, begun + raw[at : min(cut, len(raw))]))
            begun, at = b"", min(cut, len(raw))
        begun += raw[at:]
        if not frame.extra.get("joined"):
            found.append((frame.t, begun))
            begun = b""
    if begun:
        found.append((frame.t, begun))
    return found


def request_bytes(payload: dict[str, Any]) -> bytes:
    """Return the bytes of a recorded request.

    The headers are written unchanged, and a body with several HTTP chunks becomes one chunk.
    """
    body = body_bytes(payload)
    if "chunked" in (header(payload["headers"], "transfer-encoding") or "").lower():
        body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + head("0", payload.get("trailers", ()))
    return head(f"{payload['method']} {payload['path']} HTTP/{payload.get('version', '1.1')}", payload["headers"]) + body


def response_head(payload: dict[str, Any]) -> bytes:
    """Return the bytes of a response's status line and headers."""
    status = payload["status"]
    reason = payload.get("reason", usual_reason(status))
    return head(f"HTTP/{payload.get('version', '1.1')} {status} {reason}", payload["headers"])


_NOT_IN_HEAD = str.maketrans("\r\n\0", "???")


def head(first: str, headers: Headers) -> bytes:
    """Return the head of a message as bytes: its first line, its headers, and the blank line.

    A character that HTTP does not allow in a head becomes "?": an edited cassette may contain such a character.
    """
    lines = [first, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(line.translate(_NOT_IN_HEAD) for line in lines).encode("latin-1", "replace")


def _is_form_of(raw: bytes, value: Any) -> bool:
    try:
        return dumps(value) == raw
    except ValueError:
        return False
