"""The order in which the frames of a run are compared: a partial order, and one canonical sequence that obeys this partial order.

Strategy: each frame gets a `Mark`: its label and the thread, item and exchange that it belongs to. Two frames are ordered
as they were seen if they are in the same stream (one side of the rpc seam, one http exchange, the requests of one thread)
unless a declared race allows a different order, or both are answers of the server. In addition, a request comes before its
reply, and a declared cause comes before its effect. An unplaced notice (a kind of frame whose place in a run is random) is
ordered only among frames of its own kind. The order of any other two frames depends on timing: frames of different threads,
directions or seams. (Mazurkiewicz calls such a partial order a trace; `canonical` returns its lexicographic normal form.)
Two runs therefore give the same sequence exactly if they differ only in declared races.

The labels of the frames occur in reports and in the table of races. Examples of labels: "rpc> turn/start", "rpc< response
to turn/start", "rpc< item/started commandExecution", "http> POST /v1/responses", "http< sse response.created". The declared
races are in `protocol/data/<version>/normalise.json`.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.cassette.ws_frames import name_of
from codex_replay.core.wire.jsonrpc import kind


class Mark(NamedTuple):
    """The place of a frame in the order: `lane` is "rpc>", "rpc<", "http>" or "http<"; `exchange` counts http requests from 1."""

    lane: str
    label: str
    thread: str | None = None
    item: str | None = None
    exchange: int = 0
    request: int | None = None  # of a reply or an http answer: the index of the frame that it answers


def at(value: Any, path: str) -> Any:
    """Return the value at a dotted path of keys ("params.msg.call_id") in `value`, or None if the path does not exist."""
    for key in path.split("."):
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def first_string(value: Any, paths: Iterable[str]) -> str | None:
    """Return the first string in `value` at the `paths`."""
    for path in paths:
        found = at(value, path)
        if type(found) is str and found:
            return found
    return None


class Marker:
    """Mark the frames of one run, in the order of arrival."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._scope: dict[str, list[str]] = table["scope"]
        self._unplaced = _pattern(*_unplaced(table))
        self._asked: dict[tuple[str, str], list[tuple[int, Mark]]] = {}
        self._last_thread: str | None = None
        self._exchanges = 0
        self._open: dict[int | None, Mark] = {}  # connection -> its latest request
        self._index = -1

    def mark(self, frame: Frame) -> Mark:
        """Return the mark of the run's next frame."""
        self._index += 1
        return self._http(frame) if frame.seam == "http" else self._rpc(frame)

    def _rpc(self, frame: Frame) -> Mark:
        lane = "rpc>" if frame.sender == "client" else "rpc<"
        value = frame.value
        sort = kind(value)
        if sort == "other":
            return Mark(lane, f"{lane} no message")
        if sort in ("response", "error"):
            return self._reply(lane, sort, frame.sender, value)
        # What a client started by a name of its own (a process, a watch) has an order of its own, as a thread has.
        thread = first_string(value, self._scope["thread"])
        started = None if thread else first_string(value, self._scope.get("object", ()))
        what = first_string(value, self._scope["type"])
        label = f"{lane} {value['method']}" + (f" {what}" if what else "")
        if lane == "rpc<" and not started and not self._unplaced.fullmatch(label):
            # A frame that names no thread is written together with the one before it.
            thread = thread or self._last_thread
            self._last_thread = thread
        thread = thread or started
        mark = Mark(lane, label, thread, first_string(value, self._scope["item"]))
        if sort == "request":
            self._asked.setdefault((frame.sender, repr(value["id"])), []).append((self._index, mark))
        return mark

    def _reply(self, lane: str, sort: str, sender: str, value: Any) -> Mark:
        other = "server" if sender == "client" else "client"
        asked = self._asked.get((other, repr(value["id"])), [])
        thread = first_string(value, self._scope["thread"])
        if not asked:
            return Mark(lane, f"{lane} {sort} to nothing", thread)
        index, request = asked.pop(0) if len(asked) > 1 else asked[0]
        label = f"{lane} {sort} to {request.label.partition(' ')[2]}"
        return Mark(lane, label, thread or request.thread, request.item, request=index)

    def _http(self, frame: Frame) -> Mark:
        lane = "http>" if frame.sender == "client" else "http<"
        payload = frame.payload if type(frame.payload) is dict else {}
        if frame.kind == "request":
            self._exchanges += 1
            named = {name.lower(): value for name, value in _headers(payload)}
            thread = next((named[name] for name in _THREAD if name in named), None)
            path = str(payload.get("path")).partition("?")[0]
            mark = Mark(lane, f"{lane} {payload.get('method')} {path}", thread, exchange=self._exchanges)
            self._open[frame.conn] = mark._replace(request=self._index)
            return mark
        asked = self._open.get(frame.conn, Mark(lane, ""))
        name = payload.get("event") if frame.kind == "sse" else name_of(payload) if frame.kind == "ws" else None
        label = f"{lane} {frame.kind}" + (f" {name}" if name else "")
        return Mark(lane, label, asked.thread, exchange=asked.exchange, request=asked.request)


