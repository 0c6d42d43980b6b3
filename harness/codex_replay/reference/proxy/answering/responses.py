"""Build the answer of the Responses API, complete or as a stream of events.

The complete answer is the response in the last event of the stream, so the two forms cannot differ.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from typing import Any

from codex_replay.reference.proxy.answering.chunks import Break, Call, Done, Piece, Text, new_id
from codex_replay.reference.proxy.answering.events import Usage
from codex_replay.reference.proxy.asking.normalise import Asked
from codex_replay.reference.proxy.errors import ProxyError
from codex_replay.reference.proxy.wire import sse

Event = dict[str, Any]


class ResponsesAnswer:
    """Collect the parts of an answer of the Responses API.

    For each part, `feed` returns the bytes to stream to the client. Without streaming, `whole` returns the complete answer.
    """

    def __init__(self, asked: Asked) -> None:
        self._response = _empty(asked)
        self._output: list[dict[str, Any]] = self._response["output"]
        self._message: dict[str, Any] | None = None
        self._text: list[str] = []
        self._sequence = 0

    def begin(self) -> Iterable[bytes]:
        """Return the events that open the stream."""
        yield self._event("response.created", response=self._response)
        yield self._event("response.in_progress", response=self._response)

    def feed(self, piece: Piece) -> Iterable[bytes]:
        """Take a part of the answer, and return the events that report it."""
        if isinstance(piece, Text):
            if self._message is None:
                yield from self._open_message()
            self._text.append(piece.text)
            yield self._part_event("response.output_text.delta", delta=piece.text, logprobs=[])
            return
        yield from self._close_message()
        if isinstance(piece, Call):
            yield from self._call(piece)
        elif isinstance(piece, Done):
            self._response["status"] = "completed"
            self._response["completed_at"] = int(time.time())
            self._response["usage"] = _spent(piece.usage)
            yield self._event("response.completed", response=self._response)
        else:
            assert isinstance(piece, Break)

    def fail(self, error: ProxyError) -> Iterable[bytes]:
        """Return the bytes that end a stream when the answer fails."""
        self._response["status"] = "failed"
        self._response["error"] = {"code": error.code or error.kind, "message": error.message}
        yield self._event("response.failed", response=self._response)

    def whole(self) -> dict[str, Any]:
        """Return the complete answer as one object."""
        return self._response

    # -- items -----------------------------------------------------------------------------------------------------------

    def _open_message(self) -> Iterable[bytes]:
        self._message = {"id": new_id("msg_"), "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        self._text = []
        self._output.append(self._message)
        yield self._item_event("response.output_item.added")
        self._message["content"] = [_part("")]
        yield self._part_event("response.content_part.added", part=_part(""))

    def _close_message(self) -> Iterable[bytes]:
        message = self._message
        if message is None:
            return
        text = "".join(self._text)
        message["content"] = [_part(text)]
        message["status"] = "completed"
        yield self._part_event("response.output_text.done", text=text, logprobs=[])
        yield self._part_event("response.content_part.done", part=_part(text))
        yield self._item_event("response.output_item.done")
        self._message = None

    def _call(self, call: Call) -> Iterable[bytes]:
        item = {"id": new_id("fc_"), "type": "function_call", "status": "in_progress", "call_id": call.id, "name": call.name}
        self._output.append({**item, "arguments": ""})
        where = {"item_id": item["id"], "output_index": len(self._output) - 1}
        yield self._item_event("response.output_item.added")
        yield self._event("response.function_call_arguments.delta", **where, delta=call.arguments)
        yield self._event("response.function_call_arguments.done", **where, name=call.name, arguments=call.arguments)
        self._output[-1].update(status="completed", arguments=call.arguments)
        yield self._item_event("response.output_item.done")

    # -- events ----------------------------------------------------------------------------------------------------------

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return sse.event({"type": kind, "sequence_number": self._sequence - 1, **fields})

    def _item_event(self, kind: str) -> bytes:
        return self._event(kind, output_index=len(self._output) - 1, item=self._output[-1])

    def _part_event(self, kind: str, **fields: Any) -> bytes:
        where = {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1, "content_index": 0}
        return self._event(kind, **where, **fields)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _empty(asked: Asked) -> dict[str, Any]:
    """Return the response object without items. The response repeats the settings of the request, as the API requires."""
    body = asked.body
    tools = [{"type": "function", "parameters": None, "strict": None, **_flat(tool)} for tool in asked.tools.definitions]
    choice = {"type": "function", "name": asked.tools.forced} if asked.tools.forced else asked.tools.choice
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_tokens,
        "metadata": copy.copy(body.get("metadata")) or {},
        "model": asked.model.requested,
        "output": [],
        "parallel_tool_calls": asked.tools.parallel,
        "previous_response_id": None,
        "reasoning": {"effort": asked.effort, "summary": asked.summary},
        "store": False,
        "temperature": asked.temperature,
        "text": {"format": asked.format or {"type": "text"}},
        "tool_choice": choice,
        "tools": tools,
        "top_p": asked.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def _flat(definition: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", **definition["function"]}


def _spent(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
