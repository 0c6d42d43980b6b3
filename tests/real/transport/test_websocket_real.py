"""The real Codex with its built-in provider, which tries a WebSocket first, against the fake backend and through the recorder."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codex_fakes.model.faults import WEBSOCKET_FAULTS
from codex_replay.cli.cassette.group import group
from codex_replay.cli.main import main
from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.recordings.compare import compare
from codex_replay.protocol.versions import numbers
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.home import FAKE_ACCOUNT, ApiKey, ChatGpt, HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from codex_replay.shell.rpc.client import Client

NOWHERE = "http://127.0.0.1:9"
#: Each speaks WebSocket first with its built-in provider.
VERSIONS = ("0.116.0", "0.140.0", "0.169.0")
COMMAND = {"type": "function_call", "name": "exec_command", "arguments": {"cmd": "echo over-the-socket"}}
TURNS: list[Any] = [{"items": [COMMAND]}, "Hello over WebSocket."]


def run(version: str, url: str, folder: Path, auth: ApiKey | ChatGpt | None = None) -> subprocess.CompletedProcess[str]:
    """One turn of `codex exec` in a hermetic home, with the built-in provider at `url`."""
    home = HermeticHome(folder, url if auth else NOWHERE, version=version, auth=auth or ApiKey())
    options = ["-c", 'model_provider="openai"', "-c", f'openai_base_url="{url}/v1"']
    argv = [str(ensure(version)), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options, "Hi"]
    return subprocess.run(
        argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


@contextmanager
def app_server(version: str, url: str, folder: Path, auth: ApiKey | ChatGpt) -> Iterator[Client]:
    """The app-server in a hermetic home, initialized, with the built-in provider at `url`."""
    config = {"model_provider": "openai", "openai_base_url": f"{url}/v1"}
    home = HermeticHome(folder, url, version=version, auth=auth, extra_config=config)
    client = Client([str(ensure(version)), "app-server"], env=home.env, cwd=str(home.work), timeout=30)
    try:
        client.request("initialize", {"clientInfo": {"name": "codex-replay", "title": None, "version": "1"}})
        yield client
    finally:
        client.stop()


def messages(session: BackendSession) -> list[dict[str, Any]]:
    return [entry for entry in session.ledger() if entry["method"] == "WEBSOCKET"]


@contextmanager
def recorder(out: Path, upstream: str) -> Iterator[str]:
    words = ["record", "--out", str(out), "--upstream", upstream, "--codex", "0.169.0", "--origin", "http.server=authored"]
    command = [str(Path(sys.executable).with_name("codex-replay")), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.mark.parametrize("compression", [True, False], ids=["deflate", "plain"])
@pytest.mark.parametrize("version", VERSIONS)
def test_prewarm_a_tool_call_and_its_follow_up(version: str, compression: bool, tmp_path: Path) -> None:
    with BackendProcess() as backend:
        session = backend.session("default", {"websocket": {"compression": compression}, "turns": TURNS})
        done = run(version, backend.url, tmp_path)
        assert "Hello over WebSocket." in done.stdout, done.stderr[-2000:]
        assert session.problems() == []
        warm, first, second = messages(session)
        assert {entry["method"] for entry in session.ledger()} == {"GET", "WEBSOCKET"}
    assert warm["answer"] == "prewarm"
    assert first["websocket"]["previous_response_id"] is not None
    assert second["websocket"]["sent_items"] == 1
    assert [item["type"] for item in second["body"]["input"]][-2:] == ["function_call", "function_call_output"]
    assert "over-the-socket" in second["body"]["input"][-1]["output"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_turn_through_the_recorder(version: str, tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with BackendProcess() as backend:
        backend.session("default", {"websocket": "on", "turns": TURNS})
        with recorder(out, backend.url) as url:
            done = run(version, url, tmp_path / "home")
    assert "Hello over WebSocket." in done.stdout, done.stderr[-2000:]
    with CassetteReader(str(out)) as reader:
        frames = list(reader)
        assert reader.footer is not None
    sent = [frame for frame in frames if frame.kind == "ws" and frame.sender == "client"]
    assert [frame.payload["json"].get("generate", True) for frame in sent if "json" in frame.payload] == [False, True, True]
    assert all(frame.extra["compressed"] for frame in sent)
    assert CliRunner().invoke(group, ["lint", str(out)]).exit_code == 0
    played = CliRunner().invoke(main, ["replay", str(out), "--backend", "fake", "--json"])
    assert (played.exit_code, json.loads(played.stdout)["differences"]) == (0, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_websocket_runs_the_same_turn(version: str, tmp_path: Path) -> None:
    """By connection: what Codex sends differs from run to run in more than ids."""
    out = tmp_path / "run.ndjson"
    with BackendProcess() as backend:
        backend.session("default", {"websocket": "on", "turns": TURNS})
        with recorder(out, backend.url) as url:
            first = run(version, url, tmp_path / "home")
        replaying = backend.session("default")
        replaying.cassette(out, by="connection")
        done = run(version, backend.url, tmp_path / "home")
        assert done.stdout == first.stdout == "Hello over WebSocket.\n"
        assert [entry["answer"] for entry in messages(replaying)] == ["cassette"] * 3
        assert replaying.unused_frames() == []


def fault(name: str) -> list[Any]:
    return [{"items": ["no"], "fault": name}, "Hello over WebSocket."]


REFUSED = {"status": 429, "error": {"code": "rate_limit_exceeded", "message": "Slow."}}
#: name -> the script's `websocket`, and its turns: all that a script can do with a WebSocket.
CASES: dict[str, tuple[Any, list[Any]]] = {
    "deflate": ("on", TURNS),
    "plain": ({"compression": False}, TURNS),
    "a prewarm with text": ({"prewarm": {"items": ["warm"]}}, TURNS),
    "headers": ({"headers": {"openai-model": "gpt-5.5"}}, TURNS),
    "pieces": ("on", [{"items": ["a b c"], "delta": 1}]),
    "error message": ("on", [REFUSED]),
    **{
        f"handshake {name}": ({"handshakes": name}, ["Over HTTP."])
        for name in ("http_426", "http_404", "http_429", "closed", "reset")
    },
    "the second handshake": ({"handshakes": ["ok", "http_426"]}, fault("cut")),
    **{name: ("on", fault(name)) for name in (*WEBSOCKET_FAULTS, "cut", "reset", "unknown_event")},
}


@pytest.mark.parametrize("name", CASES)
def test_record_replay_record_has_no_difference(name: str, tmp_path: Path) -> None:
    """0.169.0, then the recording of it as the backend of the same command: Codex and the recorder see the same again."""
    first, again = tmp_path / "first.ndjson", tmp_path / "again.ndjson"
    websocket, turns = CASES[name]
    with BackendProcess() as backend:
        backend.session("default", {"websocket": websocket, "turns": turns})
        with recorder(first, backend.url) as url:
            done = run("0.169.0", url, tmp_path / "home")
        session = backend.session("default")
        session.cassette(first)
        with recorder(again, backend.url) as url:
            redone = run("0.169.0", url, tmp_path / "home")
        assert session.unused_frames() == []
    assert (redone.returncode, redone.stdout) == (done.returncode, done.stdout)
    compared = compare(*(list(until_unreadable(path)) for path in (first, again)), "0.169.0")
    assert compared.equal, [difference.sentence() for difference in compared.differences]


def until_unreadable(path: Path) -> Iterator[Frame]:
    """A recording without what comes after a message that Codex cannot read.

    Codex then hangs up at a time of its own: more or fewer of the messages after it arrive, and the end is a reset or not.
    """
    left: set[int | None] = set()
    with CassetteReader(path) as reader:
        for frame in reader:
            message = frame.kind == "ws" and frame.sender == "server"
            if frame.conn not in left or not (message or frame.kind == "close"):
                yield frame
            if message and {"omitted", "base64"} & frame.payload.keys():
                left.add(frame.conn)


#: fault of the first turn -> (the later requests, the final answer arrives).
FAULTS: dict[str, str] = {
    "ws_close_1000": "WEBSOCKET",
    "ws_close_1011": "WEBSOCKET",
    "cut": "WEBSOCKET",
    "reset": "WEBSOCKET",
    "ws_binary": "WEBSOCKET",
    "ws_bad_deflate": "WEBSOCKET",
    "ws_connection_limit": "WEBSOCKET",
    "ws_previous_response_not_found": "WEBSOCKET",
}


#: The versions before it end the turn with this error, as with any other of status 400.
RECONNECTS_SINCE = {"ws_previous_response_not_found": "0.169.0"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_retried_on_a_new_connection_with_the_full_input(name: str, version: str, tmp_path: Path) -> None:
    with BackendProcess() as backend:
        turns = [{"items": ["no"], "fault": name}, "Hello over WebSocket."]
        session = backend.session("default", {"websocket": "on", "turns": turns})
        done = run(version, backend.url, tmp_path)
        entries = session.ledger()
    if numbers(version) < numbers(RECONNECTS_SINCE.get(name, version)):
        assert done.returncode != 0
        assert "Previous response not found." in done.stdout + done.stderr
        return
    assert "Hello over WebSocket." in done.stdout, done.stderr[-2000:]
    last = entries[-1]
    assert last["method"] == FAULTS[name]
    assert last["websocket"]["previous_response_id"] is None
    assert sum(entry["method"] == "GET" and entry["path"].endswith("/responses") for entry in entries) == 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["ws_bad_json", "unknown_event"])
def test_what_cannot_be_understood_is_ignored(name: str, version: str, tmp_path: Path) -> None:
    with BackendProcess() as backend:
        session = backend.session("default", {"websocket": "on", "turns": [{"items": ["Fine."], "fault": name}]})
        assert "Fine." in run(version, backend.url, tmp_path).stdout
        assert len(messages(session)) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_426_falls_back_at_once_and_other_failures_after_seven_handshakes(version: str, tmp_path: Path) -> None:
    for fault, handshakes in (("http_426", (1, 2)), ("http_404", (7,))):
        with BackendProcess() as backend:
            session = backend.session("default", {"websocket": {"handshakes": fault}, "turns": ["Over HTTP."]})
            done = run(version, backend.url, tmp_path / fault)
            assert "Over HTTP." in done.stdout, done.stderr[-2000:]
            methods = [entry["method"] for entry in session.ledger() if entry["path"].endswith("/responses")]
        assert methods[-1] == "POST"
        assert methods.count("GET") in handshakes


@pytest.mark.parametrize("version", VERSIONS)
def test_429_at_the_handshake_ends_the_turn(version: str, tmp_path: Path) -> None:
    with BackendProcess() as backend:
        session = backend.session("default", {"websocket": {"handshakes": "http_429"}, "turns": ["Over HTTP."]})
        done = run(version, backend.url, tmp_path)
        methods = [entry["method"] for entry in session.ledger() if entry["path"].endswith("/responses")]
    assert "exceeded retry limit, last status: 429" in done.stdout + done.stderr
    assert done.returncode != 0
    assert set(methods) == {"GET"}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_expired_login_is_refreshed_at_the_handshake(version: str, tmp_path: Path) -> None:
    tokens = {"access_token": "access-1", "refresh_token": "refresh-1", "account_id": "account-1"}
    with BackendProcess() as backend:
        script = {"websocket": "on", "turns": ["Fine."], "auth": {"mode": "chatgpt", **tokens, "access": "expired"}}
        session = backend.session("default", script)
        with app_server(version, backend.url, tmp_path, ChatGpt(**tokens)) as client:
            thread = client.request("thread/start", {})["thread"]["id"]
            client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go"}]})
            done = client.notification("turn/completed")["turn"]
            assert done["status"] == "completed", done["error"]
        refreshes = [entry for entry in session.ledger() if entry["path"] == "/oauth/token"]
    assert {entry["status"] for entry in refreshes} == {200}
    assert len(refreshes) == 1 or version == "0.169.0"  # whose discovery of the workspaces refreshes an expired login too
    assert "scope" not in refreshes[0]["body"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chatgpt_login_needs_no_route_that_serve_lacks(version: str, tmp_path: Path) -> None:
    """A turn of `codex exec`, then account/read of the app-server: 0.169.0 also reads the workspaces and the settings."""
    with BackendProcess() as backend:
        session = backend.session("default", {"websocket": "on", "auth": "chatgpt", "turns": ["Hello over WebSocket."]})
        done = run(version, backend.url, tmp_path / "exec", ChatGpt())
        assert "Hello over WebSocket." in done.stdout, done.stderr[-2000:]
        with app_server(version, backend.url, tmp_path / "server", ChatGpt()) as client:
            account = client.request("account/read", {})
        assert session.problems() == []
        paths = {entry["path"].partition("?")[0] for entry in session.ledger() if "/wham/" in entry["path"]}
    assert account["account"]["planType"] == "pro"
    if version == "0.169.0":
        assert paths >= {"/backend-api/wham/accounts/check", "/backend-api/wham/settings/user"}
        routing = {"chatgptAccountId": FAKE_ACCOUNT, "accountRoutingOverride": "NO_CONSTRAINT"}
        assert account["workspaceRouting"] == {**routing, "backendOrigin": backend.url.replace("http:", "https:")}


@contextmanager
def in_mid_turn(version: str, folder: Path, then: str) -> Iterator[tuple[Client, BackendSession, dict[str, Any], str]]:
    """Yield in the middle of a turn: the client, the session of the model, the params of the turn, and its id.

    The answer of the model waits at the gate "middle". `then` is the next answer.
    """
    turns = [{"items": ["one", {"type": "gate", "name": "middle"}, "two"]}, then]
    with BackendProcess() as backend:
        session = backend.session("default", {"websocket": "on", "turns": turns})
        with app_server(version, backend.url, folder, ApiKey()) as client:
            thread = client.request("thread/start", {})["thread"]["id"]
            ask = {"threadId": thread, "input": [{"type": "text", "text": "go"}]}
            turn = client.request("turn/start", ask)["turn"]["id"]
            client.notification("item/agentMessage/delta")
            yield client, session, ask, turn


def handshakes(session: BackendSession) -> int:
    """Return how many connections to the model were asked for."""
    return sum(entry["method"] == "GET" and entry["path"].endswith("/responses") for entry in session.ledger())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_interrupt_drops_the_connection_or_reads_the_response_to_its_end(version: str, tmp_path: Path) -> None:
    """0.169.0 drops it; the versions before it keep it, and the next request waits for the end of the response."""
    with in_mid_turn(version, tmp_path, "after") as (client, session, ask, turn):
        client.request("turn/interrupt", {"threadId": ask["threadId"], "turnId": turn})
        assert client.notification("turn/completed")["turn"]["status"] == "interrupted"
        client.request("turn/start", ask)
        session.release("middle")
        assert client.notification("turn/completed")["turn"]["status"] == "completed"
        assert handshakes(session) == (2 if version == "0.169.0" else 1)
        assert messages(session)[-1]["websocket"]["previous_response_id"] is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_text_that_steers_a_turn_is_an_increment(version: str, tmp_path: Path) -> None:
    with in_mid_turn(version, tmp_path, "steered") as (client, session, ask, turn):
        more = {**ask, "input": [{"type": "text", "text": "left"}], "expectedTurnId": turn}
        assert client.request("turn/steer", more) == {"turnId": turn}
        session.release("middle")
        assert client.notification("turn/completed")["turn"]["status"] == "completed"
        _, first, second = messages(session)
        assert handshakes(session) == 1
    assert second["websocket"]["previous_response_id"] is not None
    assert second["websocket"]["sent_items"] == 1
    assert "left" not in str(first["body"]["input"])
    assert second["body"]["input"][-1]["content"][0]["text"] == "left"
