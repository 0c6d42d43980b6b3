"""Join the chunks of streamed texts, to find secrets that no single frame contains completely.

Strategy: `Streams` collects the chunks (`chunks_of`) of a whole recording by stream. Two chunks with the same names
(method, thread, item) belong to one stream. `secrets` returns the secrets that only the joined text of a stream shows.
`rewritten` returns the redacted chunks: the chunk in which a secret begins gets the placeholder, and the rest of the secret
is removed from the later chunks. Chunks must be joined before they are redacted: if the first chunk of a secret were
redacted alone, nothing would find the rest of the secret.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from codex_replay.core.cassette.frames import Frame, is_canonical
from codex_replay.core.redact.chunks import ALONE, BASE64, BODY, TEXT, Chunk, chunks_of, thread_of, with_chunks
from codex_replay.core.redact.encoded_body import Unseen, left_out, redacted
from codex_replay.core.redact.redactor import Redactor

LONGEST = 64 << 20  # bytes: the parts of a longer body are not joined
_DELTA = b'"delta":"'
_STREAMS = 64  # that are remembered for `carry_on`
_ROUNDS = 32  # as the redactor itself: each round leaves less to find


class Secret(NamedTuple):
    """A secret that is visible only in joined chunks: its kind, its length, and the places of its first and last chunk (see
    `Streams.add`).
    """

    kind: str
    size: int
    first: int
    last: int


#: What is private and not secret, by the kind that the redactor gives it.
_PRIVATE = {"path": "directory", "home": "home directory", "email": "e-mail address"}


def findings_text(kinds: Sequence[str]) -> str:
    """Return the number and the nouns for the findings of a redactor: "2 secrets (api-key) and a directory"."""
    nouns: dict[str, list[str]] = {}
    for kind in kinds:
        nouns.setdefault(_PRIVATE.get(kind, "secret"), []).append(kind)
    parts = []
    for noun, found in nouns.items():
        more = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{'es' if noun.endswith('s') else 's'}"
        article = "an" if noun[0] == "e" else "a"
        named = f" ({', '.join(dict.fromkeys(found))})" if noun == "secret" else ""
        parts.append((f"{article} {noun}" if len(found) == 1 else f"{len(found)} {more}") + named)
    return " and ".join(parts)


class _Stream:
    def __init__(self) -> None:
        self.hidden = False  # for callers that search a frame's line
        self.body = False
        self.size = 0
        self.places: list[tuple[int, int]] = []  # of the frame, and of the chunk in it
        self.chunks: list[bytes] = []

    def take(self, chunk: Chunk, place: int, number: int) -> None:
        self.hidden = chunk.form == BASE64
        self.body = chunk.form == BODY
        self.size += len(chunk.data)
        if self.body and self.size > LONGEST:
            self.places.clear()
            self.chunks.clear()
            return
        self.places.append((place, number))
        self.chunks.append(chunk.data)


class Streams:
    """The streams of one recording, collected frame by frame."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Stream] = {}
        self._all: list[_Stream] = []
        self._known: dict[bytes, tuple[bytes, _Stream]] = {}  # how a line begins before the text of its delta -> how it ends

    def carry_on(self, line: bytes, place: int) -> bool:
        """Add a line of the rpc seam without decoding it, if the line differs from an earlier line only in the text of its delta.

        Return False if there was no such earlier line; the caller must then call `add`. A line that `carry_on` adds must be
        canonical JSON.
        """
        at = line.find(_DELTA) + len(_DELTA)
        known = self._known.get(line[:at])
        if known is None or not line.endswith(known[0]) or len(line) < at + len(known[0]):
            return False
        text = line[at : len(line) - len(known[0])]
        if not _is_plain(text):
            return False
        stream = known[1]
        stream.size += len(text)
        stream.places.append((place, 0))
        stream.chunks.append(text)
        return True

    def add(self, frame: Frame, place: int) -> None:
        """Add the chunks of a frame that is not redacted yet to their streams.

        `place` is the frame's number, which must increase with each call.
        """
        alone: dict[tuple[str, ...], _Stream] = {}
        chunks = chunks_of(frame)
        for number, chunk in enumerate(chunks):
            streams = alone if chunk.stream[0] == ALONE else self._open
            stream = streams.get(chunk.stream)
            if stream is None:
                stream = streams[chunk.stream] = _Stream()
            stream.take(chunk, place, number)
            if len(stream.chunks) == (2 if stream.body else 1):  # of a body in one chunk its frame shows all
                self._all.append(stream)
        if not chunks and self._open:
            self._known.clear()
            self._close(frame)
        elif len(chunks) == 1 and chunks[0].form == TEXT and frame.seam == "rpc":
            self._remember(frame, chunks[0])

    def _remember(self, frame: Frame, chunk: Chunk) -> None:
        """Keep the beginning and the end of a stream's line, for `carry_on`."""
        raw, text = frame.raw, chunk.data
        at = raw.find(_DELTA) + len(_DELTA)
        end = at + len(text)
        if raw.count(_DELTA) == 1 and raw[at : end + 1] == text + b'"' and _is_plain(text) and is_canonical(raw, frame.value):
            if len(self._known) >= _STREAMS:
                self._known.clear()
            self._known[raw[:at]] = (raw[end:], self._open[chunk.stream])

    def secrets(self, redactor: Redactor) -> Iterator[Secret]:
        """Yield the secrets that are visible only in joined chunks, and the secrets in base64.

        Secrets in single frames are found elsewhere.
        """
        report = set()
        for stream in self._all:
            starts = _starts(stream.chunks)
            for kind, start, end in redactor.findings(b"".join(stream.chunks)):
                first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
                at = starts[first]
                alone = [] if stream.hidden or first != last else redactor.findings(stream.chunks[first])
                if any(left <= start - at and end - at <= right for _, left, right in alone):
                    continue
                secret = Secret(kind, end - start, stream.places[first][0], stream.places[last][0])
                if secret not in report:  # a text and its tokens have the same content
                    report.add(secret)
                    yield secret

    def rewritten(self, redactor: Redactor) -> dict[int, dict[int, bytes]]:
        """Return the new content of the changed chunks: for each frame's place, the new content by the number of the chunk in the
        frame (see `with_chunks`).
        """
        changed: dict[int, dict[int, bytes]] = {}
        for stream in self._all:
            chunks = list(stream.chunks)
            for _ in range(_ROUNDS):
                edits = redactor.edits(b"".join(chunks))
                if not edits:
                    break
                starts = _starts(chunks)
                for start, end, new in reversed(edits):
                    _cut(chunks, starts, start, end, new)
            for (place, number), old, new in zip(stream.places, stream.chunks, chunks, strict=True):
                if new != old:
                    changed.setdefault(place, {})[number] = new
        return changed

    def _close(self, frame: Frame) -> None:
        """End the streams that end with the given frame, so that the chunks of different messages are not joined."""
        if frame.seam == "http":
            if frame.kind in ("request", "response", "close") or _is_next_request(frame):
                conn = str(frame.conn)
                self._open = {key: one for key, one in self._open.items() if key[:2] != ("http", conn)}
            return
        value = frame.value
        method = value.get("method") if type(value) is dict else None
        if type(method) is str and method.startswith("codex/event/"):
            # An agent_message_delta has no id of its item; agent_message marks the end of the item.
            stem = method.removesuffix("_section_break") + "_"
            thread = thread_of(value)
            self._open = {k: one for k, one in self._open.items() if k[2:3] != (thread,) or not k[1].startswith(stem)}


