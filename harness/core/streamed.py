"""What is streamed in pieces, put together again, so that a secret is seen that no single frame shows.

A piece is the "delta" of an rpc notification or of a server-sent event whose name ends in "delta", or the "chunk" (base64) of
such a notification; a stream is what all other members tell apart. That holds for every version of Codex so far, and what is
missed here is a secret that stays, so this asks no version's table.

Strategy: `Streams` gathers the pieces of a whole recording; `secrets` says what only the whole shows, `mended` what the pieces
become: a placeholder in the piece in which a secret begins, the rest of it gone from those that follow.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.core.frames import Frame
from harness.core.jsontext import NotJson, ascii_dumps, dumps, loads, member_span
from harness.core.redact import Redactor

_ROUNDS = 32  # as the redactor itself: each round leaves less to find
_PASSING = ("delta", "chunk", "sequence_number", "logprobs", "obfuscation")  # what differs between the pieces of one stream


class Secret(NamedTuple):
    """A secret that only joined pieces show: what it is, how long, the places of its first and last piece (see `Streams.add`)."""

    kind: str
    size: int
    first: int
    last: int


class _Piece(NamedTuple):
    path: tuple[str, ...]  # from the message, or from the event's data, to the text
    key: tuple[str, ...]  # the stream
    data: bytes
    base64: bool


class _Stream:
    def __init__(self, base64: bool) -> None:
        self.base64 = base64
        self.places: list[int] = []
        self.pieces: list[bytes] = []


class Streams:
    """The streams of one recording, gathered frame by frame."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Stream] = {}
        self._all: list[_Stream] = []

    def add(self, frame: Frame, place: int) -> None:
        """Take the piece of a frame, if it has one; `place` is how the caller calls the frame, rising."""
        piece = _piece(frame)
        if piece is None:
            self._close(frame)
            return
        stream = self._open.get(piece.key)
        if stream is None:
            stream = self._open[piece.key] = _Stream(piece.base64)
            self._all.append(stream)
        stream.places.append(place)
        stream.pieces.append(piece.data)

    def secrets(self, redactor: Redactor) -> Iterator[Secret]:
        """Yield what only the joined pieces show, and what is in base64: what a frame shows is left to who looks at frames."""
        for stream in self._all:
            starts = _starts(stream.pieces)
            for kind, start, end in redactor.findings(b"".join(stream.pieces)):
                first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
                at = starts[first]
                alone = [] if stream.base64 or first != last else redactor.findings(stream.pieces[first])
                if not any(left <= start - at and end - at <= right for _, left, right in alone):
                    yield Secret(kind, end - start, stream.places[first], stream.places[last])

    def mended(self, redactor: Redactor) -> dict[int, bytes]:
        """Return what the pieces at these places become; only those that change."""
        changed: dict[int, bytes] = {}
        for stream in self._all:
            pieces = list(stream.pieces)
            for _ in range(_ROUNDS):
                edits = redactor.edits(b"".join(pieces))
                if not edits:
                    break
                starts = _starts(pieces)
                for start, end, new in reversed(edits):
                    _cut(pieces, starts, start, end, new)
            triples = zip(stream.places, stream.pieces, pieces, strict=True)
            changed.update({place: new for place, old, new in triples if new != old})
        return changed

    def _close(self, frame: Frame) -> None:
        """End the streams that end with this frame: the pieces of two messages are not to be joined."""
        if not self._open:
            return
        if frame.seam == "http":
            if frame.kind in ("request", "response", "close"):
                conn = str(frame.conn)
                self._open = {key: one for key, one in self._open.items() if key[:2] != ("http", conn)}
            return
        value = frame.value
        method = value.get("method") if type(value) is dict else None
        if type(method) is str and method.startswith("codex/event/"):
            # An agent_message_delta has no id of its item; agent_message says that the item is whole.
            stem = method.removesuffix("_section_break") + "_"
            thread = _thread(value)
            self._open = {k: one for k, one in self._open.items() if k[2:3] != (thread,) or not k[1].startswith(stem)}


