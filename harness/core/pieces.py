"""The pieces of longer texts that stand in one frame: found, and written anew.

A piece is the "delta" of an rpc notification or of a server-sent event whose name ends in "delta", or the "chunk" (base64) of
such a notification; each "token" of a list of logprobs, in an event or in a body; and a part of a body that is no JSON of its
own. That holds for every version of Codex so far, and what is missed here is a secret that stays, so this asks no version's
table.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from harness.core.frames import Frame
from harness.core.hidden import opened, with_body, with_exact, with_payload
from harness.core.jsonspan import Path, span, spliced, written
from harness.core.jsontext import NotJson, dumps, loads

TEXT, BASE64, TOKEN, BODY = "text", "base64", "token", "body"
#: The first name of a stream that no other frame has a piece of.
ALONE = "alone"
_PASSING = ("delta", "chunk", "sequence_number", "logprobs", "obfuscation")  # what differs between the pieces of one stream
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


class Piece(NamedTuple):
    """A part of a longer text: the names of its stream, where in the frame's JSON it stands, what it says.

    `form` is how it is written there.
    """

    stream: tuple[str, ...]
    path: Path
    data: bytes
    form: str


def pieces_of(frame: Frame) -> list[Piece]:
    """Return the pieces in a frame; their order is the same whatever they say."""
    if frame.seam == "rpc":
        return _of_notification(frame)
    if type(frame.payload) is not dict:
        return []
    if frame.kind == "sse":
        return _of_event(frame)
    return _of_body(frame) if frame.kind == "chunk" else []


def with_pieces(frame: Frame, changed: Mapping[int, bytes]) -> Frame:
    """Return the frame with other pieces, by their place in `pieces_of`; all other bytes stay as they were."""
    pieces = pieces_of(frame)
    edits: list[tuple[Path, Any]] = []
    for number, data in changed.items():
        piece = pieces[number]
        if piece.form == BODY:
            return with_payload(frame, with_body(frame.payload, data, opened(frame.payload)[1]))
        edits += _edits(_json_of(frame), piece, data)
    if frame.seam == "rpc":
        raw = frame.raw
        for path, value in edits:
            raw = spliced(raw, path, value)
        return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra=frame.extra)
    return with_payload(frame, (_edited_event if frame.kind == "sse" else _edited_body)(frame.payload, edits))


def thread_of(value: Any) -> str:
    """Return the thread that an rpc message is of."""
    params = value.get("params") if type(value) is dict else None
    return str(params.get("conversationId", params.get("threadId"))) if type(params) is dict else ""


def _of_notification(frame: Frame) -> list[Piece]:
    if b"elta" not in frame.raw:  # spares decoding: there is no piece without that word
        return []
    value = frame.value
    if type(value) is not dict or type(value.get("method")) is not str or not value["method"].lower().endswith("delta"):
        return []
    params = value.get("params")
    if type(params) is not dict:
        return []
    inner, path = (params["msg"], ("params", "msg")) if type(params.get("msg")) is dict else (params, ("params",))
    names = ("rpc", value["method"], thread_of(value), frame.sender, *_others(params), *_others(inner))
    if type(inner.get("delta")) is str:
        return [Piece(names, (*path, "delta"), _encoded(inner["delta"]), TEXT)]
    if type(inner.get("chunk")) is str:
        try:
            return [Piece(names, (*path, "chunk"), a2b_base64(inner["chunk"], strict_mode=True), BASE64)]
        except (Error, ValueError):
            return []
    return []


def _of_event(frame: Frame) -> list[Piece]:
    data = _json_of(frame)
    if type(data) is not dict:
        return []
    kind = data.get("type", frame.payload.get("event"))
    names: tuple[str, ...] = (ALONE,)
    pieces = []
    if type(data.get("delta")) is str and type(kind) is str and kind.endswith("delta"):
        names = ("http", str(frame.conn), kind, *_others(data))
        pieces.append(Piece(names, ("delta",), _encoded(data["delta"]), TEXT))
    return pieces + list(_tokens(data, names))


def _of_body(frame: Frame) -> list[Piece]:
    value = _json_of(frame)
    if type(value) in (dict, list):  # a whole body: what stands in it any look at the frame finds, but for torn tokens
        return list(_tokens(value, (ALONE,)))
    try:
        data, _ = opened(frame.payload)
    except (Error, ValueError):
        return []
    return [Piece(("http", str(frame.conn), BODY), (), data, BODY)]


def _tokens(value: Any, names: tuple[str, ...]) -> Iterator[Piece]:
    """Yield the tokens of each list of logprobs in a JSON value. The top_logprobs of a token are no sequence."""
    waiting: list[tuple[Path, Any]] = [((), value)]  # and no recursion: a recording may be nested as deeply as it likes
    while waiting:
        path, one = waiting.pop()
        if type(one) is list and one and all(type(i) is dict and type(i.get("token")) is str and "logprob" in i for i in one):
            stream = (*names, *map(str, path))
            for number, item in enumerate(one):
                yield Piece(stream, (*path, number, "token"), _encoded(item["token"]), TOKEN)
            continue
        inner = enumerate(one) if type(one) is list else one.items()
        waiting += [((*path, k), v) for k, v in inner if type(v) in (dict, list) and k != "top_logprobs"]


def _json_of(frame: Frame) -> Any:
    """Return the decoded JSON that the paths of a frame's pieces begin at."""
    if frame.seam == "rpc":
        return frame.value
    name = "data" if frame.kind == "sse" else "body"
    return frame.payload[name] if name in frame.payload else frame.payload.get("view")


