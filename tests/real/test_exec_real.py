"""The real `codex exec` with the fake backend behind it: text, tools, refresh, and the exact sentence of each refresh error."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.cli.serve import welcome
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import ChatGpt, HermeticHome
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession

#: A port on which nobody listens.
NOWHERE = "http://127.0.0.1:9"

LOGIN = ChatGpt(access_token="at-1", refresh_token="rt-1", account_id="acc-1")
TOKENS = {"mode": "chatgpt", "access_token": "at-1", "refresh_token": "rt-1", "account_id": "acc-1"}
AGAIN = "Please log out and sign in again."
NOT_REFRESHED = "Your access token could not be refreshed"
#: state of the refresh token -> the sentence, word for word (REAL-17 to REAL-20)
REFUSED = {
    "expired": f"{NOT_REFRESHED} because your refresh token has expired. {AGAIN}",
    "reused": f"{NOT_REFRESHED} because your refresh token was already used. {AGAIN}",
    "revoked": f"{NOT_REFRESHED} because your refresh token was revoked. {AGAIN}",
    "unknown": f"{NOT_REFRESHED}. {AGAIN}",
}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def execute(session: BackendSession, root: Path, prompt: str = "go", **home: Any) -> tuple[int, list[dict[str, Any]]]:
    """Run `codex exec --json` to its end: its status and the events that it prints."""
    binary = find_installed("0.92.0")
    assert binary is not None, "Codex 0.92.0 is missing: run `codex-replay codex install 0.92.0` first"
    place = HermeticHome(root, session.url, **home)
    argv = [str(binary), "exec", "--json", "--skip-git-repo-check", prompt]
    done = subprocess.run(argv, env=place.env, cwd=place.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def items(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["item"] for event in events if event["type"] == "item.completed"]


def posts(session: BackendSession) -> list[tuple[str, int]]:
    return [(e["path"].rsplit("/", 1)[-1], e["status"]) for e in session.ledger() if e["method"] == "POST"]


def test_text(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("exec text", ["Hello ✓"])
    status, events = execute(session, tmp_path)
    assert status == 0
    assert [(item["type"], item["text"]) for item in items(events)] == [("agent_message", "Hello ✓")]
    assert events[-1]["type"] == "turn.completed"
    assert events[-1]["usage"]["output_tokens"] > 0
    assert session.problems() == []


def test_tools(backend: BackendProcess, tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "shell_command", "arguments": {"command": "echo hi"}, "call_id": "call_a"}
    plan = {"type": "function_call", "name": "update_plan", "arguments": {"plan": [{"step": "one", "status": "completed"}]}}
    session = backend.session("exec tools", [{"items": [call]}, {"items": [plan]}, "done"])
    status, events = execute(session, tmp_path)
    assert status == 0
    command = next(item for item in items(events) if item["type"] == "command_execution")
    assert (command["exit_code"], command["aggregated_output"]) == (0, "hi\n")
    assert [item["text"] for item in items(events) if item["type"] == "agent_message"] == ["done"]
    assert session.problems() == []
    assert session.unused_turns() == []


def test_an_expired_token_is_read_again_refreshed_and_used(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("exec refresh", {"turns": ["at last"], "auth": {**TOKENS, "access": "expired"}})
    status, events = execute(session, tmp_path, auth=LOGIN, requires_openai_auth=True)
    assert status == 0
    assert [item["text"] for item in items(events)] == ["at last"]
    assert posts(session) == [("responses", 401), ("responses", 401), ("token", 200), ("responses", 200)]
    stored = json.loads((tmp_path / "home" / "auth.json").read_text())["tokens"]
    assert (stored["access_token"], stored["refresh_token"]) == ("access-token-2", "refresh-token-2")


@pytest.mark.parametrize("state", REFUSED)
def test_each_refresh_error_has_its_sentence(backend: BackendProcess, tmp_path: Path, state: str) -> None:
    """Each refresh error has its sentence. (REAL-17, REAL-18, REAL-19, REAL-20)"""
    auth = {**TOKENS, "access": "expired", "refresh": state}
    session = backend.session(f"exec refresh {state}", {"turns": ["never"], "auth": auth})
    status, events = execute(session, tmp_path, auth=LOGIN, requires_openai_auth=True)
    assert status == 1
    assert events[-1]["type"] == "turn.failed"
    assert events[-1]["error"]["message"] == REFUSED[state]
    assert [path for path, _ in posts(session)] == ["responses", "responses", "token"]


def test_a_recording_takes_the_place_of_the_backend(backend: BackendProcess, tmp_path: Path) -> None:
    """Recorded once in front of the scripted backend, replayed from the cassette alone, byte for byte as the client sees it."""
    import sys

    call = {"type": "function_call", "name": "shell_command", "arguments": {"command": "echo hi"}, "call_id": "call_a"}
    session = backend.session("exec recorded", [{"items": [call]}, "done ✓"])
    program = str(Path(sys.executable).with_name("codex-replay"))
    out = tmp_path / "run.ndjson"
    command = [program, "record", "--codex", "0.92.0", "--out", str(out), "--upstream", session.url]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert recorder.stdout is not None
        url = json.loads(recorder.stdout.readline())["url"]
        stand_in = type("Recorded", (), {"url": url})
        first = execute(stand_in, tmp_path / "a")  # type: ignore[arg-type]
    finally:
        recorder.terminate()
        recorder.communicate(timeout=20)
    replaying = backend.session("exec replayed")
    assert replaying.cassette(out) == []
    second = execute(replaying, tmp_path / "b")
    assert (first[0], second[0]) == (0, 0)
    assert [item["type"] for item in items(first[1])] == [item["type"] for item in items(second[1])]
    assert items(first[1])[-1]["text"] == items(second[1])[-1]["text"] == "done ✓"
    assert replaying.problems() == []
    assert replaying.unused_frames() == []


@pytest.mark.parametrize("version", ["0.92.0", "0.169.0"])
def test_each_version_comes_by_the_printed_options(version: str, tmp_path: Path) -> None:
    """Whatever the rest of its configuration names: here a port on which nobody listens."""
    codex = ensure(version)
    with BackendProcess() as backend:
        session = backend.session("default", ["Hello from the script."])
        printed = next(line for line in welcome(backend.url, "t").splitlines() if "codex -c" in line)
        options = shlex.split(printed.partition("codex -c")[2])
        home = HermeticHome(tmp_path, NOWHERE, version=version)
        argv = [str(codex), "exec", "--skip-git-repo-check", "-c", *options, "Hi"]
        done = subprocess.run(
            argv, env=home.env, cwd=home.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
        assert "Hello from the script." in done.stdout, done.stderr[-2000:]
        assert [entry["path"] for entry in session.ledger()] == ["/v1/responses"]
