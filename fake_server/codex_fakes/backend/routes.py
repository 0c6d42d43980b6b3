"""Choose the answer for each path of the fake Responses backend.

Only the end of a path matters, so a client may use any base path. `/s/NAME` at the beginning of a path selects the session
NAME.
"""

from __future__ import annotations

import zlib
from typing import Any

from codex_fakes.backend import account
from codex_fakes.backend.answers import JSON_TYPE, NO_RETRY, dump, miss, refuse, respond_json
from codex_fakes.backend.bodies import decoded
from codex_fakes.backend.complaints import describe
from codex_fakes.backend.exchange import Disconnected, Exchange
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.loop.tasks import CancelledError
from codex_fakes.backend.play import play
from codex_fakes.backend.rules import refresh
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import Violation, check
from codex_fakes.backend.sessions import Session
from codex_fakes.backend.state import answers as state
from codex_fakes.model.default import default_turn
from codex_replay.core.wire.client_json import out_of_bounds, read
from codex_replay.core.wire.content_encoding import BadEncoding, TooLarge
from codex_replay.core.wire.json_text import NotJson
from codex_replay.core.wire.percent import query_values, unquoted
from codex_replay.protocol.script.expect import mismatch


async def answer(exchange: Exchange, session: Session, path: str, query: str) -> None:
    """Answer one request of a client, and add the request to the ledger.

    `path` is the path of the request without the prefix of the session.
    """
    request = exchange.request
    entry = session.enter(request)
    try:
        await _route(exchange, session, entry, path, query)
        entry.close("end")  # unless the way it ended is known already
    except (CancelledError, Disconnected):
        entry.close("gone")
        raise
    except Exception as error:
        entry.answer, entry.sentence = "broken", f"The backend itself failed: {describe(error)}."
        entry.status = entry.status if exchange.begun else 500
        entry.close("reset" if exchange.begun else "end")
        raise


