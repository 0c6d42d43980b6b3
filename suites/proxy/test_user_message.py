"""The payload of sendUserMessage, field by field. Source: app-server-payloads.md, 3) sendUserMessage (always)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, HANDOFF, SPEC, texts, tool, twins
from suites.proxy.saying import must_be, must_be_one_of, must_be_unset, must_have

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model('{"sum":5}')]

WHERE = f"{SPEC}, 3) sendUserMessage (always)"
MAPPING = f"{HANDOFF}, Mapping overview"
METHOD = "sendUserMessage"
TWINS = [
    ("includeUsage", "include_usage"),
    ("topP", "top_p"),
    ("maxOutputTokens", "max_output_tokens"),
    ("responseFormat", "response_format"),
    ("finalOutputJsonSchema", "final_output_json_schema"),
]
FIELDS = {"conversationId", "items", "stream", "temperature", "tools", "reasoning", *(name for pair in TWINS for name in pair)}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["sum"],
    "properties": {"sum": {"type": "number", "description": "é"}},
    "additionalProperties": False,
}


def type_of(value: Any) -> Any:
    """The `type` of a format; AssertionError when it is no object."""
    assert isinstance(value, dict), f"{METHOD}.responseFormat must be an object, not {value!r}"
    return value.get("type")


def limit(endpoint: str, tokens: int) -> dict[str, Any]:
    """A limit of output tokens as a client of that endpoint gives it."""
    return {"max_tokens": tokens} if endpoint == "chat" else {"max_output_tokens": tokens}


def format_of(endpoint: str) -> dict[str, Any]:
    """A request for output by a schema, as a client of that endpoint writes it."""
    named = {"name": "sum", "schema": SCHEMA, "strict": True}
    if endpoint == "chat":
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {"text": {"format": {"type": "json_schema", **named}}}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-items", WHERE, '"items": [{ "type": "text", "data": { "text": "[user] ...original prompt..." } }]')
def test_items(proxy: Proxy, endpoint: str) -> None:
    """One text item of v1, with the text below `data`."""
    params = proxy.post(endpoint).params(METHOD)
    must_be(f"The keys of each of {METHOD}.items", [sorted(item) for item in params["items"]], [["data", "type"]])
    must_have(f"The text of {METHOD}.items", texts(params), proxy.prompt())


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-stream", WHERE, "`stream` is derived from the incoming request")
def test_stream(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The request's own."""
    must_be(f"{METHOD}.stream", proxy.post(endpoint, {"stream": stream}).params(METHOD)["stream"], stream)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-stream-default", WHERE, "and defaults to proxy settings")
def test_stream_default(proxy: Proxy, endpoint: str) -> None:
    """Without it, a truth value of the proxy's own choice, and the answer is streamed or not accordingly."""
    done = proxy.post(endpoint)
    must_be_one_of(f"{METHOD}.stream", done.params(METHOD)["stream"], (True, False))
    must_be(f"{METHOD}.stream (whether the answer is a stream)", done.params(METHOD)["stream"], done.is_stream)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("first", "second"), TWINS)
@pytest.mark.spec("message-twins", WHERE, "both spellings of each doubled field")
def test_both_spellings(proxy: Proxy, endpoint: str, first: str, second: str) -> None:
    """They are sent together and say the same, whatever was asked."""
    twins(proxy.post(endpoint).params(METHOD), first, second)
    full = {"top_p": 0.5, **limit(endpoint, 77), **format_of(endpoint), "stream": True, "stream_options": {"include_usage": True}}
    twins(proxy.post(endpoint, full).params(METHOD), first, second)


