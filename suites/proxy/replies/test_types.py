"""The type of every member that OpenAI's clients read; and whether the deltas of a stream add up to the last event.

Source: docs/contract/handoff.md, Output mode selection; the OpenAI API reference; how the `openai` package joins streams.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.answers import arguments, read
from suites.proxy.expected import ENDPOINTS, WORKS, each_way, format_of, native, tool
from suites.proxy.failures import AT_ONCE, THINKS, failure, must_come_of_the_fault, with_optional
from suites.proxy.saying import must_be, must_be_answered, must_count
from suites.proxy.shapes import CHUNK, COMPLETION, ERROR, EVENTS, MODELS, RESPONSE, must_fit

pytestmark = pytest.mark.proxy_profile(WORKS)

TEXT = "Hello, «world» \U0001f600."
CALL = '<tool_call>{"name":"getFileTree","arguments":"{\\"path\\":\\"a\\"}"}</tool_call>'
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH_WAY = each_way([f"{TEXT} {CALL}"], [TEXT, native()], pytest.param("text", marks=pytest.mark.model(f"{TEXT} {CALL}")))
#: What a response may repeat of its request.
SETTINGS: dict[str, Any] = {
    "instructions": "Be brief.",
    "temperature": 0.5,
    "top_p": 0.5,
    "max_output_tokens": 500,
    "metadata": {"a": "b"},
    "reasoning": {"effort": "low"},
}
COUNTS = {"input_tokens": 1234, "output_tokens": 56, "cached_tokens": 34, "reasoning_tokens": 5}
#: What of a response changes while it is made.
MOVING = {"status", "output", "usage", "error", "incomplete_details", "completed_at", "output_text"}


def asked(proxy: Proxy, endpoint: str, way: str, **more: Any) -> Exchange:
    """Request a text; with a tool, request a text and a tool call."""
    tools = {} if way == "text" else {"tools": [tool(endpoint)]}
    return proxy.post(endpoint, {**tools, **more})


def must_be_json(done: Exchange) -> None:
    """Check the content type of an answer that is not streamed."""
    kind = (done.header("content-type") or "").partition(";")[0]
    must_be(f"The header content-type of the answer to {done.method} {done.path}", kind, "application/json")


def must_have_types(done: Exchange) -> None:
    """Compare each member of an answer, or of each event, with the type that it has in the OpenAI API."""
    chat = done.path.endswith("/chat/completions")
    if done.status < 400:
        must_be_answered(done, 200)
    if not done.is_stream:
        must_be_json(done)
        must_fit("the answer", done.json, ERROR if done.status >= 400 else COMPLETION if chat else RESPONSE)
        return
    for number, event in enumerate(done.events, 1):
        where = f"event {number} of the stream"
        if event.data == "[DONE]":
            continue
        if chat:
            broken = isinstance(event.value, dict) and "error" in event.value
            must_fit(where, event.value, ERROR if broken else CHUNK)
            must_be(f"The name of {where} (its `event:` line), of which a chat's stream has none,", event.name, "")
            continue
        must_fit(where, event.value, {"type": "word", "sequence_number": "count"})
        kind = event.value["type"]
        must_be(
            f"sequence_number of {where}", event.value["sequence_number"], done.events[0].value["sequence_number"] + number - 1
        )
        must_be(f"The name of {where} (its `event:` line)", event.name or kind, kind)
        must_fit(f"{where} ({kind})", event.value, EVENTS.get(kind, {}))


@pytest.mark.spec("responses-types", "HAND-14", source="OpenAI API reference, Responses", says="The response object, its events")
@STREAM
@EACH_WAY
def test_types_of_responses(proxy: Proxy, way: str, stream: bool) -> None:
    """Each member of the answer that a client reads is present and has the right type."""
    must_have_types(asked(proxy, "responses", way, stream=stream, **SETTINGS))


@pytest.mark.spec("responses-types", "HAND-14", source="OpenAI API reference, Responses", says="The response object, its events")
@STREAM
@pytest.mark.model('{"sum":5}')
def test_types_of_responses_by_a_schema(proxy: Proxy, stream: bool) -> None:
    """The response repeats the client's format and tool choice as objects."""
    body = {"stream": stream, "tools": [tool("responses")]}
    optional = {**format_of("responses"), "tool_choice": {"type": "function", "name": "getFileTree"}}
    must_have_types(with_optional(proxy, lambda **more: proxy.responses({**body, **more}), **optional)[0])


