"""The form of responses, with and without a stream, in the output mode openai-json.

Source: the Responses API reference; docs/contract/handoff.md, step 3.
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.answers import must_be_an_object, must_say
from suites.proxy.expected import WORKS, each_way, native, tool
from suites.proxy.saying import must_be, must_count, only, short, usage_of

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hello, «world» \U0001f600.")]

TEXT = "Hello, «world» \U0001f600."
CALL = '<tool_call>{"name":"getFileTree","arguments":"{\\"path\\":\\"a\\"}"}</tool_call>'


def stream(proxy: Proxy, **more: Any) -> list[Any]:
    """Request a stream, check that the name of each event equals the `type` in its data, and return the data."""
    events = [event for event in proxy.responses({"stream": True, **more}).events if event.data != "[DONE]"]
    for event in events:
        must_be_an_object(event)
        must_be("The name of an event (its `event:` line)", event.name or event.value["type"], event.value["type"])
    return [event.value for event in events]


@pytest.mark.spec("responses-whole", "HAND-14", source="OpenAI API reference, Responses", says="The response object")
def test_whole(proxy: Proxy) -> None:
    """The answer is a completed response with one message; this message has the model's text."""
    done = proxy.responses()
    body = done.json
    got = (body["object"], body["status"], body["error"])
    must_be("(object, status, error) of the answer", got, ("response", "completed", None))
    assert body["id"], f"id must be a non-empty string, not {body['id']!r}"
    assert type(body["created_at"]) in (int, float), f"created_at must be a number of seconds, not {body['created_at']!r}"
    message = only("item in `output` of the answer", body["output"])
    report = (message["type"], message["role"], message["status"])
    must_be("(type, role, status) of output[0]", report, ("message", "assistant", "completed"))
    parts = [(part["type"], part["text"]) for part in message["content"]]
    must_be("(type, text) of output[0].content", parts, [("output_text", TEXT)])


