"""Odd calls and odd ids, as the real 0.92.0 treats them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_fakes.scripted.state.ids import uuid_error, with_hyphens
from tests.fakes.scripted.in_process import InProcess

ID = "01a1fa4b-cfe6-7981-9efe-a552b8cdd4f3"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (ID, None),
        (ID.replace("-", ""), None),
        (ID[:-1], "invalid group length in group 4: expected 12, found 11"),
        (f"{ID}0", "invalid group length in group 4: expected 12, found 13"),
        (ID[1:], "invalid group length in group 0: expected 8, found 7"),
        (f"{ID}-", "invalid group count: expected 5, found 6"),
        (ID[:8], "invalid length: expected length 32 for simple format, found 8"),
        (f"urn:uuid:{ID[:-1]}", "invalid group length in group 4: expected 12, found 20"),
    ],
)
def test_a_wrong_id_has_the_error_of_the_real_server(text: str, error: str | None) -> None:
    assert uuid_error(text) == error


def test_an_id_may_lack_its_hyphens(tmp_path: Path) -> None:
    client = InProcess(None, tmp_path, "/work")
    thread = client.request("thread/start", {})["thread"]["id"]
    bare = thread.replace("-", "").upper()
    assert with_hyphens(bare) == thread
    assert client.request("thread/read", {"threadId": bare})["thread"]["id"] == thread


@pytest.mark.parametrize("written", [ID.upper(), ID.replace("-", ""), f"urn:uuid:{ID}"])
@pytest.mark.parametrize("method", ["thread/read", "thread/archive", "thread/resume", "turn/interrupt"])
def test_an_error_names_an_id_in_the_form_of_the_server(method: str, written: str, tmp_path: Path) -> None:
    reply = InProcess(None, tmp_path, "/work").call(method, {"threadId": written, "turnId": "0"})
    assert reply["error"]["message"].endswith(f" {ID}")


def items_of(tmp_path: Path, call: dict[str, Any]) -> list[Any]:
    """Run a turn with one call; return the items that began, and the last output for the model."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"items": [{"type": "function_call", "call_id": "c1", **call}]}, "Done."]))
    client = InProcess(script, tmp_path, "/work")
    settings = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
    thread = client.request("thread/start", settings)["thread"]["id"]
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    client.wait("the end", lambda m: m.get("method") == "turn/completed")
    frames = [frame.value for frame in client.timeline if frame.value.get("method") == "item/started"]
    history = client.session.threads[thread].history
    output = next(item["output"] for item in history if item["type"] == "function_call_output")
    return [*(m["params"]["item"] for m in frames if m["params"]["item"]["type"] == "commandExecution"), output]


def test_local_shell_runs_a_command_and_returns_json(tmp_path: Path) -> None:
    item, output = items_of(tmp_path, {"name": "local_shell", "arguments": {"command": ["true"]}})
    assert (item["command"], item["cwd"]) == ("true", "/work")
    assert json.loads(output) == {"output": "", "metadata": {"exit_code": 0, "duration_seconds": 0.0}}


@pytest.mark.parametrize(
    ("workdir", "place"), [("", "/work/"), ("src", "/work/src"), ("./src/", "/work/./src/"), (None, "/work")]
)
def test_an_empty_folder_of_a_call_is_joined_to_the_folder_of_the_thread(tmp_path: Path, workdir: str | None, place: str) -> None:
    item, _ = items_of(tmp_path, {"name": "shell_command", "arguments": {"command": "true", "workdir": workdir}})
    assert item["cwd"] == place


def test_a_message_of_the_system_in_a_history_is_dropped(tmp_path: Path) -> None:
    client = InProcess(None, tmp_path, "/work")
    thread = client.request("thread/start", {})["thread"]["id"]
    items = [
        {"type": "message", "role": r, "content": [{"type": "input_text", "text": r}]} for r in ("system", "developer", "user")
    ]
    made = client.request("thread/resume", {"threadId": thread, "history": items})["thread"]["id"]
    assert [item["role"] for item in client.session.threads[made].history[:2]] == ["developer", "user"]
