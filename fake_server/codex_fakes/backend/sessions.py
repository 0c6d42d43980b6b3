"""The sessions of the fake backend.

A session belongs to one test, and is separate from all other sessions of the process. A session has a script and the position in
it, the ledger of requests, the gates and the tokens. The path chooses the session (`/s/NAME/...`), so that hundreds of tests can
use one backend at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codex_fakes.backend.asked import Asked
from codex_fakes.backend.bodies import Reader
from codex_fakes.backend.cache import ReplyCache
from codex_fakes.backend.exchange import Request
from codex_fakes.backend.handshakes import Handshakes
from codex_fakes.backend.ledger import Entry, Ledger
from codex_fakes.backend.limits import Limits
from codex_fakes.backend.loop.waiting import Event, timeout
from codex_fakes.backend.rules.tokens import Tokens
from codex_fakes.backend.state.conversations import Conversations
from codex_fakes.backend.state.stored import Responses
from codex_replay.core.value import EMPTY
from codex_replay.protocol.script.choose import Choice
from codex_replay.protocol.script.script import Script, Turn

if TYPE_CHECKING:
    from codex_fakes.backend.replay.replay import Replay


class Changes:
    """The tasks that wait for a change of a session.

    The waiting tasks are in a separate object, so that a waiting task does not keep the session in memory.
    """

    def __init__(self) -> None:
        self.waiters: set[Event] = set()

    def report(self) -> None:
        """Wake all waiting tasks."""
        for waiter in self.waiters:
            waiter.set()


class Session:
    """The session of one test, with everything that the test may set and read."""

    def __init__(self, name: str, script: Script | None, limits: Limits | None = None) -> None:
        self.name = name
        self.limits = limits or Limits()
        self.started = time.monotonic()
        self._changes = Changes()
        self.ledger = Ledger(self.limits, self._changes.report)
        self.gates: dict[str, Event] = {}
        self.reached: set[str] = set()
        self.replay: Replay | None = None  # recordings, which answer before the script
        self.asked = Asked()
        self.reader = Reader()
        self.responses = Responses()
        self.conversations = Conversations()
        self.compactions = 0
        self.set_script(script)

    def set_script(self, script: Script | None) -> None:
        """Start a script at its first turn, with new tokens. The ledger stays unchanged."""
        self.asked.close()
        self.asked = Asked()
        self.script = script
        self.rules_off = tuple(script.rules_off) if script is not None else ()
        turns = script.turns if script is not None else ()
        self.turns = Choice(turns)
        self._own = frozenset(map(id, turns))
        self.defaults = self.prewarms = 0
        self.cache = ReplyCache()
        self.websocket = Handshakes(script.websocket if script is not None else EMPTY)
        self.tokens = Tokens(script.auth if script is not None else {"mode": "auto"})

    def close(self) -> None:
        """Release all gates and waiting tasks of the session."""
        self.asked.close()
        self.responses.close()
        self.conversations.close()

    def enter(self, request: Request) -> Entry:
        """Add a request to the ledger of the session."""
        return self.ledger.enter(request, time.monotonic() - self.started)

    def choose(
        self, body: Mapping[str, Any], headers: list[tuple[str, str]], earlier: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[int, Turn, str] | str:
        """Choose the turn for a request, and mark the turn as used (see `codex_replay.protocol.script.choose`)."""
        return self.turns.choose(body, headers, earlier) if self.script is not None else "There is no script."

    def owns(self, turn: Turn) -> bool:
        """Return True if the encoded replies of a turn may be cached.

        The replies may be cached if the turn belongs to the script, and not if the turn was made for a single request.
        """
        return id(turn) in self._own

    def unused(self) -> list[int]:
        """Return the indexes of the turns that no request has used."""
        return self.turns.unused()

    def gate(self, name: str) -> Event:
        """Return the gate with this name. A gate is closed until it is released."""
        return self.gates.setdefault(name, Event())

    def reach(self, name: str) -> None:
        """Record that an answer is waiting at a gate."""
        self.reached.add(name)
        self._changes.report()

    async def wait_for(self, condition: Any, seconds: float) -> bool:
        """Wait until `condition()` is true, for at most `seconds` seconds. Return True if the condition became true."""
        waiter = Event()
        self._changes.waiters.add(waiter)
        try:
            async with timeout(seconds):
                while not condition():
                    waiter.clear()
                    await waiter.wait()
        except TimeoutError:
            return bool(condition())
        finally:
            self._changes.waiters.discard(waiter)
        return True
