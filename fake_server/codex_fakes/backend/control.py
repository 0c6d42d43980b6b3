"""The control API of the fake backend, with which a test sets the script of its session and reads the received requests.

The control API uses the port of the backend and paths that no client uses. Each call needs the header
`x-codex-replay-token`, whose value is the token that the backend prints when it is ready. A web page must not call the
control API: it could otherwise control the backend and read the requests to it.

PUT    /_codex_replay/sessions/NAME                 create or replace the session; the body is a script, or empty (default reply)
PUT    /_codex_replay/sessions/NAME/script          set another script; the ledger stays
PUT    /_codex_replay/sessions/NAME/cassette        {"path", "by", "over", "pace", "hold"}: answer from recordings first
GET    /_codex_replay/sessions/NAME/ledger          [?requests=N&seconds=S] wait until N answers have ended, at most S seconds;
                                                        [?since=N] leave out the first N; [?redact=0] keep secrets;
                                                        [?since=N&ended=1] wait until the answer to request N+1 has ended, and
                                                        return the requests from there up to the first whose answer is open;
                                                        "dropped" is the number of the last request that the ledger dropped
GET    /_codex_replay/sessions/NAME/gates/GATE      [?seconds=S] wait until an answer is at the gate
POST   /_codex_replay/sessions/NAME/gates/GATE      release the gate
GET    /_codex_replay/sessions/NAME/asked           [?seconds=S] wait for a request that a program answers (asked.py)
PUT    /_codex_replay/sessions/NAME/asked/N         answer request N
DELETE /_codex_replay/sessions/NAME                 forget the session
GET    /_codex_replay/health
"""

from __future__ import annotations

import gc

# What `hmac` has under the name `compare_digest` where Python has no OpenSSL; loading `hmac` would load OpenSSL.
from _operator import _compare_digest

from codex_fakes.backend.answers import JSON_TYPE, dump
from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.limits import Limits
from codex_fakes.backend.loop.waiting import sleep
from codex_fakes.backend.rules.table import unknown_rules
from codex_fakes.backend.rules.tokens import auth_error
from codex_fakes.backend.sessions import Session
from codex_fakes.model.faults import fault_error
from codex_replay.core.text.numbers import whole_number
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson
from codex_replay.core.wire.percent import query_values, unquoted
from codex_replay.core.wire.web_guard import from_page
from codex_replay.protocol.script.script import BadScript, Script, parse

PREFIX = "/_codex_replay/"
TOKEN_HEADER = "x-codex-replay-token"
_AT_ONCE = 64 * 1024  # bytes of an entry that are redacted in a few milliseconds; a longer one in a thread


def load_script(data: bytes) -> Script | None:
    """Parse a script in the body of a control request.

    Return None if the body is empty. Raises `BadScript` for an invalid script.
    """
    if not data.strip():
        return None
    try:
        value = read(data)
    except NotJson as error:
        raise BadScript(f"The script is not JSON: {error}.") from error
    script = parse(value)
    wrong = auth_error(script.auth) or unknown_rules(script.rules_off)
    for i, turn in enumerate(script.turns):
        wrong = wrong or fault_error(turn.fault, f"turns[{i}]")
    if wrong:
        raise BadScript(wrong)
    return script


def refusal(exchange: Exchange, token: str) -> str | None:
    """Return the reason why a request must not use the control API, or None if the request is allowed."""
    if from_page(exchange.request.headers):
        return "The control API is not for web pages: use it from a program."
    given = exchange.request.header(TOKEN_HEADER) or ""
    if not _compare_digest(given.encode("latin-1"), token.encode()):
        return f'The header "{TOKEN_HEADER}" must be the token that the backend printed when it was ready.'
    return None


def _numbers(query: str) -> dict[str, float] | None:
    """Return the values in the query of a control request, which must all be numbers from 0.

    Return None if one value is invalid.
    """
    try:
        asked = {key: float(values[0]) for key, values in query_values(query).items()}
    except ValueError:
        return None
    return asked if all(0 <= value < 1e9 for value in asked.values()) else None


