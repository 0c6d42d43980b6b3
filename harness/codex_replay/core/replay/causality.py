"""Find the client frames that each server frame of a recording waits for in a replay.

A server frame waits only for its cause (DESIGN.md, "Matching, replaying, normalising").

- A response waits for its request.
- A frame of a turn waits for the request that opened the turn, and a frame of a thread waits for the request that opened
  the thread. Frames of both kinds also wait for the earlier replies to server requests in the same thread.
- The frame that reports an interrupted turn waits for the interrupting request. If a request of the interrupted thread still has
  no result, the thread's frames before this frame also wait for the interrupting request.
- The frame that reports a replaced turn waits for the request that opened the new turn.
- A frame that names a thread and no turn waits for the request that opened the thread. If the frame is of a kind that only
  follows requests (the thread's status or name), it comes after the response to one request of the thread and before the
  response to the next: the frame waits for the last request with a response, and for the first request without a response.
- While no turn runs, a frame of a thread waits for the first request of the thread without a response. The first frame
  after a response also waits for the request that this response answers. Two frames do not wait in this way: the first
  frame of a thread, and a frame of a kind that the thread sent before any request named the thread.
- If a request reaches all threads (a reload of the MCP servers), the next frame of each thread waits for this request.
- A frame that names a process, a watch or a search of the client waits for the last request that named the same process,
  watch or search. The response to the request that started the process, watch or search also waits for the last request
  that named it. If the frame is of a kind that only follows requests (a change of a watched file), the frame waits for the
  last request of the client, too.
- A frame of a thread that no request opened (the thread of a sub-agent) waits for the same client frame as the frame before
  it.
- After the response to a request that steers the running turn, the next frame of the thread waits for the steering request.
- After the response to a request that opened a turn, the thread's first frame that names no turn (a warning of a review)
  waits for the request that opened the turn. The first frame of a thread, and a frame of a kind that the thread sent before
  any request named the thread, do not wait in this way.
- A frame that names no thread waits for the last request of the client, if the frame is of a kind that only follows
  requests. Any other frame that names no thread is sent together with the frame before it, because the real server writes
  the two together.

A server frame never waits for a client frame only because that client frame came earlier. The frames of one thread form a lane:
they keep their order. A frame therefore names only the causes that are new since the last frame of its lane.

A version without a table has no causes: `recorded_order` takes the place of this module.

The table of the methods that open and interrupt turns is `protocol/data/<version>/causality.json`. The program fake-codex loads
this module at start-up. The table of methods is read only at the first frame of a thread, so that it does not delay the client's
first answer.
"""

from __future__ import annotations

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.jsonrpc import is_number, kind, object_in, reason_of, request_key, thread_of, turn_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Lane = tuple[str, Any]

NO_LANE: Lane = ("", None)
# Waits for the request that opened the thread, which is not known yet (its response comes later): ask `opener` again.
UNKNOWN = 0


class _Thread:
    """The state of one thread (or v1 conversation) of the recording so far."""

    __slots__ = (
        *("answered", "asked", "asking", "began", "interrupts", "new_replies", "open", "opener"),
        *("replied", "running", "said", "submissions", "turns", "unasked", "unclaimed"),
    )

    def __init__(self, opener: int | None) -> None:
        self.opener = opener
        self.turns: dict[str, int] = {}  # turn id -> the client frame that opened it
        self.unclaimed: list[int] = []  # turn-opening requests whose turn has not been seen yet
        self.submissions: list[tuple[int, bool]] = []  # (client frame, opens a turn?), at the index the server gave it
        self.interrupts: list[int] = []
        self.asking: set[Any] = set()  # its server requests without a result (after an error the turn hangs)
        self.new_replies: list[int] = []  # replies that the lane's next frame waits for
        self.asked = False  # a request has named it
        self.replied: int | None = None  # the last request that was sent of those that have a response
        self.open: set[int] = set()  # requests that name the thread and have no response yet
        self.began: int | None = None  # a request whose response named a new turn; None once a frame of the thread has come
        self.answered: int | None = None  # the last request that was answered while no turn ran; None once a frame waits for it
        self.running: set[str] = set()  # turn ids
        self.unasked: set[str] = set()  # kinds of frames that came before any request named the thread
        self.said = False  # a frame of the thread has come

    def begin(self, turn: str, opener: int) -> None:
        """Record that a turn has begun, and the request that opened it."""
        if turn not in self.turns:
            self.running.add(turn)
            self.answered = None
        self.turns[turn] = opener

    def end(self, turn: str) -> None:
        """Record that a turn, and the turns inside it, have ended. A review is a turn that contains another turn."""
        opener = self.turns.get(turn)
        self.running = {each for each in self.running if each != turn and self.turns.get(each) != opener}

    def reopen(self, opener: int) -> None:
        """Reset the state of a thread that is loaded a second time: its turns are then numbered from 0 again."""
        self.opener = opener
        self.turns = {}
        self.running = set()
        self.unclaimed = []
        self.submissions = []


