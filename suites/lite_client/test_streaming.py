"""Check how the client reads a stream. Source: docs/contract/lite.md, "Response Streaming (SSE)"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.expected import ADD, call, items, outputs, then

TEXT = "Grüße, 世界! 😀\nTwo lines, one\ttab."


@pytest.mark.parametrize("delta", [1, 7, 1000], ids=["letters", "pieces", "whole"])
@pytest.mark.spec("stream-text-deltas", "LITE-52")
def test_text_deltas_are_joined(lite_client: LiteClient, delta: int) -> None:
    """The client joins text deltas of any size to the whole text."""
    assert lite_client(script=[{"items": [TEXT], "delta": delta}]).text() == TEXT


@pytest.mark.spec("stream-argument-deltas", "LITE-51", "LITE-56")
def test_argument_deltas_are_joined(lite_client: LiteClient) -> None:
    """The next request repeats the arguments of a call exactly, including spaces."""
    arguments = '{ "b" : 3.0,\t"a":2, "note":"ü \\u00fc \\n" }'
    run = lite_client(script=[{"items": [call(arguments)], "delta": 3}, "done"], tools=ADD)
    assert run.text() == "done"
    assert [item["arguments"] for item in items(run.turns[1], "function_call")] == [arguments]


def event(type_: str, **fields: Any) -> dict[str, Any]:
    """Return a script's item: send the given event."""
    return {"type": "event", "event": {"type": type_, **fields}}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    """Return an event `response.output_item.added`."""
    return event("response.output_item.added", output_index=index, item=item)


def finished(index: int, item: dict[str, Any]) -> dict[str, Any]:
    """Return an event `response.output_item.done`."""
    return event("response.output_item.done", output_index=index, item=item)


@pytest.mark.spec("stream-key-events", "LITE-48", "LITE-49", "LITE-50", "LITE-51", "LITE-52", "LITE-53", "LITE-54")
def test_the_key_events_are_enough(lite_client: LiteClient) -> None:
    """The client needs only the seven events of the specification for a whole conversation."""
    started = {
        "type": "function_call",
        "id": "fc_1",
        "name": "add",
        "call_id": "call_1",
        "arguments": "",
        "status": "in_progress",
    }
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    script = [
        {
            "items": [
                added(0, started),
                event("response.function_call_arguments.delta", item_id="fc_1", output_index=0, delta='{"a":2,'),
                event("response.function_call_arguments.delta", item_id="fc_1", output_index=0, delta='"b":3}'),
                finished(0, {**started, "arguments": '{"a":2,"b":3}', "status": "completed"}),
            ]
        },
        {
            "items": [
                added(0, message),
                event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta="2 + 3"),
                event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=" = 5"),
                finished(
                    0,
                    {
                        **message,
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "2 + 3 = 5", "annotations": []}],
                    },
                ),
            ]
        },
    ]
    run = lite_client(script=script, tools=ADD)
    assert run.text() == "2 + 3 = 5"
    assert outputs(run.turns[1]) == {"call_1": "5"}


@pytest.mark.spec("stream-interleaved", "LITE-51", "LITE-56")
def test_pieces_belong_to_their_item(lite_client: LiteClient) -> None:
    """The client assigns the deltas of two interleaved calls to the right call by item id."""
    one = {"type": "function_call", "id": "fc_1", "name": "add", "call_id": "call_1", "arguments": "", "status": "in_progress"}
    two = {**one, "id": "fc_2", "call_id": "call_2"}

    def delta(number: int, chunk: str) -> dict[str, Any]:
        return event("response.function_call_arguments.delta", item_id=f"fc_{number}", output_index=number - 1, delta=chunk)

    events = [added(0, one), added(1, two)]
    events += [delta(1, '{"a":2'), delta(2, '{"a":20'), delta(1, ',"b":3}'), delta(2, ',"b":30}')]
    events += [finished(0, {**one, "arguments": '{"a":2,"b":3}'}), finished(1, {**two, "arguments": '{"a":20,"b":30}'})]
    run = lite_client(script=[{"items": events}, "done"], tools=ADD)
    assert run.text() == "done"
    calls = items(run.turns[1], "function_call")
    assert {c["call_id"]: c["arguments"] for c in calls} == {"call_1": '{"a":2,"b":3}', "call_2": '{"a":20,"b":30}'}
    assert outputs(run.turns[1]) == {"call_1": "5", "call_2": "50"}


