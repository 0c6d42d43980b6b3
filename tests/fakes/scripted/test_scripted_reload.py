"""What the scripted fake keeps of a thread that is loaded again, and what it takes from the configuration, as 0.92.0 does.

Each statement was watched on the real binary; the case test_threads/resume_forgets_the_settings has what a recording shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from codex_fakes.scripted.turns.input import preview_of
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.test_scripted import Started, of, start

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
COMMAND = {"type": "function_call", "name": "shell_command", "arguments": {"command": "make"}, "call_id": "c1", "result": {}}
OWN = {"type": "function_call", "name": "mine", "arguments": {}, "call_id": "d1"}
TOOL = {"name": "mine", "description": "", "inputSchema": {"type": "object"}}
ASKED = "item/commandExecution/requestApproval"


def turn(client: Client, thread: str, **params: Any) -> list[str]:
    """Run a turn, accepting for the session what is asked; return the methods of the server's requests."""
    begin = len(client.timeline)
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}], **params})
    asked: list[str] = []
    while True:
        message = client.wait("the turn's next step", lambda it: of(it, "turn/completed") or ("id" in it and "method" in it))
        if "id" not in message:
            assert len(client.timeline) > begin
            return asked
        asked.append(message["method"])
        client.reply(message, {"decision": "acceptForSession"})


def place(opened: dict[str, Any]) -> tuple[str, str]:
    return opened["cwd"], opened["thread"]["cwd"]


def test_approvals_of_the_session_are_asked_again(start: Start) -> None:
    fake = start([{"items": [COMMAND]}, "a", {"items": [COMMAND]}, "b", {"items": [COMMAND]}, "c"])
    thread = fake.thread(approvalPolicy="untrusted")
    assert [turn(fake.client, thread), turn(fake.client, thread)] == [[ASKED], []]
    fake.client.request("thread/resume", {"threadId": thread, "approvalPolicy": "untrusted"})
    assert turn(fake.client, thread) == [ASKED]


def test_a_policy_of_the_thread_does_not_outlive_it(start: Start) -> None:
    """config.toml says never: who started a thread as untrusted and resumes it without a word is not asked any more."""
    fake = start([{"items": [COMMAND]}, "a", {"items": [COMMAND]}, "b"])
    thread = fake.thread(approvalPolicy="untrusted")
    assert turn(fake.client, thread) == [ASKED]
    assert fake.client.request("thread/resume", {"threadId": thread})["approvalPolicy"] == "never"
    assert turn(fake.client, thread) == []


@pytest.mark.parametrize("method", ["thread/resume", "thread/fork"])
def test_tools_of_the_client_are_not_kept(start: Start, method: str) -> None:
    fake = start(["a", {"items": [OWN]}, "b"])
    thread = fake.thread(dynamicTools=[TOOL])
    turn(fake.client, thread)
    again = fake.client.request(method, {"threadId": thread})["thread"]["id"]
    assert turn(fake.client, again) == []
    names = [[tool.get("name") for tool in entry["body"]["tools"]] for entry in fake.ledger()]
    assert ["mine" in each for each in names] == [True, False, False]


def test_the_place_is_that_of_the_start(start: Start) -> None:
    """Neither a turn's cwd nor that of an earlier resume is kept; a fork begins a file of its own."""
    fake = start(["a", "b"])
    thread = fake.thread(cwd="/first")
    turn(fake.client, thread, cwd="/second")

    def again(method: str, **params: Any) -> tuple[str, str]:
        return place(fake.client.request(method, {"threadId": thread, **params}))

    assert again("thread/resume") == ("/first", "/first")
    assert again("thread/resume", cwd="/third") == ("/third", "/first")
    assert [each["cwd"] for each in fake.client.request("thread/list", {})["data"]] == ["/first"]
    assert again("thread/fork", cwd="/third") == ("/third", "/third")
    assert again("thread/resume") == ("/first", "/first")


def test_instructions(start: Start) -> None:
    """The base instructions are kept unless others are given; what the developer has said stays beside what is said now."""
    fake = start(["a", "b", "c"])
    thread = fake.thread(baseInstructions="Base.", developerInstructions="Be kind.")
    turn(fake.client, thread)
    fake.client.request("thread/resume", {"threadId": thread})
    turn(fake.client, thread)
    fake.client.request("thread/resume", {"threadId": thread, "baseInstructions": "Other.", "developerInstructions": "Be brief."})
    turn(fake.client, thread)
    bodies = [entry["body"] for entry in fake.ledger()]
    assert [body["instructions"] for body in bodies] == ["Base.", "Base.", "Other."]
    developer = [[item["content"][0]["text"] for item in body["input"] if item.get("role") == "developer"] for body in bodies]
    assert developer == [["Be kind."], ["Be kind."], ["Be kind.", "Be brief."]]


