"""The agent tested with respx."""

import json

import httpx
import openai
import pytest
from agent import run, stream

url = "http://model.test/v1"


def response(*output):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "gpt-5.2",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def message(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


@pytest.fixture
def model(respx_mock):
    return respx_mock.post(url + "/responses")


def test_text(model):
    model.respond(json=response(message("Hello.")))
    assert run(url, "Hi") == "Hello."


def test_stream(model):
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": {**response(), "status": "in_progress"}},
        {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Hel", **place},
        {"type": "response.output_text.delta", "sequence_number": 2, "delta": "lo.", **place},
        {"type": "response.completed", "sequence_number": 3, "response": response(message("Hello."))},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    model.respond(headers={"content-type": "text/event-stream"}, text=body)
    assert stream(url, "Hi") == "Hello."


def test_tool(model):
    call = {"id": "fc_1", "type": "function_call", "name": "add", "call_id": "c1", "arguments": '{"a": 1, "b": 2}'}
    replies = [response(call), response(message("It is 3."))]
    model.side_effect = [httpx.Response(200, json=reply) for reply in replies]
    assert run(url, "1 + 2?") == "It is 3."
    outputs = [item for item in json.loads(model.calls.last.request.content)["input"] if item.get("call_id") == "c1"]
    assert outputs[-1]["output"] == "3"


def test_limit(model):
    limited = httpx.Response(429, headers={"retry-after": "0"}, json={"error": {"message": "Slow down."}})
    model.side_effect = [limited, httpx.Response(200, json=response(message("Hello.")))]
    assert run(url, "Hi") == "Hello."


def test_refused(model):
    model.respond(400, json={"error": {"message": "Too long.", "type": "invalid_request_error"}})
    with pytest.raises(openai.BadRequestError, match="Too long"):
        run(url, "Hi")
