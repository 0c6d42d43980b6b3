"""The scripted fake in the corners: what it makes of a backend's errors, of rate limits, of odd input, as 0.92.0 does.

Each statement was watched on the real binary; tests/real/differential/corners.py compares the neighbourhood of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codex_replay.protocol.turn.limits import joined, limits_of
from tests.fakes.scripted.test_scripted import Started, of, start

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
NO_RETRY = {"model_providers.mock.stream_max_retries": 0, "model_providers.mock.request_max_retries": 0}


def failed(fake: Started, retries: int = 0) -> Any:
    """Run a turn that fails; return its error."""
    config = {**NO_RETRY, "model_providers.mock.stream_max_retries": retries}
    return fake.turn(fake.thread(config=config))[-1]["params"]["turn"]["error"]


@pytest.mark.parametrize(
    ("plan", "at", "words"),
    [
        ("plus", None, "settings/usage to purchase more credits or try again later."),
        ("team", 1704067200, "send a request to your admin or try again at Jan 1st, 2024 "),
        ("free", 1704067200, "Upgrade to Plus to continue using Codex (https://openai.com/chatgpt/pricing)."),
        (None, None, "You've hit your usage limit. Try again later."),
    ],
)
def test_a_usage_limit_is_reported_in_the_words_of_the_plan(start: Start, plan: Any, at: Any, words: str) -> None:
    error = {"type": "usage_limit_reached", "plan_type": plan, "resets_at": at}
    fake = start([{"status": 429, "body": {"error": error}, "headers": {"x-codex-primary-used-percent": "100"}}])
    found = failed(fake)
    assert found["codexErrorInfo"] == "usageLimitExceeded"
    assert words in found["message"]
    [limits] = [f.value["params"]["rateLimits"] for f in fake.client.timeline if of(f.value, "account/rateLimits/updated")]
    assert limits["primary"] == {"usedPercent": 100, "windowDurationMins": None, "resetsAt": None}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": 418, "body": "w"}, "unexpected status 418 I'm a teapot: w, url: "),
        ({"status": 302}, "unexpected status 302 Found: , url: "),
        ({"status": 403, "body": "Cloudflare blocked"}, "Access blocked by Cloudflare. "),
        ({"status": 404, "headers": {"x-request-id": "req_1"}}, ", request id: req_1"),
        ({"status": 204}, "stream closed before response.completed"),
        (
            {"status": 429, "body": {"error": {"type": "usage_not_included"}}},
            "To use Codex with your ChatGPT plan, upgrade to Plus",
        ),
    ],
)
def test_a_status_is_reported_in_the_real_words(start: Start, answer: dict[str, Any], words: str) -> None:
    assert words in failed(start([answer]))["message"]


def test_an_attempt_does_not_repeat_what_a_failed_one_said(start: Start) -> None:
    broken = {"items": ["half", {"type": "failed", "code": "x", "message": "m"}]}
    fake = start([broken, {"items": ["whole"]}, {"items": ["on"]}])
    thread = fake.thread(config={**NO_RETRY, "model_providers.mock.stream_max_retries": 1})
    fake.turn(thread)
    fake.turn(thread)
    first, again, later = [entry["body"]["input"] for entry in fake.ledger()]
    assert first == again
    assert [item["content"][0]["text"] for item in later[len(first) :]] == ["half", "whole", "Go."]


def test_a_call_of_a_failed_reply_has_the_output_aborted(start: Start) -> None:
    call = {"type": "function_call", "name": "update_plan", "arguments": {"plan": []}, "call_id": "call_1"}
    fake = start([{"items": [call, {"type": "failed", "code": "x", "message": "m"}]}, "on"])
    thread = fake.thread(config=NO_RETRY)
    fake.turn(thread)
    fake.turn(thread)
    outputs = [item["output"] for item in fake.ledger()[1]["body"]["input"] if item["type"] == "function_call_output"]
    assert outputs == ["aborted"]


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"primary-used-percent": "0"}, {}),
        ({"primary-used-percent": "0", "primary-window-minutes": "0"}, {}),
        ({"primary-used-percent": "1_0"}, {}),
        ({"primary-used-percent": "1", "primary-reset-at": "9" * 20}, {"primary": {"resets_at": None}}),
        ({"credits-has-credits": "TRUE", "credits-unlimited": "0"}, {"credits": {"has_credits": True, "balance": None}}),
        ({"credits-has-credits": "1"}, {}),
    ],
)
def test_limits_in_headers(headers: dict[str, str], wanted: dict[str, Any]) -> None:
    found = limits_of({f"x-codex-{name}": value for name, value in headers.items()})
    assert found.keys() == wanted.keys()
    for name, members in wanted.items():
        assert members.items() <= found[name].items()


def test_windows_are_replaced_and_credits_stay() -> None:
    assert joined({"primary": 1, "credits": 2}, {}) == {"credits": 2}
    assert joined({"credits": 2}, {"secondary": 1, "credits": 3}) == {"secondary": 1, "credits": 3}


def test_text_elements_are_moved_with_their_texts(start: Start) -> None:
    fake = start(["a"])
    thread = fake.thread()
    span = {"byteRange": {"start": 0, "end": 2}}
    items = [{"type": "text", "text": "é"}, {"type": "text", "text": "ab", "text_elements": [span]}]
    fake.client.request("turn/start", {"threadId": thread, "input": items})
    fake.client.notification("turn/completed", threadId=thread)
    [said] = [f.value["params"]["msg"] for f in fake.client.timeline if of(f.value, "codex/event/user_message")]
    assert said["text_elements"] == [{"byte_range": {"start": 2, "end": 4}, "placeholder": "ab"}]
    [turn] = fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    kept = [{"byteRange": {"start": 2, "end": 4}, "placeholder": "ab"}]
    assert turn["items"][0]["content"] == [{"type": "text", "text": "éab", "text_elements": kept}]


def test_images_come_after_the_text_in_the_history_and_skills_are_gone(start: Start) -> None:
    fake = start(["a"])
    thread = fake.thread()
    image = {"type": "image", "url": "data:,"}
    items = [image, {"type": "skill", "name": "n", "path": "/n"}, {"type": "text", "text": "b"}]
    fake.client.request("turn/start", {"threadId": thread, "input": items})
    fake.client.notification("turn/completed", threadId=thread)
    [turn] = fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    assert [part["type"] for part in turn["items"][0]["content"]] == ["text", "image"]


@pytest.mark.parametrize(("api", "method"), [("v1", "sendUserMessage"), ("v2", "turn/start")])
def test_empty_input_asks_the_model_nothing(start: Start, api: str, method: str) -> None:
    fake = start(["a"])
    if api == "v1":
        thread = fake.client.request("newConversation", {})["conversationId"]
        fake.client.request("addConversationListener", {"conversationId": thread})
        fake.client.request(method, {"conversationId": thread, "items": []})
    else:
        thread = fake.thread()
        fake.client.request(method, {"threadId": thread, "input": []})
    fake.client.wait("its end", lambda m: of(m, "codex/event/task_complete"))
    assert fake.ledger() == []


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("sub", "{work}/sub"), ("../x", "{root}/x"), ("/tmp/", "/tmp"), ("/a/../b/./c//d", "/b/c/d"), ("", "{work}")],
)
def test_the_place_of_a_thread_is_absolute(start: Start, given: str, wanted: str) -> None:
    fake = start([])
    work = str(fake.home.work)
    opened = fake.client.request("thread/start", {"cwd": given})
    assert opened["cwd"] == opened["thread"]["cwd"] == wanted.format(work=work, root=work.rpartition("/")[0])


def test_each_load_tells_the_model_the_place_again(start: Start) -> None:
    fake = start(["a", "b"])
    thread = fake.thread()
    fake.turn(thread)
    fake.client.request("thread/resume", {"threadId": thread, "cwd": "/other"})
    fake.turn(thread, "On.")
    texts = [item["content"][0]["text"] for item in fake.ledger()[1]["body"]["input"]]
    assert ["<cwd>" in text for text in texts] == [True, False, False, True, False]
    assert "<cwd>/other</cwd>" in texts[3]


def test_an_override_in_a_running_turn_is_for_the_next_one(start: Start) -> None:
    fake = start([{"items": ["a", {"type": "gate", "name": "g"}]}, "b", "c"])
    thread = fake.thread()
    ask = fake.client.request
    ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    fake.client.wait("the message", lambda m: of(m, "codex/event/agent_message"))
    ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "More."}], "effort": "low"})
    fake.client.notification("turn/completed", threadId=thread)
    fake.turn(thread)
    assert [entry["body"]["reasoning"]["effort"] for entry in fake.ledger()] == ["medium", "medium", "low"]


def test_a_review_is_not_offered_a_web_search(start: Start) -> None:
    fake = start(["fine", "on"])
    thread = fake.thread()
    fake.client.request("review/start", {"threadId": thread, "target": {"type": "uncommittedChanges"}})
    fake.client.notification("turn/completed", threadId=thread)
    fake.turn(thread)
    review, later = [entry["body"] for entry in fake.ledger()]
    assert "web_search" not in [tool["type"] for tool in review["tools"]]
    assert "<user_action>" in later["input"][1]["content"][0]["text"]


ADD = "*** Begin Patch\n*** Add File: n.txt\n+one\n*** End Patch\n"


def output(fake: Started, call: dict[str, Any], **settings: Any) -> str:
    """Run a turn with one call; return its output for the model."""
    free = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
    fake.turn(fake.thread(**{**free, **settings}))
    [text] = [item["output"] for item in fake.ledger()[1]["body"]["input"] if item["type"].endswith("_output")]
    return str(text)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("*** Begin Patch\n*** End Patch", "patch rejected: empty patch"),
        (ADD.replace("+one", "one"), "verification failed: invalid hunk at line 3, 'one' is not a valid hunk header."),
        (ADD.replace("\n", "\r\n"), "Success. Updated the following files:\nA n.txt\n"),
        (f"<<'EOF'\n{ADD}EOF\n", "Success. Updated the following files:\nA n.txt\n"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "invalid hunk at line 2, Update file hunk for path 'a' is empty"),
        ("", "The last line of the patch must be '*** End Patch'"),
    ],
)
def test_a_patch_is_read_as_strictly_as_by_the_real_server(start: Start, patch: str, words: str) -> None:
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "call_1"}
    assert words in output(start([{"items": [call]}, "on"]), call)


@pytest.mark.parametrize(
    ("path", "inside"), [("sub/../n.txt", True), ("../" * 20 + "etc/n.txt", False), ("/tmp/../n.txt", False)]
)
def test_the_parts_of_a_path_decide_if_a_patch_is_outside(start: Start, path: str, inside: bool) -> None:
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": ADD.replace("n.txt", path), "call_id": "call_1"}
    words = "Success. Updated" if inside else "patch rejected: writing outside of the project"
    assert words in output(start([{"items": [call]}, "on"]), call, sandbox="workspace-write")


@pytest.mark.parametrize("policy", ["never", "on-request", "on-failure"])
def test_a_patch_in_an_external_sandbox_needs_no_approval(start: Start, policy: str) -> None:
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": ADD, "call_id": "call_1"}
    fake = start([{"items": [call]}, "on"])
    fake.turn(fake.thread(), approvalPolicy=policy, sandboxPolicy={"type": "externalSandbox"})
    [text] = [item["output"] for item in fake.ledger()[1]["body"]["input"] if item["type"].endswith("_output")]
    assert text.endswith("Success. Updated the following files:\nA n.txt\n")


@pytest.mark.parametrize("sandbox", ["externalSandbox", "dangerFullAccess"])
@pytest.mark.parametrize("policy", ["never", "on-request", "on-failure"])
def test_a_command_without_a_sandbox_of_codex_runs_at_once(start: Start, policy: str, sandbox: str) -> None:
    arguments: dict[str, Any] = {"command": "make"}
    if policy == "on-request":
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "J"}
    result = {"stdout": "made", "denied": {"stderr": "no"}}
    call = {"type": "function_call", "name": "shell_command", "arguments": arguments, "call_id": "call_1", "result": result}
    fake = start([{"items": [call]}, "on"])
    fake.turn(fake.thread(), approvalPolicy=policy, sandboxPolicy={"type": sandbox})
    [text] = [item["output"] for item in fake.ledger()[1]["body"]["input"] if item["type"].endswith("_output")]
    assert text.endswith("Output:\nmade")


def test_the_paths_of_a_result_start_in_the_directory_of_the_call(start: Start) -> None:
    command = f"cd sub && apply_patch <<'EOF'\n{ADD}EOF\n"
    result = {"changes": {"n.txt": {"type": "add", "content": "one\n"}}}
    call = {
        "type": "function_call",
        "name": "shell_command",
        "arguments": {"command": command},
        "call_id": "call_1",
        "result": result,
    }
    fake = start([{"items": [call]}, "on"])
    output(fake, call)
    [begun] = [f.value["params"]["msg"] for f in fake.client.timeline if of(f.value, "codex/event/patch_apply_begin")]
    assert [path.rpartition("/sub/")[2] for path in begun["changes"]] == ["n.txt"]


@pytest.mark.parametrize(
    ("name", "command", "changes"),
    [
        ("shell_command", f"apply_patch <<'EOF'\n{ADD}EOF\n", True),
        ("shell_command", f"cd sub && apply_patch <<'EOF'\n{ADD}EOF\n", True),
        ("shell", ["apply_patch", ADD], True),
        ("shell_command", f"apply_patch <<'EOF'\n{ADD}EOF\necho x", False),
    ],
)
def test_a_patch_in_a_shell_command_is_a_file_change(start: Start, name: str, command: Any, changes: bool) -> None:
    call = {"type": "function_call", "name": name, "arguments": {"command": command}, "call_id": "call_1"}
    fake = start([{"items": [call]}, "on"])
    output(fake, call)
    assert any(of(f.value, "codex/event/patch_apply_begin") for f in fake.client.timeline) is changes
    warned = [item for item in fake.ledger()[1]["body"]["input"] if "Warning: apply_patch was requested via" in str(item)]
    assert len(warned) == changes


@pytest.mark.parametrize(
    ("name", "command", "warns"),
    [
        ("shell_command", "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF\n", True),
        ("shell", ["apply_patch", "*** Begin Patch\n*** End Patch"], True),
        ("shell", ["apply_patch", "*** Begin Patch\n"], False),
    ],
)
def test_an_empty_patch_in_a_shell_command_is_warned_about(start: Start, name: str, command: Any, warns: bool) -> None:
    call = {"type": "function_call", "name": name, "arguments": {"command": command}, "call_id": "call_1"}
    fake = start([{"items": [call]}, "on"])
    assert ("patch rejected: empty patch" in output(fake, call)) is warns
    assert ("Warning: apply_patch was requested via" in str(fake.ledger()[1]["body"]["input"])) is warns


def test_the_clients_tool_comes_before_one_of_codex_with_that_name(start: Start) -> None:
    call = {"type": "function_call", "name": "update_plan", "arguments": "[1]", "call_id": "call_1"}
    fake = start([{"items": [call]}, "on"])
    thread = fake.thread(dynamicTools=[{"name": "update_plan", "description": "D", "inputSchema": {"type": "object"}}])
    fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    asked = fake.client.wait("the call", lambda m: of(m, "item/tool/call"))
    assert asked["params"]["arguments"] == [1]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([" "], "dynamic tool name must not be empty"),
        (["a "], "dynamic tool name has leading/trailing whitespace: a "),
        (["mcp__a"], "dynamic tool name is reserved: mcp__a"),
        (["a", "a"], "duplicate dynamic tool name: a"),
    ],
)
def test_names_of_tools_are_refused_in_the_real_words(start: Start, names: list[str], words: str) -> None:
    tools = [{"name": name, "description": "D", "inputSchema": {"type": "object"}} for name in names]
    assert start([]).client.call("thread/start", {"dynamicTools": tools})["error"]["message"] == words


def test_resources_of_an_unknown_server_are_refused(start: Start) -> None:
    arguments = {"server": "s", "uri": "u"}
    call = {"type": "function_call", "name": "read_mcp_resource", "arguments": arguments, "call_id": "call_1"}
    assert output(start([{"items": [call]}, "on"]), call) == "resources/read failed: unknown MCP server 's'"


@pytest.mark.parametrize(
    ("model", "first", "parallel"), [("gpt-5.2", "shell_command", True), ("gpt-5", "shell", False), ("nonesuch", "shell", False)]
)
def test_each_model_is_offered_its_own_tools(start: Start, model: str, first: str, parallel: bool) -> None:
    fake = start(["a"])
    fake.turn(fake.thread(model=model))
    body = fake.ledger()[0]["body"]
    assert (body["tools"][0]["name"], body["parallel_tool_calls"]) == (first, parallel)


def command(fake: Started, decision: Any) -> int:
    """Run a turn with a command twice; return how often the client was asked."""
    thread = fake.thread(approvalPolicy="untrusted", sandbox="danger-full-access")
    fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    asked, met = 0, ("turn/completed", "item/commandExecution/requestApproval")
    while True:
        message = fake.client.wait("a request or the end", lambda m: any(of(m, method) for method in met))
        if of(message, "turn/completed"):
            return asked
        asked += 1
        fake.client.reply(message, {"decision": decision})


@pytest.mark.parametrize(
    ("detail", "asked", "ran"),
    [
        ({"execpolicy_amendment": ["printf"]}, 1, True),
        ({"execpolicy_amendment": []}, 2, True),
        ({"execpolicyAmendment": ["printf"]}, 2, False),
        ({"execpolicy_amendment": [5]}, 2, False),
        (None, 2, False),
    ],
)
def test_an_amendment_is_taken_only_in_its_form(start: Start, detail: Any, asked: int, ran: bool) -> None:
    script: list[Any] = []
    for n in range(2):
        arguments = {"command": "printf a"}
        call = {"type": "function_call", "name": "shell_command", "arguments": arguments, "call_id": f"c{n}"}
        script.append({"items": [{**call, "result": {"stdout": "a"}}]})
    fake = start([*script, "on"])
    assert command(fake, {"acceptWithExecpolicyAmendment": detail}) == asked
    assert any(of(f.value, "codex/event/exec_command_output_delta") for f in fake.client.timeline) is ran


def test_long_output_comes_in_pieces_and_is_truncated_for_the_model(start: Start) -> None:
    result = {"stdout": "a" + "é" * 50_000}
    call = {"type": "function_call", "name": "shell_command", "arguments": {"command": "x"}, "call_id": "c", "result": result}
    fake = start([{"items": [call]}, "on"])
    told = output(fake, call)
    deltas = [f.value["params"]["delta"] for f in fake.client.timeline if of(f.value, "item/commandExecution/outputDelta")]
    assert len(deltas) == 13
    assert deltas[0].endswith("\ufffd")
    assert deltas[1].startswith("\ufffd")
    assert "\u202615001 tokens truncated\u2026" in told


def test_a_command_can_time_out(start: Start) -> None:
    result = {"stdout": "a", "timed_out": True, "duration_ms": 300}
    call = {"type": "function_call", "name": "shell_command", "arguments": {"command": "x"}, "call_id": "c", "result": result}
    told = output(start([{"items": [call]}, "on"]), call)
    assert told.startswith("Exit code: 124\n")
    assert told.endswith("Output:\ncommand timed out after 300 milliseconds\na")


def test_only_a_status_has_the_sentence_of_a_usage_limit(start: Start) -> None:
    """In `response.failed` the real server does not know the code: the turn ends with its message."""
    fake = start([{"items": [{"type": "failed", "code": "usage_limit_reached", "message": "You hit it"}]}])
    assert failed(fake)["message"] == "stream disconnected before completion: You hit it"


def test_a_rollback_of_nothing_leaves_the_preview_to_the_first_input(start: Start) -> None:
    fake = start(["One."])
    thread = fake.thread()
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    fake.turn(thread, "First.")
    assert fake.client.request("thread/read", {"threadId": thread})["thread"]["preview"] == "First."


def test_a_cursor_of_the_right_form_needs_no_entry(start: Start) -> None:
    fake = start(["One."])
    thread = fake.thread()
    fake.turn(thread)
    ask, nobody = fake.client.call, "00000000-0000-7000-8000-000000000000"
    for at, listed in (("2020-01-01T00-00-00", []), ("2090-01-01T00-00-00", [thread])):
        found = ask("thread/list", {"cursor": f"{at}|{nobody}"})["result"]["data"]
        assert [each["id"] for each in found] == listed
    assert ask("thread/loaded/list", {"cursor": nobody})["result"]["data"] == [thread]
    assert ask("thread/loaded/list", {"cursor": "f" + nobody[1:]})["result"]["data"] == []
    for wrong in (f"2090-1-1T0-0-0|{nobody}", "2090-01-01T00-00-00|x"):
        assert ask("thread/list", {"cursor": wrong})["error"]["message"] == f"invalid cursor: {wrong}"


def test_a_review_has_the_effort_of_the_configuration(start: Start) -> None:
    fake = start(["One.", "Fine."], "-c", "model_reasoning_effort=low")
    thread = fake.thread()
    fake.turn(thread, effort="high", summary="detailed")
    fake.client.request("review/start", {"threadId": thread, "target": {"type": "uncommittedChanges"}})
    fake.client.notification("turn/completed")
    efforts = [entry["body"]["reasoning"] for entry in fake.ledger()]
    assert efforts == [{"effort": "high", "summary": "detailed"}, {"effort": "low", "summary": "auto"}]


@pytest.mark.parametrize(("model", "effort"), [("gpt-5.2-codex", None), ("gpt-5.2", "medium")])
def test_some_models_have_no_effort_without_the_list_of_models(start: Start, model: str, effort: str | None) -> None:
    fake = start(["One."])
    fake.turn(fake.thread(model=model, config={"features.remote_models": False}))
    assert fake.ledger()[0]["body"]["reasoning"].get("effort") == effort


def test_an_empty_model_stays_empty(start: Start) -> None:
    fake = start(["One."], "-c", "model=")
    assert fake.client.request("thread/start", {})["model"] == ""


def test_v1_archives_nothing_before_there_is_a_thread(start: Start) -> None:
    named = {"conversationId": "00000000-0000-7000-8000-000000000000", "rolloutPath": "/x"}
    reply = start([]).client.call("archiveConversation", named)["error"]
    words = "failed to archive thread: unable to resolve sessions directory: No such file or directory (os error 2)"
    assert (reply["code"], reply["message"]) == (-32603, words)