@pytest.mark.parametrize("method", ["thread/resume", "thread/fork"])
def test_what_cannot_be_is_refused_and_changes_nothing(start: Start, method: str) -> None:
    fake = start([{"items": [COMMAND]}, "a", {"items": [COMMAND]}, "b"])
    thread = fake.thread(approvalPolicy="untrusted")
    turn(fake.client, thread)
    error = fake.client.request_error(method, {"threadId": thread, "modelProvider": "nope"})
    assert error == {"code": -32600, "message": "error deriving config: Model provider `nope` not found"}
    assert turn(fake.client, thread, approvalPolicy="untrusted") == []  # still approved for the session


@pytest.mark.parametrize(("method", "warns"), [("resumeConversation", True), ("forkConversation", False)])
def test_v1(start: Start, method: str, warns: bool) -> None:
    """The overrides are the request's; a conversation that is resumed with another model says so."""
    fake = start(["a", "b"])
    ask = fake.client.request
    talk = ask("newConversation", {"model": "gpt-5.2", "config": {"model_reasoning_effort": "low"}})["conversationId"]
    ask("addConversationListener", {"conversationId": talk})
    ask("sendUserMessage", {"conversationId": talk, "items": [{"type": "text", "data": {"text": "Go."}}]})
    fake.client.notification("codex/event/task_complete")
    assert ask(method, {"conversationId": talk, "overrides": {"model": "gpt-5.1"}})["model"] == "gpt-5.1"
    configured = fake.client.notification("sessionConfigured")
    assert (configured["model"], configured["reasoningEffort"]) == ("gpt-5.1", None)
    again = ask(method, {"conversationId": talk})
    assert again["model"] == "gpt-5.2-codex"
    ask("addConversationListener", {"conversationId": again["conversationId"]})
    fake.client.notification("codex/event/mcp_startup_complete", conversationId=again["conversationId"])
    said = [m.value["params"]["msg"]["message"] for m in fake.client.timeline if of(m.value, "codex/event/warning")]
    new = ["gpt-5.1", "gpt-5.2-codex"] if warns else []
    assert [text.split(".  ")[0].split(". Consider")[0] for text in said] == [
        f"This session was recorded with model `gpt-5.2` but is resuming with `{model}`" for model in new
    ]


def test_the_same_model_is_no_matter(start: Start) -> None:
    fake = start(["a", "b"])
    thread = fake.thread()
    turn(fake.client, thread, model="gpt-5.1")
    fake.client.request("thread/resume", {"threadId": thread, "model": "gpt-5.1"})
    turn(fake.client, thread)
    assert not any(of(frame.value, "codex/event/warning") for frame in fake.client.timeline)


def test_the_preview_of_a_history_stays(start: Start) -> None:
    fake = start(["One."])
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "From elsewhere."}]}]
    thread = fake.client.request("thread/resume", {"threadId": fake.thread(), "history": history})["thread"]["id"]
    fake.turn(thread, "And on.")
    assert [one["preview"] for one in fake.client.request("thread/list", {})["data"]] == ["From elsewhere."]


def said(*texts: str | None) -> dict[str, Any]:
    """Return a message of the user in a history; None stands for an image."""
    parts = [{"type": "input_image", "image_url": "x"} if t is None else {"type": "input_text", "text": t} for t in texts]
    return {"type": "message", "role": "user", "content": parts}


#: The first message of a history, and the preview in 0.92.0 and in 0.169.0; the next message is "real".
PREVIEWS = [
    (said("\t "), "\t ", "real"),
    (said("x\n"), "x\n", "x"),
    (said("<environment_context>e</environment_context>"), "real", "real"),
    (said("a", " <ENVIRONMENT_context>e</environment_context> "), "real", "real"),
    (said("<environment_context>"), "real", "<environment_context>"),
    (said("# AGENTS.md instructions for /x"), "real", "# AGENTS.md instructions for /x"),
    (said("<turn_aborted>"), "real", "<turn_aborted>"),
    (said(None), "", "[Image]"),
    (said(None, " t"), " t", "t"),
    (said("<user_action>"), "<user_action>", "<user_action>"),
]


@pytest.mark.parametrize(("first", "preview", "later"), PREVIEWS)
def test_the_preview_of_a_history_is_its_first_message_that_is_not_of_codex_itself(
    first: dict[str, Any], preview: str, later: str, start: Start
) -> None:
    fake = start(["One."])
    history = [first, said("real")]
    opened = fake.client.request("thread/resume", {"threadId": fake.thread(), "history": history})
    assert (opened["thread"]["preview"], preview_of(history)) == (preview, later)


