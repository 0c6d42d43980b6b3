"""Use a function as the model of `codex_backend`.

The function gets each request, and returns or yields the items of the reply.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codex_replay.plugin.base.ledger import request_of
from codex_replay.protocol.script.build import TurnBuilder
from codex_replay.shell.http.backend_process import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable

    from codex_replay.plugin.base.ledger import Request
    from codex_replay.shell.http.backend_process import BackendSession

_POLL = 30.0  # seconds of one wait for the next request


class CallableModel:
    """Answer the requests of a session by calls of a function in threads, until the session is closed or gets another script.

    If the function raises an exception, the backend refuses the request, and the reason is added to the problems of the
    session. The traceback of the exception is printed to stderr.
    """

    def __init__(self, session: BackendSession, function: Callable[[Request], Any]) -> None:
        self._session = session
        self._function = function
        self._ended = False
        threading.Thread(target=self._serve, name="codex_backend", daemon=True).start()

    def end(self) -> None:
        """Answer no more requests."""
        self._ended = True

    def _serve(self) -> None:
        while not self._ended:
            try:
                entry = self._session.next_asked(_POLL)
            except BackendError:
                return  # the session is gone
            if entry is not None:
                threading.Thread(target=self._answer, args=(entry,), daemon=True).start()

    def _answer(self, entry: dict[str, Any]) -> None:
        try:
            turn = turn_of(self._function(request_of(entry, self._session.url)))
            if turn is None:
                turn = {"refused": 'The function that answers the requests returned None. Return "" for an empty reply.'}
        except Exception as error:  # whatever a user's function raises
            traceback.print_exc()
            turn = {"refused": f"The function that answers the requests raised {type(error).__name__}: {error}"}
        with suppress(BackendError):  # it has refused the request with the same sentence, or is gone
            self._session.answer_asked(entry["n"], turn)


def turn_of(answer: Any) -> Any:
    """Convert the return value of a model function to a turn.

    A model function may return a text, an item, a list, a turn, or a generator.

    The value None is returned unchanged: the function has not answered. A coroutine or an asynchronous generator is run to
    its end in a new event loop.
    """
    if inspect.isasyncgen(answer):
        answer = asyncio.run(_collected(answer))
    elif inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    if inspect.isgenerator(answer):
        answer = list(answer)
    if isinstance(answer, TurnBuilder):
        return answer.as_json()
    if isinstance(answer, list | tuple):
        return {"items": [item for one in answer for item in _items(one)]}
    if isinstance(answer, dict) and "type" in answer:
        return {"items": [answer]}
    return answer


def _items(one: Any) -> list[Any]:
    return one.as_json().get("items", []) if isinstance(one, TurnBuilder) else [one]


async def _collected(answer: Any) -> list[Any]:
    return [item async for item in answer]