def with_piece(frame: Frame, data: bytes) -> Frame | None:
    """Return the frame with another piece, all other bytes as they were; None where its form does not allow that."""
    piece = _piece(frame)
    if piece is None:
        return None
    text = b2a_base64(data, newline=False).decode() if piece.base64 else data.decode("utf-8", "surrogatepass")
    if frame.seam == "rpc":
        raw = _spliced(frame.raw, piece.path, text)
        return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra=frame.extra)
    payload = dict(frame.payload)
    name = "data" if "data" in payload else "view"
    payload[name] = {**payload[name], "delta": text}
    if name == "view":
        # An event that is kept exactly: only one whose data stands on one line can be written to.
        exact: str = payload["text"] if type(payload.get("text")) is str else ""
        start = exact.find("{")
        if start < 0:
            return None
        end = exact.find("\n", start)
        line = exact[start : end if end >= 0 else len(exact)]
        try:
            if loads(line.encode()) != frame.payload["view"]:
                return None
        except ValueError:
            return None
        payload["text"] = exact[:start] + _spliced(line.encode(), piece.path, text).decode() + exact[start + len(line) :]
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, b"", payload, frame.conn, extra=frame.extra)


def _piece(frame: Frame) -> _Piece | None:
    if frame.seam == "http":
        return _event_piece(frame) if frame.kind == "sse" else None
    if b"elta" not in frame.raw:  # spares decoding: there is no piece without that word
        return None
    value = frame.value
    if type(value) is not dict or type(value.get("method")) is not str or not value["method"].lower().endswith("delta"):
        return None
    params = value.get("params")
    if type(params) is not dict:
        return None
    inner, path = (params["msg"], ("params", "msg")) if type(params.get("msg")) is dict else (params, ("params",))
    names = ("rpc", value["method"], _thread(value), frame.sender, *_others(params), *_others(inner))
    if type(inner.get("delta")) is str:
        return _Piece((*path, "delta"), names, inner["delta"].encode("utf-8", "surrogatepass"), False)
    if type(inner.get("chunk")) is str:
        try:
            return _Piece((*path, "chunk"), names, a2b_base64(inner["chunk"], strict_mode=True), True)
        except (Error, ValueError):
            return None
    return None


def _event_piece(frame: Frame) -> _Piece | None:
    payload = frame.payload
    data = (payload.get("data") or payload.get("view")) if type(payload) is dict else None
    if type(data) is not dict or type(data.get("delta")) is not str:
        return None
    kind = data.get("type", payload.get("event"))
    if type(kind) is not str or not kind.endswith("delta"):
        return None
    return _Piece(
        ("delta",), ("http", str(frame.conn), kind, *_others(data)), data["delta"].encode("utf-8", "surrogatepass"), False
    )


def _thread(value: dict[str, Any]) -> str:
    params = value.get("params")
    return str(params.get("conversationId", params.get("threadId"))) if type(params) is dict else ""


def _others(members: dict[str, Any]) -> list[str]:
    """Return what tells a stream from another: its ids, its indexes, its kind."""
    return [f"{key}={value}" for key, value in members.items() if type(value) in (str, int) and key not in _PASSING]


def _starts(pieces: list[bytes]) -> list[int]:
    starts, at = [], 0
    for piece in pieces:
        starts.append(at)
        at += len(piece)
    return starts


def _cut(pieces: list[bytes], starts: list[int], start: int, end: int, new: bytes) -> None:
    """Put `new` where a span of the joined pieces begins, and take the span out; spans are to come from the last to the first."""
    first = bisect_right(starts, start) - 1
    for at in range(bisect_right(starts, end - 1) - 1, first, -1):
        pieces[at] = pieces[at][end - starts[at] :]
    piece, offset = pieces[first], starts[first]
    pieces[first] = piece[: start - offset] + new + piece[max(0, end - offset) :]


def _spliced(raw: bytes, path: tuple[str, ...], text: str) -> bytes:
    """Return a JSON text in any form with one string in it replaced, written as the string before it was."""
    start, end = 0, len(raw)
    for name in path:
        span = member_span(raw[start:end], name)
        assert span is not None, "the decoded value has this member"
        start, end = start + span[0], start + span[1]
    return raw[:start] + _written(raw[start:end], text) + raw[end:]


def _written(old: bytes, text: str) -> bytes:
    try:
        if b"\\u" in old and ascii_dumps(loads(old)) == old:
            return ascii_dumps(text)
        return dumps(text)
    except (NotJson, ValueError):  # a lone surrogate has only the escaped form
        return ascii_dumps(text)