def test_a_thread_keeps_the_provider_that_it_was_started_with(start: Start) -> None:
    """The turns after a resume use the provider of config.toml; a fork is listed among the threads of its source's provider."""
    fake = start(["One.", "Two."])
    thread = fake.thread(modelProvider="openai")
    fake.turn(thread, "Go.")
    opened = fake.client.request("thread/resume", {"threadId": thread})
    assert (opened["modelProvider"], opened["thread"]["modelProvider"]) == ("mock", "openai")
    fork = fake.client.request("thread/fork", {"threadId": thread})["thread"]
    assert fork["modelProvider"] == "mock"

    def listed(**params: Any) -> list[str]:
        return [one["id"] for one in fake.client.request("thread/list", params)["data"]]

    assert (listed(modelProviders=["openai"]), listed(modelProviders=["mock"]), listed()) == ([fork["id"], thread], [], [])
    assert listed(modelProviders=[]) == [fork["id"], thread]
    assert fake.client.request("listConversations", {})["items"] == []


IMAGE = {"type": "image", "url": "data:image/png;base64,AAAA"}


@pytest.mark.parametrize(("before", "after"), [(0, 5), (1, 1), (2, -1)])
def test_a_first_message_beyond_ten_records_gives_no_preview(start: Start, before: int, after: int) -> None:
    """0.92.0 reads ten records of a file: one for each thread that it is a fork of, and the items before the first message."""
    fake = start(["One."])
    threads = [fake.thread()]
    for _ in range(before):
        threads.append(fake.client.request("thread/fork", {"threadId": threads[-1]})["thread"]["id"])
    fake.turn(threads[-1], text="Hi.")
    spoken = len(threads) - 1
    for _ in range(after + 1):
        threads.append(fake.client.request("thread/fork", {"threadId": threads[-1]})["thread"]["id"])
    shown = [fake.client.request("thread/read", {"threadId": each})["thread"]["preview"] for each in threads[spoken:]]
    assert shown == ["Hi."] * (after + 1) + [""] * (len(shown) - after - 1)
    listed = [each["id"] for each in fake.client.request("thread/list", {})["data"]]
    assert listed == threads[spoken : spoken + after + 1][::-1]


@pytest.mark.parametrize(
    ("inputs", "preview"),
    [
        (["a", " <TURN_ABORTED>x"], ""),
        (["a", "<environment_context>e"], ""),
        (["a", "<user_shell_command>"], ""),
        (["<skill>x"], ""),
        (["<skill>", "b"], "<skill>b"),
        ([" <skill>x"], " <skill>x"),
        (["<user_instructions>x", "b"], "<user_instructions>xb"),
        (["# AGENTS.md instructions for x"], ""),
        (["# agents.md instructions for x"], "# agents.md instructions for x"),
        (["# AGENTS.md instructions for x", IMAGE], "# AGENTS.md instructions for x"),
        (["<image>", IMAGE, "</image>"], "<image></image>"),
    ],
)
def test_what_looks_like_codex_itself_names_no_thread(start: Start, inputs: list[Any], preview: str) -> None:
    """As the real server: some words count in every text of the input, others only if they begin its only text."""
    fake = start(["One."])
    thread = fake.thread()
    items = [{"type": "text", "text": item} if isinstance(item, str) else item for item in inputs]
    fake.client.request("turn/start", {"threadId": thread, "input": items})
    fake.client.notification("turn/completed")
    assert fake.client.request("thread/read", {"threadId": thread})["thread"]["preview"] == preview
    assert [one["id"] for one in fake.client.request("thread/list", {})["data"]] == ([thread] if preview else [])


@pytest.mark.parametrize(
    ("inputs", "counts"),
    [
        (["a", "<turn_aborted>"], False),
        ([" <User_Shell_Command>"], False),
        (["<skill>x"], False),
        (["<user_instructions>", "b"], True),
        (["# AGENTS.md instructionsx"], True),
    ],
)
def test_a_rollback_goes_back_to_an_input_that_counts(start: Start, inputs: list[str], counts: bool) -> None:
    """As the real server: an input that looks like Codex itself is no prompt, so the prompt before it goes, too."""
    fake = start(["One.", "Two.", "Three."])
    thread = fake.thread()
    fake.turn(thread, "First.")
    fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text} for text in inputs]})
    fake.client.notification("turn/completed")
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    fake.turn(thread, "Last.")
    sent = [item["content"][0]["text"] for item in fake.ledger()[-1]["body"]["input"] if item["role"] == "user"]
    assert sent[1:] == (["First.", "Last."] if counts else ["Last."])


@pytest.mark.parametrize(("turns", "count", "kept"), [(1, 1, ["One.", "Two."]), (1, 2, ["One."]), (0, 1, ["One."]), (2, 9, [])])
def test_a_rollback_goes_back_into_a_history_of_the_client(start: Start, turns: int, count: int, kept: list[str]) -> None:
    fake = start(["Yes."] * 3)
    told = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in ("One.", "Two.")]
    thread = fake.client.request("thread/resume", {"threadId": fake.thread(), "history": told})["thread"]["id"]
    for _ in range(turns):
        fake.turn(thread)
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": count})
    fake.turn(thread, "Last.")
    sent = [item["content"][0]["text"] for item in fake.ledger()[-1]["body"]["input"] if item["role"] == "user"]
    assert [text for text in sent if not text.startswith("<")] == [*kept, "Last."]


