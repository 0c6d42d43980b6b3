"""Let requests and answers proceed in turns, so that a large number of them cannot block another client.

The event loop reads new data once in each of its rounds, and a new request needs several rounds. Without a limit, a round
with a thousand busy streams has a thousand steps. Therefore a request begins, and an answer continues, only when it has a
turn. One round of the event loop has `MOST` turns. If many requests and answers wait, half of the turns are for requests
and half are for answers.
"""

from __future__ import annotations

from collections import deque

from codex_fakes.backend.loop.tasks import Future, running_loop

#: Turns in one round of the event loop, and the bytes that an answer may make or write in one turn, about.
MOST, STEP = 16, 32 * 1024

_Waiting = deque[Future[None]]


class Turns:
    """The queues of one process in which requests and answers wait for their turns."""

    def __init__(self) -> None:
        self._requests: _Waiting = deque()
        self._answers: _Waiting = deque()
        self._room = MOST  # turns that are left in this round
        self._newest = self._called = False

    async def begin(self) -> None:
        """Wait until a new request may begin.

        The newest and the oldest of the waiting requests may begin alternately, so that a thousand simultaneous requests do
        not delay a later request.
        """
        if self._room and not self._requests:
            self._room -= 1
            if not self._room:
                self._call()
        else:
            await self._turn(self._requests)

    async def go_on(self) -> None:
        """Wait until an answer may continue. The wait always takes at least one round of the event loop.

        The answers continue in the order in which they began to wait.
        """
        await self._turn(self._answers)

    async def _turn(self, waiting: _Waiting) -> None:
        turn: Future[None] = Future()
        waiting.append(turn)
        self._call()
        await turn

    def _call(self) -> None:
        if not self._called:
            self._called = True
            running_loop().call_soon(self._round)

    def _round(self) -> None:
        """Assign the turns of the next round of the event loop."""
        requests, answers = self._requests, self._answers
        self._room = MOST
        while self._room and (requests or answers):
            if answers and (self._room % 2 or not requests):
                turn = answers.popleft()
            else:
                turn = requests.pop() if self._newest else requests.popleft()
                self._newest = not self._newest
            if not turn.done():  # a client that has left needs none
                turn.set_result(None)
                self._room -= 1
        self._called = False
        if self._room < MOST:
            self._call()
