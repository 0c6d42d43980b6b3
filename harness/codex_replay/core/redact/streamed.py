"""What is streamed in pieces, put together again, so that a secret is seen that no single frame shows.

Strategy: `Streams` gathers the pieces (`pieces_of`) of a whole recording; a stream is what all names of a piece tell apart.
`secrets` says what only the whole shows, `mended` what the pieces become: a placeholder in the piece in which a secret begins,
the rest of it gone from those that follow. Pieces are gathered before they are redacted: of a secret whose first piece looks
like a whole one, the rest would be recognised by nobody.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness.core.frames import Frame
from harness.core.hidden import Unseen, left_out, redacted
from harness.core.pieces import ALONE, BASE64, BODY, Piece, pieces_of, thread_of, with_pieces
from harness.core.redact import Redactor

LONGEST = 64 << 20  # bytes: the parts of a longer body are not joined
_ROUNDS = 32  # as the redactor itself: each round leaves less to find


class Secret(NamedTuple):
    """A secret that only joined pieces show: what it is, how long, the places of its first and last piece (see `Streams.add`)."""

    kind: str
    size: int
    first: int
    last: int


class _Stream:
    def __init__(self) -> None:
        self.hidden = False  # from who looks at a frame's line
        self.body = False
        self.size = 0
        self.places: list[tuple[int, int]] = []  # of the frame, and of the piece in it
        self.pieces: list[bytes] = []

    def take(self, piece: Piece, place: int, number: int) -> None:
        self.hidden = piece.form == BASE64
        self.body = piece.form == BODY
        self.size += len(piece.data)
        if self.body and self.size > LONGEST:
            self.places.clear()
            self.pieces.clear()
            return
        self.places.append((place, number))
        self.pieces.append(piece.data)


class Streams:
    """The streams of one recording, gathered frame by frame."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Stream] = {}
        self._all: list[_Stream] = []

    def add(self, frame: Frame, place: int) -> None:
        """Take the pieces of a frame, before they are redacted; `place` is how the caller calls the frame, rising."""
        alone: dict[tuple[str, ...], _Stream] = {}
        pieces = pieces_of(frame)
        for number, piece in enumerate(pieces):
            streams = alone if piece.stream[0] == ALONE else self._open
            stream = streams.get(piece.stream)
            if stream is None:
                stream = streams[piece.stream] = _Stream()
            stream.take(piece, place, number)
            if len(stream.pieces) == (2 if stream.body else 1):  # of a body in one piece its frame shows all
                self._all.append(stream)
        if not pieces and self._open:
            self._close(frame)

    def secrets(self, redactor: Redactor) -> Iterator[Secret]:
        """Yield what only the joined pieces show, and what is in base64: what a frame shows is left to who looks at frames."""
        told = set()
        for stream in self._all:
            starts = _starts(stream.pieces)
            for kind, start, end in redactor.findings(b"".join(stream.pieces)):
                first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
                at = starts[first]
                alone = [] if stream.hidden or first != last else redactor.findings(stream.pieces[first])
                if any(left <= start - at and end - at <= right for _, left, right in alone):
                    continue
                secret = Secret(kind, end - start, stream.places[first][0], stream.places[last][0])
                if secret not in told:  # a text and its tokens say the same
                    told.add(secret)
                    yield secret

    def mended(self, redactor: Redactor) -> dict[int, dict[int, bytes]]:
        """Return what pieces become, by the place of their frame and their own in it (`with_pieces`); only those that change."""
        changed: dict[int, dict[int, bytes]] = {}
        for stream in self._all:
            pieces = list(stream.pieces)
            for _ in range(_ROUNDS):
                edits = redactor.edits(b"".join(pieces))
                if not edits:
                    break
                starts = _starts(pieces)
                for start, end, new in reversed(edits):
                    _cut(pieces, starts, start, end, new)
            for (place, number), old, new in zip(stream.places, stream.pieces, pieces, strict=True):
                if new != old:
                    changed.setdefault(place, {})[number] = new
        return changed

    def _close(self, frame: Frame) -> None:
        """End the streams that end with this frame: the pieces of two messages are not to be joined."""
        if frame.seam == "http":
            if frame.kind in ("request", "response", "close"):
                conn = str(frame.conn)
                self._open = {key: one for key, one in self._open.items() if key[:2] != ("http", conn)}
            return
        value = frame.value
        method = value.get("method") if type(value) is dict else None
        if type(method) is str and method.startswith("codex/event/"):
            # An agent_message_delta has no id of its item; agent_message says that the item is whole.
            stem = method.removesuffix("_section_break") + "_"
            thread = thread_of(value)
            self._open = {k: one for k, one in self._open.items() if k[2:3] != (thread,) or not k[1].startswith(stem)}


def clean(frames: Iterable[Frame], redactor: Redactor) -> list[Frame]:
    """Return the frames of a whole recording without their secrets, those that were streamed in pieces included."""
    unseen = Unseen()
    streams, result = Streams(), [left_out(frame) if unseen.encoding(frame) else frame for frame in frames]
    for place, frame in enumerate(result):
        streams.add(frame, place)
    for place, pieces in streams.mended(redactor).items():
        result[place] = with_pieces(result[place], pieces)
    return [redacted(frame, redactor) for frame in result]


def _starts(pieces: list[bytes]) -> list[int]:
    starts, at = [], 0
    for piece in pieces:
        starts.append(at)
        at += len(piece)
    return starts


def _cut(pieces: list[bytes], starts: list[int], start: int, end: int, new: bytes) -> None:
    """Put `new` where a span of the joined pieces begins, and take the span out; spans are to come from the last to the first."""
    first = bisect_right(starts, start) - 1
    for at in range(bisect_right(starts, end - 1) - 1, first, -1):
        pieces[at] = pieces[at][end - starts[at] :]
    piece, offset = pieces[first], starts[first]
    pieces[first] = piece[: start - offset] + new + piece[max(0, end - offset) :]
