"""Sessions: what one test scripts and sees, apart from all others that share the process.

A session holds a script and how far it is consumed, the ledger of requests, the gates and the tokens. It is chosen by the path
(`/s/NAME/...`), so that hundreds of tests can use one backend at once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fake_server.backend_cache import ReplyCache
from fake_server.backend_exchange import Request
from fake_server.backend_tokens import Tokens
from harness.protocol.choose import Choice
from harness.protocol.script import Script, Turn

if TYPE_CHECKING:
    from fake_server.backend_replay import Replay


class Entry:
    """One request in the ledger: as received, and what became of it.

    `answer` says who answered ("cassette", "turn", "default", "rule", "expect", "miss", "route", ...), `status` with what,
    `sentence` why.
    `end` is None while the answer is open, then "end", "cut", "reset" or "gone" (the client left).
    """

    __slots__ = ("answer", "body", "end", "missed", "n", "recorded", "request", "sentence", "session", "status", "time", "turn")

    def __init__(self, session: Session, n: int, request: Request, started: float) -> None:
        self.session = session
        self.n = n
        self.request = request
        self.time = started
        self.body: bytes | None = None
        self.answer = ""
        self.status: int | None = None
        self.turn: int | None = None
        self.missed: str | None = None  # why no recording answered, where a script was asked next
        self.recorded: dict[str, Any] | None = None  # the cassette and the frame that answered
        self.sentence: str | None = None
        self.end: str | None = None

    def close(self, how: str) -> None:
        """Say how the answer ended, and wake those who wait for it."""
        if self.end is None:
            self.end = how
        self.session.changed()

    def as_json(self) -> dict[str, Any]:
        """Return the entry for the control API; `body` is the decoded JSON, else `body_text` the text."""
        request = self.request
        shown: dict[str, Any] = {
            "n": self.n,
            "conn": request.conn,
            "t": round(self.time, 6),
            "method": request.method,
            "path": request.target,
            "version": request.version,
            "headers": [list(pair) for pair in request.headers],
            "raw_length": len(request.body),
        }
        if self.body:
            try:
                shown["body"] = json.loads(self.body)
            except ValueError:
                shown["body_text"] = self.body.decode("utf-8", "backslashreplace")
        shown |= {"answer": self.answer, "status": self.status, "turn": self.turn, "sentence": self.sentence, "end": self.end}
        if self.recorded is not None:
            shown["recorded"] = self.recorded
        return shown


class Session:
    """Everything that one test may set and see."""

    def __init__(self, name: str, script: Script | None) -> None:
        self.name = name
        self.started = time.monotonic()
        self.ledger: list[Entry] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.reached: set[str] = set()
        self.replay: Replay | None = None  # recordings, which answer before the script
        self._waiters: set[asyncio.Event] = set()
        self.set_script(script)

    def set_script(self, script: Script | None) -> None:
        """Begin a script from its first turn, with fresh tokens; the ledger stays."""
        self.script = script
        self.turns = Choice(script.turns if script is not None else ())
        self.defaults = 0
        self.cache = ReplyCache()
        self.tokens = Tokens(script.auth if script is not None else {"mode": "auto"})

    def enter(self, request: Request) -> Entry:
        """Write a request into the ledger."""
        entry = Entry(self, len(self.ledger) + 1, request, time.monotonic() - self.started)
        self.ledger.append(entry)
        self.changed()
        return entry

    def choose(self, body: Mapping[str, Any], headers: list[tuple[str, str]]) -> tuple[int, Turn, str] | str:
        """Choose the turn for a request and consume it (`harness.protocol.choose`)."""
        return self.turns.choose(body, headers) if self.script is not None else "There is no script."

    def unused(self) -> list[int]:
        """Return the indexes of the turns that nothing has asked for."""
        return self.turns.unused()

    def gate(self, name: str) -> asyncio.Event:
        """Return the gate of this name; it is closed until it is released."""
        return self.gates.setdefault(name, asyncio.Event())

    def reach(self, name: str) -> None:
        """Note that an answer stands at a gate."""
        self.reached.add(name)
        self.changed()

    def changed(self) -> None:
        """Wake everyone who waits for something to happen in this session."""
        for waiter in self._waiters:
            waiter.set()

    async def wait_for(self, condition: Any, seconds: float) -> bool:
        """Wait until `condition()` holds, at most so many seconds; return whether it does."""
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    waiter.clear()
                    await waiter.wait()
        except TimeoutError:
            return bool(condition())
        finally:
            self._waiters.discard(waiter)
        return True
