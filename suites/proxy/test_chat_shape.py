"""The shape of chat answers, whole and streamed, as OpenAI's clients read them. Source: the Chat Completions API reference."""

from __future__ import annotations

import pytest

from harness.plugin.proxy import Event, Proxy
from suites.proxy.answers import read
from suites.proxy.expected import WORKS

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hello, «world» \U0001f600.")]

WHERE = "OpenAI API reference, Chat Completions"
TEXT = "Hello, «world» \U0001f600."


def chunks(proxy: Proxy, **more: object) -> list[Event]:
    """Ask for a stream and return its events."""
    return proxy.chat({"stream": True, **more}).events


@pytest.mark.spec("chat-whole", WHERE, "The chat completion object")
def test_whole(proxy: Proxy) -> None:
    """One completion with one choice, whose message is the model's text."""
    done = proxy.chat()
    body = done.json
    assert (done.header("content-type") or "").startswith("application/json")
    assert body["object"] == "chat.completion"
    assert body["id"]
    assert type(body["created"]) is int
    assert [(choice["index"], choice["finish_reason"]) for choice in body["choices"]] == [(0, "stop")]
    assert body["choices"][0]["message"]["role"] == "assistant"
    assert body["choices"][0]["message"]["content"] == TEXT


@pytest.mark.spec("chat-usage", WHERE, "usage: prompt_tokens, completion_tokens, total_tokens")
@pytest.mark.model(turns=[{"items": [TEXT], "usage": {"input_tokens": 1234, "output_tokens": 56, "cached_tokens": 34}}])
def test_usage(proxy: Proxy) -> None:
    """The model's own count, not a guess."""
    usage = proxy.chat().json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (1234, 56, 1290)


@pytest.mark.spec("chat-stream-form", WHERE, "The chat completion chunk object")
def test_chunks(proxy: Proxy) -> None:
    """Every event but the last is a chunk; all have one id and one model."""
    events = chunks(proxy)
    values = [event.value for event in events[:-1]]
    assert {value["object"] for value in values} == {"chat.completion.chunk"}
    assert len({value["id"] for value in values}) == 1
    assert {value["model"] for value in values} == {"gpt-5.2"}
    assert {event.name for event in events} == {""}


@pytest.mark.spec("chat-stream-done", WHERE, "data: [DONE]")
def test_terminator(proxy: Proxy) -> None:
    """The stream ends with [DONE], which comes once."""
    events = chunks(proxy)
    assert [event.data for event in events].count("[DONE]") == 1
    assert events[-1].data == "[DONE]"


@pytest.mark.spec("chat-stream-role", WHERE, "delta: role, content")
def test_role_and_finish(proxy: Proxy) -> None:
    """The first delta has the role; one chunk, the last with a choice, has the finish reason."""
    choices = [choice for event in chunks(proxy)[:-1] for choice in event.value["choices"]]
    assert choices[0]["delta"]["role"] == "assistant"
    assert [choice["finish_reason"] for choice in choices if choice.get("finish_reason")] == ["stop"]
    assert choices[-1]["finish_reason"] == "stop"


@pytest.mark.spec("chat-stream-text", WHERE, "delta: role, content")
def test_text(proxy: Proxy) -> None:
    """The deltas are the text, each piece once."""
    assert read(proxy.chat({"stream": True})).text == TEXT


@pytest.mark.spec("chat-stream-usage", WHERE, "stream_options.include_usage: an additional chunk with usage and empty choices")
@pytest.mark.model(turns=[{"items": [TEXT], "usage": {"input_tokens": 1234, "output_tokens": 56}}])
def test_usage_of_a_stream(proxy: Proxy) -> None:
    """Asked for, it comes in the last chunk, which has no choice."""
    last = chunks(proxy, stream_options={"include_usage": True})[-2].value
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (1234, 56)


@pytest.mark.spec("chat-stream-no-usage", WHERE, "stream_options.include_usage")
def test_no_usage_of_a_stream(proxy: Proxy) -> None:
    """Not asked for, every chunk has a choice."""
    assert all(event.value["choices"] for event in chunks(proxy)[:-1])
