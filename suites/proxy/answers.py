"""Functions that read the text and the tool calls of an answer as a client does, from chat or responses, streamed or not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from codex_replay.plugin.proxy.fixture import Exchange
from suites.proxy.saying import must_be, only, short

#: A hint for an answer with U+FFFD, which the model did not write.
CUT = (
    "The answer has U+FFFD: a read of the app-server's output may end inside a character. Decode whole lines, not the bytes of "
    "each read."
)

#: A hint for an answer that has the text of the model with gaps.
LOST = (
    "Parts of the text are lost: a read of the app-server's output may end inside a line, and may have several lines. Keep the "
    "beginning of a line for the next read, and append each delta, also one that is equal to the one before."
)

#: A hint for an answer that has the text of the model twice.
TWICE = (
    "The answer has the whole text twice: the app-server sends a message in deltas, and again as a whole (item/completed). Take "
    "the text from only one of the two."
)


@dataclass
class Call:
    """One tool call; `arguments` is the unchanged string, and the output of the call names the `id`."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """An answer: the text for the user, the calls in order, and why it ended (chat: finish_reason, responses: status)."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    ended: str | None = None


def arguments(said: str) -> Any:
    """Return the decoded arguments of a call, or the unchanged string if the arguments are not JSON."""
    try:
        return json.loads(said)
    except (TypeError, ValueError):
        return said


def must_say(done: Exchange, text: str) -> None:
    """Check that the answer has the given text; the AssertionError shows the actual text."""
    __tracebackhide__ = True
    where = "delta.content of all chunks" if done.path.endswith("/chat/completions") else "the output_text.delta of all events"
    whole = "message.content" if done.path.endswith("/chat/completions") else "the output_text of the message"
    got = read(done).text
    if got != text:
        at = next((n for n, (a, b) in enumerate(zip(got, text, strict=False)) if a != b), min(len(got), len(text)))
        cut = "" if "\ufffd" in text or "\ufffd" not in got else f" {CUT}"
        cut = f" {TWICE}" if text and got == text * 2 else cut
        rest = iter(text)
        cut = f" {LOST}" if not text.startswith(got) and all(character in rest for character in got) else cut
        raise AssertionError(
            f"The text of the answer ({where if done.is_stream else whole}; status {done.status}) must be the text of the model. "
            f"From character {at} on, expected {text[at : at + 60]!r}, got {got[at : at + 60]!r}; expected {len(text)} "
            f"characters, got {len(got)}.{cut}"
        )


def must_have_messages(text: str, *messages: str) -> None:
    """Check that the text of an answer has each message of the turn."""
    __tracebackhide__ = True
    for message in messages:
        if message not in text:
            raise AssertionError(
                f"The answer lacks {message!r}, a message of the turn; its text is {text!r}. A turn may have several agent "
                "messages: keep the text of each, and end the answer at the end of the turn (turn/completed, or "
                "codex/event/task_complete)."
            )


def must_be_an_object(event: Any) -> None:
    """Check that the data of an event of a stream is a JSON object, or `[DONE]`."""
    __tracebackhide__ = True
    if event.data != "[DONE]" and not isinstance(event.value, dict):
        raise AssertionError(
            f"The data of each event of a stream must be a JSON object, but it is {short(event.data)}. Write the JSON of an "
            "event in one line that begins with `data: `, and a blank line after it: clients ignore any other line."
        )


def read(done: Exchange) -> Answer:
    """Read the answer of `done`; raises AssertionError if it does not have the form of its endpoint."""
    chat = done.path.partition("?")[0].endswith("/chat/completions")
    if done.is_stream:
        for event in done.events:
            must_be_an_object(event)
        return _chat_stream(done) if chat else _responses_stream(done)
    assert isinstance(done.json, dict), f"the answer must be a JSON object, not {short(done.json)}"
    return _chat(done.json) if chat else _responses(done.json)


def _chat(body: Any) -> Answer:
    choice = only("choice in `choices` of the answer", body["choices"])
    message = choice["message"]
    answer = Answer(message.get("content") or "", ended=choice["finish_reason"])
    for call in message.get("tool_calls") or []:
        must_be("`type` of a call in choices[0].message.tool_calls", call["type"], "function")
        answer.calls.append(Call(call["id"], call["function"]["name"], call["function"]["arguments"]))
    return answer


def _chat_stream(done: Exchange) -> Answer:
    answer = Answer()
    calls: dict[int, Call] = {}
    for event in done.events:
        for choice in (event.value or {}).get("choices", []) if event.data != "[DONE]" else []:
            delta = choice.get("delta") or {}
            answer.text += delta.get("content") or ""
            answer.ended = choice.get("finish_reason") or answer.ended
            for piece in delta.get("tool_calls") or []:
                call = calls.setdefault(piece["index"], Call())
                if call.id and piece.get("id") not in (None, "", call.id):
                    raise AssertionError(
                        f"Two calls of the stream, {call.id!r} and {piece['id']!r}, have the index {piece['index']}: clients "
                        "join pieces with one index to one call. Give each call of an answer a separate index."
                    )
                part = piece.get("function") or {}
                if call.name and part.get("name") == call.name:
                    raise AssertionError(
                        f"The stream repeats the name {call.name!r} in a later piece of the same call: clients join the names of "
                        "all pieces. Send the name only in the first piece of a call."
                    )
                call.id += _text("id", piece.get("id"))
                call.name += _text("function.name", part.get("name"))
                call.arguments += _text("function.arguments", part.get("arguments"))
    answer.calls = [calls[index] for index in sorted(calls)]
    return answer


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str | None):
        raise AssertionError(f"{name} of a tool call in the stream must be a text, but it is {short(value)}.")
    return value or ""


def _responses(body: Any) -> Answer:
    answer = Answer(ended=body["status"])
    for item in body["output"]:
        if item["type"] == "message":
            answer.text += "".join(part["text"] for part in item["content"] if part["type"] == "output_text")
        elif item["type"] == "function_call":
            answer.calls.append(Call(item["call_id"], item["name"], item["arguments"]))
    return answer


def _responses_stream(done: Exchange) -> Answer:
    answer = Answer()
    for event in done.events:
        value = event.value or {}
        if value.get("type") == "response.output_text.delta":
            answer.text += value["delta"]
        elif value.get("type") == "response.output_item.done" and value["item"]["type"] == "function_call":
            item = value["item"]
            answer.calls.append(Call(item["call_id"], item["name"], item["arguments"]))
        elif value.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            answer.ended = value["response"]["status"]
    return answer
