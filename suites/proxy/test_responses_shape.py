"""The shape of responses, whole and streamed (openai-json). Source: the Responses API reference; responses-handoff.md, step 3."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.answers import read
from suites.proxy.expected import WORKS, each_way, native, tool

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hello, «world» \U0001f600.")]

WHERE = "OpenAI API reference, Responses"
TEXT = "Hello, «world» \U0001f600."
CALL = '<tool_call>{"name":"getFileTree","arguments":"{\\"path\\":\\"a\\"}"}</tool_call>'


def stream(proxy: Proxy, **more: Any) -> list[Any]:
    """Ask for a stream and return the values of its events; each is an object whose type is the event's name."""
    events = [event for event in proxy.responses({"stream": True, **more}).events if event.data != "[DONE]"]
    assert [event.name or event.value["type"] for event in events] == [event.value["type"] for event in events]
    return [event.value for event in events]


@pytest.mark.spec("responses-whole", WHERE, "The response object")
def test_whole(proxy: Proxy) -> None:
    """A completed response with one message, whose part is the model's text."""
    done = proxy.responses()
    body = done.json
    assert (body["object"], body["status"], body["error"]) == ("response", "completed", None)
    assert body["id"]
    assert type(body["created_at"]) in (int, float)
    [message] = body["output"]
    assert (message["type"], message["role"], message["status"]) == ("message", "assistant", "completed")
    assert [(part["type"], part["text"]) for part in message["content"]] == [("output_text", TEXT)]


@pytest.mark.spec("responses-usage", WHERE, "usage: input_tokens, output_tokens, total_tokens")
@pytest.mark.model(turns=[{"items": [TEXT], "usage": {"input_tokens": 1234, "output_tokens": 56}}])
def test_usage(proxy: Proxy) -> None:
    """The model's own count, in the whole answer and at the end of a stream."""
    usage = proxy.responses().json["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (1234, 56, 1290)


@pytest.mark.spec("responses-function-call", WHERE, "function_call: id, call_id, name, arguments, status")
@each_way([CALL], [native()])
def test_a_call(proxy: Proxy, way: str) -> None:
    """A call is an item of its own with an id to answer it by."""
    [item] = [each for each in proxy.responses({"tools": [tool("responses")]}).json["output"] if each["type"] == "function_call"]
    assert item["name"] == "getFileTree"
    assert item["call_id"]
    assert isinstance(item["arguments"], str)


@pytest.mark.spec("responses-stream-order", WHERE, "response.created ... response.completed")
def test_order(proxy: Proxy) -> None:
    """It begins with response.created and ends with response.completed, each once."""
    kinds = [value["type"] for value in stream(proxy)]
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert (kinds.count("response.created"), kinds.count("response.completed")) == (1, 1)


@pytest.mark.spec(
    "responses-stream-item",
    WHERE,
    "output_item.added, content_part.added, output_text.delta/done, content_part.done, output_item.done",
)
def test_an_item(proxy: Proxy) -> None:
    """The life of a message in its order."""
    kinds = [value["type"].removeprefix("response.") for value in stream(proxy)]
    wanted = [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert [kind for i, kind in enumerate(kinds) if kind in wanted and kind not in kinds[:i]] == wanted


@pytest.mark.spec("responses-stream-sequence", WHERE, "sequence_number")
def test_sequence_numbers(proxy: Proxy) -> None:
    """They count the events up from the first."""
    numbers = [value["sequence_number"] for value in stream(proxy)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.spec("responses-stream-agrees", WHERE, "response.completed")
@each_way([f"{TEXT} {CALL}"], [TEXT, native()], pytest.param("text", marks=pytest.mark.model(f"{TEXT} {CALL}")))
def test_the_end_agrees_with_the_events(proxy: Proxy, way: str) -> None:
    """The final response has the items that were streamed, by id and content, at their places."""
    values = stream(proxy, **({} if way == "text" else {"tools": [tool("responses")]}))
    done = {value["output_index"]: value["item"] for value in values if value["type"] == "response.output_item.done"}
    assert [done[index] for index in sorted(done)] == values[-1]["response"]["output"]
    deltas = "".join(value["delta"] for value in values if value["type"] == "response.output_text.delta")
    final = values[-1]["response"]["output"]
    assert deltas == "".join(part["text"] for item in final if item["type"] == "message" for part in item["content"])


@pytest.mark.spec("responses-stream-id", WHERE, "response.id")
def test_one_id(proxy: Proxy) -> None:
    """One response has one id from its beginning to its end."""
    assert len({value["response"]["id"] for value in stream(proxy) if "response" in value}) == 1


@pytest.mark.spec("responses-stream-arguments", WHERE, "function_call_arguments.delta, function_call_arguments.done")
@each_way([CALL], [native()])
def test_arguments_of_a_call(proxy: Proxy, way: str) -> None:
    """The deltas of the arguments are the arguments of the item."""
    values = stream(proxy, tools=[tool("responses")])
    deltas = "".join(value["delta"] for value in values if value["type"] == "response.function_call_arguments.delta")
    done = [value["arguments"] for value in values if value["type"] == "response.function_call_arguments.done"]
    items = [item["arguments"] for item in values[-1]["response"]["output"] if item["type"] == "function_call"]
    assert [deltas] == done == items


@pytest.mark.spec("responses-stream-text", WHERE, "response.output_text.delta")
def test_text(proxy: Proxy) -> None:
    """The deltas are the text, each piece once."""
    assert read(proxy.responses({"stream": True})).text == TEXT
