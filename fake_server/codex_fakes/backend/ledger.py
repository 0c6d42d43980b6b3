"""The ledger of a session: it has one entry for each request.

A body is kept in parts, which several entries may share, because a client repeats its conversation in each request. If the
bodies together have more than `PLAIN` bytes, the oldest bodies are kept compressed.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from codex_fakes.backend.exchange import Request
from codex_fakes.backend.limits import Limits
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson, compact

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

    from codex_replay.core.redact.redactor import Redactor

#: What an entry takes besides its head and its body, in bytes.
_ENTRY = 1000
#: A longer body is left out where the ledger is redacted: that takes time, while other clients wait.
REDACTED = 1024 * 1024
#: The number of entries that a program gets at once that follows the ledger.
FOLLOWED = 100
#: How many bytes of bodies a ledger keeps as they are.
PLAIN = 8 * 1024 * 1024
#: A body of so many bytes is compressed (zstd) in about a millisecond at most; the others stay as they are.
PACKED = range(4096, 512 * 1024)


class Entry:
    """One entry of the ledger: a received request and its result.

    `answer` is the source of the answer: "cassette", "turn", "default", "rule", "expect", "miss", "route", ... `status` is
    the HTTP status of the answer, and `sentence` is the reason of a refusal. `end` is None while the answer is open, and
    "end", "cut", "reset" or "gone" (the client disconnected) afterwards.
    """

    __slots__ = (
        *("_json", "_ledger", "answer", "body", "end", "left_out", "missed", "n", "packed", "parts", "raw_length", "recorded"),
        *("request", "sentence", "status", "time", "turn", "unshared", "websocket"),
    )

    def __init__(self, n: int, request: Request, started: float, ledger: weakref.ref[Ledger]) -> None:
        self._ledger = ledger
        self._json: bool | None = None  # True if the body is known to be JSON
        self.n = n
        self.request = request
        self.raw_length = len(request.body)
        self.time = started
        self.body: bytes | None = None
        self.parts: tuple[bytes, ...] = ()  # in place of the body, when the answer has ended
        self.unshared = 0  # how many bytes of the parts are in no earlier entry
        self.packed: tuple[int, bytes] | None = None  # in place of the body: its length, and its compressed form
        self.left_out: int | None = None  # the length of a body that is too long for the ledger
        self.answer = ""
        self.status: int | None = None
        self.turn: int | None = None
        self.missed: str | None = None  # why no recording answered, where a script was asked next
        self.recorded: dict[str, Any] | None = None  # the cassette and the frame that answered
        self.sentence: str | None = None
        self.end: str | None = None
        self.websocket: dict[str, Any] | None = None  # of a WebSocket message: what it was before it was made a full request

    def close(self, how: str) -> None:
        """Record how the answer has ended, and wake the tasks that wait for its end."""
        first = self.end is None
        if first:
            self.end = how
            self.request.forget()  # `body` has what was sent, decoded, and counts for the limits
        if (ledger := self._ledger()) is not None:
            ledger.closed(self, first)

    @property
    def size(self) -> int:
        """Return the approximate size of the entry in memory, in bytes; a compressed or shared body counts in full."""
        kept = self.packed[0] if self.packed else sum(map(len, self.parts)) if self.body is None else len(self.body)
        return _ENTRY + self.request.head_size + kept

    @property
    def own(self) -> int:
        """Return the bytes of the plain body that no earlier entry has."""
        return self.unshared if self.body is None else len(self.body)

    def pack(self) -> None:
        """Keep the body compressed; another thread may read the entry meanwhile."""
        if (body := self._plain()) is not None:
            # A copy, because zstandard's own bytes keep the memory that the longest possible result would need.
            self.packed = (len(body), bytes(memoryview(_compressor().compress(body))))
            self.body, self.parts = None, ()

    def _plain(self) -> bytes | None:
        body, parts = self.body, self.parts
        if body is None and self.packed is not None:
            import zstandard

            return zstandard.decompress(self.packed[1])
        return b"".join(parts) if body is None and parts else body

    def written(self, redactor: Redactor | None) -> bytes:
        """Return the entry as JSON for the control API.

        `body` is the decoded JSON of the request body; if the body is not JSON, `body_text` is its text. With a redactor, a
        long body is omitted.
        """
        request = self.request
        headers = redactor.headers(request.headers) if redactor else request.headers
        shown: dict[str, Any] = {
            "n": self.n,
            "conn": request.conn,
            "t": round(self.time, 6),
            "method": request.method,
            "path": request.target,
            "version": request.version,
            "headers": headers,
            "raw_length": self.raw_length,
        }
        shown |= {"answer": self.answer, "status": self.status, "turn": self.turn, "sentence": self.sentence, "end": self.end}
        if self.recorded is not None:
            shown["recorded"] = self.recorded
        if self.websocket is not None:
            shown["websocket"] = self.websocket
        body, left_out = self._plain(), self.left_out
        if redactor is not None and body is not None and len(body) > REDACTED:
            left_out = len(body)
            body = None
        if left_out is not None:
            shown["body_left_out"] = left_out
        if body and not self._is_json(body):
            shown["body_text"] = body.decode("utf-8", "backslashreplace")
        data = compact(shown).encode("utf-8", "backslashreplace")
        if body and self._json:
            data = data[:-1] + b',"body":' + body + b"}"
        return redactor.redact(data) if redactor else data

    def _is_json(self, body: bytes) -> bool:
        if self._json is None:
            try:
                read(body)
                self._json = True
            except NotJson:
                self._json = False
        return self._json


@cache
def _compressor() -> ZstdCompressor:
    import zstandard  # few ledgers grow so large: it would slow every start

    return zstandard.ZstdCompressor(level=1)


class Ledger:
    """The last requests of a session, as many as the limits allow.

    The function `changed` is called when an entry is added, and when its answer has ended.
    """

    def __init__(self, limits: Limits, changed: Callable[[], None]) -> None:
        self._limits = limits
        self._changed = changed
        # Weak, so that a session that is replaced is freed at once, and not when the garbage collector comes.
        self._itself = weakref.ref(self)
        self._size = 0
        #: The ended entries whose body is still to be compressed, by number, and how many bytes these bodies are, without the
        #: bytes that earlier entries have.
        self._unpacked: dict[int, Entry] = {}
        self._unpacked_size = 0
        self.entries: deque[Entry] = deque()
        self.entered = self.ended = self.dropped = 0

    def enter(self, request: Request, started: float) -> Entry:
        """Add a request to the ledger."""
        self.entered += 1
        entry = Entry(self.entered, request, started, self._itself)
        self.entries.append(entry)
        self._drop()
        self._changed()
        return entry

    def since(self, n: int) -> list[Entry]:
        """Return the entries after number `n` that were not dropped."""
        return list(islice(self.entries, max(0, n - self.dropped), None))

    def next_has_ended(self, n: int) -> bool:
        """Return True if the answer to the first entry after number `n` has ended."""
        at = max(0, n - self.dropped)
        return at < len(self.entries) and self.entries[at].end is not None

    def ended_since(self, n: int) -> list[Entry]:
        """Return the entries after number `n`, up to the first entry whose answer is open. Return at most `FOLLOWED` entries."""
        at = max(0, n - self.dropped)
        return list(takewhile(lambda entry: entry.end is not None, islice(self.entries, at, at + FOLLOWED)))

    def closed(self, entry: Entry, first: bool) -> None:
        """Record that the answer to an entry has ended. `first` is False if the end is already recorded."""
        if first:
            self.ended += 1
            if entry.body is not None and (length := len(entry.body)) > self._limits.ledger_bytes // 2:
                entry.body, entry.parts, entry.left_out = None, (), length
            if entry.parts:
                entry.body = None
            if entry.n > self.dropped:
                self._size += entry.size
                self._pack(entry)
                self._drop()
        self._changed()

    def _pack(self, entry: Entry) -> None:
        """If all uncompressed bodies together are too long with the body of the new entry, compress the oldest bodies."""
        if (length := entry.own) in PACKED:
            self._unpacked[entry.n] = entry
            self._unpacked_size += length
        while self._unpacked_size > PLAIN:
            oldest = self._unpacked.pop(next(iter(self._unpacked)))
            self._unpacked_size -= oldest.own
            oldest.pack()

    def _drop(self) -> None:
        entries, limits = self.entries, self._limits
        while len(entries) > limits.ledger_requests or (self._size > limits.ledger_bytes and len(entries) > 1):
            oldest = entries.popleft()
            self.dropped = oldest.n
            self._size -= oldest.size if oldest.end is not None else 0
            if self._unpacked.pop(oldest.n, None) is not None:
                self._unpacked_size -= oldest.own
