"""Find and rewrite, in one frame, the chunks of longer texts (a model's text that is streamed in parts).

The "delta" of an rpc notification or a server-sent event is a chunk if the name of the notification or event ends in
"delta". The "chunk" (base64) of an rpc notification is a chunk if the notification's name ends in "delta". The
"deltaBase64" of any rpc message is a chunk. In a choice of chat/completions, each text in the "delta" is a chunk, and the "text"
is a chunk, too. In an event or a body, each "token" of a list of logprobs is a chunk. In a body, each part that alone is not JSON
is a chunk. If a body is an event stream (compressed, or with another content type), the events of the body are searched, too. The
rules that find chunks apply to every known version of Codex. No table of a Codex version is used here, because a chunk that a
table lacks would leave a secret in the cassette.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact.encoded_body import opened, with_body, with_exact, with_payload
from codex_replay.core.wire.json_span import Path, span, spliced, written
from codex_replay.core.wire.json_text import dumps, value_or_none

if TYPE_CHECKING:
    from codex_replay.core.wire.sse import Block

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
TEXT, BASE64, TOKEN, BODY = "text", "base64", "token", "body"
#: The first name of a stream that no other frame has a chunk of.
ALONE = "alone"
_PASSING = ("delta", "deltaBase64", "chunk", "sequence_number", "logprobs", "obfuscation")  # what differs from chunk to chunk
_NAMES = ("role", "id", "type")  # members of a delta that are not part of a longer text, and repeat in every event


class Chunk(NamedTuple):
    """A part of a longer text: the names of the text's stream, the place of the part in the frame's JSON, and the content of the
    part.

    `form` names the encoding of the chunk's content. If the body is an event stream, the path in the JSON begins with the
    number of the event.
    """

    stream: tuple[str, ...]
    path: Path
    data: bytes
    form: str


def chunks_of(frame: Frame) -> list[Chunk]:
    """Return the chunks of longer texts in a frame."""
    if frame.seam == "rpc":
        return _of_message(frame)
    if type(frame.payload) is not dict:
        return []
    if frame.kind == "ws":
        return list(_of_data(_json_of(frame), None, str(frame.conn)))
    if frame.kind == "sse":
        return list(_of_data(_json_of(frame), frame.payload.get("event"), str(frame.conn)))
    return _of_body(frame) if frame.kind == "chunk" else []


def with_chunks(frame: Frame, changed: Mapping[int, bytes]) -> Frame:
    """Return the frame with the given chunks, in the order of `chunks_of`; all other bytes stay unchanged."""
    chunks = chunks_of(frame)
    body = bool(chunks) and chunks[0].form == BODY
    if body and 0 in changed:
        frame = with_payload(frame, with_body(frame.payload, changed[0], opened(frame.payload)[1]))
        # What is torn at the border of a part is not an event, so the events in it are those that were there before.
        rest = {number: data for number, data in changed.items() if number}
        return with_chunks(frame, rest) if rest and len(chunks_of(frame)) == len(chunks) else frame
    edits: list[tuple[Path, Any]] = []
    value = [value_or_none(block.data) for block in _blocks_of(chunks[0].data)] if body else _json_of(frame)
    for number, data in changed.items():
        edits += _edits(value, chunks[number], data)
    if frame.seam == "rpc":
        raw = frame.raw
        for path, new in edits:
            raw = spliced(raw, path, new)
        return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, extra=frame.extra)
    write = (
        _edited_message
        if frame.kind == "ws"
        else _edited_event
        if frame.kind == "sse"
        else _edited_stream
        if body
        else _edited_body
    )
    return with_payload(frame, write(frame.payload, edits))


def thread_of(value: Any) -> str:
    """Return the id of the thread that an rpc message belongs to."""
    params = value.get("params") if type(value) is dict else None
    return str(params.get("conversationId", params.get("threadId"))) if type(params) is dict else ""


def _of_message(frame: Frame) -> list[Chunk]:
    if b"elta" not in frame.raw:  # spares decoding: there is no chunk without that word
        return []
    value = frame.value
    params = value.get("params") if type(value) is dict and type(value.get("method")) is str else None
    if type(params) is not dict:
        return []
    inner, path = (params["msg"], ("params", "msg")) if type(params.get("msg")) is dict else (params, ("params",))
    names = ("rpc", value["method"], thread_of(value), frame.sender, *_others(params), *_others(inner))
    known = value["method"].lower().endswith("delta")
    if known and type(inner.get("delta")) is str:
        return [Chunk(names, (*path, "delta"), _encoded(inner["delta"]), TEXT)]
    # The input and output of a process have no other name: command/exec/write is a request.
    name = "deltaBase64" if "deltaBase64" in inner else "chunk"
    if type(inner.get(name)) is str and (known or name != "chunk"):
        try:
            return [Chunk(names, (*path, name), a2b_base64(inner[name], strict_mode=True), BASE64)]
        except (Error, ValueError):
            return []
    return []


def _of_data(data: Any, event: Any, conn: str, at: Path = ()) -> Iterator[Chunk]:
    """Yield the chunks in the data of one event; `at` is the path of the data in the frame."""
    if type(data) is not dict:
        return
    kind = data.get("type", event)
    names: tuple[str, ...] = (ALONE, *map(str, at))
    if type(kind) is str and kind.endswith("delta") and type(data.get("delta")) in (str, dict):
        names = ("http", conn, kind, *_others(data))
        yield from _texts(data["delta"], names, (*at, "delta"))
    choices = data.get("choices")
    if type(choices) is list:
        # The id of the whole is not a name: some servers have another in each event, and on a connection one answer is read.
        for number, choice in enumerate(choices):
            if type(choice) is dict:
                of = ("http", conn, "choice", str(choice.get("index", number)))
                for key in ("delta", "text"):  # the latter of what has no chat
                    yield from _texts(choice.get(key), (*of, key), (*at, "choices", number, key))
                yield from _tokens(choice, of, (*at, "choices", number))
        data = {name: value for name, value in data.items() if name != "choices"}
    yield from _tokens(data, names, at)


def _of_body(frame: Frame) -> list[Chunk]:
    value = _json_of(frame)
    if type(value) in (dict, list):  # a whole body: a search of the frame finds its secrets, except in split tokens
        return list(_tokens(value, (ALONE,)))
    try:
        data, _ = opened(frame.payload)
    except (Error, ValueError):
        return []
    chunks = [Chunk(("http", str(frame.conn), BODY), (), data, BODY)]
    for number, block in enumerate(_blocks_of(data)):
        event = block.event.decode("utf-8", "replace")
        chunks += _of_data(value_or_none(block.data), event, str(frame.conn), (number,))
    return chunks


def _blocks_of(body: bytes) -> list[Block]:
    if b"data:" not in body:
        return []
    from codex_replay.core.cassette.http_frames import sse_blocks  # not needed to record only the rpc seam

    return sse_blocks(body)


def _texts(value: Any, names: tuple[str, ...], at: Path) -> Iterator[Chunk]:
    """Yield the texts of a delta, in order.

    A list item is identified by its "index", because one event has only some of the items.
    """
    waiting: list[tuple[tuple[str, ...], Path, Any]] = [(names, at, value)]  # as below
    while waiting:
        stream, path, one = waiting.pop()
        inner: list[tuple[tuple[str, ...], Path, Any]] = []
        if type(one) is str:
            yield Chunk(stream, path, _encoded(one), TEXT)
        elif type(one) is dict:
            inner = [((*stream, key), (*path, key), item) for key, item in one.items() if key not in _NAMES]
        elif type(one) is list:
            for number, item in enumerate(one):
                index = item.get("index", number) if type(item) is dict else number
                inner.append(((*stream, str(index)), (*path, number), item))
        waiting += reversed(inner)


def _tokens(value: Any, names: tuple[str, ...], at: Path = ()) -> Iterator[Chunk]:
    """Yield the tokens of each list of logprobs in a JSON value.

    The top_logprobs of a token are alternatives and not a sequence, so they are skipped."""
    waiting: list[tuple[Path, Any]] = [((), value)]  # and no recursion: a recording may be nested as deeply as it likes
    while waiting:
        path, one = waiting.pop()
        if type(one) is list and one and all(type(i) is dict and type(i.get("token")) is str and "logprob" in i for i in one):
            stream = (*names, *map(str, path))
            for number, item in enumerate(one):
                yield Chunk(stream, (*at, *path, number, "token"), _encoded(item["token"]), TOKEN)
            continue
        inner = enumerate(one) if type(one) is list else one.items()
        waiting += [((*path, k), v) for k, v in inner if type(v) in (dict, list) and k != "top_logprobs"]


def _json_of(frame: Frame) -> Any:
    """Return the decoded JSON of a frame, in which the paths of the frame's chunks are valid."""
    if frame.seam == "rpc":
        return frame.value
    name = {"sse": "data", "ws": "json"}.get(frame.kind, "body")
    return frame.payload[name] if name in frame.payload else frame.payload.get("view")


