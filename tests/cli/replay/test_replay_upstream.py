"""`replay F --backend URL` against an upstream that somebody else wrote: ids of its own, JSON of its own form, a login."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.backend.http_replay.exchange import Recorder, played, wire

KEY = "k"
Change = Callable[[list[dict[str, Any]]], None]


def events(said: str) -> list[dict[str, Any]]:
    """A turn with a call, under ids that are new each time."""
    response, message, call = (f"{prefix}_{uuid.uuid4().hex}" for prefix in ("resp", "msg", "call"))
    text = {"type": "message", "id": message, "content": [{"type": "output_text", "text": said}]}
    asked = {"type": "function_call", "id": f"fc_{uuid.uuid4().hex}", "call_id": call, "name": "add", "arguments": "{}"}
    return [
        {"type": "response.created", "response": {"id": response, "created_at": 1763803037.25}},
        {"type": "response.output_text.delta", "item_id": message, "delta": said},
        {"type": "response.output_item.done", "item": text},
        {"type": "response.output_item.done", "item": asked},
        {"type": "response.completed", "response": {"id": response, "output": [text, asked]}},
    ]


class Upstream(ThreadingHTTPServer):
    """Answers turns; refuses a login that is not its own, and an id that it has not given."""

    daemon_threads = True

    def __init__(self, change: Change | None = None, key: str = KEY) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.change, self.key = change, key
        self.given: set[str] = set()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        mine = [body[key] for key in ("previous_response_id",) if key in body]
        mine += [item["call_id"] for item in body["input"] if "call_id" in item]
        if self.headers["authorization"] != f"Bearer {self.server.key}":
            self._refuse(401, "Incorrect API key provided.")
        elif not set(mine) <= self.server.given:
            self._refuse(404, f"There is no {mine}.")
        else:
            told = events(body["input"][0].get("content", "Hello é, vitamin k is in it."))
            if self.server.change is not None:
                self.server.change(told)
            self.server.given |= {told[0]["response"]["id"], told[3]["item"]["call_id"]}
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.send_header("x-request-id", f"req_{uuid.uuid4().hex}")
            self.end_headers()
            for event in told:
                self._chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self._chunk(b"")

    def _refuse(self, status: int, why: str) -> None:
        data = json.dumps({"error": {"message": why}}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def upstream(change: Change | None = None, key: str = KEY) -> Iterator[Upstream]:
    with Upstream(change, key) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def sse_of(raw: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two turns, the second of which says ids of the first."""
    path = tmp_path_factory.mktemp("own") / "http.ndjson"
    login = (f"authorization: Bearer {KEY}",)
    with upstream() as server, Recorder(server.url, path) as recorder:
        first = sse_of(wire(recorder.url, {"model": "m", "input": [{"role": "user"}]}, headers=login).raw)
        asked = {"type": "function_call_output", "call_id": first[3]["item"]["call_id"], "output": "5"}
        more = {"model": "m", "previous_response_id": first[0]["response"]["id"], "input": [asked]}
        assert wire(recorder.url, more, headers=login).status == 200
    return path


@pytest.fixture
def login(tmp_path: Path) -> Path:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"OPENAI_API_KEY": KEY}))
    return path


def test_the_same_answers_under_other_ids_are_identical(recording: Path, login: Path) -> None:
    with upstream() as server:
        status, told, stderr = played(recording, "--backend", server.url, "--auth", str(login))
    assert (status, told.get("failure"), told.get("differences"), stderr) == (0, None, [], "")
    assert "note" not in told


def _set(*path: Any, to: Any) -> Change:
    def change(told: list[dict[str, Any]]) -> None:
        inner: Any = told
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to

    return change


OTHER = {
    "another text": (_set(1, "delta", to="Hullo"), "$.sse.view.delta"),
    "a delta of another item": (_set(1, "item_id", to=f"msg_{uuid.uuid4().hex}"), "$.sse.view.item_id"),
    "an id of another kind": (_set(3, "item", "id", to=f"ctc_{uuid.uuid4().hex}"), "$.sse.view.item.id"),
    "a short id": (_set(3, "item", "id", to="fc_1"), "$.sse.view.item.id"),
    "a time that is no number": (_set(0, "response", "created_at", to="now"), "$.sse.view.response.created_at"),
}


@pytest.mark.parametrize("name", OTHER)
def test_another_answer_is_different_where_it_differs(recording: Path, login: Path, name: str) -> None:
    change, path = OTHER[name]
    with upstream(change) as server:
        status, told, _ = played(recording, "--backend", server.url, "--auth", str(login))
    assert status == 1
    assert path in [one["path"] for one in told["differences"]]
    assert not any("headers" in one["path"] for one in told["differences"])


def test_a_missing_login_is_said_with_the_option_that_gives_one(recording: Path) -> None:
    with upstream() as server:
        status, told, _ = played(recording, "--backend", server.url)
    assert status == 1
    assert told["note"].startswith("The backend answered 401, where 200 was recorded:")
    assert "--auth" in told["note"]


def test_a_login_that_is_refused_is_said_too(recording: Path, login: Path) -> None:
    with upstream(key="another") as server:
        status, told, _ = played(recording, "--backend", server.url, "--auth", str(login))
    assert status == 1
    assert "login" in told["note"]
    assert str(login) in told["note"]


def test_other_refusals_are_no_matter_of_the_login(recording: Path, login: Path, tmp_path: Path) -> None:
    lines = recording.read_text().splitlines()
    lines[1] = lines[1].replace('"POST"', '"PUT"')
    (tmp_path / "put.ndjson").write_text("\n".join(lines) + "\n")
    with upstream() as server:
        status, told, _ = played(tmp_path / "put.ndjson", "--backend", server.url, "--auth", str(login))
    assert status == 1
    assert "note" not in told
