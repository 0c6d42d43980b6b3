"""What a client of the real app-server sees of the WebSocket to the model: prewarm, increments, fallback, reconnection, pings.

The model is the fake backend, or for pings an ordinary server of the `websockets` package.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.http11 import Response
from websockets.sync.server import Request, ServerConnection, serve

from codex_replay.shell.codex.home import ApiKey, ChatGpt, HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from codex_replay.shell.rpc.client import Client
from tests.real.transport.test_websocket_real import VERSIONS, app_server, messages


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


@contextmanager
def codex(version: str, backend: BackendProcess, script: object, folder: Path) -> Iterator[tuple[Client, BackendSession]]:
    session = backend.session(f"{version}-{folder.name}", script)
    with app_server(version, session.url, folder, ApiKey()) as client:
        yield client, session
    session.close()


def thread(client: Client) -> str:
    started: str = client.request("thread/start", {})["thread"]["id"]
    return started


def turn(client: Client, thread_id: str, **more: Any) -> str:
    """Run a turn to its end; return its status."""
    given = {"threadId": thread_id, "input": [{"type": "text", "text": "go"}], **more}
    client.request("turn/start", given)
    status: str = client.notification("turn/completed")["turn"]["status"]
    return status


def transports(session: BackendSession) -> str:
    """One letter for each request to `/responses`: G a handshake, W a message, P a POST."""
    letters = {"GET": "G", "WEBSOCKET": "W", "POST": "P"}
    return "".join(letters[entry["method"]] for entry in session.ledger() if entry["path"].endswith("/responses"))


def continued(session: BackendSession) -> list[bool]:
    """Whether each message continues a response."""
    return [entry["websocket"]["previous_response_id"] is not None for entry in messages(session)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_thread_has_one_connection_and_its_turns_are_increments(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    with codex(version, backend, {"websocket": "on", "turns": ["one", "two"]}, tmp_path) as (client, session):
        thread_id = thread(client)
        assert [turn(client, thread_id), turn(client, thread_id)] == ["completed"] * 2
        assert transports(session) == "GWWW"
        assert [entry["answer"] for entry in messages(session)] == ["prewarm", "turn", "turn"]
        assert continued(session) == [False, True, True]
        assert messages(session)[-1]["websocket"]["sent_items"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_another_effort_is_sent_in_full_on_the_same_connection(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    with codex(version, backend, {"websocket": "on", "turns": ["one", "two"]}, tmp_path) as (client, session):
        thread_id = thread(client)
        assert [turn(client, thread_id), turn(client, thread_id, effort="high")] == ["completed"] * 2
        assert transports(session) == "GWWW"
        assert continued(session) == [False, True, False]


@pytest.mark.parametrize("version", VERSIONS)
def test_426_is_final_for_the_thread_alone(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    script = {"websocket": {"mode": "on", "handshakes": ["http_426", "http_426"]}, "turns": ["one", "two", "three"]}
    with codex(version, backend, script, tmp_path) as (client, session):
        first = thread(client)
        assert [turn(client, first), turn(client, first)] == ["completed"] * 2
        before = transports(session)
        assert turn(client, thread(client)) == "completed"
        assert before in ("GPP", "GGPP")
        assert transports(session).removeprefix(before)[0] == "G"  # another thread tries again
        assert [
            frame for frame in client.messages() if frame.get("method") in ("error", "warning") and "Fall" in str(frame)
        ] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_other_refusals_are_retried_and_then_reported(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    script = {"websocket": {"mode": "on", "handshakes": "http_503"}, "turns": ["one", "two"]}
    with codex(version, backend, script, tmp_path) as (client, session):
        first = thread(client)
        assert turn(client, first) == "completed"
        assert transports(session) == "GGGGGGGP"
        assert turn(client, first) == "completed"
        assert transports(session) == "GGGGGGGPP"
        notes = [frame for frame in client.messages() if frame.get("method") in ("error", "warning")]
        tries = [note["params"]["error"]["message"] for note in notes if note["method"] == "error"]
        assert tries == [f"Reconnecting... {number}/5" for number in (2, 3, 4, 5)]
        assert ("Falling back from WebSockets to HTTPS transport." in str(notes)) == (version != "0.116.0")  # it has no warnings


@pytest.mark.parametrize("version", VERSIONS)
def test_a_connection_that_ends_in_mid_response_is_replaced(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    turns = ["one", {"items": ["no"], "fault": "cut"}, "two"]
    with codex(version, backend, {"websocket": "on", "turns": turns}, tmp_path) as (client, session):
        thread_id = thread(client)
        assert [turn(client, thread_id), turn(client, thread_id)] == ["completed"] * 2
        assert transports(session) == "GWWWGW"
        assert continued(session) == [False, True, True, False]
        assert [frame for frame in client.messages() if frame.get("method") == "error"] == []


def refused(status: int, **error: Any) -> dict[str, Any]:
    return {"status": status, "error": {"message": "No.", **error}}


#: The model's first answer -> the error of the turn (None: another connection, and the second answer).
ANSWERS: dict[str, tuple[dict[str, Any], str | None]] = {
    "400": (refused(400, code="invalid_prompt"), "other"),
    "a usage limit": (refused(429, type="usage_limit_reached", resets_at=4102444800), "usageLimitExceeded"),
    "a long context": ({"items": ["x", {"type": "failed", "code": "context_length_exceeded"}]}, "contextWindowExceeded"),
    "no quota": ({"items": ["x", {"type": "failed", "code": "insufficient_quota"}]}, "usageLimitExceeded"),
    "500": (refused(500, code="server_error"), None),
    "503": (refused(503, code="server_error"), None),
    "401 of a ChatGPT login": (refused(401, code="token_expired"), None),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ANSWERS)
def test_an_error_message_ends_the_turn_or_the_connection(
    backend: BackendProcess, name: str, version: str, tmp_path: Path
) -> None:
    answer, error = ANSWERS[name]
    chatgpt = name.endswith("login")
    script = {"websocket": "on", "turns": [answer, "after"], **({"auth": "chatgpt"} if chatgpt else {})}
    session = backend.session(f"{version} {name}".replace(" ", "-"), script)
    with app_server(version, session.url, tmp_path, ChatGpt() if chatgpt else ApiKey()) as client:
        client.request("turn/start", {"threadId": thread(client), "input": [{"type": "text", "text": "go"}]})
        ended = client.notification("turn/completed")["turn"]
    assert (ended["status"], (ended["error"] or {}).get("codexErrorInfo")) == ("failed" if error else "completed", error)
    assert transports(session) == ("GWW" if error else "GWWGW")
    session.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_incomplete_response_fails_the_turn_since_0_169(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    turns = [{"items": ["x", {"type": "incomplete", "reason": "max_output_tokens"}]}, "after"]
    with codex(version, backend, {"websocket": "on", "turns": turns}, tmp_path) as (client, session):
        assert turn(client, thread(client)) == ("failed" if version == "0.169.0" else "completed")
        assert transports(session) == ("GWW" if version == "0.169.0" else "GWWGW")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rate_limits_of_the_model_reach_the_client(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    primary = {"used_percent": 42, "window_minutes": 60, "reset_at": 4102444800}
    event = {"type": "codex.rate_limits", "plan_type": "pro", "rate_limits": {"primary": primary}}
    items = ["x", {"type": "event", "event": event}]
    with codex(version, backend, {"websocket": "on", "turns": [{"items": items}]}, tmp_path) as (client, _):
        assert turn(client, thread(client)) == "completed"
        limits = [frame["params"] for frame in client.messages() if frame.get("method") == "account/rateLimits/updated"]
    assert limits[-1]["rateLimits"]["primary"] == {"usedPercent": 42, "windowDurationMins": 60, "resetsAt": 4102444800}


class Model:
    """A server of the `websockets` package: it pings in the middle of each response, and may close after each."""

    def __init__(self, *, closes: bool) -> None:
        self.connections = self.requests = 0
        self.pongs: list[bool] = []
        self._closes = closes

    def answer(self, connection: ServerConnection) -> None:
        self.connections += 1
        for message in connection:
            request = json.loads(message)
            self.requests += 1
            response = {"id": f"resp_{self.requests}", "output": []}
            connection.send(json.dumps({"type": "response.created", "response": {"id": response["id"]}}))
            self.pongs.append(connection.ping(b"in the middle").wait(10))
            connection.send(json.dumps({"type": "response.completed", "response": response}))
            if self._closes and request.get("generate") is not False:
                connection.close(1000)
                return

    @staticmethod
    def refused(connection: ServerConnection, request: Request) -> Response | None:
        return None if request.path.endswith("/responses") else connection.respond(404, "")


@contextmanager
def model(*, closes: bool) -> Iterator[tuple[Model, str]]:
    found = Model(closes=closes)
    with serve(found.answer, "127.0.0.1", 0, process_request=found.refused) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found, f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


@pytest.mark.parametrize("closes", [False, True], ids=["kept", "closed"])
@pytest.mark.parametrize("version", VERSIONS)
def test_pings_are_answered_and_a_closed_connection_is_replaced_silently(version: str, closes: bool, tmp_path: Path) -> None:
    with model(closes=closes) as (found, url), app_server(version, url, tmp_path, ApiKey()) as client:
        thread_id = thread(client)
        assert [turn(client, thread_id), turn(client, thread_id)] == ["completed"] * 2
        assert [frame for frame in client.messages() if frame.get("method") == "error"] == []
    assert (found.requests, found.connections) == (3, 2 if closes else 1)
    assert found.pongs == [True] * 3


@pytest.mark.parametrize("version", VERSIONS)
def test_the_app_server_itself_over_a_websocket(backend: BackendProcess, version: str, tmp_path: Path) -> None:
    """`codex-replay connect` starts it with --listen: the same turn as over stdio."""
    session = backend.session(f"listen-{version}", {"websocket": "on", "turns": ["one"]})
    config = {"model_provider": "openai", "openai_base_url": f"{session.url}/v1"}
    home = HermeticHome(tmp_path, session.url, version=version, auth=ApiKey(), extra_config=config)
    connect = [str(Path(sys.executable).with_name("codex-replay")), "connect", "--"]
    client = Client([*connect, str(ensure(version)), "app-server"], env=home.env, cwd=str(home.work), timeout=30)
    try:
        client.request("initialize", {"clientInfo": {"name": "codex-replay", "title": None, "version": "1"}})
        assert turn(client, thread(client)) == "completed"
        assert client.close() == 0
    finally:
        client.stop()
    assert transports(session) == "GWW"
    session.close()
