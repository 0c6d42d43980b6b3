"""Learn the table `causality` of a Codex version from recordings: which requests open or interrupt a turn, and which frames end a
turn.

A turn is followed from `turn/started` to the frame that reports its status. The request whose result names a turn opens the
turn. If no result names the turn, the last request before the turn in its thread opens the turn. A notification that names
a thread but no turn normally counts as an effect of requests. The exception is a notification in a thread that no request has
named since the thread was opened. Threads that the server opens for itself are ignored. A notification that names no thread
counts as an effect of requests if it always came while a request was unanswered. A request that names no thread may have effects
in all threads. If an idle thread, during a request, sends a kind of notification that it had also sent before any request named
the thread, the notification counts as an effect of the request. If each request of a method has an effect in an idle thread, the
method is assumed to have effects in all threads. If the result of a request names the running turn, the request steers the turn.
If only one request came during an interrupted turn, the request interrupted the turn. The effects of an interrupt are the
notifications that came, in each interrupted turn, between the interrupting request and the end of the turn. A rule is learnt only
if no recording contradicts it. A row of the table for which no recording has evidence is omitted, and reported as missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.jsonrpc import kind

ROWS = (
    *("opens_turn", "reopens_thread", "interrupts", "interrupted_by_request"),
    *("replaced_by_turn", "ends_turn", "follows_request", "steers", "reaches_threads"),
)
#: What is not done in a replay if a row is empty.
EFFECT = {
    "opens_turn": "the frames of a turn wait only for the request that opened the thread",
    "reopens_thread": "the frames of a thread that is loaded again wait for its first request",
    "interrupts": "an interrupted turn ends without the client's interrupt",
    "interrupted_by_request": "an interrupted turn ends without the client's interrupt",
    "ends_turn": "the end of a turn is not counted",
    "reaches_threads": "the frames of a thread do not wait for a request that names no thread",
    "steers": "the frames after a steered message do not wait for it",
    "follows_request": "a frame that names no turn waits only for the request that opened the thread",
}


@dataclass(slots=True)
class _Turn:
    thread: str
    started: int
    opener: str = ""
    inside: list[tuple[int, str]] = field(default_factory=list)  # requests of the client while it ran


@dataclass(slots=True)
class _Seen:
    """The observations in one conversation: for each row of the table, how often each method was seen."""

    rows: dict[str, Counter[str]] = field(default_factory=lambda: {row: Counter() for row in ROWS})
    effects: list[set[str]] = field(default_factory=list)
    #: Notifications without a turn that came before any request in their thread, or without a thread while all was answered.
    alone: set[str] = field(default_factory=set)
    unreached: set[str] = field(default_factory=set)  # requests without a thread during which idle threads said nothing


def learn(runs: Iterable[tuple[str, Sequence[Frame]]]) -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
    """Return the table and, for each row, the evidence; `runs` has the names and the frames of conversations."""
    seen = _Seen()
    for _, frames in runs:
        _Conversation(seen).read(frames)
    effects = set.intersection(*seen.effects) if seen.effects else set()
    seen.rows["interrupted_by_request"] = Counter({each: sum(each in some for some in seen.effects) for each in effects})
    # Any request may come in a turn that an interrupt ends; the interrupt comes in each of them.
    counts = seen.rows["interrupts"]
    seen.rows["interrupts"] = Counter({each: n for each, n in counts.items() if n == max(counts.values())})
    for method in seen.alone:
        del seen.rows["follows_request"][method]
    for method in seen.unreached:
        del seen.rows["reaches_threads"][method]
    table = {row: sorted(seen.rows[row]) for row in ROWS}
    evidence = [
        {"part": row, "rule": method, "seen": seen.rows[row][method]} for row in ROWS for method in sorted(seen.rows[row])
    ]
    return table, evidence


class _Conversation:
    def __init__(self, seen: _Seen) -> None:
        self._seen = seen
        self._asked: dict[str, tuple[int, str, str]] = {}  # id -> frame, method, thread
        self._turns: dict[str, _Turn] = {}
        self._named: dict[str, str] = {}  # turn -> the method whose result named it first
        self._last: dict[str, str] = {}  # thread -> its last request whose result named no turn
        self._loaded: set[str] = set()
        self._returned: dict[str, list[str]] = {}  # thread that is not loaded -> the methods that returned it
        self._notices: dict[str, list[tuple[int, str]]] = {}
        self._unanswered: dict[str, str] = {}  # id -> method
        self._unasked: dict[str, set[str]] = {}  # thread -> notifications that came before any request named it
        self._reached: set[str] = set()  # methods of unanswered requests during which an idle thread repeated one of these

    def read(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if frame.seam != "rpc" or type(frame.value) is not dict:
                continue
            sort = kind(frame.value)
            if frame.sender == "client" and sort == "request":
                self._request(frame)
            elif frame.sender == "server" and sort == "error":
                self._unanswered.pop(repr(frame.value["id"]), None)
            elif frame.sender == "server" and sort == "response":
                self._response(frame.value)
            elif frame.sender == "server" and sort == "notification":
                self._notification(frame)

    def _request(self, frame: Frame) -> None:
        params = frame.value.get("params")
        params = params if type(params) is dict else {}
        thread, method = str(params.get("threadId", "")), str(frame.value["method"])
        self._asked[repr(frame.value["id"])] = (frame.n, method, thread)
        self._last[thread] = method
        self._unanswered[repr(frame.value["id"])] = method
        for turn in self._turns.values():
            if turn.thread == thread:
                turn.inside.append((frame.n, method))

    def _response(self, value: dict[str, Any]) -> None:
        _, method, thread = self._asked.get(repr(value["id"]), (0, "", ""))
        self._answered(value, method, thread)
        result = value.get("result")
        result = result if type(result) is dict else {}
        turn, opened = _inner(result, "turn"), _inner(result, "thread")
        if turn:
            self._named.setdefault(turn, method)
            if thread and thread not in self._loaded and len(set(self._returned.get(thread, ()))) == 1:
                self._seen.rows["reopens_thread"][self._returned.pop(thread)[0]] += 1
                self._loaded.add(thread)
        if result.get("turnId") in self._turns:
            self._seen.rows["steers"][method] += 1
        if opened and opened == thread:
            self._returned.setdefault(thread, []).append(method)
        elif opened:
            self._loaded.add(opened)

    def _answered(self, value: dict[str, Any], method: str, thread: str) -> None:
        self._unanswered.pop(repr(value["id"]), None)
        if thread or not self._unasked or self._turns:
            return
        if method in self._reached:
            self._reached.discard(method)
            self._seen.rows["reaches_threads"][method] += 1
        else:
            self._seen.unreached.add(method)

    def _notification(self, frame: Frame) -> None:
        params = frame.value.get("params")
        params = params if type(params) is dict else {}
        method, thread = str(frame.value["method"]), str(params.get("threadId", ""))
        if thread:
            self._notices.setdefault(thread, []).append((frame.n, method))
        turn = params.get("turn")
        if thread and turn is None and "turnId" not in params:
            if thread in self._last:
                self._seen.rows["follows_request"][method] += 1
            elif thread in self._loaded:
                self._seen.alone.add(method)
                self._unasked.setdefault(thread, set()).add(method)
            if method in self._unasked.get(thread, ()) and not self._turns:
                self._reached |= set(self._unanswered.values())
        elif not thread and "thread" not in params:
            self._of_no_thread(method)
        if type(turn) is not dict or type(turn.get("id")) is not str:
            return
        if turn.get("status") == "inProgress":
            opener = self._named.get(turn["id"]) or self._last.get(thread, "")
            self._turns[turn["id"]] = _Turn(thread, frame.n, opener)
            if opener:
                self._seen.rows["opens_turn"][opener] += 1
        elif turn.get("status") in ("completed", "interrupted", "failed") and turn["id"] in self._turns:
            self._seen.rows["ends_turn"][method] += 1
            self._ended(self._turns.pop(turn["id"]), frame.n, str(turn["status"]))

    def _of_no_thread(self, method: str) -> None:
        if not self._unanswered:
            self._seen.alone.add(method)
        elif "initialize" not in self._unanswered.values():
            self._seen.rows["follows_request"][method] += 1

    def _ended(self, turn: _Turn, end: int, status: str) -> None:
        if status != "interrupted" or not turn.inside:
            return
        for method in {method for _, method in turn.inside}:
            self._seen.rows["interrupts"][method] += 1
        last = turn.inside[-1][0]
        self._seen.effects.append({method for n, method in self._notices.get(turn.thread, ()) if last < n <= end})


def _inner(result: dict[str, Any], name: str) -> str:
    """Return the id of the object under the key `name`, or ""."""
    inner = result.get(name)
    found = inner.get("id") if type(inner) is dict else None
    return found if type(found) is str else ""
