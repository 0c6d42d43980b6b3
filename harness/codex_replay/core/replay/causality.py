"""What each server frame of a recording waits for when it is replayed.

A server frame waits only for what caused it (DESIGN.md, "Matching, replaying, normalising"):

- a response waits for its request;
- a frame of a turn waits for the request that opened the turn, a frame of a thread for the request that opened the thread;
- both wait for the replies to server requests that stood before them in the same thread;
- the frame that says a turn was interrupted waits for the interrupting request, and so does what a thread says between the
  two while a request of its own has no result: without a result or an interrupt it would say nothing;
- the frame that says a turn was replaced waits for the request that opened the turn in its place;
- a frame that names no thread goes with the frame before it, as the real server writes the two together.

It never waits for a client frame that merely stood earlier. Frames of one thread keep their order among themselves: they form
a lane. So a frame names only the causes that are new since the lane's last frame.

Which methods open and interrupt turns is data: `protocol/data/<version>/causality.json`. On fake-codex's start-up path.
"""

from __future__ import annotations

from harness.core.frames import Frame
from harness.core.jsonrpc import kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Lane = tuple[str, Any]

NO_LANE: Lane = ("", None)
# Waits for whoever opened the thread, which the recording has not told yet (its response comes later): ask `opener` again.
UNKNOWN = 0


class _Thread:
    """What the recording has told so far of one thread (or v1 conversation)."""

    __slots__ = ("asking", "interrupts", "new_replies", "opener", "submissions", "turns", "unclaimed")

    def __init__(self, opener: int | None) -> None:
        self.opener = opener
        self.turns: dict[str, int] = {}  # turn id -> the client frame that opened it
        self.unclaimed: list[int] = []  # turn-opening requests whose turn has not been seen yet
        self.submissions: list[tuple[int, bool]] = []  # (client frame, opens a turn?), at the index the server gave it
        self.interrupts: list[int] = []
        self.asking: set[Any] = set()  # its server requests that have no result (an error is none: the turn hangs)
        self.new_replies: list[int] = []  # replies that the lane's next frame waits for

    def reopen(self, opener: int) -> None:
        """Begin a new life: a thread that is loaded again numbers its turns from 0."""
        self.opener = opener
        self.turns = {}
        self.unclaimed = []
        self.submissions = []