def _others(members: dict[str, Any]) -> list[str]:
    """Return the values that identify a stream: its ids, its indexes and its kind."""
    return [f"{key}={value}" for key, value in members.items() if type(value) in (str, int) and key not in _PASSING]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _edits(value: Any, chunk: Chunk, data: bytes) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the new value of each value in the frame's JSON that changes when `data` replaces the content of a
    chunk.
    """
    if chunk.form == BASE64:
        yield chunk.path, b2a_base64(data, newline=False).decode()
        return
    yield chunk.path, data.decode("utf-8", "surrogatepass")
    if chunk.form == TOKEN:  # which repeats the same text three times
        above = chunk.path[:-1]
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
    if value_or_none(plain) != payload["view"]:  # no recorder writes that; the view was searched
        return with_body(payload, dumps(_edited(payload["view"], edits)), packed)
    for path, value in edits:
        plain = spliced(plain, path, value)
    return with_body(payload, plain, packed)


def _edited_event(payload: dict[str, Any], edits: list[tuple[Path, Any]]) -> dict[str, Any]:
    if "data" in payload:
        return {**payload, "data": _edited(payload["data"], edits)}
    view = _edited(payload["view"], edits)
    raw = a2b_base64(payload["base64"]) if "base64" in payload else str(payload.get("text", "")).encode()
    new = _rewritten(raw, payload["view"], edits)
    if new is None:  # as above
        return {"event": payload["event"], "data": view} if "event" in payload else {"data": view}
    return {**with_exact(payload, new), "view": view}


def _edited_message(payload: dict[str, Any], edits: list[tuple[Path, Any]]) -> dict[str, Any]:
    if "json" in payload:
        return {**payload, "json": _edited(payload["json"], edits)}
    plain = str(payload["text"]).encode()
    for path, value in edits:
        plain = spliced(plain, path, value)
    return {**payload, "text": plain.decode(), "view": _edited(payload["view"], edits)}


def _edited_stream(payload: dict[str, Any], edits: list[tuple[Path, Any]]) -> dict[str, Any]:
    from codex_replay.core.wire.sse import encode

    plain, packed = opened(payload)
    blocks = _blocks_of(plain)
    raws = [block.raw for block in blocks]
    for number in {path[0]: None for path, _ in edits}:
        assert type(number) is int
        value, inner = value_or_none(blocks[number].data), [(path[1:], new) for path, new in edits if path[0] == number]
        new = _rewritten(raws[number], value, inner)
        # Lines that the standard reads otherwise than we do (a byte order mark before them) become usual ones.
        raws[number] = encode(dumps(_edited(value, inner)), blocks[number].event) if new is None else new
    return with_body(payload, b"".join(raws), packed)


def _rewritten(raw: bytes, value: Any, edits: Iterable[tuple[Path, Any]]) -> bytes | None:
    """Return an event with some values of its JSON replaced: `edits` maps paths to new values.

    Return None if the lines of the event do not contain the JSON `value`.
    """
    if value_or_none(_data_of(raw)[0]) != value:
        return None
    for path, new in edits:
        data, places = _data_of(raw)
        start, end = span(data, path)
        raw = raw[: places[start]] + written(data[start:end], new) + raw[places[end - 1] + 1 :]
    return raw


def _data_of(raw: bytes) -> tuple[bytes, list[int]]:
    """Return the data of one event, with its lines joined, and the offset in `raw` of each of its bytes."""
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
