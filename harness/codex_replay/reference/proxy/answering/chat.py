"""Build the answer of the chat completions API, complete or in chunks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from codex_replay.reference.proxy.answering.chunks import Break, Call, Done, Piece, Text, new_id
from codex_replay.reference.proxy.answering.events import Usage
from codex_replay.reference.proxy.asking.normalise import Asked
from codex_replay.reference.proxy.errors import ProxyError
from codex_replay.reference.proxy.wire import sse


class ChatAnswer:
    """Collect the parts of an answer of chat/completions.

    For each part, `feed` returns the bytes to stream to the client. Without streaming, `whole` returns the complete answer.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._head = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": asked.model.requested}
        self._text: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._broken = False
        self._usage: Usage | None = None

    def begin(self) -> Iterable[bytes]:
        """Return the first chunk, which has the role of the message."""
        yield self._chunk({"role": "assistant", "content": ""})

    def feed(self, piece: Piece) -> Iterable[bytes]:
        """Return the chunks for one part of the answer."""
        if isinstance(piece, Text):
            text = ("\n\n" if self._broken and self._text else "") + piece.text
            self._broken = False
            self._text.append(text)
            yield self._chunk({"content": text})
        elif isinstance(piece, Call):
            call = {"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": piece.arguments}}
            self._calls.append(call)
            yield self._chunk({"tool_calls": [{"index": len(self._calls) - 1, **call}]})
        elif isinstance(piece, Break):
            self._broken = True
        elif isinstance(piece, Done):
            self._usage = piece.usage
            yield self._chunk({}, self._finish)
            if self._asked.include_usage:
                yield sse.data({**self._frame("chat.completion.chunk"), "choices": [], "usage": self._spent()})
            yield sse.DONE

    def fail(self, error: ProxyError) -> Iterable[bytes]:
        """Return the bytes that end a stream when the answer fails."""
        yield sse.data({"error": error.body})
        yield sse.DONE

    def whole(self) -> dict[str, Any]:
        """Return the complete answer as one object."""
        text = "".join(self._text)
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not self._calls else None, "refusal": None}
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish}
        found = {**self._frame("chat.completion"), "choices": [choice]}
        return found if self._usage is None else {**found, "usage": self._spent()}

    @property
    def _finish(self) -> str:
        return "tool_calls" if self._calls else "stop"

    def _frame(self, kind: str) -> dict[str, Any]:
        return {"id": self._head["id"], "object": kind, "created": self._head["created"], "model": self._head["model"]}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse.data({**self._frame("chat.completion.chunk"), "choices": [choice]})

    def _spent(self) -> dict[str, Any] | None:
        spent = self._usage
        if spent is None:
            return None
        return {
            "prompt_tokens": spent.input,
            "completion_tokens": spent.output,
            "total_tokens": spent.total,
            "prompt_tokens_details": {"cached_tokens": spent.cached},
            "completion_tokens_details": {"reasoning_tokens": spent.reasoning},
        }