@pytest.mark.spec(
    "responses-usage",
    "HAND-14",
    source="OpenAI API reference, Responses",
    says="usage: input_tokens, output_tokens, total_tokens",
)
@pytest.mark.model(turns=[{"items": [TEXT], "usage": {"input_tokens": 1234, "output_tokens": 56}}])
def test_usage(proxy: Proxy) -> None:
    """`usage` has the token counts of the model, in an answer without a stream and at the end of a stream."""
    usage = usage_of(proxy.responses())
    counts = (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"])
    must_count("(input_tokens, output_tokens, total_tokens) of `usage`", counts, (1234, 56, 1290))


@pytest.mark.spec(
    "responses-function-call",
    "HAND-14",
    source="OpenAI API reference, Responses",
    says="function_call: id, call_id, name, arguments, status",
)
@each_way([CALL], [native()])
def test_a_call(proxy: Proxy, way: str) -> None:
    """A tool call is a separate item of the response, with a call_id for its output."""
    output = proxy.responses({"tools": [tool("responses")]}).json["output"]
    calls = [each for each in output if each["type"] == "function_call"]
    item = only(f"item of type function_call in `output`, for the model called getFileTree ({way})", calls, output)
    must_be("`name` of the function_call", item["name"], "getFileTree")
    assert item["call_id"], f"`call_id` of the function_call must be a non-empty string, not {item['call_id']!r}"
    message = item["arguments"]
    assert isinstance(message, str), f"`arguments` of the function_call must be a string of JSON, not {message!r}"


@pytest.mark.spec(
    "responses-stream-order", "HAND-14", source="OpenAI API reference, Responses", says="response.created ... response.completed"
)
def test_order(proxy: Proxy) -> None:
    """The stream begins with one response.created and ends with one response.completed."""
    kinds = [value["type"] for value in stream(proxy)]
    assert kinds, "the stream has no event"
    must_be("The types of the first and the last event", (kinds[0], kinds[-1]), ("response.created", "response.completed"))
    counts = (kinds.count("response.created"), kinds.count("response.completed"))
    must_be("The numbers of response.created and response.completed", counts, (1, 1))


@pytest.mark.spec(
    "responses-stream-item",
    "HAND-14",
    source="OpenAI API reference, Responses",
    says="output_item.added, content_part.added, output_text.delta/done, content_part.done, output_item.done",
)
def test_an_item(proxy: Proxy) -> None:
    """The events of a message come in the fixed order of the OpenAI API."""
    kinds = [value["type"].removeprefix("response.") for value in stream(proxy)]
    wanted = [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    first = [kind for i, kind in enumerate(kinds) if kind in wanted and kind not in kinds[:i]]
    must_be("The types of a message's events (response.*), in the order of their first occurrence,", first, wanted)


@pytest.mark.spec("responses-stream-sequence", "HAND-14", source="OpenAI API reference, Responses", says="sequence_number")
def test_sequence_numbers(proxy: Proxy) -> None:
    """The sequence numbers of the events have no gap."""
    numbers = [value["sequence_number"] for value in stream(proxy)]
    assert numbers, "the stream has no event"
    must_be("sequence_number of the events", numbers, list(range(numbers[0], numbers[0] + len(numbers))))


@pytest.mark.spec("responses-stream-agrees", "HAND-14", source="OpenAI API reference, Responses", says="response.completed")
@each_way([f"{TEXT} {CALL}"], [TEXT, native()], pytest.param("text", marks=pytest.mark.model(f"{TEXT} {CALL}")))
def test_the_end_agrees_with_the_events(proxy: Proxy, way: str) -> None:
    """The response in the last event has the streamed items, with the same ids, contents and order."""
    values = stream(proxy, **({} if way == "text" else {"tools": [tool("responses")]}))
    done = {value["output_index"]: value["item"] for value in values if value["type"] == "response.output_item.done"}
    final = values[-1]["response"]["output"]
    must_be(
        "response.output of the last event (the items of all output_item.done, by output_index)",
        final,
        [done[n] for n in sorted(done)],
    )
    deltas = "".join(value["delta"] for value in values if value["type"] == "response.output_text.delta")
    texts = "".join(part["text"] for item in final if item["type"] == "message" for part in item["content"])
    must_be("The text of all output_text.delta (compared to the messages of the last event)", deltas, texts)


@pytest.mark.spec("responses-stream-id", "HAND-14", source="OpenAI API reference, Responses", says="response.id")
def test_one_id(proxy: Proxy) -> None:
    """A response has the same id in all its events."""
    ids = {value["response"]["id"] for value in stream(proxy) if "response" in value}
    assert len(ids) == 1, f"response.id must be the same in all events of a stream; got {short(ids)}"


@pytest.mark.spec(
    "responses-stream-arguments",
    "HAND-14",
    source="OpenAI API reference, Responses",
    says="function_call_arguments.delta, function_call_arguments.done",
)
@each_way([CALL], [native()])
def test_arguments_of_a_call(proxy: Proxy, way: str) -> None:
    """The joined deltas of a call's arguments equal the arguments of the finished item."""
    values = stream(proxy, tools=[tool("responses")])
    deltas = "".join(value["delta"] for value in values if value["type"] == "response.function_call_arguments.delta")
    done = [value["arguments"] for value in values if value["type"] == "response.function_call_arguments.done"]
    items = [item["arguments"] for item in values[-1]["response"]["output"] if item["type"] == "function_call"]
    kinds = [value["type"] for value in values]
    only(f"function_call_arguments.done, for the model called getFileTree ({way})", done, kinds)
    must_be("`arguments` of the function_call in the last event (function_call_arguments.done has the wanted one)", items, done)
    must_be("The text of all function_call_arguments.delta", deltas, done[0])


@pytest.mark.spec(
    "responses-stream-text", "HAND-09", "HAND-14", source="OpenAI API reference, Responses", says="response.output_text.delta"
)
def test_text(proxy: Proxy) -> None:
    """The joined deltas of the stream equal the model's text."""
    must_say(proxy.responses({"stream": True}), TEXT)
