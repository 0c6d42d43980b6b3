"""Conversations, compaction, and what a script sees of a conversation that a request continues by an id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from codex_fakes.backend.state.conversations import COUNT, Conversations
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.fakes.backend.test_backend import ask
from tests.fakes.backend.test_stored import CALL, OUTPUT, call, post


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def send(session: BackendSession, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    status, _, data = ask(session.url + "/v1" + path, body)
    return status, json.loads(data)


def text(item: dict[str, Any]) -> str:
    return "".join(part["text"] for part in item["content"])


def test_a_conversation_is_made_changed_and_deleted(backend: BackendProcess) -> None:
    session = backend.session("life", [])
    items = [{"role": "user", "content": "hi"}]
    status, made = send(session, "/conversations", items=items, metadata={"topic": "a"})
    assert (status, made["object"], made["metadata"]) == (200, "conversation", {"topic": "a"})
    path = f"/conversations/{made['id']}"
    assert call(session, path) == (200, made)
    assert send(session, path, metadata={"topic": "b"})[1]["metadata"] == {"topic": "b"}
    assert call(session, path, "DELETE")[1] == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
    status, answer = call(session, path)
    assert (status, answer["error"]["message"]) == (404, f"Conversation with id '{made['id']}' not found.")


def test_the_items_are_added_paged_and_deleted(backend: BackendProcess) -> None:
    session = backend.session("items", [])
    path = f"/conversations/{send(session, '/conversations')[1]['id']}/items"
    assert call(session, path)[1] == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}
    added = send(session, path, items=[{"role": "user", "content": str(i)} for i in range(25)])[1]["data"]
    assert [text(item) for item in added] == [str(i) for i in range(25)]
    first = call(session, path)[1]
    assert ([text(item) for item in first["data"]], first["has_more"]) == ([str(i) for i in range(24, 4, -1)], True)
    rest = call(session, f"{path}?after={first['last_id']}")[1]
    assert ([text(item) for item in rest["data"]], rest["has_more"]) == (["4", "3", "2", "1", "0"], False)
    assert [text(item) for item in call(session, f"{path}?order=asc&limit=2")[1]["data"]] == ["0", "1"]
    one = f"{path}/{added[0]['id']}"
    assert call(session, one) == (200, added[0])
    assert call(session, one, "DELETE")[1]["object"] == "conversation"
    assert call(session, one)[0] == 404
    assert len(call(session, f"{path}?limit=100")[1]["data"]) == 24


def test_a_response_goes_into_its_conversation(backend: BackendProcess) -> None:
    turns = [{"items": [CALL]}, {"match": {"user": "2 + 3", "tool": "5", "turn": 2}, "items": ["It is 5."]}]
    session = backend.session("grows", turns)
    id_ = send(session, "/conversations")[1]["id"]
    _, first = post(session, input="2 + 3?", conversation=id_)
    assert first["conversation"] == {"id": id_}
    status, second = post(session, input=[OUTPUT], conversation={"id": id_})
    assert (status, text(second["output"][0])) == (200, "It is 5.")
    kinds = [item["type"] for item in call(session, f"/conversations/{id_}/items?order=asc")[1]["data"]]
    assert kinds == ["message", "function_call", "function_call_output", "message"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"conversation": "conv_0"}, 404, "Conversation with id 'conv_0' not found."),
        ({"conversation": "conv_1", "previous_response_id": "r"}, 400, "Mutually exclusive"),
        ({"conversation": "conv_1", "input": [OUTPUT]}, 400, "No tool call found for function call output with call_id c1."),
    ],
)
def test_what_cannot_be_continued_is_refused(backend: BackendProcess, body: Any, status: int, words: str) -> None:
    session = backend.session(f"refused {status} {words}", ["a"])
    send(session, "/conversations")
    found, answer = post(session, **body)
    assert (found, words in answer["error"]["message"]) == (status, True)


def test_a_script_sees_the_responses_that_are_continued(backend: BackendProcess) -> None:
    turns = [
        {"match": {"turn": 1}, "items": [CALL]},
        {"match": {"turn": 2, "user": "2 + 3"}, "items": ["It is 5."]},
        {"match": {"turn": 3, "pattern": "(Bye)"}, "items": ["${1}."]},
    ]
    session = backend.session("seen", turns)
    _, first = post(session, input="2 + 3?")
    _, second = post(session, input=[OUTPUT], previous_response_id=first["id"])
    status, third = post(session, input="Bye", previous_response_id=second["id"])
    assert (status, text(third["output"][0])) == (200, "Bye.")


def test_the_request_for_an_approval_is_a_reply(backend: BackendProcess) -> None:
    asks = [{"type": "mcp_list_tools"}, {"type": "mcp_approval_request", "name": "roll", "id": "mcpr_1"}]
    session = backend.session("approval", [{"items": asks}, {"match": {"turn": 2}, "items": ["4"]}])
    _, first = post(session)
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    status, second = post(session, input=[approval], previous_response_id=first["id"])
    assert (status, text(second["output"][0])) == (200, "4")


def test_a_stored_prompt_needs_no_model(backend: BackendProcess) -> None:
    session = backend.session("prompt", ["Hello."])
    status, answer = send(session, "/responses", input="hi", prompt={"id": "pmpt_1"})
    assert (status, answer["prompt"], answer["model"]) == (200, {"id": "pmpt_1"}, "gpt-5.2-codex")


def test_a_conversation_is_compacted(backend: BackendProcess) -> None:
    session = backend.session("compacted", ["Hello.", "Again."])
    _, first = post(session, input="hi")
    status, made = send(session, "/responses/compact", model="m", previous_response_id=first["id"], input="more")
    assert (status, made["object"]) == (200, "response.compaction")
    assert [item["type"] for item in made["output"]] == ["message", "message", "compaction"]
    assert made["usage"]["total_tokens"] == made["usage"]["input_tokens"] + made["usage"]["output_tokens"]
    assert post(session, input=[*made["output"], {"role": "user", "content": "on"}])[0] == 200
    assert send(session, "/responses/compact", model="m", input="x", previous_response_id="r")[0] == 400


def test_the_tokens_of_a_conversation_count(backend: BackendProcess) -> None:
    session = backend.session("tokens", [])
    id_ = send(session, "/conversations", items=[{"role": "user", "content": "x" * 40}])[1]["id"]
    assert send(session, "/responses/input_tokens", input="y" * 40, conversation=id_)[1]["input_tokens"] == 20


def test_a_login_is_asked_for(backend: BackendProcess) -> None:
    session = backend.session("login", {"turns": ["a"], "auth": {"mode": "api_key", "api_key": "sk-1"}})
    for path in ("/conversations", "/responses/compact", "/responses/input_tokens"):
        assert send(session, path)[0] == 401
    assert call(session, "/conversations/conv_1/items")[0] == 401


def test_what_is_no_json_is_refused(backend: BackendProcess) -> None:
    session = backend.session("no json", [])
    for body in (b"{", b"[]"):
        status, _, data = ask(session.url + "/v1/conversations", body)
        assert (status, json.loads(data)["error"]["code"]) == (400, "invalid_json")


def test_conversations_are_bounded() -> None:
    kept = Conversations()
    for _ in range(COUNT + 3):
        kept.create({})
        kept.trim()
    assert kept.get("conv_3") is None
    assert kept.get("conv_4") is not None
    for _ in range(20):
        kept.create({}).add([{"role": "user", "content": "x" * (1 << 20)}])
        kept.trim()
    assert kept.get(f"conv_{COUNT + 3}") is None
    assert kept.get(f"conv_{COUNT + 23}") is not None
