"""A page of another origin, and one of a name that was rebound to this machine, against a running backend: nothing is theirs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from browsing import Browser
from conftest import start

from codex_fakes.backend import routes
from codex_fakes.backend.state import answers as state
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.shell.http.test_http_recorder import recording

SECRET = "sk-live-" + "0123456789abcdef" * 2
#: The page's own name; the browser resolves both to this machine, as a rebinding DNS server does.
ELSEWHERE, REBOUND = "elsewhere.test", "rebound.test"

#: What a page asks for: every route of the control API and of clients, and JSON that is too deep.
CONTROL = [
    ("GET", "health", None),
    *(("PUT", f"sessions/default{rest}", '["evil"]') for rest in ("", "/script", "/cassette", "/asked/1")),
    *(("GET", f"sessions/default{rest}", None) for rest in ("/ledger?redact=0", "/gates/g", "/asked")),
    ("POST", "sessions/default/gates/g", ""),
    ("DELETE", "sessions/default", None),
]
ASK = '{"model":"m","input":"x","stream":true}'
ROUTES = [
    *((method, ending, ASK if method == "POST" else None) for method, ending, _ in routes.ROUTES),
    *(
        (method, place.removeprefix("...").replace("ID", "resp_t0"), "{}" if method == "POST" else None)
        for methods, _, place in (route.rpartition(" ") for route in state.ROUTES)
        for method in methods.split(", ")
    ),
    ("GET", "/models/gpt-5.2-codex", None),
    ("POST", "/responses", "[" * 1000),
]
ASKED = [
    *((method, f"/_codex_replay/{path}", body) for method, path, body in CONTROL),
    *((method, f"{base}{path}", body) for base in ("/v1", "/s/default/v1") for method, path, body in ROUTES),
]

#: How a page asks, and what it could read of each answer: by `fetch`, elements, a form, an event stream, a beacon, a WebSocket.
ATTACK = """
const [base, asked, done] = arguments;
const told = (path, mode, status = 0, text = "") => ({path, mode, status, text});
const read = frame => { try { return frame.contentDocument.body.innerText; } catch { return ""; } };
const beacons = asked.map(([, path, body]) => { navigator.sendBeacon(base + path, body || ""); return told(path, "beacon"); });
const fetches = asked.flatMap(([method, path, body]) => ["cors", "no-cors", "same-origin"].map(async mode => {
  try {
    const answer = await fetch(base + path, {method, body, mode, credentials: "include"});
    return told(path, mode, answer.status, await answer.text());
  } catch (error) { return told(path, mode); }
}));
const element = (tag, path, name, value) => new Promise(resolve => {
  const made = document.createElement(tag);
  made.onload = () => resolve(told(path, tag, 0, tag === "iframe" ? read(made) : ""));
  made.onerror = () => resolve(told(path, tag));
  made[name] = value;
  document.body.append(made);
});
const form = ([, path, body], number) => new Promise(resolve => {
  const [made, frame, field] = ["form", "iframe", "input"].map(tag => document.createElement(tag));
  frame.name = made.target = `frame-${number}`;
  [made.action, made.method, made.enctype] = [base + path, "post", "text/plain"];
  [field.name, field.value] = [(body || "").slice(0, -1) + ',"', '":""}'];
  made.append(field);
  document.body.append(frame, made);
  frame.onload = () => resolve(told(path, "form", 0, read(frame)));
  made.submit();
});
const stream = path => new Promise(resolve => {
  const made = new EventSource(base + path);
  made.onmessage = event => { made.close(); resolve(told(path, "events", 200, event.data)); };
  made.onerror = () => { made.close(); resolve(told(path, "events")); };
});
const socket = path => new Promise(resolve => {
  const made = new WebSocket(base.replace("http", "ws") + path);
  made.onopen = () => made.send('{"type":"response.create","model":"m","input":"x"}');
  made.onmessage = event => resolve(told(path, "websocket", 101, event.data));
  made.onerror = () => resolve(told(path, "websocket"));
});
const gets = asked.filter(([method]) => method === "GET").map(([, path]) => path);
Promise.all([
  ...fetches, ...asked.filter(([method]) => method === "POST").map(form), ...gets.map(stream),
  ...gets.flatMap(path => ["img", "script", "iframe"].map(tag => element(tag, path, "src", base + path))),
  ...["/v1/responses", "/s/default/v1/responses", "/_codex_replay/sessions/default/ledger"].map(socket),
]).then(found => done([...beacons, ...found]));
"""


def attack(browser: Browser, base: str) -> list[dict[str, object]]:
    """Return what a page gets that tries everything."""
    found: list[dict[str, object]] = browser.driver.execute_async_script(ATTACK, base, ASKED)
    gets, posts = (sum(method == wanted for method, _, _ in ASKED) for wanted in ("GET", "POST"))
    assert len(found) == 4 * len(ASKED) + 4 * gets + posts + 3
    return found


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
def victim(*options: str) -> Iterator[tuple[BackendProcess, BackendSession]]:
    """A backend with a script that was asked once, with a secret."""
    with BackendProcess(options=options) as backend:
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
        found = attack(fooled, backend.url)
        assert [one for one in found if one["status"] or one["text"]] == []
        unchanged(backend, session)


def test_a_page_of_a_rebound_name_reads_nothing_and_changes_nothing(fooled: Browser) -> None:
    with victim() as (backend, session):
        base = f"http://{REBOUND}:{urlsplit(backend.url).port}"
        fooled.driver.get(base + "/v1/models")  # of the backend itself, by the rebound name: what it reads is of its own origin
        assert "is not a name of this server" in fooled.driver.page_source
        found = attack(fooled, base)
        answered = [one for one in found if one["text"]]  # it can read that it was refused: so the test has bite
        assert {one["mode"] for one in answered} == {"cors", "no-cors", "same-origin", "iframe", "form"}
        assert [one for one in answered if one["status"] not in (0, 403) or '"not_allowed"' not in str(one["text"])] == []
        unchanged(backend, session)


def test_pages_reach_no_server_through_a_recorder(fooled: Browser, tmp_path: Path) -> None:
    with victim() as (backend, session), page_server() as port:
        with recording(tmp_path, urlsplit(backend.url).port or 0) as run:
            fooled.driver.get(f"http://{ELSEWHERE}:{port}/")
            found = attack(fooled, run.url)
            assert [one for one in found if one["status"] or one["text"]] == []
            base = f"http://{REBOUND}:{urlsplit(run.url).port}"
            fooled.driver.get(base + "/v1/models")
            found = attack(fooled, base)
            assert SECRET not in json.dumps(found)
            assert {one["status"] for one in found} == {0, 403}
            assert run.finish() == []
        unchanged(backend, session)


def test_a_page_that_is_let_in_is_seen_in_each_way(fooled: Browser) -> None:
    with victim("--allow-host", ELSEWHERE) as (backend, session), page_server() as port:
        fooled.driver.get(f"http://{ELSEWHERE}:{port}/")
        attack(fooled, backend.url)
        assert session.unused_turns() == []
        headers = [{name.lower(): value for name, value in entry["headers"]} for entry in session.ledger()[1:]]
    kinds = {one.get("upgrade") or one.get("sec-fetch-dest") for one in headers}
    assert kinds >= {"empty", "iframe", "websocket"}  # an image and a script name no origin, so they are never let in
    assert {one.get("sec-fetch-mode") for one in headers} >= {"cors", "no-cors", "navigate"}


def test_a_program_may_what_no_page_may(fooled: Browser) -> None:
    """The same requests, by a client that has the token: what the pages were kept from is there."""
    with victim() as (backend, session):
        assert SECRET in json.dumps(session.ledger())
        backend.session("default", ["evil"])
        assert session.ledger() == []
