"""What the suite for lite clients takes from the real Codex where the specification is silent, held against the real Codex.

(That a decision which comes too late changes nothing is held by suites/app_server/conversation/test_interrupt.py.)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.home import ChatGpt, make_id_token
from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.test_backend_real import call, codex, turn

OLD = ChatGpt(access_token="access-1-of-old", refresh_token="refresh-1-of-old")
NEW = {
    "access_token": "access-2-of-new",
    "refresh_token": "refresh-2-of-new",
    "id_token": make_id_token(plan="plus"),
}
EXPIRED = {"status": 401, "error": {"code": "token_expired", "message": "Expired."}, "times": 2}
THOUGHT = {"type": "reasoning", "summary": ["Adding"], "encrypted_content": "b3BhcXVl"}


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_what_a_small_client_is_held_to(tmp_path: Path, mode: int) -> None:
    """A turn with a refresh and a call: Accept, reasoning that goes back, tokens that nobody is told, the file's mode.

    Source: REAL-12, REAL-24.
    """
    turns: list[Any] = [EXPIRED, {"items": [THOUGHT, call("update_plan", plan=[{"step": "one", "status": "pending"}])]}, "done"]
    script = {"auth": {"mode": "chatgpt", "refresh_answer": {"status": 200, "body": NEW}}, "turns": turns}
    with BackendProcess() as backend:
        session = backend.session("rules", script)
        with codex(session, tmp_path, auth=OLD, requires_openai_auth=True) as (client, thread):
            file = tmp_path / "home" / "auth.json"
            file.chmod(mode)
            before = file.stat().st_ino
            assert turn(client, thread)["status"] == "completed"
            assert NEW["access_token"] in file.read_text()
            assert (file.stat().st_ino, file.stat().st_mode & 0o777) == (before, mode)
            said = b"".join(client.raw("server")).decode() + "\n".join(client.process.stderr_tail(1000))
            tokens = [OLD.access_token, OLD.refresh_token, *NEW.values()]
            assert [token for token in tokens if token in said] == []
        asked = [entry for entry in session.ledger() if entry["path"].endswith("/responses")]
    assert [entry["status"] for entry in asked] == [401, 401, 200, 200]
    assert [dict(entry["headers"])["accept"] for entry in asked] == ["text/event-stream"] * 4
    last = [item for item in asked[-1]["body"]["input"] if item["type"] != "message"]
    assert [item["type"] for item in last] == ["reasoning", "function_call", "function_call_output"]
    assert last[0]["encrypted_content"] == THOUGHT["encrypted_content"]


@pytest.mark.parametrize("absent", ["refresh_token", "id_token"])
def test_a_token_that_did_not_come_stays(tmp_path: Path, absent: str) -> None:
    """The answer of a refresh may leave a token out; auth.json keeps the one that it has."""
    answer = {"status": 200, "body": {name: token for name, token in NEW.items() if name != absent}}
    script = {"auth": {"mode": "chatgpt", "refresh_answer": answer}, "turns": [EXPIRED, "done"]}
    with BackendProcess() as backend:
        session = backend.session("absent", script)
        with codex(session, tmp_path, auth=OLD, requires_openai_auth=True) as (client, thread):
            before = json.loads((tmp_path / "home" / "auth.json").read_text())["tokens"]
            assert turn(client, thread)["status"] == "completed"
            after = json.loads((tmp_path / "home" / "auth.json").read_text())["tokens"]
    assert after == {**before, **answer["body"]}