#: The headers that name the thread of a request: that of 0.169.0, and those of versions in which a session has one thread.
_THREAD = ("thread-id", "session_id", "session-id")


def _headers(payload: dict[str, Any]) -> Iterable[tuple[str, str]]:
    headers = payload.get("headers")
    if type(headers) is not list:
        return
    for pair in headers:
        if type(pair) is list and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is str:
            yield pair[0], pair[1]


class _Sides(NamedTuple):
    """The rules of a table for one label of frames, as bit masks: for each side of a race, for causes, and for effects."""

    left: int
    right: int
    cause: int
    effect: int
    loose: bool
    unplaced: bool


class Order:
    """The declared races, causes and unordered items of one table. The methods of `Order` compare two frames by their `Mark`s."""

    def __init__(self, table: dict[str, Any]) -> None:
        races, causes = table["races"], table["causes"]
        self._left = [_pattern(*rule["between"][0]) for rule in races]
        self._right = [_pattern(*rule["between"][1]) for rule in races]
        self._cause = [_pattern(*rule["cause"]) for rule in causes]
        self._effect = [_pattern(*rule["effect"]) for rule in causes]
        self._items = _pattern(*table["unordered_items"])
        self._unplaced = _pattern(*_unplaced(table))
        # A run has few labels and very many pairs of them.
        self._sides_of = lru_cache(maxsize=None)(self._sides)

    def _sides(self, label: str) -> _Sides:
        left, right, cause, effect = (
            sum(1 << place for place, pattern in enumerate(side) if pattern.fullmatch(label))
            for side in (self._left, self._right, self._cause, self._effect)
        )
        loose, unplaced = (pattern.fullmatch(label) is not None for pattern in (self._items, self._unplaced))
        return _Sides(left, right, cause, effect, loose, unplaced)

    def race(self, one: str, other: str) -> bool:
        """Return True if frames with the two given labels may come in either order."""
        a, b = self._sides_of(one), self._sides_of(other)
        return bool(a.left & b.right | b.left & a.right)

    def cause(self, one: str, other: str) -> bool:
        """Return True if frames with the second label occur only after a frame with the first label."""
        return bool(self._sides_of(one).cause & self._sides_of(other).effect)

    def loose(self, label: str) -> bool:
        """Return True if frames with the given label keep their order only within one item."""
        return self._sides_of(label).loose

    def unplaced(self, label: str) -> bool:
        """Return True if frames with the given label keep their order only among themselves."""
        return self._sides_of(label).unplaced

    def kind_of(self, mark: Mark) -> Mark:
        """Return the mark without the fields that do not influence the order of frames, so that there are few different marks."""
        reply = mark.lane == "rpc>" and mark.request is not None
        own = reply or self.loose(mark.label) or self.race(mark.label, mark.label)
        return Mark(mark.lane, mark.label, mark.thread, mark.item if own else None)

    @staticmethod
    def _by_itself(answer: Mark, told: Mark) -> bool:
        """Return True if the order of a notification and the answer to a request depends only on timing.

        A refused request changes nothing. A request that names no thread does not influence the turns that run at the same
        time.
        """
        return answer.label.startswith(_ERROR) or (answer.thread is None and told.thread is not None)

    def ordered(self, one: Mark, other: Mark) -> bool:
        """Return True if two kinds of frames must keep the order in which they were seen.

        `ordered` does not decide about replies and http answers, which always come after their request, and after the
        earlier parts of the same exchange.
        """
        apart = one.thread != other.thread and one.thread is not None and other.thread is not None
        items_apart = None not in (one.item, other.item) and one.item != other.item
        if one.lane != other.lane:
            return not apart and not items_apart and (self.cause(one.label, other.label) or self.cause(other.label, one.label))
        if one.lane == "rpc>":
            return True
        if apart or (one.label != other.label and (self.unplaced(one.label) or self.unplaced(other.label))):
            return False
        if items_apart and self.loose(one.label) and self.loose(other.label):
            return False
        answers = _is_answer(one) + _is_answer(other)
        if answers == 2:
            return False  # requests that were open at the same time are answered in any order
        if answers == 1 and self._by_itself(*((one, other) if _is_answer(one) else (other, one))):
            return False
        return one == other or not self.race(one.label, other.label)


def _unplaced(table: dict[str, Any]) -> list[str]:
    """Return the labels of notices that name neither a thread nor the request that they follow; older tables list none."""
    return [rule["label"] for rule in table.get("unplaced", [])]


