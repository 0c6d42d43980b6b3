"""Requests that a program answers: a script with `"otherwise": "ask"` gives them to whoever reads them at the control API.

GET  .../asked?seconds=S     waits for the next one: {"n": 3, "request": {...}}, or {"n": null} after S seconds
PUT  .../asked/3             its answer: a turn of a script, or {"refused": "the reason"}
"""

from __future__ import annotations

import asyncio
from collections import deque

from codex_fakes.backend.ledger import Entry
from codex_fakes.model.faults import fault_error
from codex_replay.protocol.script.script import BadScript, Turn, parse


class Asked:
    """The requests of a session that wait until a program answers."""

    def __init__(self) -> None:
        self._waiting: deque[Entry] = deque()
        self._answers: dict[int, asyncio.Future[Turn | str]] = {}
        self._came = asyncio.Event()
        self._closed = False

    async def ask(self, entry: Entry) -> Turn | str:
        """Pass a request to the program and wait; return its turn, or a sentence if it gave none."""
        if self._closed:
            return "The program that answers the requests of this session has ended."
        answer: asyncio.Future[Turn | str] = asyncio.get_running_loop().create_future()
        self._answers[entry.n] = answer
        self._waiting.append(entry)
        self._came.set()
        try:
            return await answer
        finally:
            self._answers.pop(entry.n, None)

    async def next(self, seconds: float) -> bytes:
        """Return the next request as JSON; its number is null if no request came in time or if none can come."""
        try:
            async with asyncio.timeout(seconds):
                while not self._waiting and not self._closed:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            pass
        if not self._waiting:
            return b'{"n":null}'
        entry = self._waiting.popleft()
        return b'{"n":%d,"request":%s}' % (entry.n, entry.written(None))

    def answer(self, n: int, value: object) -> None:
        """Answer request `n`; raises `BadScript`, and then the request is refused with its sentence."""
        waiting = self._answers.get(n)
        if waiting is None or waiting.done():
            return  # the client has left
        if isinstance(value, dict) and isinstance(value.get("refused"), str):
            waiting.set_result(value["refused"])
            return
        try:
            (turn,) = parse([value]).turns
            if turn.fault is not None and (wrong := fault_error(turn.fault, "turns[0]")):
                raise BadScript(wrong)
        except BadScript as error:
            waiting.set_result(f"What the program answered is no turn of a script. {error}")
            raise
        waiting.set_result(turn)

    def close(self) -> None:
        """Refuse what waits, and whatever comes."""
        self._closed = True
        self._came.set()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_result("The script was changed while this request waited for its answer.")
