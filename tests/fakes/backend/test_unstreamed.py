"""A request without `stream`: all that a turn says happens to it too, or it is refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_fakes.model.faults import NAMES
from codex_fakes.model.unstreamed import pauses, refusal, response, undivided
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.steps import Gate, Wait
from codex_replay.protocol.script.script import Turn, parse
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def ask(session: BackendSession, timeout: float = 60) -> tuple[int, bytes, str]:
    """Ask without `stream`; return the status, the body as far as it came, and how it ended."""
    parts = urlsplit(session.url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=timeout)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", parts.path + "/v1/responses", json.dumps({"model": "m", "input": "hi"}), headers)
        response = connection.getresponse()
        received = b""
        try:
            while data := response.read1(1 << 16):
                received += data
        except IncompleteRead:
            return response.status, received, "cut"
        except ConnectionResetError:
            return response.status, received, "reset"
        except TimeoutError:
            return response.status, received, "idle"
        return response.status, received, "end"
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ("cut", "cut"),
        ("cut_in_event", "cut"),
        ("cut_before_completed", "cut"),
        ({"name": "cut", "after": 2}, "cut"),
        ({"name": "cut", "seed": 3}, "cut"),
        ({"name": "cut", "bytes": 10}, "cut"),
        ("reset", "reset"),
        ("malformed_event", "end"),
        ("empty", "end"),
    ],
    ids=str,
)
def test_a_fault_breaks_the_body(backend: BackendProcess, fault: Any, end: str) -> None:
    session = backend.session(f"broken {fault}", [{"items": ["Hello"], "fault": fault}])
    status, body, how = ask(session)
    assert (status, how) == (200, end)
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter"):
        json.loads(body)
    assert (body == b"") == (fault == "empty")
    assert session.ledger(1)[0]["end"] == end


def test_an_idle_server_sends_a_part_and_then_nothing(backend: BackendProcess) -> None:
    session = backend.session("idle json", [{"items": ["Hello"], "fault": "idle"}])
    status, body, how = ask(session, timeout=2)
    assert (status, how) == (200, "idle")
    assert body.startswith(b"{")


@pytest.mark.parametrize("fault", ["split_utf8", {"name": "slow_drip", "ms": 0}], ids=str)
def test_an_unusual_body_is_whole(backend: BackendProcess, fault: Any) -> None:
    session = backend.session(f"odd {fault}", [{"items": ["é✓"], "fault": fault}])
    assert json.loads(ask(session)[1])["output"][0]["content"][0]["text"] == "é✓"


def test_a_response_without_its_end_is_in_progress(backend: BackendProcess) -> None:
    session = backend.session("open", [{"items": ["a"], "fault": "missing_completed"}, {"items": ["a"], "end": False}])
    for _ in range(2):
        assert json.loads(ask(session)[1])["status"] == "in_progress"


def test_waits_and_gates_hold_the_body(backend: BackendProcess) -> None:
    items = ["a", {"type": "gate", "name": "g"}, {"type": "wait", "ms": 50}]
    session = backend.session("held", [{"items": items}])
    with pytest.raises(TimeoutError):
        ask(session, timeout=0.3)
    assert session.wait_at_gate("g")
    session.release("g")


def test_a_body_waits_as_long_as_its_stream_would() -> None:
    items = ["a", {"type": "gate", "name": "g"}, {"type": "wait", "ms": 50}]
    (turn,) = parse([{"items": items, "delay_ms": 10}]).turns
    steps = reply(turn, {}, "1")
    assert pauses(turn, steps) == [Gate("g"), Wait(50), Wait(10 * (len(steps) - 2))]


@pytest.mark.parametrize(("code", "status"), [("server_error", 500), ("rate_limit_exceeded", 429), ("invalid_prompt", 400)])
def test_an_error_item_is_an_error_answer(backend: BackendProcess, code: str, status: int) -> None:
    session = backend.session(f"error {code}", [{"items": ["half", {"type": "error", "code": code, "message": "No."}]}])
    found, body, _ = ask(session)
    assert (found, json.loads(body)["error"]["code"], json.loads(body)["error"]["message"]) == (status, code, "No.")


@pytest.mark.parametrize(
    "turn",
    [
        {"items": [{"type": "comment"}]},
        {"items": [{"type": "raw", "data": "x"}]},
        {"items": [{"type": "event", "event": {"type": "x"}}]},
        {"items": ["a"], "fault": "crlf"},
        {"items": ["a"], "fault": "duplicated_frames"},
        {"items": [{"type": "error"}], "fault": "cut"},
    ],
    ids=str,
)
def test_what_only_a_stream_has_is_refused(backend: BackendProcess, turn: dict[str, Any]) -> None:
    session = backend.session(f"refused {turn}", [turn])
    status, body, _ = ask(session)
    assert status == 501
    assert "stream" in json.loads(body)["error"]["message"]
    assert len(session.problems()) == 1


def test_no_fault_is_left_out_in_silence(backend: BackendProcess) -> None:
    """Each fault changes the answer of a request without `stream`, or is refused."""
    for name in NAMES:
        (turn,) = parse([{"items": ["é"] * (not name.startswith(("http", "refused"))), "fault": name}]).turns
        if refusal(turn) is not None or name in ("idle", "refused", "split_utf8", "slow_drip"):
            continue
        session = backend.session(f"any {name}", [{"items": list(turn.items), "fault": name}])
        status, body, how = ask(session)
        whole = status == 200 and how == "end" and b'"status":"completed"' in body and body.endswith(b"}")
        assert not whole, name


def test_the_chunks_of_a_body_are_as_the_turn_writes_them(backend: BackendProcess) -> None:
    session = backend.session("written", [{"items": ["Hello"], "write": 100}])
    assert json.loads(ask(session)[1])["status"] == "completed"


@pytest.mark.parametrize("whole", [True, False])
def test_a_long_text_is_not_divided_for_an_answer_without_events(whole: bool) -> None:
    """The other clients wait while the steps are made: one text of 3 MB has 187,500 deltas."""
    items = ({"type": "text", "text": "x" * 3000}, {"type": "function_call", "name": "f", "arguments": "y" * 3000})
    for turn in (Turn(items=items), Turn(items=items, gate="g", usage={})):
        steps = reply(undivided(turn), {"model": "m"}, "a1", whole)
        assert len(steps) < 20
        assert response(turn, steps) == response(turn, reply(turn, {"model": "m"}, "a1", whole))
        assert pauses(turn, steps) == pauses(turn, reply(turn, {"model": "m"}, "a1", whole))


@pytest.mark.parametrize("turn", [Turn(delay_ms=5), Turn(fault={"name": "cut", "after_bytes": 5})])
def test_a_turn_in_which_events_count_stays_divided(turn: Turn) -> None:
    assert undivided(turn) is turn
