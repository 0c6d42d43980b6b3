"""A cache of written replies, which are sent again.

A turn that is used often (or by many clients) streams the same bytes each time, except for the label in its ids. It is written
once with a mark of the label's length in its place; after that, a reply costs one search and replace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codex_fakes.backend.exchange import frame
from codex_replay.core.wire.json_text import compact
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.settings import READ, read_key
from codex_replay.protocol.responses.steps import Send, event_bytes
from codex_replay.protocol.script.script import Turn

#: What the reply to Codex repeats of its request.
_REPEATED = ("model", "prompt_cache_key", "parallel_tool_calls", "store")
#: Bytes of a reply that are written at once.
PIECE = 64 * 1024


class ReplyCache:
    """The written replies of one script, at most `ENTRIES` of them and `SIZE` bytes."""

    MARK = "\x7f"
    LARGEST = 4 * 1024 * 1024
    SIZE = 32 * 1024 * 1024
    ENTRIES = 64
    REPEATED = 64 * 1024  # bytes of what a reply repeats of its request: with more it is not kept

    def __init__(self) -> None:
        self._framed: dict[tuple[Any, ...], bytes | None] = {}
        self._size = 0

    def framed(self, turn: Turn, body: Mapping[str, Any], label: str, whole: bool = False) -> Iterator[bytes] | None:
        """Return the whole reply as HTTP chunks; None if the reply must be streamed step by step.

        All clients share what was written: a slow one keeps no more than a piece of it in memory.
        """
        if turn.fault is not None or turn.delay_ms or turn.write != "event":
            return None
        repeated = read_key(body, READ if whole else _REPEATED)
        if len(repeated) > self.REPEATED:
            return None
        key = (id(turn), len(label), whole, repeated)
        if key not in self._framed:
            made = self._write(turn, body, self.MARK * len(label), whole)
            if len(self._framed) >= self.ENTRIES or self._size + len(made or b"") > self.SIZE:
                self._framed.clear()
                self._size = 0
            self._framed[key] = made
            self._size += len(made or b"")
        written = self._framed[key]
        return None if written is None else _labelled(written, self.MARK.encode(), label.encode())

    def _write(self, turn: Turn, body: Mapping[str, Any], mark: str, whole: bool) -> bytes | None:
        steps = reply(turn, body, mark, whole)
        pieces = [event_bytes(step.event) for step in steps if isinstance(step, Send)]
        given = [list(turn.items), turn.response_id, *(body.get(name) for name in READ)]
        if len(pieces) != len(steps) or self.MARK in compact(given):
            return None
        written = frame(pieces)
        return written if len(written) <= self.LARGEST else None


def _labelled(written: bytes, mark: bytes, label: bytes) -> Iterator[bytes]:
    """Yield a reply in chunks, with its marks replaced by the label; no mark is split across two chunks."""
    at = 0
    while at < len(written):
        end = at + PIECE
        while written[end : end + 1] == mark:
            end += 1
        yield written[at:end].replace(mark * len(label), label)
        at = end
