"""A cache of encoded replies that may be sent several times.

A turn that is used several times streams the same bytes each time, except for the label in its ids. The reply is encoded
once, with a mark of the same length in place of the label, and is split at the marks. Joining the parts with a label gives
the reply for one client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import is_
from typing import Any

from codex_fakes.backend.exchange import Framing
from codex_replay.core.wire.json_text import compact
from codex_replay.protocol.responses.items import steps_of
from codex_replay.protocol.responses.settings import READ, read_key
from codex_replay.protocol.responses.steps import Send
from codex_replay.protocol.script.script import Turn

#: What the reply to Codex repeats of its request.
_REPEATED = ("model", "prompt_cache_key", "parallel_tool_calls", "store")
#: Bytes of a reply that are written at once, about.
PIECE = 256 * 1024
#: A written reply: its pieces, each split where the label stands.
Written = list[list[bytes]]


class Framed:
    """A cached reply with the label of one request inserted."""

    def __init__(self, written: Written, label: str) -> None:
        self._written, self._label = written, label.encode()

    def chunks(self, head: bytes = b"", tail: bytes = b"") -> Iterator[bytes]:
        """Yield the pieces to send, with `head` before the first piece and `tail` after the last piece.

        Because `head` and `tail` are joined to pieces, each byte is copied only once.
        """
        written = [*self._written]
        written[0] = [head + written[0][0], *written[0][1:]]
        written[-1] = [*written[-1][:-1], written[-1][-1] + tail]
        return map(self._label.join, written)


class ReplyCache:
    """The encoded replies of one script: at most `ENTRIES` replies, and at most `SIZE` bytes."""

    MARK = "\x7f"
    LARGEST = 4 * 1024 * 1024
    MOST_EVENTS = LARGEST // 200  # a delta has some more bytes
    SIZE = 32 * 1024 * 1024
    ENTRIES = 64
    REPEATED = 64 * 1024  # bytes of what a reply repeats of its request: with more it is not kept

    def __init__(self) -> None:
        self._framed: dict[tuple[Any, ...], Written | None] = {}
        #: The last key and its reply: comparing a long key takes a tenth of the time of its hash.
        self._latest: tuple[tuple[Any, ...], Written | None] = ((), None)
        #: The last values that a reply depends on, and their key: most values of the next request are the same objects.
        self._read: tuple[list[Any], bytes] = ([], b"")
        self._size = 0

    def framed(self, turn: Turn, body: Mapping[str, Any], label: str, framing: Framing, whole: bool = False) -> Framed | None:
        """Return the whole encoded reply, framed by `framing`.

        Return None if the reply must be streamed step by step. All clients share the encoded reply, so a slow client keeps
        only a part of it in memory.
        """
        if turn.fault is not None or turn.delay_ms or turn.write != "event":
            return None
        values = [body.get(name) for name in (READ if whole else _REPEATED)]
        if len(values) != len(self._read[0]) or not all(map(is_, values, self._read[0])):
            repeated = read_key(body, READ if whole else _REPEATED)
            if len(repeated) > self.REPEATED:
                return None
            self._read = (values, repeated)
        key = (id(turn), len(label), framing, whole, self._read[1])
        if key == self._latest[0]:
            written = self._latest[1]
            return None if written is None else Framed(written, label)
        if key not in self._framed:
            made = self._write(turn, body, self.MARK * len(label), framing, whole)
            if len(self._framed) >= self.ENTRIES or self._size + len(made or b"") > self.SIZE:
                self._framed.clear()
                self._size = 0
            self._framed[key] = None if made is None else _split(made, (self.MARK * len(label)).encode())
            self._size += len(made or b"")
        written = self._framed[key]
        self._latest = (key, written)
        return None if written is None else Framed(written, label)

    def _write(self, turn: Turn, body: Mapping[str, Any], mark: str, framing: Framing, whole: bool) -> bytes | None:
        texts = (text for item in turn.items if "deltas" not in item for text in item.values() if isinstance(text, str))
        if sum(map(len, texts)) > self.MOST_EVENTS * turn.delta:
            return None
        events: list[Mapping[str, Any]] = []
        for step in steps_of(turn, body, mark, whole):
            if not isinstance(step, Send) or len(events) == self.MOST_EVENTS:  # other clients wait meanwhile
                return None
            events.append(step.event)
        given = [list(turn.items), turn.response_id, *(body.get(name) for name in READ)]
        if self.MARK in compact(given):
            return None
        written = framing(events)
        if written.count(mark.encode()) != compact(events).count(mark):  # the length of a WebSocket frame may contain the mark
            return None
        return written if len(written) <= self.LARGEST else None


def _split(written: bytes, mark: bytes) -> Written:
    """Split an encoded reply into pieces, and split each piece at its marks.

    An empty reply is one piece. No mark is split across two pieces.
    """
    pieces, at = [], 0
    while at < len(written):
        end = at + PIECE
        while written[end : end + 1] == mark[:1]:
            end += 1
        pieces.append(written[at:end].split(mark))
        at = end
    return pieces or [[b""]]
