"""The fake backend as a program: started, scripted, asked and ended over its own pipes and sockets."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import zstandard

from codex_fakes.backend.rules.refresh import CLIENT_ID
from codex_replay.core.wire.sse import Decoder
from codex_replay.shell.http.backend_process import BackendError, BackendProcess, BackendSession, backend_command
from tests.support.processes import ended

Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def ask(url: str, body: Any = None, *, method: str = "POST", headers: dict[str, str] | None = None) -> Answer:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, data, headers or {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def begin(session: BackendSession) -> HTTPConnection:
    """Send a request and leave its answer unread."""
    parts = urlsplit(session.url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
    connection.request("POST", parts.path + "/v1/responses", json.dumps(request_body()))
    return connection


def request_body(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.2-codex", "input": "hi", "stream": True, "store": False, **more}


def events(answer: Answer) -> list[dict[str, Any]]:
    return [json.loads(block.data or b"null") for block in Decoder().feed(answer[2])]


def text_of(answer: Answer) -> str:
    return "".join(e["delta"] for e in events(answer) if e["type"] == "response.output_text.delta")


def code_of(answer: Answer) -> str:
    code: str = json.loads(answer[2])["error"]["code"]
    return code


def test_codex_gets_a_response_without_the_settings_and_others_get_them(backend: BackendProcess) -> None:
    session = backend.session("settings", [{"items": ["a"], "times": "always"}])
    body = request_body(instructions="Be brief.", user="me")
    codex = {"content-type": "application/json", "originator": "codex_cli_rs"}
    for _ in range(2):  # the second is of the cache
        for stream in (True, False):
            asked = {**body, "stream": stream}
            answers = [ask(session.url + "/v1/responses", asked, headers=headers) for headers in (None, codex)]
            full, plain = [events(a)[-1]["response"] if stream else json.loads(a[2]) for a in answers]
            assert (full["instructions"], full["user"]) == ("Be brief.", "me")
            assert plain["instructions"] is None
            assert "user" not in plain


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("http_400", "invalid_request_error"),
        ("http_401", "invalid_request_error"),
        ("http_429", "rate_limit_error"),
        ("http_500", "server_error"),
        ("http_503", "service_unavailable_error"),
    ],
)
def test_an_error_has_the_documented_type(backend: BackendProcess, fault: str, kind: str) -> None:
    session = backend.session(f"type {fault}", [{"fault": fault}, {"fault": fault}])
    codex = {"content-type": "application/json", "originator": "codex_cli_rs"}
    types = [
        json.loads(ask(session.url + "/v1/responses", request_body(), headers=headers)[2])["error"]["type"]
        for headers in (None, codex)
    ]
    assert types == [kind, "invalid_request_error"]


def header_values(session: BackendSession, name: str, path: str = "/responses", **headers: str) -> list[str]:
    """Return every value of a header in the answer."""
    parts = urlsplit(session.url)
    with contextlib.closing(HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)) as connection:
        method, body = ("POST", json.dumps(request_body())) if path == "/responses" else ("GET", None)
        connection.request(method, f"{parts.path}/v1{path}", body, headers)
        return [value for key, value in connection.getresponse().getheaders() if key.lower() == name]


@pytest.mark.parametrize("codex", [False, True])
def test_every_answer_has_an_id_unless_codex_asks(backend: BackendProcess, codex: bool) -> None:
    turns = ["a", {"status": 429}, {"items": ["b"], "headers": {"X-Request-Id": "mine"}}]
    session = backend.session(f"ids {codex}", turns)
    paths = ["/responses"] * 4 + ["/responses/none", "/models"]
    found = [header_values(session, "x-request-id", path, **({"originator": "x"} if codex else {})) for path in paths]
    assert found == [
        ["req_1"],
        [] if codex else ["req_2"],
        ["mine"],
        *([[]] * 3 if codex else [["req_n4"], ["req_n5"], ["req_n6"]]),
    ]


def test_a_header_of_the_script_replaces_ours(backend: BackendProcess) -> None:
    session = backend.session("type", [{"items": ["a"], "headers": {"Content-Type": "text/plain"}}])
    assert header_values(session, "content-type") == ["text/plain"]


def test_a_miss_is_no_outage_to_the_sdks(backend: BackendProcess) -> None:
    session = backend.session("missed", [{"match": "other", "items": ["a"]}, {"items": ["a"], "expect": {"model": "other"}}])
    for _ in range(2):
        status, headers, _ = ask(session.url + "/v1/responses", request_body())
        assert (status, headers["x-should-retry"]) == (501, "false")
    assert len(session.problems()) == 2
    ask(session.url + "/v1/responses", request_body())
    assert [line[-9:] for line in session.problems()][1:] == ["(2 times)"]


def test_it_streams_the_turns_in_order_and_keeps_a_ledger(backend: BackendProcess) -> None:
    session = backend.session("order", ["first", "second"])
    assert [text_of(ask(session.url + "/v1/responses", request_body())) for _ in range(2)] == ["first", "second"]
    ledger = session.ledger()
    assert [(e["n"], e["answer"], e["turn"], e["status"], e["end"]) for e in ledger] == [
        (1, "turn", 0, 200, "end"),
        (2, "turn", 1, 200, "end"),
    ]
    assert ledger[0]["body"] == request_body()
    assert session.unused_turns() == []


def test_a_script_that_is_used_up_is_a_miss(backend: BackendProcess) -> None:
    session = backend.session("miss", ["only"])
    ask(session.url + "/v1/responses", request_body())
    answer = ask(session.url + "/v1/responses", request_body())
    assert (answer[0], code_of(answer)) == (501, "replay_miss")
    assert "The only turn of the script is used" in session.problems()[0]


def test_markers_choose_turns_for_many_at_once(backend: BackendProcess) -> None:
    session = backend.session("markers", [{"match": f"case-{i};", "items": [f"reply {i}"]} for i in range(20)])
    for i in reversed(range(20)):
        assert text_of(ask(session.url + "/v1/responses", request_body(input=f"this is case-{i};"))) == f"reply {i}"
    assert session.unused_turns() == []


def test_no_script_is_a_deterministic_default(backend: BackendProcess) -> None:
    first, second = backend.session("d1"), backend.session("d2")
    answers = [ask(s.url + "/v1/responses", request_body()) for s in (first, second)]
    assert answers[0] == answers[1]
    assert text_of(answers[0])


def test_sessions_do_not_see_each_other(backend: BackendProcess) -> None:
    one, other = backend.session("one", ["a"]), backend.session("other", ["b"])
    assert text_of(ask(other.url + "/v1/responses", request_body())) == "b"
    assert one.ledger() == []


def test_a_session_nobody_made_is_said_so(backend: BackendProcess) -> None:
    answer = ask(backend.url + "/s/nobody/v1/responses", request_body())
    assert (answer[0], code_of(answer)) == (404, "no_session")


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress), ("identity", bytes)]
)
def test_bodies_may_be_compressed(backend: BackendProcess, encoding: str, encode: Any) -> None:
    session = backend.session("zip", ["ok"])
    data = encode(json.dumps(request_body()).encode())
    answer = ask(session.url + "/v1/responses", data, headers={"content-encoding": encoding})
    assert text_of(answer) == "ok"
    entry = session.ledger()[0]
    assert (entry["body"], entry["raw_length"]) == (request_body(), len(data))


def test_a_body_that_is_not_what_its_encoding_says_is_400(backend: BackendProcess) -> None:
    session = backend.session("zip", ["ok"])
    answer = ask(session.url + "/v1/responses", b"nonsense", headers={"content-encoding": "zstd"})
    assert (answer[0], code_of(answer)) == (400, "invalid_body")


def test_headers_come_back_in_their_order_and_case(backend: BackendProcess) -> None:
    session = backend.session("headers", ["ok"])
    body = json.dumps(request_body()).encode()
    parts = urlsplit(session.url)
    head = [f"POST {parts.path}/v1/responses HTTP/1.1", "HoSt: localhost", "Session_ID: 7", "b: 1", "A: 2", "b: 3"]
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "Connection: close", "", ""]).encode() + body)
        while sock.recv(65536):
            pass
    seen = session.ledger(1)[0]["headers"]
    assert seen[:5] == [["HoSt", "localhost"], ["Session_ID", "7"], ["b", "1"], ["A", "2"], ["b", "3"]]


def test_pipelined_requests_are_answered_in_order(backend: BackendProcess) -> None:
    session = backend.session("pipeline", [f"reply {i}" for i in range(5)])
    parts = urlsplit(session.url)
    body = json.dumps(request_body(stream=False)).encode()
    one = f"POST {parts.path}/v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    received = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(one * 5)
        sock.shutdown(socket.SHUT_WR)
        while data := sock.recv(65536):
            received += data
    assert [received.find(b'"text":"reply %d"' % i) for i in range(5)] == sorted(
        received.find(b'"text":"reply %d"' % i) for i in range(5)
    )
    assert received.count(b"HTTP/1.1 200 OK") == 5


def test_a_gate_holds_the_answer_until_it_is_released(backend: BackendProcess) -> None:
    session = backend.session("gate", [{"items": ["before", {"type": "gate", "name": "g"}, "after"]}])
    with closing(begin(session)) as connection:
        response = connection.getresponse()
        assert session.wait_at_gate("g")
        held = b""
        while b"output_item.done" not in held:
            held += response.read1(65536)
        assert b"before" in held
        assert session.ledger()[0]["end"] is None
        session.release("g")
        rest = response.read()
    assert b"after" in rest
    assert b"after" not in held
    assert session.ledger(1)[0]["end"] == "end"


def test_a_client_that_vanishes_is_in_the_ledger(backend: BackendProcess) -> None:
    session = backend.session("gone", [{"items": [{"type": "gate", "name": "g"}, "after"]}, "next"])
    with closing(begin(session)):
        assert session.wait_at_gate("g")
    assert session.ledger(1)[0]["end"] == "gone"
    assert text_of(ask(session.url + "/v1/responses", request_body())) == "next"


def test_an_upgrade_is_answered_426(backend: BackendProcess) -> None:
    session = backend.session("ws", ["ok"])
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    assert ask(session.url + "/v1/responses", method="GET", headers=headers)[0] == 426
    assert session.problems() == []
    assert session.ledger()[0]["status"] == 426


def test_models_have_an_etag(backend: BackendProcess) -> None:
    session = backend.session("models")
    url = session.url + "/v1/models?client_version=0.92.0"
    status, headers, body = ask(url, method="GET")
    assert (status, json.loads(body)) == (200, {"models": []})
    assert ask(url, method="GET", headers={"if-none-match": headers["etag"]})[0] == 304


def test_the_token_url_takes_json_and_forms(backend: BackendProcess) -> None:
    session = backend.session("token")
    sent = {"grant_type": "refresh_token", "refresh_token": "r1", "client_id": CLIENT_ID, "scope": "openid profile email"}
    tokens = json.loads(ask(session.url + "/oauth/token", sent)[2])
    assert set(tokens) == {"access_token", "refresh_token", "id_token"}
    form = urlencode(sent).encode()
    again = ask(session.url + "/oauth/token", form, headers={"content-type": "application/x-www-form-urlencoded"})
    assert (again[0], code_of(again)) == (401, "refresh_token_reused")


def test_an_expectation_that_fails_is_said(backend: BackendProcess) -> None:
    session = backend.session("expect", [{"items": ["ok"], "expect": {"model": "gpt-9"}}])
    answer = ask(session.url + "/v1/responses", request_body())
    assert (answer[0], code_of(answer)) == (501, "replay_expect")
    assert "model is 'gpt-5.2-codex', expected 'gpt-9'" in session.problems()[0]


def test_without_stream_the_answer_is_the_response(backend: BackendProcess) -> None:
    session = backend.session("whole", ["all at once"])
    response = json.loads(ask(session.url + "/v1/responses", request_body(stream=False))[2])
    assert response["status"] == "completed"
    assert response["output"][0]["content"][0]["text"] == "all at once"


def test_an_error_status_has_the_shape_and_headers_asked_for(backend: BackendProcess) -> None:
    turns = [{"status": 429, "headers": {"retry-after": "1"}, "error": {"code": "rate_limit", "message": "slow"}}]
    session = backend.session("error", [*turns, {"status": 500, "body": "plain"}])
    status, headers, body = ask(session.url + "/v1/responses", request_body())
    assert (status, headers["retry-after"], json.loads(body)["error"]["message"]) == (429, "1", "slow")
    assert ask(session.url + "/v1/responses", request_body())[::2] == (500, b"plain")


@pytest.mark.parametrize("script", [[{"itms": []}], {"turns": 1}, "x", [{"items": [{"type": "txt"}]}], {"auth": {"mode": "no"}}])
def test_a_bad_script_is_refused_with_a_sentence(backend: BackendProcess, script: Any) -> None:
    with pytest.raises(BackendError, match=r"\.$"):
        backend.session("bad", script)


def test_what_is_not_http_gets_400(backend: BackendProcess) -> None:
    parts = urlsplit(backend.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 400 ")


def port_is_free(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as sock:
        return sock.connect_ex((parts.hostname, parts.port)) != 0


def test_closing_leaves_no_process_and_no_port() -> None:
    process = BackendProcess()
    session = process.session("s", [{"items": [{"type": "gate", "name": "g"}]}])
    with closing(begin(session)):
        assert session.wait_at_gate("g")
        process.close()
    assert port_is_free(process.url)
    assert ended(process.pid)


@pytest.mark.parametrize("how", ["sigterm", "stdin"])
def test_the_program_ends_when_told(how: str) -> None:
    argv = [sys.executable, "-P", "-m", "codex_fakes.backend", "--port", "0", "--exit-with-stdin"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        ready = json.loads(process.stdout.readline())
        assert ready["pid"] == process.pid
        if how == "sigterm":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert port_is_free(ready["url"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{", "not JSON"), ('{"turns": [{"item": []}]}', 'did you mean "items"'), (None, "cannot be read")],
)
def test_a_script_file_that_cannot_be_used_is_a_sentence(tmp_path: Path, text: str | None, sentence: str) -> None:
    path = tmp_path / "script.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BackendError, match=sentence):
        BackendProcess(path)


def test_a_port_in_use_is_a_sentence(backend: BackendProcess) -> None:
    with pytest.raises(BackendError, match="cannot listen"):
        BackendProcess(port=urlsplit(backend.url).port or 0)


def test_a_session_can_be_played_again(backend: BackendProcess) -> None:
    session: BackendSession = backend.session("again", ["one"])
    ask(session.url + "/v1/responses", request_body())
    session.script(["two"])
    assert text_of(ask(session.url + "/v1/responses", request_body())) == "two"
    assert len(session.ledger()) == 2
    session.close()
    assert ask(session.url + "/v1/responses", request_body())[0] == 404


@pytest.mark.parametrize("more", ["", "urllib.parse", "base64", "runpy", "_ssl"])
def test_the_start_loads_nothing_that_few_requests_need(more: str) -> None:
    """As it is, and broken by an import."""
    argv = backend_command()
    at = argv.index("-c") + 1
    argv[at] = f"import {more or 'sys'}; {argv[at]}"
    argv[1:1] = ["-X", "importtime"]
    done = subprocess.run([*argv, "--exit-with-stdin"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    loaded = re.findall(r"import time: +\d+ \| +\d+ \| +(\S+)", done.stderr)
    assert "codex_fakes.backend.server" in loaded
    late = ("codex_fakes.backend.replay", "codex_fakes.backend.websocket", "codex_replay.core.redact", "argparse", "yaml")
    slow = ("_ssl", "runpy", "dataclasses", "urllib.parse", "http", "base64", "site")
    assert [name for name in loaded if name.startswith(late) or name in slow] == ([more] if more else [])