def clean(frames: Iterable[Frame], redactor: Redactor) -> list[Frame]:
    """Return the frames of a whole recording with all secrets replaced, including the secrets that were streamed in chunks."""
    unseen = Unseen()
    streams, result = Streams(), [left_out(frame) if unseen.encoding(frame) else frame for frame in frames]
    for place, frame in enumerate(result):
        streams.add(frame, place)
    for place, chunks in streams.rewritten(redactor).items():
        result[place] = with_chunks(result[place], chunks)
    return [redacted(frame, redactor) for frame in result]


def _is_next_request(frame: Frame) -> bool:
    """Return True for a message of a WebSocket client that begins a new request, and False for a ping or a pong."""
    return (frame.kind, frame.sender) == ("ws", "client") and not frame.payload.keys() & {"ping", "pong"}


def _is_plain(text: bytes) -> bool:
    """Return True if a text needs no escapes in JSON: it is printable ASCII without quotes and backslashes."""
    return text.isascii() and b'"' not in text and b"\\" not in text and text.decode("ascii").isprintable()


def _starts(chunks: list[bytes]) -> list[int]:
    starts, at = [], 0
    for chunk in chunks:
        starts.append(at)
        at += len(chunk)
    return starts


def _cut(chunks: list[bytes], starts: list[int], start: int, end: int, new: bytes) -> None:
    """Replace a span of the joined chunks by `new`, in the chunk where the span begins.

    If several spans are replaced, the caller must begin with the last span.
    """
    first = bisect_right(starts, start) - 1
    for at in range(bisect_right(starts, end - 1) - 1, first, -1):
        chunks[at] = chunks[at][end - starts[at] :]
    chunk, offset = chunks[first], starts[first]
    chunks[first] = chunk[: start - offset] + new + chunk[max(0, end - offset) :]
