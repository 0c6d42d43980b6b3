"""The scripted fake at its edges: collaboration modes, calls without an end, layers of the configuration, odd forms.

Each statement was watched on the real binary.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import load_table
from codex_replay.protocol.turn.serde import Mismatch, read
from codex_replay.protocol.turn.tools import dangerous, known_safe
from codex_replay.shell.codex.home import HermeticHome
from tests.fakes.scripted.test_scripted import FAKE, NOBODY, Started, assistant, of, start, user

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
SETTINGS = load_table()["settings"]
RAW = {"experimentalRawEvents": True}
NO_RETRY = {"model_providers.mock.stream_max_retries": 0, "model_providers.mock.request_max_retries": 0}


def counts(messages: list[Any]) -> list[Any]:
    """Return the info of every token_count."""
    return [m["params"]["msg"]["info"] for m in messages if of(m, "codex/event/token_count")]


def call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": "c1", **more}


def shell(command: str) -> dict[str, Any]:
    return call("shell_command", {"command": command})


def outputs(fake: Started) -> list[str]:
    """Return the outputs of calls in the last request."""
    return [item["output"] for item in fake.ledger()[-1]["body"]["input"] if item["type"].endswith("_output")]


# -- what the model is asked -------------------------------------------------------------------------------------------------


def test_nothing_is_reported_of_an_answer_that_has_not_begun(start: Start) -> None:
    fake = start([{"items": ["x"], "first_delay_ms": 60_000}])
    thread = fake.thread()
    turn = fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "a"}]})["turn"]["id"]
    fake.client.wait("the user's message", lambda m: of(m, "codex/event/user_message"))
    while not fake.ledger_file.read_bytes():
        time.sleep(0.01)
    time.sleep(0.2)  # longer than the gap of the model
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": turn})
    assert counts([frame.value for frame in fake.client.timeline]) == []


def test_items_are_sent_back_with_the_members_that_the_real_server_writes(start: Start) -> None:
    action = {"type": "exec", "command": ["x"]}
    run = {"type": "local_shell_call", "id": "l", "status": "completed", "call_id": "l1", "action": action}
    item = {"type": "item", "item": run, "result": {"stdout": "y"}}
    fake = start([{"items": [{"type": "reasoning", "summary": ["r"]}, item]}, "on"])
    fake.turn(fake.thread())
    thought, ran = fake.ledger()[-1]["body"]["input"][-3:-1]
    assert thought["content"] is None
    nothing = dict.fromkeys(("timeout_ms", "working_directory", "env", "user"))
    assert ran == {"type": "local_shell_call", "call_id": "l1", "status": "completed", "action": {**action, **nothing}}


def test_the_instructions_of_a_collaboration_mode_are_sent_when_the_mode_changes(start: Start) -> None:
    fake = start(["a", "b", "c", "d"])
    thread = fake.thread(**RAW)
    mine = {"mode": "custom", "settings": {"model": "gpt-5.2-codex", "developer_instructions": "Mine."}}
    fake.turn(thread, "1", collaborationMode=mine)
    fake.turn(thread, "2", effort="low")
    fake.turn(thread, "3", collaborationMode={**mine, "settings": {"model": "gpt-5.2-codex"}})
    fake.turn(thread, "4")
    said = [item for item in fake.ledger()[-1]["body"]["input"] if item["role"] != "assistant"][1:]
    sent = {**user("<collaboration_mode>Mine.</collaboration_mode>"), "role": "developer"}
    assert said == [sent, user("1"), sent, user("2"), user("3"), user("4")]
    seen = [frame.value["params"] for frame in fake.client.timeline if of(frame.value, "rawResponseItem/completed")]
    assert [one["turnId"] for one in seen if one["item"] == sent] == ["0", "2"]


def test_a_question_needs_the_feature(start: Start) -> None:
    fake = start([{"items": [call("request_user_input", {"questions": []})]}, "on"])
    fake.turn(fake.thread(), collaborationMode={"mode": "plan", "settings": {"model": "gpt-5.2-codex"}})
    assert outputs(fake) == ["unsupported call: request_user_input"]


def test_a_history_loses_outputs_without_calls(start: Start) -> None:
    fake = start(["on"])
    left = [{"type": f"{kind}_output", "call_id": "o", "output": "x"} for kind in ("function_call", "custom_tool_call")]
    made = fake.client.request("thread/resume", {"threadId": NOBODY, "history": [user("before"), *left]})["thread"]["id"]
    fake.turn(made, "a")
    assert outputs(fake) == []


def test_a_read_shows_each_text_that_is_not_empty(start: Start) -> None:
    parts = [{"type": "output_text", "text": text} for text in ("one", "two")]
    both = {"type": "item", "item": {"type": "message", "role": "assistant", "id": "m", "content": parts}}
    thought = {"type": "reasoning", "summary": [], "content": ["raw"]}
    fake = start([{"items": [thought, "", both]}])
    thread = fake.thread()
    fake.turn(thread)
    [turn] = fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    assert [(item["id"], item.get("text")) for item in turn["items"][1:]] == [("item-2", "one"), ("item-3", "two")]


def test_items_without_events_are_raw_items(start: Start) -> None:
    compaction = {"type": "compaction", "encrypted_content": "E"}
    fake = start([{"items": [compaction, {"type": "image_generation_call"}, "t"]}, "on"])
    thread = fake.thread(**RAW)
    fake.turn(thread)
    fake.turn(thread)
    seen = [f.value["params"]["item"] for f in fake.client.timeline if of(f.value, "rawResponseItem/completed")]
    assert [item for item in seen if item["type"] != "message"] == [compaction, {"type": "other"}]
    assert fake.ledger()[-1]["body"]["input"][-3:] == [compaction, assistant("t"), user("Go.")]


# -- calls -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [shell(""), shell("  "), {"type": "custom_tool_call", "name": "update_plan", "input": "x", "call_id": "c1"}],
    ids=["empty", "blank", "a function"],
)
def test_a_call_that_breaks_the_real_tool_has_no_end(start: Start, item: Any) -> None:
    fake = start([{"items": [item]}, "on"])
    messages = fake.turn(fake.thread())
    assert not [m for m in messages if of(m, "codex/event/exec_command_end")]
    assert outputs(fake) == ["aborted"]


@pytest.mark.parametrize(
    ("argv", "safe"),
    [
        (["bash", "-c", "ls && pwd"], True),
        (["bash", "-lc", "ls && touch x"], False),
        (["bash", "-c", "bash -c ls"], False),
        (["base64", "x"], True),
        (["base64", "-o", "x"], False),
        (["base64", "--output=x"], False),
    ],
)
def test_a_command_is_safe_as_the_real_server_judges(argv: list[str], safe: bool) -> None:
    assert known_safe(argv, SETTINGS) is safe


def test_a_dangerous_command_in_a_shell_is_dangerous() -> None:
    assert dangerous(["bash", "-c", "ls && rm -rf x"], SETTINGS)


def test_a_member_with_a_default_counts_in_a_list() -> None:
    with pytest.raises(Mismatch, match="invalid length 1, expected struct UpdatePlanArgs with 2 elements"):
        read("[]", "UpdatePlanArgs", load("forms", "0.92.0")["arguments"])


# -- the machine and the configuration ---------------------------------------------------------------------------------------


def test_a_command_that_needs_a_sandbox_is_refused(start: Start) -> None:
    fake = start()
    ask = {"command": ["true"]}
    missing = {"code": -32603, "message": "exec failed: codex-linux-sandbox was required but not provided"}
    assert fake.client.request_error("command/exec", ask) == missing
    assert fake.client.request_error("command/exec", {**ask, "sandboxPolicy": {"type": "workspaceWrite"}}) == missing
    free = {**ask, "sandboxPolicy": {"type": "dangerFullAccess"}}
    assert fake.client.request("command/exec", free) == {"exitCode": 0, "stdout": "", "stderr": ""}


def test_the_skills_of_codex_itself_are_listed(start: Start) -> None:
    fake = start()
    [entry] = fake.client.request("skills/list", {})["data"]
    assert [(skill["name"], skill["scope"], skill["enabled"]) for skill in entry["skills"]] == [
        ("skill-creator", "system", True),
        ("skill-installer", "system", True),
    ]
    path = f"{fake.home.home}/skills/.system/skill-creator/SKILL.md"
    assert entry["skills"][0]["path"] == path
    fake.client.request("skills/config/write", {"path": path, "enabled": False})
    assert fake.client.request("skills/list", {})["data"][0]["skills"][0]["enabled"] is False


def test_options_of_the_command_line_are_a_layer_of_their_own(start: Start) -> None:
    fake = start(None, "-c", "model=mine")
    found = fake.client.request("config/read", {"includeLayers": True})
    assert [layer["name"]["type"] for layer in found["layers"]] == ["sessionFlags", "user", "system"]
    assert found["layers"][0]["config"] == {"model": "mine"}
    assert found["origins"]["model"]["name"] == {"type": "sessionFlags"}
    assert found["origins"]["model_provider"]["name"]["type"] == "user"
    write = {"keyPath": "model", "value": "other", "mergeStrategy": "replace"}
    written = fake.client.request("config/value/write", write)
    assert written["status"] == "okOverridden"
    assert written["overriddenMetadata"]["message"] == "Overridden by session flags"
    assert written["overriddenMetadata"]["effectiveValue"] == "mine"
    assert fake.client.request("config/read", {})["config"]["model"] == "mine"
    assert fake.client.request("getUserSavedConfig", None)["config"]["model"] == "other"


def test_the_workspace_of_the_configuration_is_that_of_a_mode(start: Start) -> None:
    fake = start(None, "-c", 'sandbox_workspace_write={writable_roots=["/srv"],network_access=true}')
    opened = fake.client.request("thread/start", {"sandbox": "workspace-write"})["sandbox"]
    assert (opened["writableRoots"], opened["networkAccess"], opened["excludeSlashTmp"]) == (["/srv"], True, False)
    assert fake.client.request("thread/start", {})["sandbox"] == {"type": "readOnly"}


def test_a_loaded_thread_reports_unstable_features_again(start: Start) -> None:
    fake = start(["x"])
    thread = fake.thread(config={"features": {"collab": True}})
    fake.turn(thread)
    begin = len(fake.client.timeline)
    fake.client.request("config/value/write", {"keyPath": "features.collab", "value": True, "mergeStrategy": "replace"})
    fake.client.request("thread/resume", {"threadId": thread})
    fake.client.wait("the start of MCP", lambda m: of(m, "codex/event/mcp_startup_complete"))
    fake.client.request("thread/loaded/list", {})
    assert [f for f in fake.client.timeline[begin:] if of(f.value, "codex/event/warning")]


# -- forms ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        (
            "turn/start",
            {"threadId": NOBODY, "input": [], "sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["rel"]}},
            "Invalid request: AbsolutePathBuf deserialized without a base path",
        ),
        (
            "thread/resume",
            {"threadId": NOBODY, "history": [{"type": "message"}]},
            "Invalid request: missing field `role`",
        ),
        (
            "config/value/write",
            {"keyPath": "a", "value": [1, {"b": None}], "mergeStrategy": "replace"},
            "invalid value: invalid type: null, expected any valid TOML value",
        ),
        (
            "config/value/write",
            {"keyPath": "features", "value": [], "mergeStrategy": "replace"},
            "Invalid configuration: invalid type: sequence, expected struct FeaturesToml\nin `features`\n",
        ),
    ],
)
def test_a_wrong_form_is_refused_in_the_real_words(start: Start, method: str, params: Any, message: str) -> None:
    assert start().client.request_error(method, params)["message"] == message


def test_a_list_without_threads_ignores_its_cursor(start: Start) -> None:
    assert start().client.request("thread/loaded/list", {"cursor": "q"}) == {"data": [], "nextCursor": None}


def test_a_title_that_is_no_text_is_refused(tmp_path: Path) -> None:
    first = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "a", "version": "1", "title": 5}}}
    env = HermeticHome(tmp_path, "http://127.0.0.1:39999").env
    ran = subprocess.run(
        [FAKE, "app-server"], input=json.dumps(first) + "\n", capture_output=True, text=True, env=env, timeout=60
    )
    assert json.loads(ran.stdout)["error"]["message"] == "Invalid request: invalid type: integer `5`, expected a string"


def test_a_value_is_written_and_deleted_only_where_its_table_is(start: Callable[..., Started]) -> None:
    fake = start([])
    edit = {"mergeStrategy": "replace"}
    for path in ("model.sub", "nothing.here", "profiles.p.model", "model_providers.mock.http_headers.x"):
        error = fake.client.request_error("config/value/write", {**edit, "keyPath": path, "value": None})
        assert (error["message"], error["data"]) == ("Path not found", {"config_write_error_code": "configPathNotFound"})
    for path in ("model.sub", "model_providers.mock.name.x"):
        error = fake.client.request_error("config/value/write", {**edit, "keyPath": path, "value": "x"})
        assert error["message"] == "cannot set value on non-table parent"
    error = fake.client.request_error("config/value/write", {**edit, "keyPath": "model.a.b", "value": "x"})
    assert error["message"].startswith("Invalid configuration: invalid type: map, expected a string")
    assert fake.client.request("config/value/write", {**edit, "keyPath": "nothing", "value": None})["status"] == "ok"


def test_v1_shows_tools_and_profiles_under_its_own_names(start: Callable[..., Started]) -> None:
    fake = start([])
    for path, value in (
        ("tools.web_search", True),
        ("profiles.p", {"model_reasoning_effort": "low", "sandbox_mode": "read-only"}),
    ):
        fake.client.request("config/value/write", {"keyPath": path, "value": value, "mergeStrategy": "replace"})
    saved = fake.client.request("getUserSavedConfig", None)["config"]
    assert saved["tools"] == {"webSearch": True, "viewImage": None}
    names = ("model", "modelProvider", "approvalPolicy", "modelReasoningEffort", "modelReasoningSummary", "modelVerbosity")
    assert saved["profiles"] == {"p": {**dict.fromkeys((*names, "chatgptBaseUrl")), "modelReasoningEffort": "low"}}


def test_a_written_value_mends_a_configuration(start: Callable[..., Started]) -> None:
    fake = start([], config=lambda text: text.replace('approval_policy = "never"', 'approval_policy = "maybe"'))
    assert "maybe" in fake.client.request_error("thread/start", {})["message"]
    fake.client.request("config/value/write", {"keyPath": "approval_policy", "value": "never", "mergeStrategy": "replace"})
    assert fake.client.request("thread/start", {})["approvalPolicy"] == "never"
