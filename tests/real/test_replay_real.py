"""A user's own session with both seams, played again to the real Codex: the recorded answers stand for the model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from codex_replay.shell.rpc.client import Client

VERSION = "0.92.0"
ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
TEXT = [{"items": [{"type": "text", "text": "Quite another answer."}]}]


def command_in(folder: Path) -> list[dict[str, Any]]:
    """A turn with a command that tells where it is run, as a real model likes to, and the answer after it."""
    arguments = {"command": "pwd | tail -c 5", "workdir": str(folder)}
    call = {"type": "function_call", "name": "shell_command", "call_id": "call_1", "arguments": json.dumps(arguments)}
    return [{"items": [call]}, {"items": [{"type": "text", "text": "That was the folder."}]}]


def binary() -> str:
    found = find_installed(VERSION)
    assert found is not None, f"Codex {VERSION} is missing: run `codex-replay codex install {VERSION}` first"
    return str(found)


def record(folder: Path, provider: str, *, command: bool, path: str = "/v1") -> Path:
    """Record a session as docs/recording.md says, in a home with a provider of the user's own."""
    cassette = folder / "session.ndjson"
    with BackendProcess() as backend:
        own: dict[str, Any] = {}
        if provider != "openai":
            own["model_providers"] = {provider: {"name": provider, "wire_api": "responses", "base_url": "{upstream}" + path}}
        home = HermeticHome(
            folder / "codex", backend.url, extra_config={"model_provider": provider, "model": "gpt-5.1", **own}, auth=None
        )
        session = backend.session("live", command_in(home.work) if command else TEXT)
        if provider == "openai":
            home.write_auth({"OPENAI_API_KEY": "sk-of-the-user"})
            home.env["OPENAI_BASE_URL"] = "{listen}" + path
        argv = [PROGRAM, "record", "--out", str(cassette), "--upstream", session.url, "--", binary(), "app-server"]
        over = [] if provider == "openai" else ["-c", f'model_providers.{provider}.base_url="{{listen}}{path}"']
        client = Client([*argv, *over], env=home.env, cwd=str(home.work), timeout=30)
        try:
            client.request("initialize", {"clientInfo": {"name": "mine", "version": "1"}})
            client.notify("initialized")
            thread = client.request("thread/start", {})["thread"]["id"]
            client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
            client.wait("turn/completed", lambda it: it.get("method") == "turn/completed", 30)
            assert client.close() == 0
        finally:
            client.stop()
        assert session.unused_turns() == []
    return cassette


def replay(cassette: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [PROGRAM, "replay", str(cassette), "--commands-ok", *(options or ("--app-server", f"codex@{VERSION}"))],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=120,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def change(cassette: Path, old: str, new: str) -> None:
    """Put another answer of the model into a recording; what the server said of it stays."""
    lines = cassette.read_text().splitlines(keepends=True)
    changed = [line.replace(old, new) if '"seam":"http"' in line and '"from":"server"' in line else line for line in lines]
    assert changed != lines
    cassette.write_text("".join(changed))


@pytest.mark.parametrize(
    ("provider", "path"), [("mock", "/v1"), ("mine", "/v1"), ("mine", "/of/my/own"), ("openai", "/v1"), ("openai", "/of/my/own")]
)
def test_the_recorded_text_is_what_the_model_says(provider: str, path: str, tmp_path: Path) -> None:
    cassette = record(tmp_path, provider, command=False, path=path)
    status, said = replay(cassette)
    assert (status, said.splitlines()[-1].startswith("identical: ")) == (0, True), said
    change(cassette, "Quite another answer.", "Quite a wrong answer..")
    status, said = replay(cassette)
    assert (status, "Quite a wrong answer.." in said) == (1, True)


def test_the_recorded_command_is_run_where_the_replay_is(tmp_path: Path) -> None:
    cassette = record(tmp_path, "mine", command=True)
    assert b"tail -c 5" in cassette.read_bytes()
    status, said = replay(cassette)
    assert (status, said.splitlines()[-1].startswith("identical: ")) == (0, True), said
    change(cassette, "tail -c 5", "tail -c 3")
    status, said = replay(cassette)
    assert status == 1
    assert "tail -c 3" in said


def test_a_script_comes_before_the_recorded_answers(tmp_path: Path) -> None:
    cassette = record(tmp_path, "mine", command=False)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"items": [{"type": "text", "text": "The script says so."}]}]))
    status, said = replay(cassette, "--app-server", f"codex@{VERSION}", "--script", str(script))
    assert (status, said.splitlines()[0]) == (1, "The script of --script answers for the model.")
    assert "The script says so." in said


