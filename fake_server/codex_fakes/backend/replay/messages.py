"""Send recorded WebSocket messages: to a WebSocket client frame by frame, and to an HTTP client as an event stream.

Also send a recorded event stream to a WebSocket client as messages. Unusual messages (fragments, a message without
compression) are sent as recorded. A conversion between HTTP and WebSocket keeps the events, and drops the parts that the
other transport lacks: close frames, binary messages, the borders of HTTP chunks. In the ledger, an answer that was converted
between HTTP and WebSocket has the mark `converted`.
"""

from __future__ import annotations

from typing import Any

from codex_fakes.backend.exchange import Exchange, MessageExchange
from codex_fakes.backend.loop.waiting import Event
from codex_fakes.backend.replay.pace import Pace
from codex_replay.core.cassette import http_frames, ws_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay.http_match import Recorded
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.sse import encode

#: The most bytes that stand for a message that the recording does not have.
_BROKEN = 1 << 16
STREAM_TYPE = ("content-type", "text/event-stream; charset=utf-8")


async def play_messages(exchange: MessageExchange, one: Recorded, pace: Pace) -> str:
    """Send the recorded WebSocket messages of the server. Return how the answer ended: "end", "cut" or "reset"."""
    wait, bindings = pace.waits(exchange, one), one.track.matcher.bindings
    for frame in one.answer:
        kind = ws_frames.kind_of(frame.payload)
        if frame.kind != "ws" or kind == "pong":  # a ping of this client has its own answer
            continue
        await wait(frame.t)
        if kind == "lost":
            size = min(max(frame.payload.get("omitted", 0), 1), _BROKEN)
            exchange.send(exchange.encoder.broken_deflate(b"\xff" * size))
            continue
        data = bindings.apply(ws_frames.data_of(frame.payload))
        exchange.note(ws_frames.value_of(frame.payload) if not bindings else ws_frames.value_of(ws_frames.payload(kind, data)))
        marks = frame.extra
        encoder = exchange.encoder
        compressed = marks.get("compressed", False)
        exchange.send(encoder.message(kind, data, compressed=compressed, fragments=marks.get("fragments", ())))
        await exchange.drain()
    close = one.close
    if close is None or (close.sender == "client" and _complete(one)):
        return "end"
    if close.sender == "client":
        await exchange.wait_for(Event().wait())
    await wait(close.t)
    if close.payload == "reset":
        await exchange.sent()
        exchange.reset()
    else:
        exchange.finish()
    return str(close.payload)


async def play_as_messages(exchange: MessageExchange, one: Recorded, pace: Pace) -> str:
    """Send a recorded HTTP answer as WebSocket messages: its events, or its error."""
    wait, bindings = pace.waits(exchange, one), one.track.matcher.bindings
    head = next((frame for frame in reversed(one.answer) if frame.kind == "response"), None)
    body = [frame for frame in one.answer if frame.kind in ("sse", "chunk")]
    if head is not None and head.payload["status"] != 200:
        await wait(head.t)
        whole = b"".join(piece for _, piece in http_frames.body_chunks(body))
        exchange.respond(head.payload["status"], [], bindings.apply(whole))
        return "end"
    for frame in body:
        await wait(frame.t)
        data = http_frames.sse_bytes(frame.payload) if frame.kind == "sse" else http_frames.body_bytes(frame.payload)
        exchange.write([bindings.apply(data)])
        await exchange.drain()
    how = str(one.close.payload) if one.close is not None else "cut"
    if how == "reset":
        await exchange.sent()
        exchange.reset()
    elif how != "end":
        exchange.cut()
    return how


async def play_as_events(exchange: Exchange, one: Recorded, pace: Pace) -> str:
    """Send recorded WebSocket messages over HTTP: as an event stream, or as an HTTP error."""
    wait, bindings = pace.waits(exchange, one), one.track.matcher.bindings
    begun = False
    for frame in one.answer:
        value = ws_frames.value_of(frame.payload) if frame.kind == "ws" else None
        if type(value) is not dict or type(value.get("type")) is not str:
            continue
        await wait(frame.t)
        if value["type"] == "error" and not begun and type(value.get("status")) is int:
            body = bindings.apply(dumps({"error": value.get("error")}))
            exchange.respond(value["status"], [("content-type", "application/json")], body)
            return "end"
        if not begun:
            exchange.start(200, [STREAM_TYPE, ("cache-control", "no-cache")])
            begun = True
        exchange.write([encode(bindings.apply(dumps(value)), value["type"].encode())])
        await exchange.drain()
    if _complete(one):
        exchange.end()
        return "end"
    if one.close is not None and one.close.payload == "reset":
        exchange.reset()
        return "reset"
    exchange.cut()
    return "cut"


def _complete(one: Recorded) -> bool:
    return any(_ends(frame) for frame in one.answer)


def _ends(frame: Frame) -> bool:
    value: Any = ws_frames.value_of(frame.payload) if frame.kind == "ws" else None
    kinds = ("response.completed", "response.failed", "response.incomplete", "error")
    return type(value) is dict and value.get("type") in kinds