class Causality:
    """Fed every frame of a recording in its order; tells for each server frame its lane and its causes."""

    def __init__(self, table: dict[str, list[str]]) -> None:
        self._opens = frozenset(table["opens_turn"])
        self._reopens = frozenset(table["reopens_thread"])
        self._interrupting = frozenset(table["interrupts"])
        self._interrupted = frozenset(table["interrupted_by_request"])
        self._replaced = frozenset(table["replaced_by_turn"])
        self._threads: dict[str, _Thread] = {}
        self._requests: dict[Any, list[tuple[int, dict[str, Any]]]] = {}  # client request id -> frames, oldest first
        self._server_requests: dict[Any, str | None] = {}  # server request id -> thread
        self._previous: Lane = NO_LANE
        self._previous_waits: tuple[int, ...] = ()

    def opener(self, lane: Lane) -> int | None:
        """Return the client frame that opened the lane's thread, as far as the recording has told; None if it has not."""
        thread = self._threads.get(lane[1])
        return thread.opener if thread is not None else None

    def client(self, frame: Frame) -> None:
        """Take note of a client frame."""
        value = frame.value
        sort = kind(value)
        if sort == "request":
            self._requests.setdefault(_key(value["id"]), []).append((frame.n, value))
            self._submission(frame.n, value)
        elif sort in ("response", "error"):
            thread = self._threads.get(self._server_requests.get(_key(value["id"])) or "")
            if thread is not None:
                if sort == "response":
                    thread.asking.discard(_key(value["id"]))
                thread.new_replies.append(frame.n)
                thread.submissions.append((frame.n, False))

    def _submission(self, n: int, request: dict[str, Any]) -> None:
        name = _thread_of(request.get("params"))
        method = request["method"]
        if name is None or type(method) is not str:
            return
        thread = self._threads.get(name)
        if thread is None:
            # A thread of an earlier process: what is said of it before any answer waits for whoever named it first.
            thread = self._threads[name] = _Thread(n)
        if method in self._reopens:
            thread.reopen(n)
        elif method in self._opens:
            thread.unclaimed.append(n)
            thread.submissions.append((n, True))
        elif method in self._interrupting:
            thread.interrupts.append(n)
            thread.submissions.append((n, False))

    def server(self, frame: Frame) -> tuple[Lane, tuple[int, ...]]:
        """Return the lane of a server frame and the client frames (by number) that it waits for."""
        value = frame.value
        sort = kind(value)
        if sort in ("response", "error"):
            lane, waits = self._response(value)
        elif sort == "other":
            return self._previous, self._previous_waits
        else:
            lane, waits = self._message(value, sort == "request")
        self._previous, self._previous_waits = lane, waits
        return lane, waits

    def _response(self, value: dict[str, Any]) -> tuple[Lane, tuple[int, ...]]:
        waiting = self._requests.get(_key(value["id"]))
        if not waiting:
            return self._previous, self._previous_waits
        n, request = waiting.pop(0)
        self._learn_from_result(n, request, value.get("result"))
        return ("response", n), (n,)

    def _learn_from_result(self, n: int, request: dict[str, Any], result: Any) -> None:
        opened = _thread_of(result)
        if opened is not None:
            thread = self._threads.setdefault(opened, _Thread(n))
            if thread.opener is None or (thread.opener < n and request.get("method") in self._reopens):
                thread.reopen(n)  # by the path of its file, which named no thread
        name = opened or _thread_of(request.get("params"))
        turn = result.get("turn") if type(result) is dict else None
        if name in self._threads and type(turn) is dict and type(turn.get("id")) is str:
            thread = self._threads[name]
            thread.turns[turn["id"]] = n
            if n in thread.unclaimed:
                thread.unclaimed.remove(n)
            self._place(thread, n, turn["id"])

    @staticmethod
    def _place(thread: _Thread, n: int, turn: str) -> None:
        """The server numbers submissions; a turn id in a result tells where our count stands (overrides take a number too)."""
        if turn.isdecimal() and (n, True) in thread.submissions:
            at, place = thread.submissions.index((n, True)), int(turn)
            if at < place < at + 8:
                thread.submissions[at:at] = [(n, False)] * (place - at)

    def _message(self, value: dict[str, Any], is_request: bool) -> tuple[Lane, tuple[int, ...]]:
        params = value.get("params")
        name = _thread_of(params)
        if is_request:
            self._server_requests[_key(value["id"])] = name
        if name is None:
            # It names no thread: it goes with the frame before it (account/rateLimits/updated after token_count).
            return self._previous, self._previous_waits
        thread = self._threads.setdefault(name, _Thread(None))
        opener = self._opener_of_turn(thread, _turn_of(value["method"], params))
        waits = [UNKNOWN if opener is None else opener]
        waits += thread.new_replies
        thread.new_replies = []
        if value["method"] in self._interrupted and _reason_of(params) in self._replaced:
            waits += [n for n, opens in thread.submissions if opens][-1:]
        elif value["method"] in self._interrupted and thread.interrupts:
            waits.append(thread.interrupts.pop(0))
            thread.asking.clear()
        elif thread.interrupts and thread.asking:
            waits.append(thread.interrupts[0])
        if is_request:
            thread.asking.add(_key(value["id"]))
        return ("thread", name), tuple(waits)

    @staticmethod
    def _opener_of_turn(thread: _Thread, turn: str | None) -> int | None:
        if not turn:
            return thread.opener
        if turn in thread.turns:
            return thread.turns[turn]
        opener = thread.opener
        place = int(turn) if turn.isdecimal() else -1
        if 0 <= place < len(thread.submissions) and thread.submissions[place][1]:
            opener = thread.submissions[place][0]
            # Requests before it whose turn never showed were merged into an earlier one (steered).
            thread.unclaimed = [n for n in thread.unclaimed if n > opener]
        elif thread.unclaimed:
            opener = thread.unclaimed.pop(0)
        if opener is not None:
            thread.turns[turn] = opener
        return opener


def _key(request_id: Any) -> Any:
    """Return a dictionary key that keeps 1, 1.0, true and "1" apart."""
    return (type(request_id), request_id) if type(request_id) in (int, str, float, bool) else repr(request_id)


def _thread_of(params: Any) -> str | None:
    if type(params) is not dict:
        return None
    for key in ("threadId", "conversationId", "reviewThreadId"):
        if type(params.get(key)) is str:
            name: str = params[key]
            return name
    thread = params.get("thread")
    if type(thread) is dict and type(thread.get("id")) is str:
        inner: str = thread["id"]
        return inner
    return None


def _reason_of(params: Any) -> str | None:
    msg = params.get("msg") if type(params) is dict else None
    reason = msg.get("reason") if type(msg) is dict else None
    return reason if type(reason) is str else None


def _turn_of(method: Any, params: Any) -> str | None:
    turn = params.get("turnId")
    if turn is None and type(params.get("turn")) is dict:
        turn = params["turn"].get("id")
    if turn is None and type(method) is str and method.startswith("codex/event/"):
        turn = params.get("id")
    return turn if type(turn) is str else None
