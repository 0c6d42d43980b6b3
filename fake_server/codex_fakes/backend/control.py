"""The control API: how a test scripts its session and reads what was asked, on the same port under a path no client uses.

PUT    /_codex_replay/sessions/NAME                 a script (or nothing: the default reply); replaces the session
PUT    /_codex_replay/sessions/NAME/script          a script; the ledger stays
PUT    /_codex_replay/sessions/NAME/cassette        {"path", "by", "over", "pace"}: recordings that answer before the script
GET    /_codex_replay/sessions/NAME/ledger          [?requests=N&seconds=S] waits until N answers have ended, at most S
                                                        seconds; [?since=N] leaves the first N out
GET    /_codex_replay/sessions/NAME/gates/GATE      [?seconds=S] waits until an answer stands at the gate
POST   /_codex_replay/sessions/NAME/gates/GATE      releases the gate
DELETE /_codex_replay/sessions/NAME                 forgets the session
GET    /_codex_replay/health
"""

from __future__ import annotations

import json
from urllib.parse import parse_qs, unquote

from fake_server.backend_exchange import Exchange
from fake_server.backend_routes import JSON_TYPE, dump
from fake_server.backend_sessions import Session
from fake_server.backend_tokens import auth_error
from fake_server.faults import fault_error
from fake_server.rules import unknown_rules
from harness.protocol.script import BadScript, Script, parse

PREFIX = "/_codex_replay/"


def load_script(data: bytes) -> Script | None:
    """Read a script's bytes; None when there are none; raises `BadScript`."""
    if not data.strip():
        return None
    try:
        value = json.loads(data)
    except ValueError as error:
        raise BadScript(f"The script is not JSON: {error}.") from error
    script = parse(value)
    wrong = auth_error(script.auth) or unknown_rules(script.rules_off)
    for i, turn in enumerate(script.turns):
        if turn.fault is not None:
            wrong = wrong or fault_error(turn.fault, f"turns[{i}]")
    if wrong:
        raise BadScript(wrong)
    return script


def _numbers(query: str) -> dict[str, float] | None:
    """Read the query, whose values are all numbers from 0; None when one is not."""
    try:
        asked = {key: float(values[0]) for key, values in parse_qs(query).items()}
    except ValueError:
        return None
    return asked if all(0 <= value < 1e9 for value in asked.values()) else None


async def control(exchange: Exchange, sessions: dict[str, Session], path: str, query: str) -> None:
    """Answer one request to the control API; `path` is without the prefix."""
    method = exchange.request.method
    parts = [unquote(part) for part in path.split("/")]
    asked = _numbers(query)
    if asked is None:
        _problem(exchange, 400, f"The numbers in ?{query} are not all numbers from 0.")
        return
    if parts == ["health"] and method == "GET":
        _say(exchange, 200, {"sessions": sorted(sessions)})
        return
    if len(parts) < 2 or parts[0] != "sessions" or not parts[1]:
        _problem(exchange, 404, f"The control API has no {path}.")
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
            sessions[name] = Session(name, script)
        _say(exchange, 200, {"session": name})
        return
    session = sessions.get(name)
    if session is not None and method == "PUT" and rest == ["cassette"]:
        _cassette(exchange, session)
        return
    if session is None:
        _problem(exchange, 404, f'There is no session "{name}": make it with PUT {PREFIX}sessions/{name}.')
    elif method == "DELETE" and not rest:
        del sessions[name]
        _say(exchange, 200, {"session": name})
    elif method == "GET" and rest == ["ledger"]:
        await _ledger(exchange, session, asked)
    elif len(rest) == 2 and rest[0] == "gates" and method in ("GET", "POST"):
        await _gate(exchange, session, rest[1], asked)
    else:
        _problem(exchange, 404, f"The control API has no {method} {path}.")


def _cassette(exchange: Exchange, session: Session) -> None:
    from fake_server.backend_replay import BadReplay, make_replay  # only for those who play recordings: it would cost every start

    try:
        value = json.loads(exchange.request.body)
        if not isinstance(value, dict):
            raise ValueError("it is no object")
        session.replay = make_replay(value)
    except BadReplay as error:
        _problem(exchange, 400, str(error))
    except ValueError as error:
        _problem(exchange, 400, f"What to play must be said in a JSON object: {error}.")
    else:
        _say(exchange, 200, {"session": session.name, "notes": session.replay.notes})


async def _ledger(exchange: Exchange, session: Session, asked: dict[str, float]) -> None:
    wanted, seconds = asked.get("requests", 0), asked.get("seconds", 10)
    complete = await exchange.hold(session.wait_for(lambda: sum(e.end is not None for e in session.ledger) >= wanted, seconds))
    entries = [entry.as_json() for entry in session.ledger[int(asked.get("since", 0)) :]]
    frames = session.replay.unused() if session.replay is not None else []
    _say(exchange, 200, {"complete": complete, "requests": entries, "unused_turns": session.unused(), "unused_frames": frames})


async def _gate(exchange: Exchange, session: Session, name: str, asked: dict[str, float]) -> None:
    if exchange.request.method == "POST":
        session.gate(name).set()
        _say(exchange, 200, {"gate": name, "reached": name in session.reached})
        return
    reached = await exchange.hold(session.wait_for(lambda: name in session.reached, asked.get("seconds", 10)))
    _say(exchange, 200, {"gate": name, "reached": reached})


def _say(exchange: Exchange, status: int, value: object) -> None:
    exchange.respond(status, [JSON_TYPE], dump(value))


def _problem(exchange: Exchange, status: int, sentence: str) -> None:
    _say(exchange, status, {"error": {"message": sentence, "type": "control_error", "param": None, "code": None}})
