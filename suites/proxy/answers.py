"""What a client reads out of an answer, whole or streamed, of chat or of responses: the text, and the calls of tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.plugin.proxy import Exchange


@dataclass
class Call:
    """One call of a tool: `arguments` is the string as it came, `id` is how its output will name it."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """The text that a user sees, the calls in their order, and why it ended (chat: finish_reason, responses: status)."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    ended: str | None = None


def read(done: Exchange) -> Answer:
    """Read the answer of `done`; AssertionError when it does not have the form of its endpoint."""
    chat = done.path.endswith("/chat/completions")
    if done.is_stream:
        return _chat_stream(done) if chat else _responses_stream(done)
    return _chat(done.json) if chat else _responses(done.json)


def _chat(body: Any) -> Answer:
    [choice] = body["choices"]
    message = choice["message"]
    answer = Answer(message.get("content") or "", ended=choice["finish_reason"])
    for call in message.get("tool_calls") or []:
        assert call["type"] == "function"
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
                call.id += piece.get("id") or ""
                call.name += (piece.get("function") or {}).get("name") or ""
                call.arguments += (piece.get("function") or {}).get("arguments") or ""
    answer.calls = [calls[index] for index in sorted(calls)]
    return answer


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