@pytest.mark.parametrize("fault", ["split_utf8", "crlf", "comments", "unknown_event", "slow_drip"])
@pytest.mark.spec("stream-framing", "LITE-52", "REAL-110")
def test_framing_makes_no_difference(lite_client: LiteClient, fault: str) -> None:
    """The client prints the same text if the stream has split characters, CRLF, comments, unknown events or very small chunks."""
    assert lite_client(script=[{"items": [TEXT], "fault": fault}]).text() == TEXT


@pytest.mark.spec("stream-data-lines", "LITE-53")
def test_data_of_several_lines_is_one_event(lite_client: LiteClient) -> None:
    """If an event has several `data:` lines, the client joins the lines with newlines and reads the JSON."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    done = finished(0, {**message, "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]})["event"]
    lines = "".join(f"data: {line}\n" for line in json.dumps(done, indent=1).splitlines())
    delta = event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta="Hello.")
    begun = added(0, {**message, "status": "in_progress", "content": []})
    raw = {"type": "raw", "data": f"event: {done['type']}\n{lines}\n"}
    assert lite_client(script=[{"items": [begun, delta, raw]}]).text() == "Hello."


#: The form of an event in the stream, and the text of the answer. The real Codex reads each form.
FORMS = {
    "no-space": ("event:{name}\ndata:{data}\n\n", "Hello."),
    "other-fields": ("id: 7\nretry: 100\nnote\nevent: {name}\ndata: {data}\n\n\n", "Hello."),
    "separators": ("event: {name}\ndata: {data}\n\n", "one\u2028two\u2029three\u0085four"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.spec("stream-lines", "LITE-53", source="HTML Standard, Server-sent events", says="Parsing an event stream")
def test_the_lines_of_an_event(lite_client: LiteClient, form: str) -> None:
    """The client reads each valid form of an event.

    The space after the colon may be absent. The client ignores all fields other than `event` and `data`. A Unicode line separator
    such as U+2028 does not end a line.
    """
    lines, text = FORMS[form]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    events = [
        event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=text)["event"],
        finished(0, {**message, "content": [{"type": "output_text", "text": text, "annotations": []}]})["event"],
    ]
    data = "".join(lines.format(name=each["type"], data=json.dumps(each, ensure_ascii=False)) for each in events)
    begun = added(0, {**message, "status": "in_progress", "content": []})
    assert lite_client(script=[{"items": [begun, {"type": "raw", "data": data}]}]).text() == text


@pytest.mark.spec("stream-text-parts", source="docs/lite-client.md", says="The final text is the text of the last response")
def test_a_message_may_have_two_parts(lite_client: LiteClient) -> None:
    """If a message has two text parts, the client prints both parts in order, as the real Codex does."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    texts = ["One, ", "two."]
    deltas = [
        event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=index, delta=text)
        for index, text in enumerate(texts)
    ]
    done = finished(0, {**message, "content": [{"type": "output_text", "text": text, "annotations": []} for text in texts]})
    begun = added(0, {**message, "status": "in_progress", "content": []})
    assert lite_client(script=[{"items": [begun, *deltas, done]}]).text() == "One, two."


@pytest.mark.spec("stream-last-text", source="docs/lite-client.md", says="The final text is the text of the last response")
def test_the_last_text_counts(lite_client: LiteClient) -> None:
    """The client prints the text of the last response, and not the text that came together with a call."""
    run = lite_client(script=[{"items": ["Let me add these.", call()]}, "The sum is 5."], tools=ADD)
    assert run.text() == "The sum is 5."


@pytest.mark.spec("stream-reasoning", "LITE-40")
def test_reasoning_is_not_text(lite_client: LiteClient) -> None:
    """The client does not print reasoning as a part of the answer, and a follow-up after reasoning works."""
    thought = {"type": "reasoning", "summary": ["Adding"], "encrypted_content": "b3BhcXVl"}
    run = lite_client(script=[{"items": [thought, call()]}, {"items": [thought, "5"]}], tools=ADD)
    assert run.text() == "5"
    assert outputs(run.turns[1]) == {"call_1": "5"}


@pytest.mark.spec("stream-usage-free", "REAL-111")
def test_usage_may_be_missing(lite_client: LiteClient) -> None:
    """The client accepts a response without `usage`."""
    assert lite_client(script=[{"items": ["Hi"], "usage": None}]).text() == "Hi"


@pytest.mark.spec("stream-one-request", "LITE-54")
def test_a_text_is_the_end(lite_client: LiteClient) -> None:
    """After a response without calls the client sends no further request."""
    run = lite_client(script=["Hi", *then()])
    assert run.status == 0, run.report_on()
    assert len(run.requests) == 1
