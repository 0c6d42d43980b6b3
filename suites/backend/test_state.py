"""The state that the documented service keeps: stored responses, the turns that continue them, and conversations.

Sources: API reference, "Responses" and "Conversations"; the guide on background mode.
`-m "not keeps_state"` leaves these cases out.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from codex_replay.plugin.backend.conversation import Answer, Backend
from suites.backend.expected import HELLO, OUTPUT, refused, user

pytestmark = pytest.mark.keeps_state

CALL_ITEM = {"type": "function_call", "name": "add", "call_id": "call_1", "arguments": '{"a": 2, "b": 3}'}


def send(backend: Backend, path: str = "/responses", method: str = "POST", **body: Any) -> Answer:
    """Send a request as an SDK does: without the headers of Codex."""
    return backend.ask(body, {"originator": None}, path=path, method=method)


def found(answer: Answer) -> dict[str, Any]:
    """Check that a request succeeded; return the JSON object in the body of the response."""
    assert answer.status == 200, f"expected status 200 for a valid request, got {answer.status}\n{answer.report_on()}"
    assert isinstance(answer.value, dict), f"expected a JSON object\n{answer.report_on()}"
    kind = answer.header("content-type").partition(";")[0]
    assert kind == "application/json", f"expected the content type application/json, got {kind!r}"
    return answer.value


def made(backend: Backend, *said: Any, **body: Any) -> dict[str, Any]:
    """Make a response with the given items (default: the default reply of the fake); return the response."""
    backend.login("api_key")
    if said:
        backend.says(*said)
    return found(send(backend, **{"model": "gpt-5.2", "input": HELLO, **body}))


def texts(items: list[dict[str, Any]]) -> list[str]:
    """Return the text of each message in a list of items."""
    return ["".join(part["text"] for part in item["content"]) for item in items]


@pytest.mark.spec("state-get", source="openai 3.52.0, client.responses.retrieve()", says="a stored response can be read")
def test_a_response_is_read_again(backend: Backend) -> None:
    """GET returns the stored response, which equals the answer to the request."""
    response = made(backend)
    assert found(backend.get(f"/v1/responses/{response['id']}")) == response


@pytest.mark.spec("state-streamed", source="openai 3.52.0, client.responses.retrieve()", says="a streamed response is stored too")
def test_a_streamed_response_is_read_again(backend: Backend) -> None:
    """After a streamed request, GET returns the response in the form that the last event of the stream has."""
    backend.login("api_key")
    last = send(backend, model="gpt-5.2", input=HELLO, stream=True).events[-1]["response"]
    assert found(backend.get(f"/v1/responses/{last['id']}")) == last


@pytest.mark.spec(
    "state-resume", source="openai 3.52.0, client.responses.retrieve()", says="starting_after: the event to start after"
)
def test_a_stream_is_resumed(backend: Backend) -> None:
    """GET with `stream` and `starting_after` returns the events after that number."""
    backend.login("api_key")
    events = send(backend, model="gpt-5.2", input=HELLO, stream=True).events
    again = backend.get(f"/v1/responses/{events[0]['response']['id']}?stream=true&starting_after=2")
    assert again.events == events[3:]


@pytest.mark.spec("state-unknown", source="known behaviour of the real service", says="an unknown response is 404")
def test_an_unknown_response_is_not_found(backend: Backend) -> None:
    """GET of an unknown id gets a 404 that names the id."""
    backend.login("api_key")
    assert "resp_unknown" in refused(backend.get("/v1/responses/resp_unknown"), 404)["message"]


@pytest.mark.spec("state-not-stored", source="openai 3.52.0, the parameter store", says="store: false keeps nothing")
def test_a_response_that_is_not_stored_is_not_found(backend: Backend) -> None:
    """GET of a response that was made with `"store": false` gets a 404."""
    refused(backend.get(f"/v1/responses/{made(backend, store=False)['id']}"), 404)


@pytest.mark.spec("state-delete", source="openai 3.52.0, client.responses.delete()", says="a stored response can be deleted")
def test_a_deleted_response_is_gone(backend: Backend) -> None:
    """After DELETE the response cannot be read, deleted or continued."""
    path = f"/responses/{(response := made(backend))['id']}"
    assert send(backend, path, "DELETE").status == 200
    refused(backend.get(f"/v1{path}"), 404)
    refused(send(backend, path, "DELETE"), 404)
    refused(send(backend, model="gpt-5.2", input="And then?", previous_response_id=response["id"]), 400)


@pytest.mark.spec("state-input-items", source="openai 3.52.0, client.responses.input_items.list()", says="a page, newest first")
def test_the_input_is_listed(backend: Backend) -> None:
    """GET of the input of a response returns a page of items with ids, newest first; `order=asc` reverses the order."""
    response = made(backend, input=[user("One."), user("Two.")])
    page = found(backend.get(f"/v1/responses/{response['id']}/input_items"))
    assert (page["object"], texts(page["data"]), page["has_more"]) == ("list", ["Two.", "One."], False)
    assert [page["first_id"], page["last_id"]] == [item["id"] for item in page["data"]]
    turned = found(backend.get(f"/v1/responses/{response['id']}/input_items?order=asc"))
    assert turned["data"] == page["data"][::-1]


@pytest.mark.spec(
    "state-previous", source="openai 3.52.0, the parameter previous_response_id", says="continues a stored response"
)
def test_a_response_is_continued(backend: Backend) -> None:
    """A request can name the response before it, and can send outputs for the calls of this response."""
    first = made(backend, CALL_ITEM)
    assert [{key: item[key] for key in CALL_ITEM} for item in first["output"]] == [CALL_ITEM]
    second = found(send(backend, model="gpt-5.2", input=[OUTPUT], previous_response_id=first["id"]))
    assert second["previous_response_id"] == first["id"]
    assert second["id"] != first["id"]


@pytest.mark.spec(
    "state-previous-unknown", source="known behaviour of the real service", says="previous_response_not_found is 400"
)
def test_an_unknown_response_is_not_continued(backend: Backend) -> None:
    """An unknown `previous_response_id` gets a 400 with the documented code and parameter, and a message that names the id."""
    backend.login("api_key")
    error = refused(send(backend, model="gpt-5.2", input=HELLO, previous_response_id="resp_unknown"), 400)
    assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")
    assert error["message"] == "Previous response with id 'resp_unknown' not found."


@pytest.mark.spec("state-previous-call", source="known behaviour of the real service", says="an output without its call is 400")
def test_an_output_of_another_conversation_is_refused(backend: Backend) -> None:
    """The backend refuses an output if the conversation that the request continues does not have its call."""
    first = made(backend, CALL_ITEM)
    items = [{**OUTPUT, "call_id": "call_9"}]
    error = refused(send(backend, model="gpt-5.2", input=items, previous_response_id=first["id"]), 400)
    assert "call_9" in error["message"]


@pytest.mark.spec("state-background", source="openai 3.52.0, the parameter background", says="queued, then polled")
def test_a_response_in_the_background_is_polled(backend: Backend) -> None:
    """The answer to a background request is a queued response without output; a later GET returns the completed response."""
    response = made(backend, "Hello.", background=True)
    assert (response["status"], response["output"]) == ("queued", [])
    assert response["background"] is True
    end = time.monotonic() + 10
    while (now := found(backend.get(f"/v1/responses/{response['id']}")))["status"] in ("queued", "in_progress"):
        assert time.monotonic() < end, "the response was not completed within 10 s"
        time.sleep(0.02)
    assert (now["status"], texts(now["output"])) == ("completed", ["Hello."])


@pytest.mark.spec("state-cancel", source="openai 3.52.0, client.responses.cancel()", says="a background response is cancelled")
def test_a_response_in_the_background_is_cancelled(backend: Backend) -> None:
    """After a cancel, the status of the response stays `cancelled`; a second cancel has no effect."""
    response = made(backend, {"type": "gate", "name": "held"}, "Never.", background=True)
    for _ in range(2):
        assert found(send(backend, f"/responses/{response['id']}/cancel"))["status"] == "cancelled"
    assert found(backend.get(f"/v1/responses/{response['id']}"))["status"] == "cancelled"


@pytest.mark.spec("state-cancel-other", source="openai 3.52.0, client.responses.cancel()", says="only background responses")
def test_another_response_is_not_cancelled(backend: Backend) -> None:
    """Cancel of a response that was not made in the background gets a 400."""
    refused(send(backend, f"/responses/{made(backend)['id']}/cancel"), 400)


@pytest.mark.spec("state-conversation", source="openai 3.52.0, client.conversations", says="create, retrieve, update, delete")
def test_a_conversation_is_made_changed_and_deleted(backend: Backend) -> None:
    """A conversation keeps its metadata until it is deleted."""
    backend.login("api_key")
    conversation = found(send(backend, "/conversations", metadata={"topic": "a"}))
    path = f"/conversations/{conversation['id']}"
    assert (conversation["object"], conversation["metadata"]) == ("conversation", {"topic": "a"})
    assert found(backend.get(f"/v1{path}")) == conversation
    found(send(backend, path, metadata={"topic": "b"}))
    assert found(backend.get(f"/v1{path}"))["metadata"] == {"topic": "b"}
    assert found(send(backend, path, "DELETE"))["deleted"] is True
    refused(backend.get(f"/v1{path}"), 404)


@pytest.mark.spec(
    "state-conversation-turn", source="openai 3.52.0, the parameter conversation", says="input and output are added"
)
def test_a_turn_goes_into_its_conversation(backend: Backend) -> None:
    """After a response, the conversation contains its first items, followed by the input and the output of that response."""
    backend.login("api_key")
    backend.says("Hello.")
    conversation = found(send(backend, "/conversations", items=[user("Zero.")]))
    response = found(send(backend, model="gpt-5.2", input="One.", conversation=conversation["id"]))
    assert response["conversation"] == {"id": conversation["id"]}
    items = found(backend.get(f"/v1/conversations/{conversation['id']}/items?order=asc"))["data"]
    assert texts(items) == ["Zero.", "One.", "Hello."]


@pytest.mark.spec(
    "state-conversation-unknown", source="known behaviour of the real service", says="an unknown conversation is 404"
)
def test_an_unknown_conversation_is_refused(backend: Backend) -> None:
    """A request that names an unknown conversation gets a 404 with the id of the conversation."""
    backend.login("api_key")
    error = refused(send(backend, model="gpt-5.2", input=HELLO, conversation="conv_unknown"), 404)
    assert "conv_unknown" in error["message"]
