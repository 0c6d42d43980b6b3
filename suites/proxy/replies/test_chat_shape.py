"""The form of chat answers, with and without a stream, as OpenAI's clients read them.

Source: the Chat Completions API reference.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.proxy.fixture import Event, Proxy
from suites.proxy.answers import must_be_an_object, must_say
from suites.proxy.expected import WORKS
from suites.proxy.failures import must_be_served_without, with_optional
from suites.proxy.saying import must_be, must_count, short, usage_of

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hello, «world» \U0001f600.")]

TEXT = "Hello, «world» \U0001f600."


def chunks(proxy: Proxy, **more: object) -> list[Event]:
    """Request a stream and return its events."""
    events = proxy.chat({"stream": True, **more}).events
    for event in events:
        must_be_an_object(event)
    return events


@pytest.mark.spec("chat-whole", source="OpenAI API reference, Chat Completions", says="The chat completion object")
def test_whole(proxy: Proxy) -> None:
    """The answer is one completion with one choice, whose message has the model's text."""
    done = proxy.chat()
    body = done.json
    kind = (done.header("content-type") or "").partition(";")[0]
    must_be("The header content-type of the answer", kind, "application/json")
    must_be("object", body["object"], "chat.completion")
    assert body["id"], f"id must be a non-empty string, not {body['id']!r}"
    assert type(body["created"]) is int, f"created must be a whole number of seconds, not {body['created']!r}"
    choices = [(choice["index"], choice["finish_reason"]) for choice in body["choices"]]
    must_be("(index, finish_reason) of `choices`", choices, [(0, "stop")])
    must_be("choices[0].message.role", body["choices"][0]["message"]["role"], "assistant")
    must_be("choices[0].message.content", body["choices"][0]["message"]["content"], TEXT)


@pytest.mark.spec(
    "chat-usage", source="OpenAI API reference, Chat Completions", says="usage: prompt_tokens, completion_tokens, total_tokens"
)
@pytest.mark.model(turns=[{"items": [TEXT], "usage": {"input_tokens": 1234, "output_tokens": 56, "cached_tokens": 34}}])
def test_usage(proxy: Proxy) -> None:
    """`usage` has the token counts of the model, not an estimate."""
    usage = usage_of(proxy.chat())
    counts = (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"])
    must_count("(prompt_tokens, completion_tokens, total_tokens) of `usage`", counts, (1234, 56, 1290))


@pytest.mark.spec("chat-stream-form", source="OpenAI API reference, Chat Completions", says="The chat completion chunk object")
def test_chunks(proxy: Proxy) -> None:
    """Every event except the last is a chunk; all chunks have the same id and model."""
    events = chunks(proxy)
    values = [event.value for event in events[:-1]]
    must_be("`object` of all chunks", {value["object"] for value in values}, {"chat.completion.chunk"})
    ids = {value["id"] for value in values}
    assert len(ids) == 1, f"all chunks of one answer must have the same `id`; they have {short(ids)}"
    must_be("`model` of all chunks", {value["model"] for value in values}, {"gpt-5.2"})
    must_be("The names of the events (`event:` lines; a chat stream has none)", {event.name for event in events}, {""})


@pytest.mark.spec("chat-stream-done", source="OpenAI API reference, Chat Completions", says="data: [DONE]")
def test_terminator(proxy: Proxy) -> None:
    """The stream ends with one [DONE]."""
    events = chunks(proxy)
    datas = [event.data for event in events]
    must_be("The number of events whose data is [DONE]", datas.count("[DONE]"), 1)
    must_be("The data of the last event", datas[-1], "[DONE]")


@pytest.mark.spec("chat-stream-role", source="OpenAI API reference, Chat Completions", says="delta: role, content")
def test_role_and_finish(proxy: Proxy) -> None:
    """The first delta of the stream has the role; only the last chunk with a choice has the finish reason."""
    choices = [choice for event in chunks(proxy)[:-1] for choice in event.value["choices"]]
    assert choices, "no chunk of the stream has a choice"
    must_be("delta.role of the first chunk", choices[0]["delta"].get("role"), "assistant")
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    must_be("The finish_reason of all chunks that have one", reasons, ["stop"])
    must_be("finish_reason of the last chunk with a choice", choices[-1].get("finish_reason"), "stop")


@pytest.mark.spec("chat-stream-text", source="OpenAI API reference, Chat Completions", says="delta: role, content")
def test_text(proxy: Proxy) -> None:
    """The joined deltas of the stream equal the model's text."""
    must_say(proxy.chat({"stream": True}), TEXT)


@pytest.mark.spec(
    "chat-stream-usage",
    source="OpenAI API reference, Chat Completions",
    says="stream_options.include_usage: an additional chunk with usage and empty choices",
)
@pytest.mark.model(turns=[{"items": [TEXT], "usage": {"input_tokens": 1234, "output_tokens": 56}}])
def test_usage_of_a_stream(proxy: Proxy) -> None:
    """With include_usage, the usage comes in the last chunk, which has no choice; a proxy may refuse stream_options."""
    done, counted = with_optional(
        proxy, lambda **more: proxy.chat({"stream": True, **more}), stream_options={"include_usage": True}
    )
    if not counted:
        return
    last = done.events[-2:][0].value
    if not isinstance(last, dict):
        raise AssertionError(
            "Clients stop reading at `data: [DONE]`, so the chunk with the usage must come directly before it. "
            f"The stream ends with {done.shown(-300)}."
        )
    must_be("`choices` of the last chunk before [DONE]", last["choices"], [])
    usage = last["usage"]
    counts = (usage["prompt_tokens"], usage["completion_tokens"])
    must_count("(prompt_tokens, completion_tokens) of its `usage`", counts, (1234, 56))


@pytest.mark.spec("chat-stream-no-usage", source="OpenAI API reference, Chat Completions", says="stream_options.include_usage")
def test_no_usage_of_a_stream(proxy: Proxy) -> None:
    """Without include_usage, or with include_usage: false, every chunk has a choice."""
    bare = [event.data for event in chunks(proxy)[:-1] if not event.value["choices"]]
    must_be("The chunks without a choice, of which a request without include_usage gets none,", bare, [])
    done, _ = with_optional(proxy, lambda **more: proxy.chat({"stream": True, **more}), stream_options={"include_usage": False})
    bare = [event.data for event in done.events if isinstance(event.value, dict) and not event.value["choices"]]
    must_be("The chunks without a choice, of which a request with include_usage: false gets none,", bare, [])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.spec(
    "n-choices", source="OpenAI API reference, Chat Completions: n", says="How many chat completion choices to generate"
)
def test_two_choices(proxy: Proxy, stream: bool) -> None:
    """A request for two choices (`n`) gets two choices, or is refused with 400."""
    done = proxy.chat({"n": 2, "stream": stream}, ok=False)
    if done.status == 400:
        must_be_served_without(proxy, "chat", {"stream": stream}, "n = 2")
        return
    values = [event.value for event in done.events if event.data != "[DONE]"] if done.is_stream else [done.json]
    found = sorted({choice.get("index") for value in values for choice in value.get("choices") or []})
    if done.status != 200 or found != [0, 1]:
        raise AssertionError(
            f"POST {done.path} with n = 2 must be refused with 400, or its choices must have the indices 0 and 1, but it was "
            f"answered {done.answered}, and the indices of its choices are {found}. A proxy that can give only one answer must "
            "refuse `n` above 1."
        )
