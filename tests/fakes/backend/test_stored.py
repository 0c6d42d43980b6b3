"""What the documented service keeps of its responses, and what it says of those that it does not have."""

from __future__ import annotations

import concurrent.futures
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from codex_fakes.backend.state.stored import COUNT, Responses
from codex_replay.protocol.script.script import Turn
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.fakes.backend.test_backend import ask, events, request_body

CALL = {"type": "function_call", "name": "add", "call_id": "c1", "arguments": {"a": 1}}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "5"}


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


def post(session: BackendSession, **body: Any) -> tuple[int, dict[str, Any]]:
    status, _, data = ask(session.url + "/v1/responses", {"model": "m", "input": "hi", **body})
    return status, json.loads(data)


def call(session: BackendSession, path: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
    status, _, data = ask(session.url + "/v1" + path, method=method)
    return status, json.loads(data)


def test_a_response_can_be_read_and_deleted(backend: BackendProcess) -> None:
    session = backend.session("kept", ["Hello."])
    _, made = post(session)
    assert call(session, f"/responses/{made['id']}") == (200, made)
    deleted = {"id": made["id"], "object": "response", "deleted": True}
    assert call(session, f"/responses/{made['id']}", "DELETE") == (200, deleted)
    for method in ("GET", "DELETE"):
        status, answer = call(session, f"/responses/{made['id']}", method)
        assert (status, answer["error"]["message"]) == (404, f"Response with id '{made['id']}' not found.")


@pytest.mark.parametrize("codex", [False, True])
def test_what_is_not_stored_is_not_there(backend: BackendProcess, codex: bool) -> None:
    session = backend.session(f"not kept {codex}", ["Hello."])
    headers = {"content-type": "application/json", "originator": "codex_cli_rs"} if codex else None
    ask(session.url + "/v1/responses", request_body(store=codex), headers=headers)
    assert call(session, "/responses/resp_1")[0] == 404


def test_a_stream_is_sent_again_from_an_event_on(backend: BackendProcess) -> None:
    session = backend.session("resumed", ["Hello."])
    streamed = events(ask(session.url + "/v1/responses", request_body(store=True)))
    again = ask(session.url + "/v1/responses/resp_1?stream=true", method="GET")
    assert again[1]["content-type"].startswith("text/event-stream")
    assert events(again) == streamed
    assert events(ask(session.url + "/v1/responses/resp_1?stream=true&starting_after=3", method="GET")) == streamed[4:]
    for what in ("1" * 5000, "²", "-1"):  # no number of an event: the whole stream
        after = quote(what)
        assert events(ask(session.url + f"/v1/responses/resp_1?stream=true&starting_after={after}", method="GET")) == streamed


def test_the_input_of_a_response_is_listed(backend: BackendProcess) -> None:
    session = backend.session("listed", ["Hello."])
    post(session, input=[{"role": "user", "content": "hi"}, {**CALL, "arguments": "{}"}, OUTPUT])
    _, page = call(session, "/responses/resp_1/input_items")
    assert [item["type"] for item in page["data"]] == ["function_call_output", "function_call", "message"]
    assert page["data"][2]["content"] == [{"type": "input_text", "text": "hi"}]
    assert (page["first_id"], page["last_id"], page["has_more"]) == (page["data"][0]["id"], page["data"][2]["id"], False)
    assert call(session, "/responses/resp_1/input_items?order=asc")[1]["data"] == page["data"][::-1]


def test_a_conversation_goes_on_from_a_response(backend: BackendProcess) -> None:
    session = backend.session("continued", [{"items": [CALL]}, "It is 5.", "Bye."])
    _, first = post(session)
    status, second = post(session, input=[OUTPUT], previous_response_id=first["id"])
    assert (status, second["previous_response_id"]) == (200, first["id"])
    assert post(session, input=[OUTPUT], previous_response_id=second["id"])[0] == 200


def test_a_response_that_is_unknown_cannot_be_continued(backend: BackendProcess) -> None:
    session = backend.session("lost", [{"items": [CALL]}])
    status, answer = post(session, previous_response_id="resp_0")
    assert status == 400
    assert answer["error"] == {
        "message": "Previous response with id 'resp_0' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    _, first = post(session)
    status, answer = post(session, input=[{**OUTPUT, "call_id": "c2"}], previous_response_id=first["id"])
    assert (status, answer["error"]["message"]) == (400, "No tool call found for function call output with call_id c2.")
    assert len(session.problems()) == 2


def test_the_rule_can_be_switched_off(backend: BackendProcess) -> None:
    session = backend.session("lost and fine", {"turns": ["a"], "rules_off": ["previous-response"]})
    assert post(session, previous_response_id="resp_0")[0] == 200


def test_a_response_in_the_background_is_polled(backend: BackendProcess) -> None:
    session = backend.session("background", [{"items": ["Hello.", {"type": "gate", "name": "g"}]}])
    _, made = post(session, background=True)
    assert (made["status"], made["output"], made["background"]) == ("queued", [], True)
    assert session.wait_at_gate("g")
    assert call(session, "/responses/resp_1")[1]["status"] == "in_progress"
    session.release("g")
    while (found := call(session, "/responses/resp_1")[1])["status"] == "in_progress":
        pass
    assert (found["status"], found["output"][0]["content"][0]["text"]) == ("completed", "Hello.")
    assert call(session, "/responses/resp_1/cancel", "POST")[1]["status"] == "completed"


def test_a_stream_of_a_response_in_the_background_waits_for_it(backend: BackendProcess) -> None:
    session = backend.session("followed", [{"items": ["Hello.", {"type": "gate", "name": "g"}]}])
    post(session, background=True)
    assert session.wait_at_gate("g")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        followed = pool.submit(ask, session.url + "/v1/responses/resp_1?stream=true&starting_after=1", method="GET")
        assert not concurrent.futures.wait([followed], timeout=0.3).done
        session.release("g")
        sent = events(followed.result(10))
    assert (sent[0]["sequence_number"], sent[-1]["type"]) == (2, "response.completed")


def test_a_stream_in_the_background_is_in_progress_while_it_waits(backend: BackendProcess) -> None:
    session = backend.session("streamed", [{"items": ["Hello.", {"type": "gate", "name": "g"}]}])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        streamed = pool.submit(ask, session.url + "/v1/responses", request_body(store=True, background=True))
        assert session.wait_at_gate("g")
        assert call(session, "/responses/resp_1")[1]["status"] == "in_progress"
        session.release("g")
        assert events(streamed.result(10))[-1]["type"] == "response.completed"
    assert call(session, "/responses/resp_1")[1]["status"] == "completed"


@pytest.mark.parametrize(
    "turn",
    [
        {"items": ["half", {"type": "failed", "code": "server_error", "message": "no"}]},
        {"items": ["half", {"type": "error", "code": "server_error", "message": "no"}]},
        {"items": ["half"], "fault": {"name": "failed_server_error", "message": "no"}},
    ],
    ids=["failed", "error", "fault"],
)
@pytest.mark.parametrize("background", [True, False])
def test_a_response_that_failed_is_kept_as_failed(backend: BackendProcess, turn: Any, background: bool) -> None:
    session = backend.session("failed", [turn])
    post(session, background=background)
    if turn["items"][-1] != "half" and turn["items"][-1]["type"] == "error" and not background:
        assert call(session, "/responses/resp_1")[0] == 404  # its request got an HTTP error
        return
    while (found := call(session, "/responses/resp_1")[1])["status"] in ("queued", "in_progress"):
        pass
    assert (found["status"], found["error"]) == ("failed", {"code": "server_error", "message": "no"})


def test_a_call_that_was_not_answered_ends_a_conversation(backend: BackendProcess) -> None:
    session = backend.session("unanswered", [{"items": [CALL, {**CALL, "call_id": "c2"}]}, "5"])
    _, first = post(session)
    sentence = "No tool output found for function call c2."
    for items in ([OUTPUT], [OUTPUT, {"role": "user", "content": "go on"}]):
        status, answer = post(session, input=items, previous_response_id=first["id"])
        assert (status, answer["error"]["message"]) == (400, sentence)
    assert post(session, input=[OUTPUT, {**OUTPUT, "call_id": "c2"}], previous_response_id=first["id"])[0] == 200


def test_what_is_left_out_can_be_read_later(backend: BackendProcess) -> None:
    session = backend.session("included", [{"items": [{"type": "reasoning", "summary": ["a"]}]}])
    assert "encrypted_content" not in post(session)[1]["output"][0]
    for key in ("include", "include[]"):
        found = call(session, f"/responses/resp_1?{key}=reasoning.encrypted_content")[1]
        assert found["output"][0]["encrypted_content"] == "encrypted_rs_1_0"


def test_a_response_in_the_background_is_cancelled(backend: BackendProcess) -> None:
    session = backend.session("cancelled", [{"items": ["Hello."], "gate": "g"}, "x"])
    post(session, background=True)
    assert session.wait_at_gate("g")
    for _ in range(2):
        assert call(session, "/responses/resp_1/cancel", "POST")[1]["status"] == "cancelled"
    session.release("g")
    assert call(session, "/responses/resp_1")[1]["status"] == "cancelled"
    post(session)
    status, answer = call(session, "/responses/resp_2/cancel", "POST")
    assert (status, answer["error"]["message"]) == (400, "Cannot cancel a synchronous response.")


def test_a_model_and_the_tokens_of_a_request(backend: BackendProcess) -> None:
    session = backend.session("others", {"turns": [], "models": [{"slug": "mine"}]})
    assert call(session, "/models/mine")[1]["id"] == "mine"
    status, answer = call(session, "/models/other")
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    status, _, data = ask(session.url + "/v1/responses/input_tokens", {"model": "m", "input": "x" * 40})
    assert (status, json.loads(data)) == (200, {"object": "response.input_tokens", "input_tokens": 10})


def test_a_login_is_asked_for_here_too(backend: BackendProcess) -> None:
    session = backend.session("keys", {"turns": ["a"], "auth": {"mode": "api_key", "api_key": "sk-1"}})
    assert call(session, "/responses/resp_1")[0] == 401


def test_what_is_not_served_says_so(backend: BackendProcess) -> None:
    session = backend.session("unserved", ["a"])
    status, answer = call(session, "/responses/resp_1/nonsense", "POST")
    assert (status, "There is no route" in answer["error"]["message"]) == (404, True)


def test_what_is_kept_is_bounded() -> None:
    kept = Responses()
    for i in range(COUNT + 5):
        kept.keep(Turn(response_id=f"r{i}"), b"{}", "1")
    assert kept.get("r4") is None
    assert kept.get("r5") is not None
    for i in range(20):
        kept.keep(Turn(response_id=f"big{i}"), b"x" * (1 << 20), "1")
    assert kept.get("big3") is None
    assert kept.get("big4") is not None
