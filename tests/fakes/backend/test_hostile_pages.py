"""A web page in a developer's browser, and the backend on the same machine: it reads nothing, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_replay.shell.http.backend_process import BackendError, BackendProcess

SECRET = "sk-live-" + "0123456789abcdef" * 2
BODY = {"model": "m", "input": "hi", "stream": True}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def ask(backend: BackendProcess, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    parts = urlsplit(backend.url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), named)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


PAGES: list[dict[str, str]] = [
    {"host": "evil.example:1234"},
    {"host": "evil.example", "origin": "http://evil.example"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_changes_no_session_of_a_client(backend: BackendProcess, page: dict[str, str]) -> None:
    session = backend.session("client", ["one"])
    status, body = ask(backend, "POST", "/s/client/v1/responses", BODY, **page)
    assert (status, json.loads(body)["error"]["code"]) == (403, "not_allowed")
    assert ask(backend, "GET", "/s/client/v1/models", **page)[0] == 403
    assert (session.ledger(), session.unused_turns()) == ([], [0])


CONTROL = [
    ("GET", "health"),
    ("GET", "sessions/mine/ledger?redact=0"),
    ("PUT", "sessions/mine"),
    ("PUT", "sessions/mine/script"),
    ("POST", "sessions/mine/gates/g"),
    ("DELETE", "sessions/mine"),
]


@pytest.mark.parametrize(("method", "path"), CONTROL)
@pytest.mark.parametrize("page", [*PAGES, {"origin": "http://localhost:3000"}, {"sec_fetch_site": "same-origin"}, {}])
def test_the_control_api_is_closed_to_pages_and_without_the_token(
    backend: BackendProcess, method: str, path: str, page: dict[str, str]
) -> None:
    backend.session("mine", ["one"])
    ask(backend, "POST", "/s/mine/v1/responses", BODY, authorization=f"Bearer {SECRET}")
    with_token = {**page, "x_codex_replay_token": backend.token} if page else {"x_codex_replay_token": "wrong"}
    for headers in (page, with_token):
        status, body = ask(backend, method, f"/_codex_replay/{path}", ["two"] if method == "PUT" else None, **headers)
        assert status == 403
        assert SECRET.encode() not in body
    session = backend.call("GET", "/_codex_replay/sessions/mine/ledger")
    assert len(session["requests"]) == 1  # neither replaced nor deleted


def test_the_token_is_of_one_process() -> None:
    with BackendProcess() as one, BackendProcess() as other:
        assert len({one.token, other.token}) == 2
        assert len(one.token) == 32
        other.token = one.token
        with pytest.raises(BackendError, match="must be the token"):
            other.session("x")


def test_the_ledger_that_leaves_is_redacted_unless_asked_otherwise(backend: BackendProcess) -> None:
    session = backend.session("secrets")
    ask(backend, "POST", "/s/secrets/v1/responses", {**BODY, "input": SECRET}, authorization=f"Bearer {SECRET}")
    ask(backend, "POST", f"/s/secrets/v1/responses?api_key={SECRET}", cookie=f"session={SECRET}")
    plain = json.dumps(backend.call("GET", "/_codex_replay/sessions/secrets/ledger"))
    assert SECRET not in plain
    assert "redacted" in plain
    assert json.dumps(session.ledger()).count(SECRET) == 4
    assert SECRET not in json.dumps(session.ledger(redact=True))


def test_a_further_name_and_the_bound_host_may_ask() -> None:
    with BackendProcess(options=["--allow-host", "backend.test"]) as backend:
        assert ask(backend, "GET", "/v1/models", host="backend.test:80")[0] == 200
        assert ask(backend, "GET", "/v1/models", host="other.test:80")[0] == 403
        (line,) = backend.stderr().splitlines()
        assert 'The host "other.test:80" is not a name of this server' in line
        assert "--allow-host" in line
