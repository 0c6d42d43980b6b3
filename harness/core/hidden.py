"""What a frame holds under base64 or compression, where no look at its line finds it; and the frame without its secrets.

A body that was compressed stands as it came where nothing in it had to be redacted, and decompressed, marked "packed", where
something had (see `httpframes`). A secret that only the user knows, or that came in pieces, is found later: then a body
becomes of the second kind.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from typing import Any

from harness.core.frames import Frame
from harness.core.redact import Redactor

_BODY = ("body", "text", "base64", "view", "packed", "omitted")
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "deflate": b"\x78"}


def redacted(frame: Frame, redactor: Redactor) -> Frame:
    """Return the frame without its secrets, or the very same one if it has none."""
    if frame.seam == "rpc":
        raw = redactor.redact(frame.raw)
        if raw == frame.raw:
            return frame
        return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra=frame.extra)
    payload = redactor.value(frame.payload)
    if (plain := inside(frame)) is not None and (clean := redactor.redact(plain)) != plain:
        _, packed = opened(frame.payload)
        payload = with_exact(payload, clean) if frame.kind == "sse" else with_body(payload, clean, packed)
    if payload == frame.payload:
        return frame
    return with_payload(frame, payload)


def inside(frame: Frame) -> bytes | None:
    """Return what stands in base64 in an http frame, decompressed; None where nothing does, or nothing that can be read."""
    payload = frame.payload
    if frame.seam != "http" or type(payload) is not dict or type(payload.get("base64")) is not str:
        return None
    try:
        return opened(payload)[0]
    except (Error, ValueError):
        return None


def opened(payload: dict[str, Any]) -> tuple[bytes, str]:
    """Return a body's plain bytes and the encoding that it was taken out of, "" for none; raises `ValueError` if it has none."""
    from harness.core import httpframes

    if "base64" not in payload or "packed" in payload:
        packed = payload.get("packed", "")
        return httpframes.body_bytes({key: value for key, value in payload.items() if key != "packed"}), packed
    raw = b64decode(payload["base64"])
    encoding = httpframes.header(payload.get("headers", ()), "content-encoding")
    encoding = (encoding or next((name for name, magic in _MAGIC.items() if raw.startswith(magic)), "")).lower()
    plain = httpframes.unpacked(raw, encoding) if encoding else None
    return (raw, "") if plain is None else (plain, encoding)


def with_body(payload: dict[str, Any], plain: bytes, packed: str) -> dict[str, Any]:
    """Return a request's or a chunk's payload with another body; `packed` says how it is to be compressed when it is sent."""
    from harness.core.httpframes import body_fields

    fields = body_fields(plain) | ({"packed": packed} if packed else {})
    kept = {key: value for key, value in payload.items() if key not in _BODY}
    last = {"version": kept.pop("version")} if "version" in kept else {}
    return {**kept, **fields, **last}


def with_exact(payload: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return an event's payload with other exact bytes, in the form in which they stood."""
    if "base64" in payload:
        return {**payload, "base64": b64encode(raw).decode()}
    return {**payload, "text": raw.decode()}


def with_payload(frame: Frame, payload: Any) -> Frame:
    """Return an http frame with another payload."""
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, b"", payload, frame.conn, extra=frame.extra)
