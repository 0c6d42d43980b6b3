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

from codex_replay.cli.cassette.group import group
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.home import ApiKey, HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession

NOWHERE = "http://127.0.0.1:9"
COMMAND = {"type": "function_call", "name": "exec_command", "arguments": {"cmd": "echo over-the-socket"}}
TURNS: list[Any] = [{"items": [COMMAND]}, "Hello over WebSocket."]


def run(version: str, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One turn of `codex exec` in a hermetic home, with the built-in provider at `url`."""
    home = HermeticHome(folder, NOWHERE, version=version, auth=ApiKey())
    options = ["-c", 'model_provider="openai"', "-c", f'openai_base_url="{url}/v1"']
    argv = [str(ensure(version)), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options, "Hi"]
    return subprocess.run(
        argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


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
@pytest.mark.parametrize("version", ["0.140.0", "0.169.0"])
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


def test_a_turn_through_the_recorder(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with BackendProcess() as backend:
        backend.session("default", {"websocket": "on", "turns": TURNS})
        with recorder(out, backend.url) as url:
            done = run("0.169.0", url, tmp_path / "home")
    assert "Hello over WebSocket." in done.stdout, done.stderr[-2000:]
    with CassetteReader(str(out)) as reader:
        frames = list(reader)
        assert reader.footer is not None
    sent = [frame for frame in frames if frame.kind == "ws" and frame.sender == "client"]
    assert [frame.payload["json"].get("generate", True) for frame in sent if "json" in frame.payload] == [False, True, True]
    assert all(frame.extra["compressed"] for frame in sent)
    assert CliRunner().invoke(group, ["lint", str(out)]).exit_code == 0


def test_a_recorded_websocket_runs_the_same_turn(tmp_path: Path) -> None:
    """By connection: what Codex sends differs from run to run in more than ids, and this version has no table of that."""
    out = tmp_path / "run.ndjson"
    with BackendProcess() as backend:
        backend.session("default", {"websocket": "on", "turns": TURNS})
        with recorder(out, backend.url) as url:
            first = run("0.169.0", url, tmp_path / "home")
        replaying = backend.session("default")
        replaying.cassette(out, by="connection")
        done = run("0.169.0", backend.url, tmp_path / "home")
        assert done.stdout == first.stdout == "Hello over WebSocket.\n"
        assert [entry["answer"] for entry in messages(replaying)] == ["cassette"] * 3
        assert replaying.unused_frames() == []


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


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_retried_on_a_new_connection_with_the_full_input(name: str, tmp_path: Path) -> None:
    with BackendProcess() as backend:
        turns = [{"items": ["no"], "fault": name}, "Hello over WebSocket."]
        session = backend.session("default", {"websocket": "on", "turns": turns})
        done = run("0.169.0", backend.url, tmp_path)
        assert "Hello over WebSocket." in done.stdout, done.stderr[-2000:]
        entries = session.ledger()
    last = entries[-1]
    assert last["method"] == FAULTS[name]
    assert last["websocket"]["previous_response_id"] is None
    assert sum(entry["method"] == "GET" and entry["path"].endswith("/responses") for entry in entries) == 2


@pytest.mark.parametrize("name", ["ws_bad_json", "unknown_event"])
def test_what_cannot_be_understood_is_ignored(name: str, tmp_path: Path) -> None:
    with BackendProcess() as backend:
        session = backend.session("default", {"websocket": "on", "turns": [{"items": ["Fine."], "fault": name}]})
        assert "Fine." in run("0.169.0", backend.url, tmp_path).stdout
        assert len(messages(session)) == 2


def test_426_falls_back_at_once_and_other_failures_after_seven_handshakes(tmp_path: Path) -> None:
    for fault, handshakes in (("http_426", (1, 2)), ("http_404", (7,))):
        with BackendProcess() as backend:
            session = backend.session("default", {"websocket": {"handshakes": fault}, "turns": ["Over HTTP."]})
            done = run("0.169.0", backend.url, tmp_path / fault)
            assert "Over HTTP." in done.stdout, done.stderr[-2000:]
            methods = [entry["method"] for entry in session.ledger() if entry["path"].endswith("/responses")]
        assert methods[-1] == "POST"
        assert methods.count("GET") in handshakes