async def control(exchange: Exchange, sessions: dict[str, Session], path: str, query: str, limits: Limits) -> None:
    """Answer one request to the control API. `path` is the path without the prefix of the control API."""
    method = exchange.request.method
    parts = [unquoted(part) for part in path.split("/")]
    asked = _numbers(query)
    if asked is None:
        _problem(exchange, 400, f"The numbers in ?{query} must be whole numbers, 0 or more.")
        return
    if parts == ["health"] and method == "GET":
        _write_out(exchange, 200, {"sessions": sorted(sessions)})
        return
    if len(parts) < 2 or parts[0] != "sessions" or not parts[1]:
        _problem(exchange, 404, f"The control API has no route {path}.")
        return
    name, rest = parts[1], parts[2:]
    if method == "PUT" and rest in ([], ["script"]):
        try:
            script = load_script(exchange.request.body)
        except BadScript as error:
            _problem(exchange, 400, str(error))
            return
        if rest and name in sessions:
            sessions[name].set_script(script)
        else:
            if name in sessions:
                sessions[name].close()
            sessions[name] = Session(name, script, limits)
        _write_out(exchange, 200, {"session": name})
        return
    session = sessions.get(name)
    if session is not None and method == "PUT" and rest == ["cassette"]:
        _cassette(exchange, session)
        return
    if session is None:
        _problem(exchange, 404, f'There is no session "{name}": create it with PUT {PREFIX}sessions/{name}.')
    elif method == "DELETE" and not rest:
        session.close()
        del sessions[name]
        _write_out(exchange, 200, {"session": name})
    elif rest[:1] == ["asked"]:
        await _asked(exchange, session, rest[1:], asked)
    elif method == "GET" and rest == ["ledger"]:
        await _ledger(exchange, session, asked)
    elif len(rest) == 2 and rest[0] == "gates" and method in ("GET", "POST"):
        await _gate(exchange, session, rest[1], asked)
    else:
        _problem(exchange, 404, f"The control API has no {method} {path}.")


async def _asked(exchange: Exchange, session: Session, rest: list[str], asked: dict[str, float]) -> None:
    if exchange.request.method == "GET" and not rest:
        waiting = session.asked.next(asked.get("seconds", 0.0))
        exchange.respond(200, [JSON_TYPE], await exchange.wait_for(waiting))
        return
    number = whole_number(rest[0]) if len(rest) == 1 else None
    if exchange.request.method != "PUT" or number is None:
        _problem(exchange, 404, "The control API has GET .../asked and PUT .../asked/NUMBER.")
        return
    try:
        session.asked.answer(number, read(exchange.request.body))
    except (NotJson, BadScript) as error:
        _problem(exchange, 400, str(error))
        return
    _write_out(exchange, 200, {})


def _cassette(exchange: Exchange, session: Session) -> None:
    from codex_fakes.backend.replay.replay import BadReplay, make_replay  # only for recordings: it would slow every start

    try:
        value = read(exchange.request.body)
        if not isinstance(value, dict):
            raise ValueError("it is not an object")
        session.replay = make_replay(value, session.gate)
        gc.collect()  # exchanges and their recording refer to each other: a replaced one would stay for long
    except BadReplay as error:
        _problem(exchange, 400, str(error))
    except ValueError as error:
        _problem(exchange, 400, f"The body must be a JSON object that names the recordings: {error}.")
    else:
        _write_out(exchange, 200, {"session": session.name, "notes": session.replay.notes})


async def _ledger(exchange: Exchange, session: Session, asked: dict[str, float]) -> None:
    wanted, seconds, since = asked.get("requests", 0), asked.get("seconds", 10), int(asked.get("since", 0))
    ledger = session.ledger
    follows = bool(asked.get("ended"))
    arrived = (lambda: ledger.next_has_ended(since)) if follows else (lambda: ledger.ended >= wanted)
    complete = await exchange.wait_for(session.wait_for(arrived, seconds))
    redactor = None
    if asked.get("redact", 1):
        from codex_replay.core.redact.redactor import Redactor  # not for the fixtures, which need the exact requests

        redactor = Redactor()
    written = []
    for entry in ledger.ended_since(since) if follows else ledger.since(since):
        # Other clients do not wait for a long ledger.
        if redactor and entry.size > _AT_ONCE:
            from codex_fakes.backend.loop.threads import in_thread  # only for long entries: it would slow every start

            written.append(await in_thread(entry.written, redactor))
        else:
            written.append(entry.written(redactor))
            await sleep(0)
    frames = session.replay.unused() if session.replay is not None else []
    rest = {"complete": complete, "dropped": ledger.dropped, "unused_turns": session.unused(), "unused_frames": frames}
    answer = dump(rest)[:-1] + b',"requests":[' + b",".join(written) + b"]}"
    exchange.respond(200, [JSON_TYPE], answer)


async def _gate(exchange: Exchange, session: Session, name: str, asked: dict[str, float]) -> None:
    if exchange.request.method == "POST":
        session.gate(name).set()
        _write_out(exchange, 200, {"gate": name, "reached": name in session.reached})
        return
    reached = await exchange.wait_for(session.wait_for(lambda: name in session.reached, asked.get("seconds", 10)))
    _write_out(exchange, 200, {"gate": name, "reached": reached})


def _write_out(exchange: Exchange, status: int, value: object) -> None:
    exchange.respond(status, [JSON_TYPE], dump(value))


def _problem(exchange: Exchange, status: int, sentence: str) -> None:
    _write_out(exchange, status, {"error": {"message": sentence, "type": "control_error", "param": None, "code": None}})
