"""The ledger of a session: one entry a request; the oldest are dropped where it would grow without end."""

from __future__ import annotations

import json
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from codex_fakes.backend.exchange import Request
from codex_fakes.backend.limits import Limits
from codex_replay.core.wire.client_json import read
from codex_replay.core.wire.json_text import NotJson

if TYPE_CHECKING:
    from codex_replay.core.redact.redactor import Redactor

#: What an entry takes besides its head and its body, in bytes.
_ENTRY = 1000


class Entry:
    """One request in the ledger: as received, and what became of it.

    `answer` is the source of the answer ("cassette", "turn", "default", "rule", "expect", "miss", "route", ...), `status` its
    status, `sentence` why.
    `end` is None while the answer is open, then "end", "cut", "reset" or "gone" (the client left).
    """

    __slots__ = (
        *("_json", "_ledger", "answer", "body", "end", "left_out", "missed", "n", "raw_length", "recorded", "request"),
        *("sentence", "status", "time", "turn", "websocket"),
    )

    def __init__(self, n: int, request: Request, started: float, ledger: weakref.ref[Ledger]) -> None:
        self._ledger = ledger
        self._json: bool | None = None  # True if the body is known to be JSON
        self.n = n
        self.request = request
        self.raw_length = len(request.body)
        self.time = started
        self.body: bytes | None = None
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
        """Note how the answer ended, and wake the waiters."""
        first = self.end is None
        if first:
            self.end = how
            self.request.body = b""  # what was sent is decoded in `body`
        if (ledger := self._ledger()) is not None:
            ledger.closed(self, first)

    @property
    def size(self) -> int:
        """Return the approximate memory of the entry, in bytes."""
        return _ENTRY + self.request.head_size + len(self.body or b"")

    def written(self, redactor: Redactor | None) -> bytes:
        """Return the entry as JSON for the control API; `body` is the decoded JSON, else `body_text` the text."""
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
        if self.left_out is not None:
            shown["body_left_out"] = self.left_out
        body = self.body
        if body and not self._is_json(body):
            shown["body_text"] = body.decode("utf-8", "backslashreplace")
        data = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
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


class Ledger:
    """The last requests of a session, within the limits; `changed` is called when an entry comes or ends."""

    def __init__(self, limits: Limits, changed: Callable[[], None]) -> None:
        self._limits = limits
        self._changed = changed
        # Weak, so that a session that is replaced is freed at once, and not when the garbage collector comes.
        self._itself = weakref.ref(self)
        self._size = 0
        self.entries: deque[Entry] = deque()
        self.entered = self.ended = self.dropped = 0

    def enter(self, request: Request, started: float) -> Entry:
        """Write a request into the ledger."""
        self.entered += 1
        entry = Entry(self.entered, request, started, self._itself)
        self.entries.append(entry)
        self._drop()
        self._changed()
        return entry

    def since(self, n: int) -> list[Entry]:
        """Return the entries after number `n` that are still there."""
        return [entry for entry in self.entries if entry.n > n]

    def closed(self, entry: Entry, first: bool) -> None:
        """Note that the answer to an entry has ended; `first` if it had not."""
        if first:
            self.ended += 1
            if entry.body is not None and (length := len(entry.body)) > self._limits.ledger_bytes // 2:
                entry.body, entry.left_out = None, length
            if entry.n > self.dropped:
                self._size += entry.size
                self._drop()
        self._changed()

    def _drop(self) -> None:
        entries, limits = self.entries, self._limits
        while len(entries) > limits.ledger_requests or (self._size > limits.ledger_bytes and len(entries) > 1):
            oldest = entries.popleft()
            self.dropped = oldest.n
            self._size -= oldest.size if oldest.end is not None else 0