class Methods:
    """The table of a version's methods that start or interrupt turns and threads.

    The table of methods is loaded when a method of `Methods` is first called.

    For a version without a table, `load` is None, no method starts or interrupts anything, and the server frames keep their
    recorded order.
    """

    def __init__(self, load: Callable[[], dict[str, list[str]]] | None) -> None:
        self._load = load
        self._table: dict[str, frozenset[str]] = {}

    @property
    def known(self) -> bool:
        """True if the version has a table of methods."""
        return self._load is not None

    def does(self, what: str, method: Any) -> bool:
        """Return True if the table lists `method` in its row `what`, such as "opens_turn"."""
        if self._load is None:
            return False
        if not self._table:
            self._table = {row: frozenset(methods) for row, methods in self._load().items()}
        return type(method) is str and method in self._table.get(what, ())  # a damaged recording may have any value there


class Causality:
    """Find the lane and the causes of each server frame of a recording.

    The caller passes every frame of the recording, in order.
    """

    def __init__(self, methods: Methods) -> None:
        self._does = methods.does
        self._threads: dict[str, _Thread] = {}
        self._requests: dict[Any, list[tuple[int, dict[str, Any]]]] = {}  # client request id -> frames, oldest first
        self._server_requests: dict[Any, str | None] = {}  # server request id -> thread
        self._previous: Lane = NO_LANE
        self._previous_waits: tuple[int, ...] = ()
        self._last_request: int | None = None
        self._named: dict[tuple[str, str], list[int]] = {}  # what a client named -> the requests that named it
        self._open = 0  # requests without a response

    def opener(self, lane: Lane) -> int | None:
        """Return the client frame that opened the thread of a lane, or None if this frame is not known yet."""
        thread = self._threads.get(lane[1])
        return thread.opener if thread is not None else None

    def client(self, frame: Frame) -> None:
        """Record which requests, threads and turns a client frame opens, answers or interrupts."""
        value = frame.value
        sort = kind(value)
        if sort == "request":
            self._requests.setdefault(request_key(value["id"]), []).append((frame.n, value))
            self._last_request = frame.n
            self._open += 1
            if (named := object_in(value.get("params"))) is not None:
                self._named.setdefault(named, []).append(frame.n)
            self._submission(frame.n, value)
        elif sort in ("response", "error"):
            thread = self._threads.get(self._server_requests.get(request_key(value["id"])) or "")
            if thread is not None:
                if sort == "response":
                    thread.asking.discard(request_key(value["id"]))
                thread.new_replies.append(frame.n)
                thread.submissions.append((frame.n, False))

    def _submission(self, n: int, request: dict[str, Any]) -> None:
        name = thread_of(request.get("params"))
        method = request["method"]
        if name is None:
            if self._threads and self._does("reaches_threads", method):  # the first answer shall not wait for the table
                for each in self._threads.values():
                    each.new_replies.append(n)
            return
        if type(method) is not str:
            return
        thread = self._threads.get(name)
        if thread is None:
            # A thread of an earlier process: its frames before any answer wait for the first request that names it.
            thread = self._threads[name] = _Thread(n)
        thread.asked = True
        thread.open.add(n)
        if self._does("reopens_thread", method):
            thread.reopen(n)
        elif self._does("opens_turn", method):
            thread.unclaimed.append(n)
            thread.submissions.append((n, True))
        elif self._does("interrupts", method):
            thread.interrupts.append(n)
            thread.submissions.append((n, False))

    def server(self, frame: Frame) -> tuple[Lane, tuple[int, ...]]:
        """Return the lane of a server frame, and the numbers of the client frames that it waits for."""
        value = frame.value
        sort = kind(value)
        if sort in ("response", "error"):
            lane, waits = self._response(value)
        elif sort == "other":
            return self._previous, self._previous_waits
        else:
            lane, waits = self._message(value, sort == "request")
        if lane[0] not in ("named", "notice"):  # a process writes when it will, and nothing else goes with its frames
            self._previous, self._previous_waits = lane, waits
        return lane, waits

    def _response(self, value: dict[str, Any]) -> tuple[Lane, tuple[int, ...]]:
        waiting = self._requests.get(request_key(value["id"]))
        if not waiting:
            return self._previous, self._previous_waits
        n, request = waiting.pop(0)
        self._open -= 1
        params = request.get("params")
        asked = self._threads.get(thread_of(params) or "")
        if asked is not None:
            asked.open.discard(n)
            asked.replied = max(n, asked.replied or n)
            if "result" not in value:
                asked.unclaimed = [each for each in asked.unclaimed if each != n]
            elif self._does("steers", request.get("method")):
                asked.new_replies.append(n)
            elif not asked.running:
                asked.answered = n
        self._learn_from_result(n, request, value.get("result"))
        named = self._named.get(object_in(params) or ("", ""), [n])
        return ("response", n), ((n, named[-1]) if named[0] == n != named[-1] else (n,))

    def _learn_from_result(self, n: int, request: dict[str, Any], result: Any) -> None:
        opened = thread_of(result)
        if opened is not None:
            thread = self._threads.setdefault(opened, _Thread(n))
            if thread.opener is None or (thread.opener < n and self._does("reopens_thread", request.get("method"))):
                thread.reopen(n)  # by the path of its file, which named no thread
        name = opened or thread_of(request.get("params"))
        turn = result.get("turn") if type(result) is dict else None
        if name in self._threads and type(turn) is dict and type(turn.get("id")) is str:
            thread = self._threads[name]
            thread.began = None if turn["id"] in thread.turns else n
            thread.begin(turn["id"], n)
            if n in thread.unclaimed:
                thread.unclaimed.remove(n)
            self._place(thread, n, turn["id"])

    @staticmethod
    def _place(thread: _Thread, n: int, turn: str) -> None:
        """Correct the list of a thread's submissions, if the turn id in a result shows that the list is incomplete.

        The server numbers all submissions of a thread (overrides, too), and the turn id is the number of the submission
        that opened the turn.
        """
        if is_number(turn) and (n, True) in thread.submissions:
            at, place = thread.submissions.index((n, True)), int(turn)
            if at < place < at + 8:
                thread.submissions[at:at] = [(n, False)] * (place - at)

    def _message(self, value: dict[str, Any], is_request: bool) -> tuple[Lane, tuple[int, ...]]:
        params = value.get("params")
        name = thread_of(params)
        if is_request:
            self._server_requests[request_key(value["id"])] = name
        if name is None:
            return self._of_no_thread(value["method"], params)
        thread = self._threads.setdefault(name, _Thread(self._opener_by_server()))
        turn = turn_of(value["method"], params)
        opener = self._opener_of_turn(thread, turn)
        waits = [UNKNOWN if opener is None else opener]
        if not turn and self._does("follows_request", value["method"]):
            waits += [n for n in (thread.replied, min(thread.open, default=None)) if n is not None]
        waits += self._idle(thread, str(value["method"]), turn)  # a damaged recording may have an object there
        if turn and self._does("ends_turn", value["method"]):
            thread.end(turn)
        waits += thread.new_replies
        thread.new_replies = []
        interrupted = self._does("interrupted_by_request", value["method"])
        if interrupted and self._does("replaced_by_turn", reason_of(params)):
            waits += [n for n, opens in thread.submissions if opens][-1:]
        elif interrupted and thread.interrupts:
            waits.append(thread.interrupts.pop(0))
            thread.asking.clear()
        elif thread.interrupts and thread.asking:
            waits.append(thread.interrupts[0])
        if is_request:
            thread.asking.add(request_key(value["id"]))
        return ("thread", name), tuple(waits)

    def _opener_by_server(self) -> int | None:
        """Return the client frame that the first frame of a thread waits for, if no request opened the thread.

        If all requests have a response, return the client frame that the previous server frame waited for.
        """
        return (self._previous_waits[0] or None) if self._previous_waits and not self._open else None

    @staticmethod
    def _idle(thread: _Thread, method: str, turn: str | None) -> list[int]:
        """Return the request that a frame waits for while no turn of its thread runs, or has only begun."""
        if not thread.asked:
            thread.unasked.add(method)
        first, thread.said = not thread.said, True
        began, thread.began = thread.began, None
        if first or method in thread.unasked:
            return []
        if thread.running:
            return [began] if began is not None and not turn else []
        answered = thread.answered
        if thread.unclaimed and not thread.open and (answered or 0) <= thread.unclaimed[-1]:
            return thread.unclaimed[-1:]
        thread.answered = None
        return [n for n in (answered, min(thread.open, default=None)) if n is not None]

    def _of_no_thread(self, method: str, params: Any) -> tuple[Lane, tuple[int, ...]]:
        named = object_in(params)
        follows = [self._last_request] if self._last_request is not None and self._does("follows_request", method) else []
        if named is not None and named in self._named:
            return ("named", named), (self._named[named][-1], *follows)
        if self._threads and follows:
            return ("notice", method), tuple(follows)
        # It goes with the frame before it (account/rateLimits/updated after token_count).
        return self._previous, self._previous_waits

    @staticmethod
    def _opener_of_turn(thread: _Thread, turn: str | None) -> int | None:
        if not turn:
            return thread.opener
        if turn in thread.turns:
            return thread.turns[turn]
        opener = thread.opener
        place = int(turn) if is_number(turn) else -1
        if 0 <= place < len(thread.submissions) and thread.submissions[place][1]:
            opener = thread.submissions[place][0]
            # Requests before it whose turn never showed were merged into an earlier one (steered).
            thread.unclaimed = [n for n in thread.unclaimed if n > opener]
        elif thread.unclaimed:
            opener = thread.unclaimed.pop(0)
        elif thread.running and place < 0:  # a turn within the running one
            opener = max(thread.turns[each] for each in thread.running)
        if opener is not None:
            thread.begin(turn, opener)
        return opener
