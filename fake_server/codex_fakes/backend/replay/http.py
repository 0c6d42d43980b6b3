"""Send a recorded answer over HTTP, byte for byte.

The backend sends the recorded bytes: heads, bodies, the borders of HTTP chunks, and streams that were cut or reset. Two
parts may differ: the ids of the live client replace the recorded ids, and a content-length is the length of the sent bytes.
If the recorded client disconnected during an answer, the answer stays open until the live client disconnects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.loop.waiting import Event
from codex_fakes.backend.replay.pace import Pace
from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay.http_match import Recorded
from codex_replay.core.replay.match import Bindings

Piece = tuple[float, bytes]


async def play(exchange: Exchange, one: Recorded, pace: Pace) -> str:
    """Send a recorded answer. Return how the answer ended: "end", "cut" or "reset"."""
    bindings = one.track.matcher.bindings
    wait = pace.waits(exchange, one)
    heads = [frame for frame in one.answer if frame.kind == "response"]
    body = [frame for frame in one.answer if frame.kind != "response"]
    for frame in heads[:-1]:
        if frame.payload["status"] != 100 or (exchange.request.header("expect") or "").lower() != "100-continue":
            await wait(frame.t)  # this client already got leave to send its body
            exchange.write_bytes(http_frames.response_head(frame.payload))
    chunked = False
    if heads:
        pieces = _spliced(http_frames.body_chunks(body), bindings)
        head = _head(heads[-1], pieces, one, exchange.request.method)
        chunked = "chunked" in (http_frames.header(head["headers"], "transfer-encoding") or "").lower()
        await wait(heads[-1].t)
        exchange.write_bytes(http_frames.response_head(head))
        for until, piece in pieces:
            await wait(until)
            exchange.write_bytes(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked and piece else piece)
            await exchange.drain()
    if one.close is not None:
        await wait(one.close.t)
    return await _finish(exchange, one, heads[-1].payload if heads else None, chunked)


def _spliced(pieces: list[Piece], bindings: Bindings) -> list[Piece]:
    """Replace the recorded ids in a body by live ids.

    An id that is split across chunks is replaced, too. The borders of the chunks do not change.
    """
    if not bindings:
        return pieces
    whole = b"".join(piece for _, piece in pieces)
    live = bindings.apply(whole)
    if live == whole:
        return pieces
    if len(live) != len(whole):
        alone = [(when, bindings.apply(piece)) for when, piece in pieces]
        if b"".join(piece for _, piece in alone) == live:
            return alone
    found, at = [], 0
    for i, (when, piece) in enumerate(pieces):
        end = len(live) if i == len(pieces) - 1 else min(at + len(piece), len(live))
        found.append((when, live[at:end]))
        at = end
    return found


def _head(frame: Frame, pieces: list[Piece], one: Recorded, method: str) -> dict[str, Any]:
    """Return the payload of a head with live ids and, for a complete body, with the new length of the body."""
    payload: dict[str, Any] = frame.payload
    bindings = one.track.matcher.bindings
    size = str(sum(len(piece) for _, piece in pieces))
    whole = one.close is not None and one.close.payload == "end" and method != "HEAD" and payload["status"] != 304
    headers = []
    for name, value in payload["headers"]:
        if whole and name.lower() == "content-length":
            headers.append([name, size])
        else:
            headers.append([name, bindings.apply(value.encode("latin-1", "replace")).decode("latin-1") if bindings else value])
    return {**payload, "headers": headers}


async def _finish(exchange: Exchange, one: Recorded, head: Mapping[str, Any] | None, chunked: bool) -> str:
    """End an answer as it ended in the recording."""
    close = one.close
    if close is not None and close.sender == "client":
        await exchange.wait_for(Event().wait())
    how = str(close.payload) if close is not None else "cut"
    if how == "reset":
        await exchange.sent()
        exchange.reset()
    elif how != "end" or head is None:
        exchange.cut()
    else:
        if chunked:
            exchange.write_bytes(b"0\r\n\r\n")
        exchange.ended = True
        if not (exchange.keep_alive and _stays_open(head, exchange.request.method)):
            exchange.connection.close()
    return how


def _stays_open(head: Mapping[str, Any], method: str) -> bool:
    """Return True if the connection stays open after a response: the response marks the end of its body, and no header closes the
    connection.
    """
    headers = head["headers"]
    if "close" in (http_frames.header(headers, "connection") or "").lower() or head.get("version", "1.1") != "1.1":
        return False
    delimited = any(http_frames.header(headers, name) is not None for name in ("content-length", "transfer-encoding"))
    return delimited or method == "HEAD" or head["status"] in (204, 304)
