"""The recorded client, played to a backend: what it finds, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_replay.shell.http.backend_process import BackendProcess
from tests.fakes.backend.http_replay.exchange import Recorder, answered, ask, played, request, tape, wire
from tests.fakes.backend.http_replay.turns import TURNS


def test_the_recorded_client_is_played_to_a_backend_and_finds_the_same(backend: BackendProcess, tmp_path: Path) -> None:
    """Every kind and every fault again, the other way round: our player asks, and what comes back is what was recorded."""
    turns = [{"match": f"<{name}>", **turn} for name, turn in TURNS.items()]
    scripted = backend.session("to be played", turns)
    scripted.release("open")
    with Recorder(scripted.url, tmp_path / "run.ndjson") as recorder:
        for i, name in enumerate(TURNS):
            wire(recorder.url, ask(name), patience=0.3 if name == "fault idle" else 10)
            scripted.ledger(i + 1)
    again = backend.session("play it", turns)
    again.release("open")
    status, told, _ = played(tmp_path / "run.ndjson", "--backend", again.url)
    assert (status, told["failure"], told["differences"]) == (0, None, [])
    assert [entry["turn"] for entry in again.ledger()] == list(range(len(TURNS)))
    status, told, _ = played(tmp_path / "run.ndjson", "--backend", "fake")
    assert (status, told["failure"], told["differences"]) == (0, None, [])


def test_another_answer_is_a_difference(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("other", [{"status": 400, "body": {"x": 1}}])
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('{"x":2}', status=400))
    status, told, _ = played(path, "--backend", session.url)
    assert (status, told["identical"]) == (1, False)
    assert {d["path"] for d in told["differences"]} == {"$.chunk.body.x", '$.response.headers["x-request-id"]'}


def test_an_answer_that_does_not_end_is_said(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("endless", [{"items": ["x"], "fault": "idle"}])
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('"x"'))
    status, told, _ = played(path, "--backend", session.url, "--timeout", "0.3")
    assert status == 1
    assert told["failure"].startswith("POST /v1/responses (frame 1 of the recording) was not fully answered within 0.3 s")


def test_credentials_take_the_place_of_redacted_ones_and_are_no_difference(backend: BackendProcess, tmp_path: Path) -> None:
    auth = tmp_path / "auth.json"
    auth.write_text(json.dumps({"tokens": {"access_token": "at-secret-0123456789", "account_id": "acc-42-secret"}}))
    session = backend.session("login", {"turns": ["hi"], "auth": {"mode": "chatgpt", "access_token": "at-secret-0123456789"}})
    with Recorder(session.url, tmp_path / "run.ndjson") as recorder:
        headers = ("authorization: Bearer at-secret-0123456789", "chatgpt-account-id: acc-42-secret")
        assert wire(recorder.url, ask("x"), headers=headers).status == 200
    assert "secret-0123456789" not in (tmp_path / "run.ndjson").read_text()
    session.script({"turns": ["hi"], "auth": {"mode": "chatgpt", "access_token": "at-secret-0123456789"}})
    assert played(tmp_path / "run.ndjson", "--backend", session.url, "--auth", str(auth))[0] == 0
    status, told, _ = played(tmp_path / "run.ndjson", "--backend", session.url)
    assert status == 1  # without them the backend refuses
    assert any(d["path"] == "$.response.status" for d in told["differences"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "either --app-server or --backend"),
        (
            ("--backend", "https://example.invalid/v1"),
            "The replay would send 1 request (0 KB) to example.invalid, on your account",
        ),
        (("--backend", "127.0.0.1"), "is not an http, https, ws or wss URL"),
        (("--backend", "http://127.0.0.1:9"), "the backend at http://127.0.0.1:9 cannot be reached"),
        (("--backend", "fake", "--auth", "/nowhere.json"), "the login cannot be read"),
    ],
)
def test_what_cannot_be_played_to_is_a_sentence_and_status_2(tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered("1"))
    status, _, stderr = played(path, *options)
    assert (status, stderr.count("\n")) == (2, 1)
    assert why in stderr
