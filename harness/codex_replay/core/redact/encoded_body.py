"""Find and replace secrets in the base64 and compressed content of a frame.

A search of the cassette line alone would miss secrets in encoded content.

A compressed body without secrets is stored as it was recorded. A compressed body with secrets is stored decompressed and
marked "packed" (see `http_frames`). Other searches find the secrets that only the user knows, and the secrets in chunks. A
body that cannot be decompressed cannot be searched: `Unseen` reports such a body.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire import content_encoding

_BODY = ("body", "text", "base64", "encoding", "view", "packed", "omitted")


def redacted(frame: Frame, redactor: Redactor) -> Frame:
    """Return the frame with its secrets replaced. If the frame has no secrets, return the same object."""
    if frame.seam == "rpc":
        raw = redactor.redact(frame.raw)
        if raw == frame.raw:
            return frame
        return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra=frame.extra)
    payload = redactor.value(frame.payload)
    if (plain := inside(frame)) is not None and (clean := redactor.redact(plain)) != plain:
        _, packed = opened(frame.payload)
        payload = with_exact(payload, clean) if frame.kind in ("sse", "ws") else with_body(payload, clean, packed)
    if payload == frame.payload:
        return frame
    return with_payload(frame, payload)


def inside(frame: Frame) -> bytes | None:
    """Return the base64 content of an http frame, decoded and decompressed.

    Return None if the frame has no base64 content, or if the content cannot be decoded.
    """
    payload = frame.payload
    if frame.seam != "http" or type(payload) is not dict or type(payload.get("base64")) is not str:
        return None
    try:
        return opened(payload)[0]
    except (Error, ValueError):
        return None


def opened(payload: dict[str, Any]) -> tuple[bytes, str]:
    """Return the decompressed bytes of a body, and its encoding (empty if the body is not compressed).

    Raises `ValueError` without a body.
    """
    from codex_replay.core.cassette import http_frames

    if "base64" not in payload or "packed" in payload:
        packed = payload.get("packed", "")
        return http_frames.body_bytes({key: value for key, value in payload.items() if key != "packed"}), packed
    raw = b64decode(payload["base64"])
    encoding = payload.get("encoding") or http_frames.header(payload.get("headers", ()), "content-encoding")
    encoding = (encoding or content_encoding.detect(raw)).lower()
    plain = None if encoding in content_encoding.IDENTITY else content_encoding.decode_partial(raw, encoding)
    return (raw, "") if plain is None else (plain, encoding)


def fields(raw: bytes, encoding: str) -> dict[str, Any]:
    """Return BODY (see `http_frames`) with its secrets; the function `redacted` removes the secrets later.

    For a body that cannot be decoded, return only its length.

    `fields` must not redact: if it redacted the first chunk of a secret, the rest of the secret would stay in the later
    chunks.
    """
    from codex_replay.core.cassette.http_frames import body_fields

    return body_fields(raw, encoding, lambda plain: plain)


class Unseen:
    """In a recording, find the bodies that cannot be decompressed.

    Call the method `encoding` with every frame of the recording.
    """

    def __init__(self) -> None:
        self._encodings: dict[int | None, str] = {}

    def encoding(self, frame: Frame) -> str:
        """Return the encoding of a frame's body if the body cannot be decoded and searched, otherwise ""."""
        payload = frame.payload
        if frame.seam != "http" or type(payload) is not dict:
            return ""
        from codex_replay.core.cassette.http_frames import header

        if frame.kind in ("request", "response"):
            self._encodings[frame.conn] = (header(payload.get("headers", ()), "content-encoding") or "").lower()
        if frame.kind not in ("request", "chunk") or "packed" in payload or type(payload.get("base64")) is not str:
            return ""
        encoding = self._encodings.get(frame.conn, "").removeprefix("x-")
        try:
            if encoding in content_encoding.IDENTITY or opened(payload)[1]:
                return ""
            # What a client's library has decompressed keeps the header that it came with.
            return encoding if content_encoding.starts_as(b64decode(payload["base64"]), encoding) else ""
        except (Error, ValueError):
            return ""  # no base64: that is another fault


def left_out(frame: Frame) -> Frame:
    """Return a frame with the length of its body in place of the body."""
    kept = {key: value for key, value in frame.payload.items() if key not in _BODY}
    last = {"version": kept.pop("version")} if "version" in kept else {}
    return with_payload(frame, {**kept, "omitted": len(b64decode(frame.payload["base64"])), **last})


def with_body(payload: dict[str, Any], plain: bytes, packed: str) -> dict[str, Any]:
    """Return the payload of a request or a chunk with the body `plain`.

    `packed` names the encoding in which a player must send the body.
    """
    from codex_replay.core.cassette.http_frames import body_fields

    fields = body_fields(plain) | ({"packed": packed} if packed else {})
    kept = {key: value for key, value in payload.items() if key not in _BODY}
    last = {"version": kept.pop("version")} if "version" in kept else {}
    return {**kept, **fields, **last}


def with_exact(payload: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return an event's payload with the new bytes `raw`; they stay under the same key ("text" or "base64")."""
    if "base64" in payload:
        return {**payload, "base64": b64encode(raw).decode()}
    return {**payload, "text": raw.decode()}


def with_payload(frame: Frame, payload: Any) -> Frame:
    """Return an http frame with another payload."""
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, b"", payload, frame.conn, extra=frame.extra)
