"""A page of another origin, and one of a name that was rebound to this machine, against a running backend: nothing is theirs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from browsing import Browser
from conftest import start

from codex_replay.shell.http.backend_process import BackendProcess, BackendSession

SECRET = "sk-live-" + "0123456789abcdef" * 2
#: The page's own name; the browser resolves both to this machine, as a rebinding DNS server does.
ELSEWHERE, REBOUND = "elsewhere.test", "rebound.test"

#: What a page tries: each way of asking, and what it could read of the answer.
ATTACK = """
const [base, done] = [arguments[0], arguments[arguments.length - 1]];
const asked = [
  ["GET", "/_codex_replay/sessions/default/ledger?redact=0"], ["GET", "/_codex_replay/health"], ["GET", "/v1/models"],
  ["POST", "/v1/responses", '{"model":"m","input":"x","stream":true}'], ["POST", "/v1/responses", "[".repeat(1000)],
  ["PUT", "/_codex_replay/sessions/default", '["evil"]'], ["POST", "/_codex_replay/sessions/default/gates/g", ""],
  ["DELETE", "/_codex_replay/sessions/default"], ["POST", "/oauth/token", '{"grant_type":"refresh_token"}'],
];
const tries = asked.flatMap(([method, path, body]) => ["cors", "no-cors", "same-origin"].map(async mode => {
  try {
    const answer = await fetch(base + path, {method, body, mode, credentials: "include"});
    return {path, method, mode, status: answer.status, text: await answer.text()};
  } catch (error) { return {path, method, mode, status: 0, text: ""}; }
}));
const loads = ["/v1/models", "/_codex_replay/sessions/default/ledger"].map(path => new Promise(resolve => {
  const image = new Image(); image.onload = image.onerror = () => resolve({path, mode: "image", status: 0, text: ""});
  image.src = base + path;
}));
Promise.all([...tries, ...loads]).then(found => done(found));
"""


class Page(BaseHTTPRequestHandler):
    """Serves an empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a page</title>")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def page_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def fooled() -> Iterator[Browser]:
    """A browser whose DNS an attacker answers."""
    with start(f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1, MAP {REBOUND} 127.0.0.1") as browser:
        yield browser


@contextmanager
def victim() -> Iterator[tuple[BackendProcess, BackendSession]]:
    """A backend with a script that was asked once, with a secret."""
    with BackendProcess() as backend:
        session = backend.session("default", ["one", "two"])
        body = json.dumps({"model": "m", "input": "hi", "stream": True}).encode()
        urlopen(Request(backend.url + "/v1/responses", body, {"authorization": f"Bearer {SECRET}"}), timeout=120).read()
        yield backend, session


def unchanged(backend: BackendProcess, session: BackendSession) -> None:
    assert backend.running()
    assert [entry["n"] for entry in session.ledger()] == [1]
    assert session.unused_turns() == [1]
    assert backend.call("GET", "/_codex_replay/health") == {"sessions": ["default"]}


def test_a_page_of_another_origin_reads_nothing_and_changes_nothing(fooled: Browser) -> None:
    with victim() as (backend, session), page_server() as port:
        fooled.driver.get(f"http://{ELSEWHERE}:{port}/")
        found = fooled.driver.execute_async_script(ATTACK, backend.url)
        assert len(found) == 29
        assert [one for one in found if one["status"] == 200 or one["text"]] == []
        unchanged(backend, session)


def test_a_page_of_a_rebound_name_reads_nothing_and_changes_nothing(fooled: Browser) -> None:
    with victim() as (backend, session):
        base = f"http://{REBOUND}:{urlsplit(backend.url).port}"
        fooled.driver.get(base + "/v1/models")  # of the backend itself, by the rebound name: what it reads is of its own origin
        assert "is not a name of this server" in fooled.driver.page_source
        found = fooled.driver.execute_async_script(ATTACK, base)
        assert len(found) == 29
        answered = [one for one in found if one["text"]]
        assert {one["status"] for one in answered} == {403}  # it can read that it was refused: so the test has bite
        assert SECRET not in json.dumps(found)
        unchanged(backend, session)


def test_a_program_may_what_no_page_may(fooled: Browser) -> None:
    """The same requests, by a client that has the token: what the pages were kept from is there."""
    with victim() as (backend, session):
        assert SECRET in json.dumps(session.ledger())
        backend.session("default", ["evil"])
        assert session.ledger() == []
