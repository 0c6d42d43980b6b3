"""The payload of sendUserMessage, field by field. Source: docs/contract/payloads.md, 3) sendUserMessage (always)."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, NO_TOOLS, SUM, format_of, prompt_texts, tool, twins
from suites.proxy.saying import must_be, must_be_one_of, must_be_unset

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model('{"sum":5}')]

METHOD = "sendUserMessage"
TWINS = [
    ("includeUsage", "include_usage"),
    ("topP", "top_p"),
    ("maxOutputTokens", "max_output_tokens"),
    ("responseFormat", "response_format"),
    ("finalOutputJsonSchema", "final_output_json_schema"),
]
FIELDS = {"conversationId", "items", "stream", "temperature", "tools", "reasoning", *(name for pair in TWINS for name in pair)}

#: The whole format, in the forms of both endpoints: no statement says whether a proxy converts one form to the other.
SHAPES = (format_of("chat")["response_format"], format_of("responses")["text"]["format"])


def limit(endpoint: str, tokens: int) -> dict[str, Any]:
    """Return a limit of output tokens in the form that an endpoint requires."""
    return {"max_tokens": tokens} if endpoint == "chat" else {"max_output_tokens": tokens}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-items", "PAY-73")
def test_items(proxy: Proxy, endpoint: str) -> None:
    """`items` of sendUserMessage has one v1 text item, whose `data` has only the prompt."""
    items = proxy.post(endpoint).params(METHOD)["items"]
    wanted = tuple([{"type": "text", "data": {"text": text}}] for text in prompt_texts(endpoint, proxy.prompt()))
    must_be_one_of(f"{METHOD}.items", items, wanted)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-stream", "PAY-76")
def test_stream(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """`stream` of sendUserMessage has the value of the request."""
    must_be(f"{METHOD}.stream", proxy.post(endpoint, {"stream": stream}).params(METHOD)["stream"], stream)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-stream-default", "PAY-77")
def test_stream_default(proxy: Proxy, endpoint: str) -> None:
    """If the request has no `stream`, the proxy sends true or false, and its answer matches this value."""
    done = proxy.post(endpoint)
    must_be_one_of(f"{METHOD}.stream", done.params(METHOD)["stream"], (True, False))
    must_be(f"{METHOD}.stream (whether the answer is a stream)", done.params(METHOD)["stream"], done.is_stream)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("first", "second"), TWINS)
@pytest.mark.spec("message-twins", "PAY-74", "PAY-79", "PAY-83", "PAY-84")
def test_both_spellings(proxy: Proxy, endpoint: str, first: str, second: str) -> None:
    """sendUserMessage has both spellings of a field with the same value, or neither; a value of the request is always sent."""
    twins(proxy.post(endpoint).params(METHOD), first, second)
    full = {"top_p": 0.5, **limit(endpoint, 77), **format_of(endpoint), "stream": True, "stream_options": {"include_usage": True}}
    params = proxy.post(endpoint, full).params(METHOD)
    assert first in params or second in params, f"expected {first} or {second}, because the request has the value; got neither"
    twins(params, first, second)


@pytest.mark.parametrize("field", ["temperature", "topP", "responseFormat", "finalOutputJsonSchema"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-unset", "PAY-06", "PAY-78", "PAY-83", "PAY-84")
def test_unset(proxy: Proxy, endpoint: str, field: str) -> None:
    """If the request has no value for a field, the field of sendUserMessage is null or omitted."""
    must_be_unset(METHOD, proxy.post(endpoint).params(METHOD), field)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-usage-default", "PAY-74")
def test_no_usage(proxy: Proxy, endpoint: str) -> None:
    """Without stream_options in the request, includeUsage is false."""
    must_be(f"{METHOD}.includeUsage", twins(proxy.post(endpoint).params(METHOD), "includeUsage", "include_usage"), False)


@pytest.mark.spec("message-usage", "PAY-75")
def test_usage(proxy: Proxy) -> None:
    """With stream_options.include_usage on chat, includeUsage is true."""
    done = proxy.chat({"stream": True, "stream_options": {"include_usage": True}})
    must_be(f"{METHOD}.includeUsage", twins(done.params(METHOD), "includeUsage", "include_usage"), True)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-sampling", "PAY-78")
def test_sampling(proxy: Proxy, endpoint: str) -> None:
    """sendUserMessage has the temperature and the top_p of the request, including zero."""
    params = proxy.post(endpoint, {"temperature": 0, "top_p": 0.25}).params(METHOD)
    must_be(f"{METHOD}.temperature", params["temperature"], 0)
    must_be(f"{METHOD}.topP", twins(params, "topP", "top_p"), 0.25)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-limit", "PAY-79")
def test_limit(proxy: Proxy, endpoint: str) -> None:
    """Both spellings of the limit of output tokens have the value of the request."""
    params = proxy.post(endpoint, limit(endpoint, 1234)).params(METHOD)
    must_be(f"{METHOD}.maxOutputTokens", twins(params, "maxOutputTokens", "max_output_tokens"), 1234)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-limit-unset", "PAY-80")
def test_limit_unasked(proxy: Proxy, endpoint: str) -> None:
    """Without a limit in the request, both spellings of the limit are omitted, null, or 65000 as in the example."""
    found = twins(proxy.post(endpoint).params(METHOD), "maxOutputTokens", "max_output_tokens")
    must_be_one_of(f"{METHOD}.maxOutputTokens", found, (None, 65000))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-schema", "PAY-84", "HAND-29", "HAND-30")
def test_schema(proxy: Proxy, endpoint: str) -> None:
    """finalOutputJsonSchema is the client's unchanged schema, and responseFormat is the client's complete format."""
    params = proxy.post(endpoint, format_of(endpoint)).params(METHOD)
    must_be(f"{METHOD}.finalOutputJsonSchema", twins(params, "finalOutputJsonSchema", "final_output_json_schema"), SUM)
    must_be_one_of(f"{METHOD}.responseFormat", twins(params, "responseFormat", "response_format"), SHAPES)


@pytest.mark.spec("message-schema-either", "HAND-29", "HAND-30")
def test_response_format_on_responses(proxy: Proxy) -> None:
    """On responses, the proxy also accepts `response_format`, the form of chat."""
    params = proxy.responses(format_of("chat")).params(METHOD)
    must_be_one_of(f"{METHOD}.responseFormat", twins(params, "responseFormat", "response_format"), SHAPES)
    must_be(f"{METHOD}.finalOutputJsonSchema", twins(params, "finalOutputJsonSchema", "final_output_json_schema"), SUM)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-json-object", "HAND-29")
def test_json_object(proxy: Proxy, endpoint: str) -> None:
    """The proxy forwards a response format without a schema, and the payload has no schema."""
    wanted = {"type": "json_object"}
    given: dict[str, Any] = {"response_format": wanted} if endpoint == "chat" else {"text": {"format": wanted}}
    params = proxy.post(endpoint, given).params(METHOD)
    must_be(f"{METHOD}.responseFormat", twins(params, "responseFormat", "response_format"), wanted)
    must_be_unset(METHOD, params, "finalOutputJsonSchema")


@pytest.mark.spec("message-reasoning-chat", "PAY-90")
def test_no_reasoning_on_chat(proxy: Proxy) -> None:
    """On chat, sendUserMessage has no reasoning, even if the request has an effort."""
    must_be_unset(METHOD, proxy.chat({"reasoning_effort": "high"}).params(METHOD), "reasoning")


@pytest.mark.spec("message-reasoning-unset", "PAY-86")
def test_no_reasoning_without_effort(proxy: Proxy) -> None:
    """If the model implies no effort, sendUserMessage has no reasoning."""
    must_be_unset(METHOD, proxy.responses().params(METHOD), "reasoning")


@pytest.mark.parametrize("given", NO_TOOLS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-tools-unset", "PAY-81")
def test_no_tools(proxy: Proxy, endpoint: str, given: str) -> None:
    """If the request has no tools, `tools` of sendUserMessage is null or omitted."""
    must_be_unset(METHOD, proxy.post(endpoint, NO_TOOLS[given]).params(METHOD), "tools")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("message-exact", "PAY-88", "HAND-20")
def test_no_other_field(proxy: Proxy, endpoint: str) -> None:
    """sendUserMessage has only fields that the documents name."""
    body = {
        "tools": [tool(endpoint)],
        "n": 1,
        "temperature": 0.5,
        "stream": True,
        "parallel_tool_calls": False,
        "user": "u",
        "metadata": {"a": "b"},
    }
    for asked in ({}, body):
        found = set(proxy.post(endpoint, asked).params(METHOD)) - FIELDS
        must_be(f"The fields of {METHOD} that the documents do not name", found, set())