@pytest.mark.parametrize(("model", "forced"), [("gpt-5.2-codex", False), ("nonesuch", True)])
def test_the_configuration_can_deny_a_model_its_reasoning(start: Start, model: str, forced: bool) -> None:
    """As the real server: a value in the configuration counts, whatever the model can do."""
    fake = start(["One."])
    fake.turn(fake.thread(model=model, config={"model_supports_reasoning_summaries": forced}))
    body = fake.ledger()[0]["body"]
    assert (body["reasoning"] is not None, body["include"]) == (forced, ["reasoning.encrypted_content"] if forced else [])


@pytest.mark.parametrize(("older", "more"), [(True, True), (False, False)])
def test_a_full_page_has_a_cursor_if_another_thread_has_a_file(start: Start, older: bool, more: bool) -> None:
    """As the real server: it does not look whether the next file is of a thread that is listed."""
    fake = start(["One."])
    idle = fake.thread() if older else None
    thread = fake.thread()
    idle = idle or fake.thread()
    fake.turn(thread)
    for method, limit in (("thread/list", {"limit": 1}), ("listConversations", {"pageSize": 1})):
        assert (fake.client.request(method, limit)["nextCursor"] is not None) is more
        assert fake.client.request(method, {})["nextCursor"] is None


@pytest.mark.parametrize("mode", ["plan", "pair_programming"])
def test_the_model_may_ask_the_user_in_two_modes(start: Start, mode: str) -> None:
    questions = [{"id": "q", "header": "H", "question": "Why?", "options": None}]
    call = {"type": "function_call", "name": "request_user_input", "arguments": {"questions": questions}, "call_id": "c1"}
    fake = start([{"items": [call]}, "Done."])
    thread = fake.thread(config={"features.collaboration_modes": True})
    settings = {"mode": mode, "settings": {"model": "gpt-5.2-codex"}}
    params = {"threadId": thread, "input": [{"type": "text", "text": "Go."}], "collaborationMode": settings}
    fake.client.request("turn/start", params)
    asked = fake.client.server_request("item/tool/requestUserInput")
    fake.client.reply(asked, {"answers": {}})
    fake.client.notification("turn/completed")


def test_conversations_are_listed_by_their_last_turn(start: Start) -> None:
    """As the real server, which compares the seconds: `thread/list` goes by the start."""
    fake = start(["One.", "Two."])
    first, second = fake.thread(), fake.thread()
    fake.turn(second)
    time.sleep(1.1)
    fake.turn(first)
    ask = fake.client.request
    assert [one["conversationId"] for one in ask("listConversations", {})["items"]] == [first, second]
    assert [one["id"] for one in ask("thread/list", {})["data"]] == [second, first]
    assert [one["id"] for one in ask("thread/list", {"sortKey": "updated_at"})["data"]] == [first, second]


@pytest.mark.parametrize("kind", ["exec", "patch"])
def test_a_review_has_the_settings_that_the_thread_was_loaded_with(start: Start, kind: str) -> None:
    """As the real server: a turn's changes do not count. An approval has the review's turn in place of the call."""
    patch = "*** Begin Patch\n*** Add File: n.txt\n+x\n*** End Patch\n"
    call = COMMAND if kind == "exec" else {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "c1"}
    fake = start(["One.", {"items": [call]}, "Fine.", "Two."])
    thread = fake.thread(approvalPolicy="untrusted", sandbox="danger-full-access")
    begin = {"threadId": thread, "input": [{"type": "text", "text": "Go."}], "approvalPolicy": "never", "cwd": "/"}
    fake.client.request("turn/start", begin)
    fake.client.notification("turn/completed")
    target = {"type": "custom", "instructions": "Look."}
    number = fake.client.request("review/start", {"threadId": thread, "target": target})["turn"]["id"]
    asked = fake.client.server_request(ASKED if kind == "exec" else "item/fileChange/requestApproval")
    assert asked["params"]["itemId"] == number
    fake.client.reply(asked, {"decision": "accept"})
    event = fake.client.notification("codex/event/exec_command_end" if kind == "exec" else "codex/event/patch_apply_end")
    assert event["msg"]["turn_id"] == "0"
    assert event["msg"].get("cwd") != "/"
    if kind == "patch":
        fake.client.notification("turn/diff/updated")
    fake.client.notification("turn/completed")
    last = fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "On."}]})
    assert int(last["turn"]["id"]) == int(number) + 2
