"""Recorded WebSockets as answers: to a WebSocket client, converted to HTTP, and recordings of HTTP to a WebSocket client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from codex_replay.cli.main import main
from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.fakes.backend.http_replay.exchange import Recorder
from tests.fakes.backend.test_backend import ask, text_of
from tests.fakes.backend.test_websocket import CALL, asked, opened, reply, request, text, user

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "42"}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def conversation(url: str, call: str = "call_1") -> list[dict[str, Any]]:
    """A prewarm, a call as an increment, and its follow-up on the same connection."""
    with connect(url.replace("http", "ws", 1) + "/v1/responses") as client:
        warm = asked(client, input=[user("a")], generate=False)["response"]["id"]
        first = asked(client, previous_response_id=warm, input=[user("b")])
        return [first, asked(client, previous_response_id=first["response"]["id"], input=[{**OUTPUT, "call_id": call}])]


@pytest.fixture(scope="module")
def recorded(backend: BackendProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ws") / "run.ndjson"
    backend.session("default", {"websocket": "on", "turns": [{"items": [CALL]}, "done"]})
    with Recorder(backend.url, out) as between:
        conversation(between.url)
    return out


def replaying(backend: BackendProcess, name: str, path: Path, script: object = None) -> BackendSession:
    session = backend.session(name, script)
    session.cassette(path)  # its notes are about the tables of the recorded version
    return session


def messages(path: Path) -> list[tuple[str, Any, Any]]:
    with CassetteReader(str(path)) as reader:
        return [(frame.sender, frame.payload, frame.extra) for frame in reader if frame.kind == "ws"]


def test_record_replay_record_has_no_difference(backend: BackendProcess, recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.ndjson"
    replaying(backend, "default", recorded)
    with Recorder(backend.url, out) as between:
        assert text(conversation(between.url)[1]) == "done"
    assert messages(out) == messages(recorded)
    assert [entry["answer"] for entry in backend.ledger()] == ["route", "cassette", "cassette", "cassette"]
    assert BackendSession(backend, "default").unused_frames() == []


def test_a_full_request_equals_the_increment_that_was_recorded(backend: BackendProcess, recorded: Path) -> None:
    session = replaying(backend, "full", recorded)
    with opened(session) as client:
        first = asked(client, input=[user("a"), user("b")])
        call = first["response"]["output"][0]
    with opened(session) as client:  # a new connection: in full
        assert text(asked(client, input=[user("a"), user("b"), call, OUTPUT])) == "done"
    assert [one["request"] for one in session.unused_frames()] == ["WEBSOCKET /v1/responses"]  # the prewarm


def test_a_message_that_was_not_recorded_is_a_miss(backend: BackendProcess, recorded: Path) -> None:
    session = replaying(backend, "miss", recorded)
    with opened(session) as client:
        missed = asked(client, input=[user("other")])
    assert (missed["type"], missed["status"], missed["error"]["code"]) == ("error", 501, "replay_miss")
    assert "recorded" in session.problems()[0]


def test_a_recorded_websocket_answers_an_http_client(backend: BackendProcess, recorded: Path) -> None:
    session = replaying(backend, "to-http", recorded)
    body = {"model": "m", "input": [user("a"), user("b")], "store": False, "stream": True}
    first = ask(session.url + "/v1/responses", body)
    assert first[0] == 200
    events = [json.loads(line[6:]) for line in first[2].splitlines() if line.startswith(b"data: ")]
    call = events[-1]["response"]["output"][0]
    assert text_of(ask(session.url + "/v1/responses", {**body, "input": [user("a"), user("b"), call, OUTPUT]})) == "done"
    assert [entry["recorded"]["converted"] for entry in session.ledger()] == [True, True]
    assert session.unused_frames() == []


def test_a_recording_of_http_answers_a_websocket_client(backend: BackendProcess, tmp_path: Path) -> None:
    out = tmp_path / "http.ndjson"
    backend.session("default", ["over HTTP", {"status": 429, "error": {"code": "slow", "message": "Wait."}}])
    body = {"model": "m", "input": [user("a")], "store": False, "stream": True}
    with Recorder(backend.url, out) as between:
        ask(between.url + "/v1/responses", body)
        ask(between.url + "/v1/responses", {**body, "input": [user("b")]})
    session = replaying(backend, "to-ws", out)
    script = {"websocket": "on"}
    session = replaying(backend, "to-ws", out, script)
    with opened(session) as client:
        warm = asked(client, input=[], generate=False)["response"]["id"]
        assert text(asked(client, previous_response_id=warm, input=[user("a")])) == "over HTTP"
        failed = asked(client, input=[user("b")])
    assert (failed["status"], failed["error"]["code"]) == (429, "slow")
    entries = session.ledger()
    assert [entry["answer"] for entry in entries] == ["route", "prewarm", "cassette", "cassette"]
    assert entries[2]["recorded"]["converted"]


@pytest.mark.parametrize("fault", ["ws_close_1011", "cut", "reset", "ws_binary", "ws_bad_deflate"])
def test_what_was_unusual_is_repeated(backend: BackendProcess, fault: str, tmp_path: Path) -> None:
    out, again = tmp_path / "one.ndjson", tmp_path / "two.ndjson"

    def once(url: str) -> str:
        try:
            with connect(url.replace("http", "ws", 1) + "/v1/responses") as client:
                client.send(request())
                while True:
                    message = client.recv(10)
                    if isinstance(message, str) and '"response.completed"' in message:
                        return "completed"
        except ConnectionClosed as closed:
            return str(closed.rcvd.code if closed.rcvd else closed.sent.code if closed.sent else 1006)

    backend.session("default", {"websocket": "on", "turns": [{"items": ["a b c"], "fault": fault}]})
    with Recorder(backend.url, out) as between:
        first = once(between.url)
    replaying(backend, "default", out)
    with Recorder(backend.url, again) as between:
        assert once(between.url) == first
    assert kinds(again) == kinds(out)


def kinds(path: Path) -> list[tuple[str, object]]:
    """The messages and the end, up to a close frame or a message that cannot be read: chance decides what follows."""

    def shown(frame: Frame) -> object:
        if frame.kind != "ws":
            return frame.payload
        return "omitted" if "omitted" in frame.payload else frame.payload

    found: list[tuple[str, object]] = []
    with CassetteReader(str(path)) as reader:
        for frame in reader:
            if frame.kind in ("ws", "close"):
                found.append((frame.sender, shown(frame)))
                if frame.kind == "ws" and ("close" in frame.payload or "omitted" in frame.payload):
                    break
    return found


def test_reply_reads_to_the_end_of_a_recorded_answer(backend: BackendProcess, recorded: Path) -> None:
    """A reconnecting client gets the handshake again, though it was recorded once."""
    session = replaying(backend, "again", recorded)
    for _ in range(3):
        with opened(session) as client:
            client.send(request(input=[user("x")]))
            assert reply(client)[-1]["status"] == 501


def played(path: Path, backend: str) -> tuple[int, dict[str, Any]]:
    """`codex-replay replay PATH --backend BACKEND --json`: its status, and the object that it prints."""
    result = CliRunner().invoke(main, ["replay", str(path), "--backend", backend, "--timeout", "5", "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_the_recorded_client_is_played_again(recorded: Path) -> None:
    """Prewarm, increments and compression, to the fake that serves the recording."""
    status, found = played(recorded, "fake")
    assert (status, found["identical"], found["failure"], found["differences"]) == (0, True, None, [])


def test_a_script_gives_the_same_ids_again(backend: BackendProcess, recorded: Path) -> None:
    """The ids of prewarms, too: they follow from the script and not from the number of the connection."""
    session = backend.session("same", {"websocket": "on", "turns": [{"items": [CALL]}, "done"]})
    status, found = played(recorded, session.url)
    assert (status, found["failure"], found["differences"]) == (0, None, [])
    assert session.problems() == []


def test_the_recorded_client_names_the_live_ids(backend: BackendProcess, tmp_path: Path) -> None:
    """A service makes up ids: the increments and outputs of the played client name those of the live backend."""

    def script(mark: str) -> dict[str, Any]:
        call = {**CALL, "call_id": f"call_{mark * 20}"}
        turns = [{"items": [call], "response_id": f"resp_{mark * 20}"}, {"items": ["done"], "response_id": f"resp_{mark * 21}"}]
        return {"websocket": {"mode": "on", "prewarm": {"response_id": f"resp_{mark * 22}"}}, "turns": turns}

    out = tmp_path / "made-up.ndjson"
    backend.session("default", script("a1"))
    with Recorder(backend.url, out) as between:
        conversation(between.url, "call_" + "a1" * 20)
    session = backend.session("ids", script("b2"))
    status, found = played(out, session.url)
    assert (status, found["failure"], found["differences"]) == (0, None, [])
    last = session.ledger()[-1]
    assert last["websocket"]["previous_response_id"] == "resp_" + "b2" * 20
    assert last["body"]["input"][-1]["call_id"] == "call_" + "b2" * 20


def test_a_backend_that_answers_otherwise_differs(backend: BackendProcess, recorded: Path) -> None:
    session = backend.session("otherwise", {"websocket": "on", "turns": [{"items": [CALL]}, "something else"]})
    status, found = played(recorded, session.url)
    assert status == 1
    assert any("something else" in str(difference["right"]) for difference in found["differences"])


@pytest.mark.parametrize("mode", ["off", {"handshakes": "closed"}])
def test_a_backend_without_websocket_is_a_failure(backend: BackendProcess, recorded: Path, mode: object) -> None:
    session = backend.session("without", {"websocket": mode, "turns": ["x"]})
    status, found = played(recorded, session.url)
    assert status == 1
    assert found["failure"] is not None or found["differences"]
    assert [entry["method"] for entry in session.ledger()] == ["GET"]


def test_a_message_that_was_not_recorded_cannot_be_played(recorded: Path, tmp_path: Path) -> None:
    with CassetteReader(str(recorded)) as reader:
        number = next(frame.n for frame in reader if frame.kind == "ws" and frame.sender == "client")
    lines = recorded.read_bytes().splitlines(keepends=True)
    cut = json.loads(lines[number])
    cut["ws"] = {"omitted": 99_000_000, "why": "it is too long"}
    path = tmp_path / "cut.ndjson"
    path.write_bytes(b"".join([*lines[:number], json.dumps(cut).encode() + b"\n", *lines[number + 1 :]]))
    result = CliRunner().invoke(main, ["replay", str(path), "--backend", "fake"])
    assert result.exit_code == 2
    assert f"the message of frame {number} was not recorded" in result.stderr
