"""The shapes of the answers, of chat and of responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from codex_replay.reference.proxy.answering import chat, responses
from codex_replay.reference.proxy.answering.chat import ChatAnswer
from codex_replay.reference.proxy.answering.responses import ResponsesAnswer
from codex_replay.reference.proxy.wire import sse
from codex_replay.reference.proxy.wire.json_text import for_client, loads
from tests.strength.proxy_variants.patching import after, variant


def in_whole(shape: Any, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the answer that is not streamed, in place."""

    def changed(found: dict[str, Any], *_: Any) -> dict[str, Any]:
        change(found)
        return found

    after(shape, "whole", changed)


def in_stream(shape: Any, change: Callable[[bytes], Iterable[bytes]]) -> None:
    """Change the events of a stream: each becomes those that `change` returns."""
    for name in ("begin", "feed"):

        def changed(events: Iterable[bytes], *_: Any) -> Iterable[bytes]:
            for event in events:
                yield from change(event)

        after(shape, name, changed)


def in_values(shape: Any, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the value of every event, in place."""

    def changed(event: bytes) -> list[bytes]:
        head, mark, data = event.partition(b"data: ")
        if data.strip() == b"[DONE]":
            return [event]
        value = loads(data)
        change(value)
        return [head + mark + for_client(value) + b"\n\n"]

    in_stream(shape, changed)


def without_event(kind: str) -> None:
    """Leave out the events of a type."""
    in_stream(ResponsesAnswer, lambda event: [] if f'"type":"{kind}"'.encode() in event else [event])


def in_events(kind: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the events of a type, in place."""
    in_values(ResponsesAnswer, lambda value: change(value) if value["type"] == kind else None)


# -- chat, whole -----------------------------------------------------------------------------------------------------------


@variant
def chat_object_wrong() -> None:
    in_whole(ChatAnswer, lambda body: body.update(object="text_completion"))


@variant
def chat_created_in_milliseconds_as_text() -> None:
    in_whole(ChatAnswer, lambda body: body.update(created=str(body["created"])))


@variant
def chat_without_id() -> None:
    in_whole(ChatAnswer, lambda body: body.pop("id"))


@variant
def chat_finish_reason_null() -> None:
    in_whole(ChatAnswer, lambda body: body["choices"][0].update(finish_reason=None))


@variant
def chat_without_role() -> None:
    in_whole(ChatAnswer, lambda body: body["choices"][0]["message"].pop("role"))


@variant
def chat_content_in_parts() -> None:
    def change(body: dict[str, Any]) -> None:
        message = body["choices"][0]["message"]
        message["content"] = [{"type": "text", "text": message["content"]}]

    in_whole(ChatAnswer, change)


@variant
def chat_as_plain_text() -> None:
    from codex_replay.reference.proxy.wire.http import Answer

    old = Answer.send

    async def send(self: Answer, status: int, body: bytes, headers: Any = None) -> None:
        await old(self, status, body, {**(headers or {}), "content-type": "text/plain"})

    Answer.send = send


@variant
def usage_guessed() -> None:
    after(
        ChatAnswer,
        "_spent",
        lambda found, _: found and {**found, "prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    )
    after(responses, "_spent", lambda found, _: found and {**found, "input_tokens": 10, "output_tokens": 10, "total_tokens": 20})


@variant
def usage_total_without_output() -> None:
    def change(found: Any, *_: Any) -> Any:
        return found and {**found, "total_tokens": found.get("prompt_tokens", found.get("input_tokens"))}

    after(ChatAnswer, "_spent", change)
    after(responses, "_spent", change)


@variant
def usage_left_out() -> None:
    in_whole(ChatAnswer, lambda body: body.pop("usage", None))
    in_whole(ResponsesAnswer, lambda body: body.update(usage=None))


# -- chat, streamed --------------------------------------------------------------------------------------------------------


@variant
def chunk_ids_differ() -> None:
    count = iter(range(1_000_000))
    in_values(ChatAnswer, lambda value: value.update(id=f"chatcmpl-{next(count)}"))


@variant
def chunks_call_themselves_completions() -> None:
    in_values(ChatAnswer, lambda value: value.update(object="chat.completion"))


@variant
def chunks_without_model() -> None:
    in_values(ChatAnswer, lambda value: value.update(model=""))


@variant
def chunks_with_event_names() -> None:
    in_stream(ChatAnswer, lambda event: [b"event: chunk\n" + event])


@variant
def no_done() -> None:
    in_stream(ChatAnswer, lambda event: [] if event == sse.DONE else [event])


@variant
def done_twice() -> None:
    in_stream(ChatAnswer, lambda event: [event, event] if event == sse.DONE else [event])


@variant
def done_as_json() -> None:
    in_stream(ChatAnswer, lambda event: [b'data: "[DONE]"\n\n'] if event == sse.DONE else [event])


@variant
def chunks_without_role() -> None:
    in_values(ChatAnswer, lambda value: [choice["delta"].pop("role", None) for choice in value["choices"]])


@variant
def no_finish_reason() -> None:
    in_values(ChatAnswer, lambda value: [choice.update(finish_reason=None) for choice in value["choices"]])


@variant
def finish_reason_in_every_chunk() -> None:
    in_values(ChatAnswer, lambda value: [choice.update(finish_reason="stop") for choice in value["choices"]])


@variant
def first_chunk_lost() -> None:
    def feed(events: Iterable[bytes], self: Any, piece: Any) -> Iterable[bytes]:
        lost = isinstance(piece, chat.Text) and not getattr(self, "begun", False)
        self.begun = True
        return [] if lost and list(events) else events

    after(ChatAnswer, "feed", feed)


@variant
def every_chunk_says_all_so_far() -> None:
    def feed(events: Iterable[bytes], self: Any, piece: Any) -> Iterable[bytes]:
        if not isinstance(piece, chat.Text):
            return events
        list(events)
        return [self._chunk({"content": "".join(self._text)})]

    after(ChatAnswer, "feed", feed)


@variant
def text_again_at_the_end() -> None:
    def feed(events: Iterable[bytes], self: Any, piece: Any) -> Iterable[bytes]:
        if not isinstance(piece, chat.Done):
            return events
        return [self._chunk({"content": "".join(self._text)}), *events]

    after(ChatAnswer, "feed", feed)


@variant
def stream_usage_left_out() -> None:
    in_stream(ChatAnswer, lambda event: [] if b'"choices":[]' in event else [event])


@variant
def stream_usage_with_a_choice() -> None:
    def change(value: dict[str, Any]) -> None:
        if not value["choices"]:
            value["choices"] = [{"index": 0, "delta": {}, "finish_reason": None}]

    in_values(ChatAnswer, change)


@variant
def stream_usage_unasked() -> None:
    def feed(events: Iterable[bytes], self: Any, piece: Any) -> Iterable[bytes]:
        self._asked = self._asked._replace(include_usage=True)
        return events

    after(ChatAnswer, "feed", feed)


# -- responses, whole ------------------------------------------------------------------------------------------------------


@variant
def response_object_wrong() -> None:
    in_whole(ResponsesAnswer, lambda body: body.update(object="realtime.response"))


@variant
def response_in_progress_for_ever() -> None:
    in_whole(ResponsesAnswer, lambda body: body.update(status="in_progress"))


@variant
def response_error_empty() -> None:
    in_whole(ResponsesAnswer, lambda body: body.update(error={}))


@variant
def response_created_at_as_text() -> None:
    in_whole(ResponsesAnswer, lambda body: body.update(created_at=str(body["created_at"])))


@variant
def message_in_progress_for_ever() -> None:
    in_whole(ResponsesAnswer, lambda body: [item.update(status="in_progress") for item in body["output"]])


@variant
def output_text_called_text() -> None:
    def change(body: dict[str, Any]) -> None:
        for item in body["output"]:
            for part in item.get("content", []):
                part["type"] = "text"

    in_whole(ResponsesAnswer, change)


@variant
def response_usage_in_words_of_chat() -> None:
    def change(found: Any, *_: Any) -> Any:
        return found and {"prompt_tokens": found["input_tokens"], "completion_tokens": found["output_tokens"], "total_tokens": 1}

    after(responses, "_spent", change)


@variant
def function_calls_without_call_id() -> None:
    in_whole(ResponsesAnswer, lambda body: [item.pop("call_id", None) for item in body["output"]])


@variant
def function_call_arguments_as_object() -> None:
    def change(body: dict[str, Any]) -> None:
        for item in body["output"]:
            if item["type"] == "function_call":
                item["arguments"] = loads(item["arguments"])

    in_whole(ResponsesAnswer, change)


@variant
def function_calls_as_tool_calls() -> None:
    def change(body: dict[str, Any]) -> None:
        for item in body["output"]:
            if item["type"] == "function_call":
                item["type"] = "tool_call"

    in_whole(ResponsesAnswer, change)


# -- responses, streamed ---------------------------------------------------------------------------------------------------


@variant
def no_response_created() -> None:
    without_event("response.created")


@variant
def no_response_completed() -> None:
    without_event("response.completed")


@variant
def response_completed_twice() -> None:
    in_stream(ResponsesAnswer, lambda event: [event, event] if b"event: response.completed" in event else [event])


@variant
def events_named_message() -> None:
    in_stream(ResponsesAnswer, lambda event: [b"event: message\n" + event[event.index(b"data:") :]])


@variant
def no_content_part_added() -> None:
    without_event("response.content_part.added")


@variant
def no_output_item_added() -> None:
    without_event("response.output_item.added")


@variant
def no_output_text_done() -> None:
    without_event("response.output_text.done")


@variant
def item_done_before_its_text() -> None:
    old = ResponsesAnswer._close_message

    def close(self: Any) -> Iterable[bytes]:
        events = list(old(self))
        return events[::-1]

    ResponsesAnswer._close_message = close


@variant
def sequence_from_zero_each_time() -> None:
    in_values(ResponsesAnswer, lambda value: value.update(sequence_number=0))


@variant
def sequence_leaves_deltas_out() -> None:
    def event(self: Any, kind: str, **fields: Any) -> bytes:
        if kind.endswith("delta"):
            return sse.event({"type": kind, "sequence_number": self._sequence, **fields})
        return old(self, kind, **fields)

    old = ResponsesAnswer._event
    ResponsesAnswer._event = event


@variant
def final_output_empty() -> None:
    in_events("response.completed", lambda value: value["response"].update(output=[]))


@variant
def final_items_have_other_ids() -> None:
    in_events("response.completed", lambda value: [item.update(id="x") for item in value["response"]["output"]])


@variant
def output_index_always_zero() -> None:
    in_values(ResponsesAnswer, lambda value: "output_index" in value and value.update(output_index=0))


@variant
def response_ids_differ() -> None:
    in_events("response.completed", lambda value: value["response"].update(id="resp_other"))


@variant
def no_arguments_delta() -> None:
    without_event("response.function_call_arguments.delta")


@variant
def arguments_done_empty() -> None:
    in_events("response.function_call_arguments.done", lambda value: value.update(arguments=""))


@variant
def deltas_twice() -> None:
    in_stream(ResponsesAnswer, lambda event: [event, event] if b"event: response.output_text.delta" in event else [event])


@variant
def deltas_in_ascii() -> None:
    in_events("response.output_text.delta", lambda value: value.update(delta=value["delta"].encode("ascii", "replace").decode()))
