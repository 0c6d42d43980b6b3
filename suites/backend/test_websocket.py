"""The WebSocket of `/responses`: its handshake, prewarm, increments and control frames. Source: docs/websocket.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.backend.answer import Answer
from codex_replay.plugin.backend.conversation import Backend
from codex_replay.plugin.backend.websocket import Socket
from suites.backend.expected import CALL, CALL_ADD, HELLO, OUTPUT, body, completed, refused, user
from suites.lite_protocol import FUNCTION_TOOL

pytestmark = pytest.mark.websocket_only

#: A service on a WebSocket continues the last response of the connection; the rule against it is one of requests over HTTP.
SOURCE = "known behaviour of the real service"


def response_id(answer: Answer) -> Any:
    """Return the id of a completed response."""
    return completed(answer).events[-1]["response"]["id"]


def call_and_output(socket: Socket) -> tuple[str, dict[str, Any]]:
    """Let the model call the tool; return the id of its response, and the output of the call."""
    first = completed(socket.ask(body(user(CALL_ADD), tools=[FUNCTION_TOOL])))
    (call,) = [item for item in first.items if item["type"] == "function_call"]
    return response_id(first), {**OUTPUT, "call_id": call["call_id"]}


@pytest.mark.spec("websocket-prewarm", source=SOURCE, says="`generate` false: created and completed, without items")
def test_a_prewarm_generates_nothing(backend: Backend) -> None:
    """After a request with `generate: false`, the response is completed with an id and without items."""
    answer = completed(backend.connect().ask(body(generate=False)))
    assert answer.events[0]["type"] == "response.created"
    assert answer.items == []
    assert answer.events[-1]["response"]["output"] == []
    assert response_id(answer)


@pytest.mark.spec("websocket-prewarm-continued", source=SOURCE, says="`previous_response_id` may name a prewarm")
def test_a_prewarm_is_continued(backend: Backend) -> None:
    """A request may continue a prewarm (a request with `generate: false`), and then sends only the new input."""
    socket = backend.connect()
    warm = response_id(socket.ask(body(generate=False)))
    answer = completed(socket.ask(body(user(HELLO), previous_response_id=warm)))
    assert answer.text
    assert response_id(answer) != warm


@pytest.mark.spec("websocket-increment", source=SOURCE, says="an increment continues the whole conversation")
def test_an_increment_stands_for_the_whole_conversation(backend: Backend) -> None:
    """A request with `previous_response_id` may have the output of a call without the call: the earlier response has the call."""
    if not backend.live:
        backend.says(CALL)
    socket = backend.connect()
    response, output = call_and_output(socket)
    completed(socket.ask(body(output, tools=[FUNCTION_TOOL], previous_response_id=response)))


@pytest.mark.spec("websocket-increment-rules", source=SOURCE, says="the rules hold for the whole conversation of an increment")
def test_the_rules_hold_for_increments(backend: Backend) -> None:
    """The backend also refuses an increment with an output if no response of the conversation has the call."""
    socket = backend.connect()
    first = response_id(socket.ask(body()))
    refused(socket.ask(body({**OUTPUT, "call_id": "call_of_nobody"}, previous_response_id=first)), 400)


@pytest.mark.spec("websocket-full", source=SOURCE, says="a request without previous_response_id is complete")
def test_a_full_request_starts_anew(backend: Backend) -> None:
    """A second request without `previous_response_id` does not contain the conversation of the first request."""
    if not backend.live:
        backend.says(CALL)
    socket = backend.connect()
    _, output = call_and_output(socket)
    refused(socket.ask(body(output, tools=[FUNCTION_TOOL])), 400)


@pytest.mark.spec("websocket-unknown-response", source=SOURCE, says="previous_response_not_found")
def test_an_unknown_response_is_not_continued(backend: Backend) -> None:
    """The error for an unknown response has the code after which Codex sends the whole conversation again."""
    assert (
        refused(backend.connect().ask(body(previous_response_id="resp_of_nobody")), 400)["code"] == "previous_response_not_found"
    )


@pytest.mark.spec("websocket-other-connection", source=SOURCE, says="the last response of the same connection can be continued")
def test_a_response_of_another_connection_is_not_continued(backend: Backend) -> None:
    """With `store: false`, a request cannot continue a response from another connection."""
    first = response_id(backend.connect().ask(body()))
    assert refused(backend.connect().ask(body(previous_response_id=first)), 400)["code"] == "previous_response_not_found"


@pytest.mark.spec("websocket-error-stays", source=SOURCE, says="an error is a message, and the connection stays")
def test_a_connection_survives_an_error(backend: Backend) -> None:
    """After the error for an invalid request, the next request on the same connection is answered."""
    socket = backend.connect()
    refused(socket.ask(body(model=...)), 400)
    completed(socket.ask(body()))


@pytest.mark.spec("websocket-one-by-one", source=SOURCE, says="requests of one connection are answered in order")
def test_requests_are_answered_in_order(backend: Backend) -> None:
    """If a client sends two requests at the same time, the backend answers them one after the other."""
    socket = backend.connect()
    socket.send(body())
    socket.send(body(generate=False))
    first, second = completed(socket.answer()), completed(socket.answer())
    assert (bool(first.items), second.items) == (True, [])
    assert response_id(first) != response_id(second)


@pytest.mark.spec("websocket-ping", source="RFC 6455, section 5.5.2", says="a pong with the payload of the ping")
def test_a_ping_is_answered(backend: Backend) -> None:
    """A ping between two requests is answered with its payload."""
    socket = backend.connect()
    assert socket.ping(b"payload of a ping")
    completed(socket.ask(body()))


@pytest.mark.spec("websocket-ping-in-response", source="RFC 6455, section 5.5.2", says="as soon as is practical")
def test_a_ping_is_answered_in_the_middle_of_a_response(backend: Backend) -> None:
    """The backend answers a ping during a response, before the response has ended."""
    backend.says("one", {"type": "gate", "name": "after-the-ping"}, "two")
    socket = backend.connect()
    socket.send(body())
    assert socket.event()["type"] == "response.created"
    assert socket.ping(b"now")
    backend.release("after-the-ping")
    assert completed(socket.answer()).items[-1]["content"][0]["text"] == "two"


@pytest.mark.spec(
    "websocket-close", source="RFC 6455, section 5.5.1", says="a close frame is answered with a close frame of the same code"
)
def test_a_close_frame_is_answered(backend: Backend) -> None:
    """The backend answers a close frame with a close frame that has the same code."""
    socket = backend.connect()
    completed(socket.ask(body()))
    assert socket.close() == 1000


@pytest.mark.parametrize("fragments", [2, 7])
@pytest.mark.spec("websocket-fragments", source="RFC 6455, section 5.4", says="a message may have several frames")
def test_a_message_in_fragments(backend: Backend, fragments: int) -> None:
    """A request may be split into several WebSocket frames."""
    completed(backend.connect().ask(body(), fragments=fragments))


@pytest.mark.parametrize("compressed", [True, False], ids=["offered", "not offered"])
@pytest.mark.spec("websocket-compression", source="RFC 7692, section 5", says="used only if the client offers it")
def test_compression_is_the_choice_of_both(backend: Backend, compressed: bool) -> None:
    """The backend answers three requests, with and without an offer of permessage-deflate."""
    socket = backend.connect(compressed=compressed)
    if not compressed:
        assert socket.extensions == ""
    for number in range(3):
        completed(socket.ask(body(user(f"{HELLO} This is request {number}."))))


@pytest.mark.parametrize("kind", ["another type", "no type"])
@pytest.mark.spec("websocket-message-type", source=SOURCE, says="`type` is response.create")
def test_a_message_of_another_type(backend: Backend, kind: str) -> None:
    """A message that is not a `response.create` is refused."""
    value = {**body(), **({"type": "response.begin"} if kind == "another type" else {})}
    refused(backend.connect().ask(json.dumps(value).encode()), 400)