def _is_answer(mark: Mark) -> bool:
    return mark.label.startswith(_ANSWERS)


@lru_cache(maxsize=512)
def _pattern(*patterns: str) -> re.Pattern[str]:
    """Return one regular expression for several label patterns with `*`.

    If there are no patterns, the regular expression matches nothing.
    """
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


_CLIENT_LEAVES = "http> close"
_ERROR = "rpc< error to "
_ANSWERS = ("rpc< response to ", _ERROR)
_LANES = {"rpc>": 0, "rpc<": 1, "http>": 2, "http<": 2}
_REPLIES_FIRST = {"rpc<": 0, "rpc>": 1, "http>": 2, "http<": 2}


def canonical(marks: Sequence[Mark], order: Order, *, replies_first: bool = False) -> list[int]:
    """Return the indexes of `marks` in the canonical order, which is the same for all timings of one run.

    The canonical order is the lexicographically first order that the partial order allows. As far as the partial order allows,
    the client's frames come first, then the server's frames, then one http exchange after another. The computing time for n
    frames of c kinds is proportional to n * c. With `replies_first`, the server's frames come before the client's next frame, as
    in a conversation, and a frame of a thread comes after the request that opened the thread.
    """
    lanes = _REPLIES_FIRST if replies_first else _LANES
    after, waits = _edges(marks, order)
    if replies_first:
        _follow_openings(marks, order, after, waits)
    threads: dict[str | None, int] = {None: -1}
    for mark in sorted((mark for mark in marks if mark.lane.startswith("rpc")), key=lambda mark: mark.lane == "rpc<"):
        threads.setdefault(mark.thread, len(threads))
    for mark in marks:
        threads.setdefault(mark.thread, len(threads))

    def key(index: int) -> tuple[int, int, int, str, str, int]:
        mark = marks[index]
        label = mark.label
        if mark.request is not None and _is_answer(mark):  # in the order of the requests
            label = f"{next(start for start in _ANSWERS if label.startswith(start))}{mark.request:9}"
        # The request of an exchange and its answer are together, in the order of the requests.
        return (lanes[mark.lane], threads[mark.thread], mark.exchange, label, mark.item or "", index)

    ready = [key(index) for index, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    line: list[int] = []
    while ready:
        index = heapq.heappop(ready)[-1]
        line.append(index)
        for follower in after[index]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, key(follower))
    return line


def _follow_openings(marks: Sequence[Mark], order: Order, after: list[list[int]], waits: list[int]) -> None:
    """Add the edge from the request that opened a thread to each frame of the server in that thread.

    A notice that names no thread follows the last frame of the client.
    """
    openings: dict[str | None, int] = {None: len(marks)}
    for mark in marks:
        if mark.lane == "rpc<" and mark.request is not None:
            openings.setdefault(mark.thread, mark.request)
    client = len(marks)
    for index, mark in enumerate(marks):
        client = index if mark.lane == "rpc>" else client
        opening = client if order.unplaced(mark.label) else openings.get(mark.thread, len(marks))
        if mark.lane == "rpc<" and opening < index:
            after[opening].append(index)
            waits[index] += 1


def _edges(marks: Sequence[Mark], order: Order) -> tuple[list[list[int]], list[int]]:
    """Return for each frame the frames that must follow it, and the number of frames that must come before it."""
    after: list[list[int]] = [[] for _ in marks]
    waits = [0] * len(marks)
    last: dict[str | None, dict[Mark, int]] = {}  # thread -> kind of frame -> the latest such frame
    answers: dict[int, int] = {}  # exchange -> the latest part of its answer
    sent: dict[int, int] = {}  # exchange -> the latest frame of the client
    related: dict[tuple[Mark, Mark], bool] = {}
    for index, mark in enumerate(marks):
        befores = set() if mark.request is None else {mark.request}
        if mark.lane == "http<":
            befores.add(answers.get(mark.exchange, index))
            befores.discard(index)
            answers[mark.exchange] = index
        elif mark.label == _CLIENT_LEAVES:  # a client may drop a connection before or after it opens the next
            befores.update({sent[mark.exchange]} if mark.exchange in sent else ())
        else:
            sent[mark.exchange] = index
            sort = order.kind_of(mark)
            # Only the client's own frames and those of no thread are ordered among all threads.
            narrow = mark.thread is not None and mark.lane != "rpc>"
            for place in (None, mark.thread) if narrow else list(last):
                for other, when in last.get(place, {}).items():
                    pair = (other, sort)
                    if pair not in related:
                        related[pair] = order.ordered(other, sort)
                    if related[pair]:
                        befores.add(when)
            last.setdefault(mark.thread, {})[sort] = index
        for before in befores:
            after[before].append(index)
            waits[index] += 1
    return after, waits