@pytest.mark.parametrize("field", ["temperature", "topP", "responseFormat", "finalOutputJsonSchema"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-unset", WHERE, "temperature, topP, responseFormat, finalOutputJsonSchema: null")
def test_unset(proxy: Proxy, endpoint: str, field: str) -> None:
    """What was not asked for is null, or omitted."""
    must_be_unset(METHOD, proxy.post(endpoint).params(METHOD), field)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-usage-default", WHERE, '"includeUsage": false')
def test_no_usage(proxy: Proxy, endpoint: str) -> None:
    """Nobody asked for usage in a stream."""
    must_be(f"{METHOD}.includeUsage", twins(proxy.post(endpoint).params(METHOD), "includeUsage", "include_usage"), False)


@pytest.mark.spec("message-usage", WHERE, '"includeUsage"')
def test_usage(proxy: Proxy) -> None:
    """A client of chat asks for it with stream_options."""
    done = proxy.chat({"stream": True, "stream_options": {"include_usage": True}})
    must_be(f"{METHOD}.includeUsage", twins(done.params(METHOD), "includeUsage", "include_usage"), True)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-sampling", WHERE, '"temperature", "topP", "top_p"')
def test_sampling(proxy: Proxy, endpoint: str) -> None:
    """Temperature and top_p as they were given, zero included."""
    params = proxy.post(endpoint, {"temperature": 0, "top_p": 0.25}).params(METHOD)
    must_be(f"{METHOD}.temperature", params["temperature"], 0)
    must_be(f"{METHOD}.topP", twins(params, "topP", "top_p"), 0.25)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-limit", WHERE, '"maxOutputTokens": 65000')
def test_limit(proxy: Proxy, endpoint: str) -> None:
    """The limit as it was given."""
    params = proxy.post(endpoint, limit(endpoint, 1234)).params(METHOD)
    must_be(f"{METHOD}.maxOutputTokens", twins(params, "maxOutputTokens", "max_output_tokens"), 1234)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-schema", MAPPING, "text.format / response_format | responseFormat, finalOutputJsonSchema")
def test_schema(proxy: Proxy, endpoint: str) -> None:
    """The schema is finalOutputJsonSchema, as it was given; the format is responseFormat and names its type."""
    params = proxy.post(endpoint, format_of(endpoint)).params(METHOD)
    must_be(f"{METHOD}.finalOutputJsonSchema", twins(params, "finalOutputJsonSchema", "final_output_json_schema"), SCHEMA)
    must_be(f"{METHOD}.responseFormat.type", type_of(twins(params, "responseFormat", "response_format")), "json_schema")


@pytest.mark.spec("message-schema-either", MAPPING, "text.format / response_format inputs")
def test_response_format_on_responses(proxy: Proxy) -> None:
    """Responses take the format of chat too."""
    params = proxy.responses(format_of("chat")).params(METHOD)
    must_be(f"{METHOD}.finalOutputJsonSchema", twins(params, "finalOutputJsonSchema", "final_output_json_schema"), SCHEMA)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-json-object", MAPPING, "text.format / response_format inputs")
def test_json_object(proxy: Proxy, endpoint: str) -> None:
    """A format without a schema is passed on, and makes no schema."""
    wanted = {"type": "json_object"}
    given: dict[str, Any] = {"response_format": wanted} if endpoint == "chat" else {"text": {"format": wanted}}
    params = proxy.post(endpoint, given).params(METHOD)
    must_be(f"{METHOD}.responseFormat.type", type_of(twins(params, "responseFormat", "response_format")), "json_object")
    must_be_unset(METHOD, params, "finalOutputJsonSchema")


@pytest.mark.spec("message-reasoning-chat", f"{SPEC}, Chat endpoint", "No `reasoning` object is injected into `sendUserMessage`")
def test_no_reasoning_on_chat(proxy: Proxy) -> None:
    """Not even when an effort was asked for."""
    must_be_unset(METHOD, proxy.chat({"reasoning_effort": "high"}).params(METHOD), "reasoning")


@pytest.mark.spec("message-reasoning-unset", WHERE, "`reasoning` is injected on responses requests when effort resolves")
def test_no_reasoning_without_effort(proxy: Proxy) -> None:
    """A plain model implies none."""
    must_be_unset(METHOD, proxy.responses().params(METHOD), "reasoning")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-tools-unset", WHERE, "`tools`")
def test_no_tools(proxy: Proxy, endpoint: str) -> None:
    """Without definitions there are no tools."""
    tools = proxy.post(endpoint).params(METHOD).get("tools") or {}
    must_be(f"{METHOD}.tools.definitions, null and omitted being none,", tools.get("definitions") or [], [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-exact", SPEC, "the **exact JSON-RPC payloads** the proxy sends")
def test_no_other_field(proxy: Proxy, endpoint: str) -> None:
    """No field that the documents do not name."""
    body = {"tools": [tool(endpoint)], "n": 1, "temperature": 0.5, "stream": True, "user": "u", "metadata": {"a": "b"}}
    must_be(f"The fields of {METHOD} that no document names", set(proxy.post(endpoint, body).params(METHOD)) - FIELDS, set())
