"""Pass requests to the user's program, which answers them.

With `"otherwise": "ask"` in the script, the backend passes requests without a turn to the user's program, which reads them
from the control API.

GET  .../asked?seconds=S     wait for a request: {"n": 3, "request": {...}, "earlier": [...]}, or {"n": null} after S seconds
PUT  .../asked/3             the answer to this request: a turn of a script, or {"refused": "the reason"}
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from codex_fakes.backend.answers import dump
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.loop.tasks import Future
from codex_fakes.backend.loop.waiting import Event, timeout
from codex_fakes.model.faults import fault_error
from codex_replay.protocol.script.script import BadScript, Turn, parse


class Asked:
    """The requests of a session that wait for the answer of a program."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Entry, Sequence[Mapping[str, Any]]]] = deque()
        self._answers: dict[int, Future[Turn | str]] = {}
        self._came = Event()
        self._closed = False

    async def ask(self, entry: Entry, earlier: Sequence[Mapping[str, Any]]) -> Turn | str:
        """Pass a request, and the conversation that it continues, to the user's program.

        Return the turn that the program returned, or the reason why it returned none.
        """
        if self._closed:
            return "The program that answers the requests of this session has ended."
        answer: Future[Turn | str] = Future()
        self._answers[entry.n] = answer
        self._waiting.append((entry, earlier))
        self._came.set()
        try:
            return await answer
        finally:
            self._answers.pop(entry.n, None)

    async def next(self, seconds: float) -> bytes:
        """Return the next request for the user's program, as JSON.

        "n" is the number of the request, or null if no request came in time, or if no more requests can come.
        """
        try:
            async with timeout(seconds):
                while not self._waiting and not self._closed:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            pass
        if not self._waiting:
            return b'{"n":null}'
        entry, earlier = self._waiting.popleft()
        return b'{"n":%d,"request":%s,"earlier":%s}' % (entry.n, entry.written(None), dump(earlier))

    def answer(self, n: int, value: object) -> None:
        """Answer the request with the number `n`. If the answer is a `BadScript`, the request is refused with its message."""
        waiting = self._answers.get(n)
        if waiting is None or waiting.done():
            return  # the client has left
        if isinstance(value, dict) and isinstance(value.get("refused"), str):
            waiting.set_result(value["refused"])
            return
        try:
            (turn,) = parse([value]).turns
            if wrong := fault_error(turn.fault, "turns[0]"):
                raise BadScript(wrong)
        except BadScript as error:
            waiting.set_result(f"The answer of the program is not a turn of a script. {error}")
            raise
        waiting.set_result(turn)

    def close(self) -> None:
        """Refuse the waiting requests, and all later requests."""
        self._closed = True
        self._came.set()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_result("The script was changed while this request waited for its answer.")