def test_without_recorded_answers_a_sentence_says_that_the_default_answers(tmp_path: Path) -> None:
    cassette = record(tmp_path, "mine", command=False)
    lines = cassette.read_text().splitlines(keepends=True)
    cassette.write_text("".join(line for line in lines if '"seam":"http"' not in line and '"end":true' not in line))
    status, said = replay(cassette)
    assert status == 1
    assert sum("Hello from the scripted backend." in line and "--script" in line for line in said.splitlines()) == 1


@pytest.mark.parametrize("name", ["test_faults/fault-status-403", "test_config/write_refused-version"])
def test_the_url_of_the_model_is_no_difference(name: str) -> None:
    """The server repeats it in the error of a turn, and in config/read."""
    code, said = replay(ROOT / "cassettes/app_server" / f"{name}.ndjson")
    assert (code, said.strip().splitlines()[-1].partition(":")[0]) == (0, "identical")


def test_an_answer_waits_for_what_the_client_sent_in_its_middle() -> None:
    """The recorded client sent a second turn/start before the model's response.completed, so that the turns joined."""
    code, said = replay(ROOT / "cassettes/app_server/test_steering/the_turn_after.ndjson")
    assert (code, said.strip().splitlines()[-1].partition(":")[0]) == (0, "identical"), said


def test_what_the_home_of_the_replay_does_not_have_is_said_beforehand() -> None:
    cassette = ROOT / "cassettes/app_server/test_methods/skills_config.ndjson"
    done = subprocess.run(
        [PROGRAM, "replay", cassette, "--app-server", f"codex@{VERSION}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    needs = "The home folder of a replay may lack parts that this recording needs: 1 skill (/home/user/skills/whistle/SKILL.md)."
    assert needs in done.stderr


def test_a_request_more_than_was_recorded_is_told(tmp_path: Path) -> None:
    cassette = record(tmp_path, "mine", command=True)
    change(cassette, "That was the folder.", "That is wrong, again")
    lines = cassette.read_text().splitlines(keepends=True)
    last = max(json.loads(line)["conn"] for line in lines if '"request":' in line)
    asked = [n for n, line in enumerate(lines) if '"request":' in line]
    kept = [
        line for n, line in enumerate(lines) if not (n >= asked[-1] and '"seam":"http"' in line and f'"conn":{last},' in line)
    ]
    cassette.write_text("".join(line for line in kept if '"end":true' not in line))
    status, said = replay(cassette)
    assert status == 1
    assert "The model has no answer for a request: POST /v1/responses: No recorded request is left" in said, said


def test_a_command_is_given_the_recorded_answers_where_it_says_listen(tmp_path: Path) -> None:
    cassette = record(tmp_path, "mine", command=False)
    home = tmp_path / "codex"
    program = f"env -C {home / 'work'} HOME={home / 'home'} CODEX_HOME={home / 'home'} {binary()} app-server"
    status, said = replay(cassette, "--app-server", program + " -c 'model_providers.mine.base_url=\"{listen}/v1\"'")
    assert (status, said.splitlines()[-1].startswith("identical: ")) == (0, True), said


def test_a_command_of_somebody_elses_is_not_run_unasked(tmp_path: Path) -> None:
    cassette = record(tmp_path, "mine", command=True)
    planted = tmp_path / "planted"
    change(cassette, "pwd | tail -c 5", f"touch {planted}")
    policy = cassette.read_text().replace('"params":{}', '"params":{"approvalPolicy":"never","sandbox":"danger-full-access"}')
    cassette.write_text(policy)
    refused = subprocess.run(
        [PROGRAM, "replay", str(cassette), "--app-server", f"codex@{VERSION}"], capture_output=True, text=True, timeout=120
    )
    assert (refused.returncode, planted.exists()) == (2, False), refused.stderr
    assert f"touch {planted}" in refused.stderr
    replay(cassette)  # with leave it is run: what was refused is no fiction
    assert planted.exists()