@pytest.mark.spec("chat-types", source="OpenAI API reference, Chat Completions", says="The chat completion object and its chunks")
@STREAM
@EACH_WAY
def test_types_of_chat(proxy: Proxy, way: str, stream: bool) -> None:
    """Each member of the answer that a client reads is present and has the right type."""
    more = {"stream_options": {"include_usage": True}} if stream else {}
    must_have_types(with_optional(proxy, lambda **more: asked(proxy, "chat", way, stream=stream, **more), **more)[0])


@pytest.mark.spec("error-types", "HAND-14", source="OpenAI API reference, Errors", says="error: message, type, param, code")
@STREAM
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.model(
    turns=[{"items": [TEXT, {"type": "failed", "code": "server_error", "message": "no"}], **THINKS, "times": "always"}]
)
def test_types_of_a_failure(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If a request fails before or during the stream, the answer has an error in the form of the OpenAI API."""
    done = proxy.post(endpoint, {"stream": stream}, ok=False, within=AT_ONCE)
    must_come_of_the_fault(proxy, done)
    must_have_types(done)
    assert failure(done), f"the error in the answer is empty: {done.shown(-300)}"
    if done.is_stream:
        values = [event.value for event in done.events if event.data != "[DONE]"]
        broken = [at for at, value in enumerate(values) if value.get("type") == "response.failed" or value.get("error")]
        must_be("The places of the events that report the failure (the last event alone)", broken, [len(values) - 1])
        if endpoint == "responses":
            must_be_one_response(values)
        ends = [at for at, event in enumerate(done.events) if event.data == "[DONE]"]
        must_be("The places of [DONE] (if it comes, behind the failure)", ends, [len(values)] if ends else [])


@pytest.mark.spec("error-types", "HAND-14", source="OpenAI API reference, Errors", says="error: message, type, param, code")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/nothing"])
@pytest.mark.parametrize("body", [b"{", {"model": 7}], ids=["broken", "wrong"])
@pytest.mark.model("Hi.")
def test_types_of_a_refusal(proxy: Proxy, path: str, body: Any) -> None:
    """If the proxy itself refuses a request, the answer has an error in the form of the OpenAI API."""
    must_have_types(proxy.ask("POST", path, body))


@pytest.mark.needs("models")
@pytest.mark.spec("models-types", source="OpenAI API reference, Models", says="The model object")
def test_types_of_the_models(proxy: Proxy) -> None:
    """The list of models consists of objects with ids, and each id occurs once."""
    done = proxy.ask("GET", "/v1/models")
    must_be_answered(done, 200)
    must_be_json(done)
    must_fit("the answer", done.json, MODELS)
    ids = [each["id"] for each in done.json["data"]]
    must_be("The ids of the models, each once,", ids, list(dict.fromkeys(ids)))


@pytest.mark.spec("usage-adds-up", "HAND-14", source="OpenAI API reference", says="total_tokens")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@STREAM
@pytest.mark.model(turns=[{"items": [TEXT], "usage": COUNTS}])
def test_usage_adds_up(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """In `usage`, the counts and their details come from the model, and the total is their sum."""
    more = {"stream_options": {"include_usage": True}} if stream and endpoint == "chat" else {}
    done, counted = with_optional(proxy, lambda **more: proxy.post(endpoint, {"stream": stream, **more}), **more)
    if not counted:
        return  # a stream without stream_options has no usage
    values = [event.value for event in done.events if isinstance(event.value, dict)] if stream else [done.json]
    found = [usage for each in values if (usage := (each.get("response") or each).get("usage"))]
    assert found, "the answer has no usage, though the app-server has reported it"
    taken, given = ("input", "output") if endpoint == "responses" else ("prompt", "completion")
    usage = found[-1]
    counts = (usage[f"{taken}_tokens"], usage[f"{given}_tokens"], usage["total_tokens"])
    must_count(f"({taken}_tokens, {given}_tokens, total_tokens) of `usage`", counts, (1234, 56, 1290))
    for side, part, wanted in ((taken, "cached_tokens", 34), (given, "reasoning_tokens", 5)):
        details = usage.get(f"{side}_tokens_details") or {}
        must_be(f"{part} of usage.{side}_tokens_details, if it has that member,", details.get(part, wanted), wanted)


# -- what a stream adds up to ----------------------------------------------------------------------------------------------


def events_of(proxy: Proxy, way: str, **more: Any) -> list[Any]:
    """Request a stream of events, check the types of their values, and return the values."""
    done = asked(proxy, "responses", way, stream=True, **more)
    must_have_types(done)
    return [event.value for event in done.events if event.data != "[DONE]"]


@pytest.mark.spec("responses-stream-adds-up", "HAND-14", source="the openai package", says="how a stream is put together")
@EACH_WAY
def test_a_stream_adds_up(proxy: Proxy, way: str) -> None:
    """An item that is built from its first event, its parts and its deltas equals the finished item."""
    items: list[Any] = []
    for value in events_of(proxy, way):
        kind = value["type"].removeprefix("response.")
        if "output_index" not in value:
            continue
        index = value["output_index"]
        if kind == "output_item.added":
            must_be("output_index of an output_item.added (how many items came before it)", index, len(items))
            items.append(copy.deepcopy(value["item"]))
            must_be("status of an item that is added", value["item"].get("status", "in_progress"), "in_progress")
            continue
        assert index < len(items), f"output_index of {kind} is {index}, but only {len(items)} items were added before it"
        item = items[index]
        if kind == "output_item.done":
            must_be("status of an item that is done", value["item"].get("status", "completed"), "completed")
            must_be(f"The item of {kind} (compared to the one that was added, with its parts and deltas)", *finished(value, item))
            continue
        must_be(f"item_id of {kind} (compared to the id of the item at its output_index)", value["item_id"], item["id"])
        take(kind, value, item)


def finished(value: Any, item: Any) -> tuple[Any, Any]:
    """Return two items of an answer without their status and the `logprobs` of their parts, to compare them."""
    bares = ({**each, "content": [*map(bare, each.get("content") or [])]} for each in (value["item"], item))
    return tuple({**each, "status": None} for each in bares)  # type: ignore[return-value]


def bare(part: Any) -> Any:
    """Return a part of a message without its `logprobs`, which are optional and may come later than the part."""
    return {name: value for name, value in part.items() if name != "logprobs"}


def take(kind: str, value: Any, item: Any) -> None:
    """Add the content of an event to its item. If an event has the complete content, compare it with the joined deltas."""
    if kind == "content_part.added":
        must_be(
            "content_index of a content_part.added (how many parts came before it)", value["content_index"], len(item["content"])
        )
        item["content"].append(copy.deepcopy(value["part"]))
    elif kind.startswith(("content_part.", "output_text.")):
        at = value["content_index"]
        assert at < len(item["content"]), f"content_index of {kind} is {at}, but only {len(item['content'])} parts were added"
        part = item["content"][at]
        if kind == "output_text.delta":
            part["text"] += value["delta"]
        elif kind == "output_text.done":
            must_be("text of output_text.done (compared to all deltas)", value["text"], part["text"])
        elif kind == "content_part.done":
            must_be(
                "part of content_part.done (compared to the one that was added, with its deltas)", bare(value["part"]), bare(part)
            )
    elif kind == "function_call_arguments.delta":
        item["arguments"] += value["delta"]
    elif kind == "function_call_arguments.done":
        must_be("arguments of function_call_arguments.done (compared to all deltas)", value["arguments"], item["arguments"])
        must_be("name of function_call_arguments.done", value.get("name", item["name"]), item["name"])


@pytest.mark.spec("responses-stream-one-response", "HAND-14", source="OpenAI API reference, Responses", says="response.completed")
@EACH_WAY
def test_one_response_from_its_beginning_to_its_end(proxy: Proxy, way: str) -> None:
    """All events with a response have the same response; only the members that show its progress differ."""
    must_be_one_response(events_of(proxy, way, **SETTINGS))


def must_be_one_response(events: list[Any]) -> None:
    """Compare the responses of all events with the response of the first event, without the members that show the progress."""
    values = [value for value in events if "response" in value]
    first = values[0]["response"]
    for value in values:
        kind, response = value["type"], value["response"]
        for member in sorted(response.keys() & first.keys() - MOVING):
            must_be(f"response.{member} of {kind} (compared to that of {values[0]['type']})", response[member], first[member])
        end = kind.removeprefix("response.")
        must_be(f"response.status of {kind}", response["status"], "in_progress" if end == "created" else end)
        if end in ("created", "in_progress"):
            got = (response["output"], response["error"], response.get("usage"))
            must_be(f"(output, error, usage) of response of {kind}, before anything was said,", got, ([], None, None))


@pytest.mark.spec("chat-stream-one-choice", source="OpenAI API reference, Chat Completions", says="id, created, index, usage")
@EACH_WAY
def test_one_head_and_one_choice(proxy: Proxy, way: str) -> None:
    """All chunks have the same id, time and model, and one choice each, except the last chunk.

    The last choice has the finish reason.
    """
    optional = {"stream_options": {"include_usage": True}}
    done, counted = with_optional(proxy, lambda **more: asked(proxy, "chat", way, stream=True, **more), **optional)
    values = [event.value for event in done.events if event.data != "[DONE]"]
    heads = [(value["id"], value["created"], value["model"]) for value in values]
    must_be("(id, created, model) of all chunks of an answer", set(heads), {(values[0]["id"], values[0]["created"], "gpt-5.2")})
    if counted and values[-1]["choices"]:
        raise AssertionError(
            "The client asked for the usage with stream_options.include_usage, but no chunk with `usage` follows the chunk with "
            "the finish_reason. Read the usage from thread/tokenUsage/updated, or refuse stream_options. While a native call is "
            f"open, 0.169.0 has only sent rawResponse/completed, which has the usage, too. {done.shown(-300)}"
        )
    places = [[choice["index"] for choice in value["choices"]] for value in values]
    wanted = [[0]] * (len(values) - 1) + [[] if counted else [0]]
    must_be("The indices of the choices of all chunks (the last has the usage alone, if it was asked for)", places, wanted)
    choices = [value["choices"][0] for value in values if value["choices"]]
    ends = [at for at, choice in enumerate(choices) if choice.get("finish_reason")]
    must_be("The positions of the chunks with a finish_reason (only the last chunk)", ends, [len(choices) - 1])
    must_be("delta.role of the first chunk", choices[0]["delta"].get("role"), "assistant")
    pieces = [piece for choice in choices for piece in choice["delta"].get("tool_calls") or []]
    opened = [piece["index"] for piece in pieces if piece.get("id")]
    where = "`index` of the pieces with the id of a call (only the first piece of a call has it)"
    must_be(where, opened, [] if way == "text" else [0])
    for piece in pieces:
        assert piece["index"] in opened, f"a piece of a call has the index {piece['index']}, but no piece with an id began it"
    calls = [(call.name, arguments(call.arguments)) for call in read(done).calls]
    must_be(
        "(name, arguments) of the calls, their pieces joined", calls, [] if way == "text" else [("getFileTree", {"path": "a"})]
    )