async def _route(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    request = exchange.request
    problem = None
    try:
        entry.body = await decoded(exchange, session.limits)
    except TooLarge as error:
        refuse(exchange, entry, Violation("body-size", 413, "body_too_large", str(error)))
        return
    except BadEncoding as error:
        problem = str(error)
    if session.replay is not None:
        if too_much := out_of_bounds(entry.body or b""):
            refuse(exchange, entry, Violation("json", 400, "invalid_json", f"The body cannot be read: {too_much}."))
            return
        off = session.rules_off
        if request.upgrade and path.endswith("/responses"):
            granted = session.replay.grants(session.websocket.mode, request, path, query)
            if granted is not None:
                from codex_fakes.backend.websocket import handshake  # as below

                await handshake.serve(exchange, session, entry, path, _responses, granted)
                return
        unanswered = await session.replay.answer(exchange, entry, session.tokens, off, path, query)
        if unanswered is None:
            return
        if unanswered.rule != "miss" or session.script is None:
            refuse(exchange, entry, unanswered, *([NO_RETRY] if unanswered.rule == "miss" else []))
            if unanswered.rule == "miss":
                entry.answer, entry.sentence = "miss", unanswered.message
            return
        entry.missed = unanswered.message
    if request.upgrade and session.websocket.mode != "off" and path.endswith("/responses"):
        from codex_fakes.backend.websocket import handshake  # few clients upgrade: it would slow every start

        await handshake.serve(exchange, session, entry, path, _responses)
        return
    if request.upgrade:
        # REAL-05: from 0.116 a WebSocket is tried first, and 426 makes the client fall back at once
        refuse(
            exchange,
            entry,
            Violation("upgrade", 426, "upgrade_required", "This backend accepts no WebSocket: use HTTP with SSE."),
        )
        entry.answer, entry.sentence = "route", None  # the ordinary answer to an ordinary attempt, and no mistake
        return
    if problem is not None:
        refuse(exchange, entry, Violation("encoding", 400, "invalid_body", problem))
        return
    for method, ending, handler in ROUTES:
        if path.endswith(ending):
            if request.method != method:
                problem = f"{ending} takes {method}, not {request.method}."
                refuse(exchange, entry, Violation("method", 405, "method_not_allowed", problem), ("allow", method))
                return
            await handler(exchange, session, entry, path, query)
            return
    if await state.answer(exchange, session, entry, path, query):
        return
    if request.method == "GET" and (before := path.rpartition("/"))[0].endswith("/models"):
        _model(exchange, session, entry, unquoted(before[2]))
        return
    known = ", ".join([*(f"{method} ...{ending}" for method, ending, _ in ROUTES), *state.ROUTES, "GET .../models/ID"])
    chat = path.endswith("/chat/completions")
    instead = "This backend has the Responses API, not Chat Completions: call client.responses.create. " if chat else ""
    refuse(exchange, entry, Violation("route", 404, "not_found", f"There is no route {path}. {instead}The routes are: {known}."))


async def _post_responses(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    if session.websocket.mode == "only":
        sentence = "This backend answers no HTTP requests: use a WebSocket, because the script has `websocket: only`."
        refuse(exchange, entry, Violation("websocket-only", 426, "upgrade_required", sentence), ("upgrade", "websocket"))
        return
    await _responses(exchange, session, entry, path, query)


async def _responses(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    off = session.rules_off
    data, value = entry.body or b"", exchange.request.value
    if value is None:
        value, entry.parts, entry.unshared = session.reader.read(data)
    body = check(Asked(path, exchange.request.header, data, session.tokens, value), off)
    if isinstance(body, Violation):
        refuse(exchange, entry, body)
        return
    if (lost := state.lost(session, body)) is not None and "previous-response" not in off:
        refuse(exchange, entry, lost)
        return
    earlier = state.earlier(session, body)
    if "call-without-output" not in off and (unanswered := state.unanswered(body, earlier)) is not None:
        refuse(exchange, entry, unanswered)
        return
    chosen = session.choose(body, exchange.request.headers, earlier)
    if isinstance(chosen, str):
        otherwise = session.script.otherwise if session.script is not None else "default"
        if otherwise == "miss":
            miss(exchange, entry, chosen)
            return
        session.defaults += 1
        if otherwise == "ask":
            asked = await exchange.wait_for(session.asked.ask(entry, earlier))
            if isinstance(asked, str):
                miss(exchange, entry, asked)
                return
            turn, label = asked, f"a{session.defaults}"
        else:
            turn, label = default_turn(body), f"d{session.defaults}"
        entry.answer = otherwise if otherwise == "default" else "turn"
    else:
        entry.turn, turn, label = chosen
        entry.answer = "turn"
        if turn.expect and (why := mismatch(turn.expect, body, exchange.request.headers, None, earlier)):
            miss(exchange, entry, f"turns[{entry.turn}] is the turn for this request, but its expectation fails. {why}", "expect")
            return
    await play(exchange, session, entry, turn, label, body)
    state.converse(session, entry, turn, label, body)


def _model(exchange: Exchange, session: Session, entry: Entry, name: str) -> None:
    if name not in (names := _model_names(session)):
        message = f"The model '{name}' does not exist. The models are {', '.join(names)}."
        refuse(exchange, entry, Violation("model", 404, "model_not_found", message, "model"))
        return
    respond_json(exchange, entry, 200, _model_object(name))


def _model_names(session: Session) -> list[str]:
    models = session.script.models if session.script is not None else ()
    return [str(model.get("slug") or model.get("id")) for model in models] or ["gpt-5.2-codex"]


def _model_object(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1735689600, "owned_by": "codex-replay"}


async def _models(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    models = list(session.script.models) if session.script is not None else []
    if "client_version" in query_values(query):
        value: dict[str, Any] = {"models": models}
    else:
        data = [_model_object(name) for name in _model_names(session)]
        value = {"object": "list", "data": data, "models": models}
    etag = f'"{zlib.crc32(dump(value)):08x}"'
    if exchange.request.header("if-none-match") == etag:
        entry.answer, entry.status = "route", 304
        exchange.respond(304, [("etag", etag)], b"")
        return
    respond_json(exchange, entry, 200, value, ("etag", etag))


async def _token(exchange: Exchange, session: Session, entry: Entry, path: str, query: str) -> None:
    body = entry.body or b""
    fields: Any
    if (exchange.request.header("content-type") or "").startswith("application/x-www-form-urlencoded"):
        fields = {key: values[0] for key, values in query_values(body.decode("utf-8", "replace")).items()}
    else:
        try:
            fields = read(body)
        except NotJson:
            fields = None
    if (wrong := refresh.violation(fields)) is not None:
        refuse(exchange, entry, wrong)
        return
    if session.tokens.refresh_answer is not None:
        given = session.tokens.refresh_answer
        text = given.get("body", "")
        kind = ("content-type", "text/plain") if isinstance(text, str) else JSON_TYPE
        entry.answer, entry.status = "route", given["status"]
        exchange.respond(given["status"], [kind], text.encode() if isinstance(text, str) else dump(text))
        return
    outcome = session.tokens.use_refresh(fields["refresh_token"])
    if isinstance(outcome, tuple):
        code, message = outcome
        refuse(exchange, entry, Violation("refresh", 401, code, message))
        return
    respond_json(exchange, entry, 200, outcome)


ROUTES = (
    ("POST", "/responses", _post_responses),
    ("POST", "/responses/input_tokens", state.input_tokens),
    ("POST", "/responses/compact", state.compact),
    ("POST", "/conversations", state.new_conversation),
    ("GET", "/models", _models),
    ("POST", "/oauth/token", _token),
    ("GET", "/wham/usage", account.usage),
    ("GET", "/wham/accounts/check", account.workspaces),
    ("GET", "/wham/settings/user", account.settings),
    ("GET", "/wham/rate-limit-reset-credits", account.reset_credits),
)


def split_target(target: str) -> tuple[str | None, str, str]:
    """Split a request target into the name of the session (None means the default session), the path without the session's
    prefix, and the query.
    """
    path, _, query = target.partition("#")[0].partition("?")
    if not path.startswith("/") and "://" in path:  # the absolute form, as a client of a proxy writes it
        path = "/" + path.partition("://")[2].partition("/")[2]
    if path.startswith("/s/"):
        name, slash, rest = path[3:].partition("/")
        return unquoted(name), slash + rest, query
    return None, path, query
