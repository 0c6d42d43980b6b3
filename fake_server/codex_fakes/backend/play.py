"""Answer a client's request with a turn of the script, as a stream or as one JSON body, complete or with the turn's fault."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from typing import Any

from codex_fakes.backend.answers import JSON_TYPE, dump, merged, miss, request_id, respond_json
from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.loop.tasks import Task
from codex_fakes.backend.loop.waiting import sleep
from codex_fakes.backend.sessions import Session
from codex_fakes.backend.stream import pause, stream
from codex_fakes.model import unstreamed
from codex_fakes.model.faults import BEFORE_ANSWER, WEBSOCKET_FAULTS, apply, as_status, error_type
from codex_replay.protocol.responses.items import reply, steps_of
from codex_replay.protocol.responses.steps import Gate, Step, Wait
from codex_replay.protocol.script.script import Turn

_TYPE = "invalid_request_error"
STREAM_TYPE = ("content-type", "text/event-stream; charset=utf-8")
_NO_CACHE = ("cache-control", "no-cache")


async def play(exchange: Exchange, session: Session, entry: Entry, turn: Turn, label: str, body: Mapping[str, Any]) -> None:
    """Answer a request with a turn of the script. `label` is a part of the ids in the reply."""
    whole = exchange.request.header("originator") is None  # Codex sends it, and its recordings are without what it does not read
    streamed = body.get("stream") is True
    background = body.get("background") is True
    turn = as_status(turn)
    id_ = ("x-request-id", f"req_{label}")
    if whole and body.get("store") is not False and _is_kept(turn, streamed or background):
        stored = session.responses.keep(turn, entry.body or b"", label)
        if background:
            stored.status = "queued"
            stored.background = Task(stored.finish(_background(session, turn, body, label)))
            if not streamed:
                respond_json(exchange, entry, 200, stored.response(), *merged([id_], turn.headers))
                return
    if waits := _first(turn):
        await pause(exchange, session, waits)
    if turn.fault is not None and turn.fault["name"] in BEFORE_ANSWER:
        exchange.reset()
        entry.close("reset")
        return
    if turn.fault is not None and turn.fault["name"] in WEBSOCKET_FAULTS and exchange.request.version != "websocket":
        miss(
            exchange,
            entry,
            f'turns[{entry.turn}]: the fault "{turn.fault["name"]}" works only on a WebSocket, and this request came over HTTP.',
        )
        return
    entry.status = turn.status
    if not streamed and turn.status == 200 and (failed := unstreamed.as_error(turn)) is not None:
        await pause(exchange, session, unstreamed.pauses(turn, reply(unstreamed.undivided(turn), body, label)))
        turn, entry.status = failed, failed.status
    if turn.status != 200:
        headers = merged(request_id(exchange, label), turn.headers)
        exchange.respond(turn.status, *_error_answer(turn, headers, error_type(turn) if whole else _TYPE))
        return
    begin = merged([STREAM_TYPE, _NO_CACHE, id_], turn.headers)
    if streamed and (framing := exchange.framing) is not None and session.owns(turn):
        framed = session.cache.framed(turn, body, label, framing, whole)
        if framed is not None:
            await exchange.stream_framed(200, begin, framed)
            return
    if not streamed:
        made = reply(unstreamed.undivided(turn), body, label, whole)
        await _play_unstreamed(exchange, session, entry, turn, made, merged([id_], turn.headers))
        return
    steps = steps_of(turn, body, label, whole)  # made as they are sent: a long reply has thousands
    exchange.start(200, begin)
    entry.close(await stream(exchange, session, turn, apply(turn.fault, steps)))


def _is_kept(turn: Turn, events: bool) -> bool:
    """Return True if the reply must be stored as a response, which clients can read later.

    A reply with a fault, or an error in place of a response, is not stored.
    """
    ends_in_error = bool(turn.items) and turn.items[-1]["type"] == "error"
    return turn.fault is None and turn.status == 200 and (events or not ends_in_error)


def _first(turn: Turn) -> list[Wait | Gate]:
    """Return the waits (delays and gates) before an answer begins."""
    delay: list[Wait | Gate] = [Wait(turn.first_delay_ms)] if turn.first_delay_ms else []
    return delay if turn.gate is None else [*delay, Gate(turn.gate)]


def _background(session: Session, turn: Turn, body: Mapping[str, Any], label: str) -> Iterator[Awaitable[Any]]:
    """Yield the delays and gates of a response that runs in the background.

    In the stream of a background response, the delays and gates are therefore left out.
    """
    for act in [*_first(turn), *unstreamed.pauses(turn, reply(unstreamed.undivided(turn), body, label))]:
        if isinstance(act, Gate):
            session.reach(act.name)
            yield session.gate(act.name).wait()
        else:
            yield sleep(act.ms / 1000)


async def _play_unstreamed(
    exchange: Exchange, session: Session, entry: Entry, turn: Turn, steps: list[Step], headers: list[tuple[str, str]]
) -> None:
    """Answer a request without `stream`: with the response as one JSON body. Apply the delays, gates and faults of the turn."""
    if (why := unstreamed.refusal(turn)) is not None:
        miss(exchange, entry, f"turns[{entry.turn}]: {why}")
        return
    await pause(exchange, session, unstreamed.pauses(turn, steps))
    response = unstreamed.response(turn, steps)
    if turn.fault is None and turn.write == "event":
        respond_json(exchange, entry, 200, response, *headers)
        return
    exchange.start(200, merged([JSON_TYPE], headers))
    acts = unstreamed.faulty(turn.fault, steps, dump(response))
    entry.close(await stream(exchange, session, turn.but(delay_ms=0), acts))


def _error_answer(turn: Turn, headers: list[tuple[str, str]], kind: str) -> tuple[list[tuple[str, str]], bytes]:
    typed = any(name.lower() == "content-type" for name, _ in headers)
    if isinstance(turn.body, str):
        return [*([] if typed else [("content-type", "text/plain")]), *headers], turn.body.encode()
    if turn.body is not None:
        value = turn.body
    elif turn.error is not None:
        value = {"error": {"message": "", "type": kind, "param": None, "code": None, **turn.error}}
    else:
        return headers, b""
    return [*([] if typed else [JSON_TYPE]), *headers], dump(value)