def _others(members: dict[str, Any]) -> list[str]:
    """Return what tells a stream from another: its ids, its indexes, its kind."""
    return [f"{key}={value}" for key, value in members.items() if type(value) in (str, int) and key not in _PASSING]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _edits(value: Any, piece: Piece, data: bytes) -> Iterator[tuple[Path, Any]]:
    """Yield what becomes what in the JSON of a frame when a piece becomes `data`."""
    if piece.form == BASE64:
        yield piece.path, b2a_base64(data, newline=False).decode()
        return
    yield piece.path, data.decode("utf-8", "surrogatepass")
    if piece.form == TOKEN:  # which says the same three times
        above = piece.path[:-1]
        for step in above:
            value = value[step]
        if type(value.get("bytes")) is list:
            yield (*above, "bytes"), list(data)
        if value.get("top_logprobs"):
            yield (*above, "top_logprobs"), []


def _edited(value: Any, edits: list[tuple[Path, Any]]) -> Any:
    value = deepcopy(value)
    for path, new in edits:
        place = value
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = new
    return value


def _edited_body(payload: dict[str, Any], edits: list[tuple[Path, Any]]) -> dict[str, Any]:
    if "body" in payload:
        return {**payload, "body": _edited(payload["body"], edits)}
    plain, packed = opened(payload)
    if _value(plain) != payload["view"]:  # no recorder writes that; the view is what was looked at
        return with_body(payload, dumps(_edited(payload["view"], edits)), packed)
    for path, value in edits:
        plain = spliced(plain, path, value)
    return with_body(payload, plain, packed)


def _edited_event(payload: dict[str, Any], edits: list[tuple[Path, Any]]) -> dict[str, Any]:
    if "data" in payload:
        return {**payload, "data": _edited(payload["data"], edits)}
    view = _edited(payload["view"], edits)
    raw = a2b_base64(payload["base64"]) if "base64" in payload else str(payload.get("text", "")).encode()
    if _value(_data_of(raw)[0]) != payload["view"]:  # as above
        return {"event": payload["event"], "data": view} if "event" in payload else {"data": view}
    for path, value in edits:
        data, places = _data_of(raw)
        start, end = span(data, path)
        new = written(data[start:end], value)
        raw = raw[: places[start]] + new + raw[places[end - 1] + 1 :]
    return {**with_exact(payload, raw), "view": view}


def _data_of(raw: bytes) -> tuple[bytes, list[int]]:
    """Return the data of one event, its lines joined, and for each byte of that where it stands in `raw`."""
    data, places = b"", list[int]()
    for line in _LINE.finditer(raw):
        if line[1].startswith(b"data:"):
            start = line.start() + (6 if line[1].startswith(b"data: ") else 5)
            if places:
                data += b"\n"
                places.append(start - 1)
            data += raw[start : line.end(1)]
            places += range(start, line.end(1))
    return data, places


def _value(raw: bytes) -> Any:
    try:
        return loads(raw)
    except NotJson:
        return None
