"""Replies that were written before, ready to be sent again.

A turn that is used often (or by many clients) streams the same bytes each time, but for the label in its ids. It is written
once with a mark of the label's length in its place; after that, a reply costs one search and replace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_server.backend_exchange import frame
from harness.protocol.responses import reply
from harness.protocol.script import Turn
from harness.protocol.steps import Send, event_bytes


class ReplyCache:
    """The written replies of one script, at most `ENTRIES` of at most `LARGEST` bytes each."""

    MARK = "\x7f"
    LARGEST = 1024 * 1024
    ENTRIES = 64

    def __init__(self) -> None:
        self._framed: dict[tuple[Any, ...], bytes | None] = {}

    def framed(self, turn: Turn, body: Mapping[str, Any], label: str) -> bytes | None:
        """Return the whole reply as HTTP chunks, or None for one that must be streamed step by step."""
        if turn.fault is not None or turn.delay_ms or turn.write != "event":
            return None
        echoed = (body.get("model"), body.get("prompt_cache_key"), body.get("parallel_tool_calls"), body.get("store"))
        key = (id(turn), len(label), *map(str, echoed))
        if key not in self._framed:
            if len(self._framed) >= self.ENTRIES:
                self._framed.clear()
            self._framed[key] = self._write(turn, body, self.MARK * len(label))
        written = self._framed[key]
        return None if written is None else written.replace(self.MARK.encode() * len(label), label.encode())

    def _write(self, turn: Turn, body: Mapping[str, Any], mark: str) -> bytes | None:
        steps = reply(turn, body, mark)
        pieces = [event_bytes(step.event) for step in steps if isinstance(step, Send)]
        given = [list(turn.items), turn.response_id, body.get("model"), body.get("prompt_cache_key")]
        if len(pieces) != len(steps) or self.MARK in json.dumps(given, ensure_ascii=False):
            return None
        written = frame(pieces)
        return written if len(written) <= self.LARGEST else None
