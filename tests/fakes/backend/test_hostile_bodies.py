"""Every request gets an HTTP answer, whatever stands in it: names that are none, JSON in which a reader would drown."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_replay.shell.http.backend_process import BackendProcess

DEEP = b"[" * 1000 + b"]" * 1000
#: Name -> a text that no client's JSON may be.
BAD = {
    "deep": DEEP,
    "deeper": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "huge": b"[" + b"0," * 10_000_000 + b"0]",
    "surrogate": b'{"model":"m","input":"\\ud800","stream":true}',
    "a number out of range": b'{"model":"m","input":"x","temperature":1e999}',
    "an integer of many digits": b'{"model":"m","input":"x","max_output_tokens":' + b"9" * 5000 + b"}",
}
ROUTES = (
    ("POST", "/v1/responses"),
    ("POST", "/oauth/token"),
    ("PUT", "/_codex_replay/sessions/other"),
    ("PUT", "/_codex_replay/sessions/default/script"),
    ("PUT", "/_codex_replay/sessions/default/cassette"),
)
NAMES: tuple[Any, ...] = ({}, [], [[]], {"a": []}, None, True, 1, 1.5)


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process
        assert [line for line in process.stderr().splitlines() if not line.startswith("Refused ")] == []
        assert process.call("GET", "/_codex_replay/health")["sessions"] == ["default"]


def raw(backend: BackendProcess, data: bytes) -> bytes:
    parts = urlsplit(backend.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := sock.recv(1 << 16):
            answer += piece
    return answer


def status(backend: BackendProcess, method: str, target: str, body: bytes) -> int:
    host = urlsplit(backend.url).netloc
    token = f"x-codex-replay-token: {getattr(backend, 'token', '')}\r\n" if "_codex_replay" in target else ""
    head = f"{method} {target} HTTP/1.1\r\nhost: {host}\r\n{token}content-length: {len(body)}\r\n\r\n"
    answer = raw(backend, head.encode() + body)
    assert answer.startswith(b"HTTP/1.1 "), (target, body[:200], answer[:200])
    return int(answer[9:12])


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
@pytest.mark.parametrize(("method", "target"), ROUTES)
def test_json_that_no_reader_survives_is_a_400(backend: BackendProcess, method: str, target: str, body: bytes) -> None:
    assert status(backend, method, target, body) == 400


def requests() -> Iterator[dict[str, Any]]:
    good = {"model": "m", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}]}
    for name in NAMES:
        for key in ("type", "role", "content", "id", "call_id", "output", "name"):
            yield {**good, "input": [{**good["input"][0], key: name}]}  # type: ignore[dict-item]
            yield {**good, "input": [{"type": "function_call_output", "call_id": "c", "output": "o", key: name}]}
            yield {**good, "tools": [{"type": "function", "name": "f", key: name}], "tool_choice": "required"}
        yield {**good, "input": [{"type": "message", "role": "user", "content": [{"type": name, "text": "x"}]}]}
        yield {**good, "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": name}]}]}
        for key in ("type", "properties", "required", "enum"):
            schema = {"type": "object", "properties": {"a": {"type": "string"}}, key: name}
            yield {**good, "tools": [{"type": "function", "name": "f", "parameters": schema}], "tool_choice": "required"}
            nested = {"type": "object", "properties": {"a": schema}}
            yield {**good, "tools": [{"type": "function", "name": "f", "parameters": nested}], "tool_choice": "required"}
        for key in ("model", "input", "tools", "tool_choice", "stream", "store", "prompt_cache_key", "parallel_tool_calls"):
            yield {**good, key: name}


def test_names_that_are_none_are_answered(backend: BackendProcess) -> None:
    bodies = list(requests())
    got = [status(backend, "POST", "/v1/responses", json.dumps(body).encode()) for body in bodies]
    assert not [body for body, code in zip(bodies, got, strict=True) if code >= 500]
    assert {200, 400} == set(got)


@pytest.mark.parametrize("name", NAMES)
def test_scripts_with_names_that_are_none_are_refused(backend: BackendProcess, name: Any) -> None:
    for key in ("mode", "access", "refresh", "refresh_answer"):
        script = json.dumps({"turns": [], "auth": {key: name}}).encode()
        assert status(backend, "PUT", "/_codex_replay/sessions/default/script", script) == 400


@pytest.mark.parametrize("path", ["x" * 10_000, "x/" * 5000, "\x00", "", "/proc/self/mem", "/root/\x1b"])
def test_recordings_at_paths_that_no_file_has_are_refused(backend: BackendProcess, path: str) -> None:
    for given in (path, [path], [path, path]):
        body = json.dumps({"path": given}).encode()
        assert status(backend, "PUT", "/_codex_replay/sessions/default/cassette", body) == 400


@pytest.mark.parametrize(
    "target", ["//[", "//[::1", "http://[/v1/models", "/s/%", "/s/%ff/v1/models", "//", "http://", "/?%", "*", "/s//", "/\xff"]
)
def test_targets_that_are_no_url_are_answered(backend: BackendProcess, target: str) -> None:
    host = urlsplit(backend.url).netloc
    answer = raw(backend, f"GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode("latin-1"))
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200")), answer
