"""What the scripted fake shows again of a thread, and where it begins anew, as 0.92.0 does.

Each statement was watched on the real binary, with which random lives of threads compare the fake
(tests/real/differential/lives.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.scripted.test_scripted import Started, of, start

__all__ = ["start"]  # the fixture

Start = Callable[..., Started]
REASONING = {"type": "reasoning", "summary": ["short"], "content": ["raw"]}
COUNT = "codex/event/token_count"


def read(fake: Started, thread: str) -> Any:
    return fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]


def counts(fake: Started, begin: int = 0) -> list[Any]:
    frames = fake.client.timeline[begin:]
    return [frame.value["params"]["msg"] for frame in frames if of(frame.value, COUNT)]


def test_a_failed_turn_is_shown_as_completed(start: Start) -> None:
    fake = start([{"status": 400, "body": "no"}])
    thread = fake.thread()
    fake.turn(thread)
    assert [(turn["status"], turn["error"]) for turn in read(fake, thread)] == [("completed", None)]


@pytest.mark.parametrize(("config", "shown"), [({}, []), ({"show_raw_agent_reasoning": True}, ["raw"])])
def test_raw_reasoning_is_shown_where_it_was_told(start: Start, config: dict[str, Any], shown: list[str]) -> None:
    fake = start([{"items": [REASONING, "a"]}])
    thread = fake.thread(config=config)
    fake.turn(thread)
    [turn] = read(fake, thread)
    assert turn["items"][1] == {"type": "reasoning", "id": "item-2", "summary": ["short"], "content": shown}


def test_a_thread_in_which_nothing_was_said_is_kept(start: Start) -> None:
    fake = start([])
    thread = fake.thread()
    ask = fake.client.request
    assert ask("thread/resume", {"threadId": thread})["thread"]["id"] == thread
    assert ask("thread/fork", {"threadId": thread})["thread"]["preview"] == ""
    assert ask("thread/archive", {"threadId": thread}) == {}
    assert ask("thread/unarchive", {"threadId": thread})["thread"]["id"] == thread
    assert ask("thread/list", {})["data"] == []


def test_a_history_of_the_clients_is_not_listed_before_it_is_gone_on_with(start: Start) -> None:
    fake = start(["a"])
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Before."}]}]
    thread = fake.client.request("thread/resume", {"threadId": fake.thread(), "history": history})["thread"]["id"]
    assert fake.client.request("thread/list", {})["data"] == []
    fake.turn(thread)
    assert [each["id"] for each in fake.client.request("thread/list", {})["data"]] == [thread]


def test_a_rollback_counts_even_where_nothing_was_counted(start: Start) -> None:
    """No answer of the model was heard since the thread was loaded: of rate limits there is nothing to tell."""
    fake = start([{"items": ["a"], "headers": {"x-codex-primary-used-percent": "50"}}])
    thread = fake.thread()
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    [told] = counts(fake)
    assert (told["info"]["total_token_usage"]["total_tokens"], told["rate_limits"]) == (0, None)
    assert not any(of(frame.value, "account/rateLimits/updated") for frame in fake.client.timeline)
    fake.turn(thread)
    assert counts(fake)[-1]["rate_limits"]["primary"]["used_percent"] == 50
    fake.client.request("thread/resume", {"threadId": thread})
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    assert counts(fake)[-1]["rate_limits"] is None


def test_a_fork_is_of_the_model_of_its_source(start: Start) -> None:
    """It says nothing of it itself; who resumes the fork is warned."""
    fake = start(["a"])
    thread = fake.thread(model="gpt-5.2")
    fake.turn(thread)
    fork = fake.client.request("thread/fork", {"threadId": thread})["thread"]["id"]
    fake.client.notification("codex/event/mcp_startup_complete", conversationId=fork)
    assert not any(of(frame.value, "codex/event/warning") for frame in fake.client.timeline)
    fake.client.request("thread/resume", {"threadId": fork})
    message = fake.client.notification("codex/event/warning")["msg"]["message"]
    assert message.startswith("This session was recorded with model `gpt-5.2`")


def test_a_detached_review_has_the_settings_and_the_place_of_the_server(start: Start) -> None:
    fake = start(["a", "fine"])
    thread = fake.thread(cwd="/elsewhere", approvalPolicy="untrusted", model="gpt-5.2")
    fake.turn(thread)
    asked = {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}, "delivery": "detached"}
    review = fake.client.request("review/start", asked)["reviewThreadId"]
    fake.client.notification("turn/completed", threadId=review)
    begun = [frame.value["params"]["thread"] for frame in fake.client.timeline if of(frame.value, "thread/started")]
    assert [each["cwd"] for each in begun] == ["/elsewhere", str(fake.home.work)]
    assert [entry["body"]["model"] for entry in fake.ledger()] == ["gpt-5.2", "gpt-5.2-codex"]


def test_v1_tells_an_abort_again(start: Start) -> None:
    fake = start([{"items": ["a", {"type": "gate", "name": "g"}]}])
    ask = fake.client.request
    talk = ask("newConversation", {})["conversationId"]
    ask("addConversationListener", {"conversationId": talk})
    ask("sendUserMessage", {"conversationId": talk, "items": [{"type": "text", "data": {"text": "Go."}}]})
    fake.client.notification("codex/event/agent_message")
    ask("interruptConversation", {"conversationId": talk})
    said = ask("resumeConversation", {"conversationId": talk})["initialMessages"]
    assert [each["type"] for each in said] == ["user_message", "token_count", "agent_message", "turn_aborted"]


def test_v1_archives_what_lies_at_a_path(start: Start) -> None:
    fake = start([])
    one, two = (fake.client.request("newConversation", {}) for _ in range(2))
    name = one["conversationId"]

    def archive(path: str) -> Any:
        reply = fake.client.call("archiveConversation", {"conversationId": name, "rolloutPath": path})
        return reply["error"]["message"] if "error" in reply else reply["result"]

    nowhere = "rollout path `{}` must be in sessions directory".format
    assert archive(two["rolloutPath"]) == f"rollout path `{two['rolloutPath']}` does not match thread id {name}"
    assert archive("/tmp") == nowhere("/tmp")
    assert archive(one["rolloutPath"]) == {}
    assert archive(one["rolloutPath"]) == nowhere(one["rolloutPath"])


def test_v1_tells_a_rollback_and_a_review_again(start: Start) -> None:
    """What the reviewer was asked and thought was told twice, so it is kept twice."""
    fake = start(["a", {"items": [{"type": "reasoning", "summary": ["b"]}, "c"]}])
    thread = fake.thread()
    fake.turn(thread)
    fake.client.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    fake.client.request("review/start", {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}})
    fake.client.notification("turn/completed", threadId=thread)
    said = fake.client.request("resumeConversation", {"conversationId": thread})["initialMessages"]
    reviewed = ["user_message", "user_message", "agent_reasoning", "agent_reasoning", "exited_review_mode", "agent_message"]
    assert [each["type"] for each in said][4:] == ["token_count", "thread_rolled_back", "entered_review_mode", *reviewed]
