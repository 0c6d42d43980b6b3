"""Compare two recordings (two runs of one scenario).

Ignore the allowed differences between two runs of one scenario, and list all other differences, the smallest first.

The frames of each run become events, which are sorted into a canonical order and normalised, so that ids get the same
placeholder names in both runs. Two runs are equal if their lists of events are equal. If the lists differ, events with the
same label are paired. The package deepdiff compares the two events of a pair; an event without a partner is missing or
extra.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.deltas import Event, events
from codex_replay.core.normalise.normaliser import Normaliser, is_headers
from codex_replay.core.normalise.order import Order, canonical
from codex_replay.core.text.truncate import excerpts
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol import data_tables, versions

#: The maximum number of unequal events to compare in detail; recordings with more have nothing in common.
CLOSE_LOOKS = 200
#: Aligning costs up to the square of what is to be aligned.
ALIGNED = 5000
#: Of a value longer than this, in characters of JSON, a part is shown: what is so much before the first difference, and on.
SHOWN = 120
BEFORE = 30
#: Objects with a smaller share of common keys are reported as a whole.
COMMON = 0.33
#: What is behind the path of a payload of which not the value differs but the text that it was written as.
WRITTEN = " (as written)"


@dataclass(frozen=True, slots=True)
class NormalEvent:
    """One event in a form for comparison: the `numbers` of its frames, its `label`, and its normalised value as JSON."""

    numbers: tuple[int, ...]
    label: str
    key: bytes

    @property
    def value(self) -> Any:
        """The normalised value of the event; it is decoded on demand, because few events are needed in this form."""
        return json.loads(self.key)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two recordings a and b: `kind` is "changed", "missing" (only in a) or "extra" (only in b).

    `a` and `b` are the numbers of the frames (None if missing). `path` is the JSON path inside the frame ("$" for the whole
    frame). `left` and `right` are the normalised values at `path` (None if missing). `only` is "a" or "b" if only one of
    the two frames has a value at the path. A member with the value null differs from a missing member.
    """

    kind: str
    label: str
    a: int | None
    b: int | None
    path: str
    left: Any
    right: Any
    only: str | None = None

    @property
    def size(self) -> int:
        """Return the size of the difference, in characters of JSON."""
        return _size(self.left) + _size(self.right)

    def sentence(self, first: str = "the first", second: str = "the second") -> str:
        """Describe the difference in one line; `first` and `second` are the names of the two runs."""
        if self.kind == "missing":
            return f"{self.label}: frame {self.a} of {first} has no counterpart in {second}"
        if self.kind == "extra":
            return f"{self.label}: frame {self.b} of {second} has no counterpart in {first}"
        places = f"frame {self.a} of {first} and frame {self.b} of {second}"
        if self.path.endswith(WRITTEN):
            return f"{self.label}: {places} have the same content but other bytes: spaces, order of keys or escapes"
        if self.path == "$" and self.left == self.right:
            return f"{self.label}: {places} are in different positions"
        if self.only is not None:
            value, has, lacks = (self.left, first, second) if self.only == "a" else (self.right, second, first)
            [shown] = _short(value)
            return f"{self.label}: {places} differ at {self.path}: {shown} in {has}, nothing in {lacks}"
        left, right = _short(self.left, self.right)
        return f"{self.label}: {places} differ at {self.path}: {left} and {right}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison of two runs: the number of events in each run, and the differences, smallest first.

    `note` is a sentence for the user if one of the runs was not normalised with the table of its own version.
    """

    a: int
    b: int
    differences: tuple[Difference, ...]
    note: str = ""

    @property
    def equal(self) -> bool:
        """True if the runs have only differences that are allowed between two runs of one scenario."""
        return not self.differences


def normal_form(frames: Iterable[Frame], version: str = versions.DEFAULT, *, replies_first: bool = False) -> list[NormalEvent]:
    """Return the normalised events of a run in canonical order. Two runs are equal if their lists of normalised events are equal.

    `replies_first` selects the order for readers of a conversation (see `canonical`).
    """
    return normal_form_by(frames, data_tables.choose("normalise", version)[0], replies_first)


def normal_form_by(frames: Iterable[Frame], table: Any, replies_first: bool = False) -> list[NormalEvent]:
    """Return a run's events like `normal_form`, but normalised with the given table."""
    seen = events(_ended_by_the_server(frames), table)
    normaliser = Normaliser(table)
    for event in seen:
        normaliser.learn(event.value)
    line = canonical([event.mark for event in seen], Order(table), replies_first=replies_first)
    return list(_once([_normal(seen[index], normaliser) for index in line], table["repeats"]))


def _ended_by_the_server(frames: Iterable[Frame]) -> Iterator[Frame]:
    """After the first close frame of a WebSocket, replace all further closing events by one: the server ends the connection.

    After a close frame, both sides close the connection. Timing decides which side closes first, whether the other side's
    close frame still arrives, and whether a side resets the connection.
    """
    closed = set()
    for frame in frames:
        goodbye = frame.kind == "ws" and type(frame.payload) is dict and "close" in frame.payload
        if frame.kind == "close" and frame.conn in closed:
            yield Frame(frame.n, frame.t, frame.seam, "server", "close", payload="end", conn=frame.conn, extra=frame.extra)
        elif not (goodbye and frame.conn in closed):
            yield frame
        if goodbye:
            closed.add(frame.conn)


def _once(line: Sequence[NormalEvent], repeats: Iterable[dict[str, Any]]) -> Iterator[NormalEvent]:
    """Omit each event that equals the event before it, if the table lists the event as repeated by chance."""
    labels = {rule["label"]: rule["has"].encode() for rule in repeats}
    for index, event in enumerate(line):
        again = index > 0 and event.label in labels and event.key == line[index - 1].key and labels[event.label] in event.key
        if not again:
            yield event


def _normal(event: Event, normaliser: Normaliser) -> NormalEvent:
    if event.mark.lane.startswith("rpc"):
        value = normaliser.message(event.value, event.sender)
        counts: dict[str, Any] = {"from": event.sender, "msg": value}
    else:
        value = normaliser.payload(event.kind, event.value)
        counts = {"from": event.sender, event.kind: value, "exchange": normaliser.name("exchange", event.mark.exchange)}
    if event.form:
        counts["form"] = event.form
    # Times are kept and never asserted: of the bounds of HTTP chunks the places count, and the beginning of a message does not.
    marks = {key: [at for at, _ in value] if key == "cuts" else value for key, value in event.extra.items() if key != "began"}
    if marks:
        counts["marks"] = marks
    return NormalEvent(event.numbers, event.mark.label, _key(counts))


def _key(value: Any) -> bytes:
    try:
        return dumps(value)
    except ValueError:  # a lone surrogate
        return json.dumps(value, separators=(",", ":")).encode()


def ruler(version: str, other: str) -> tuple[Any, str]:
    """Return the table for comparing two runs, and a sentence for the user if the runs are of two versions and the table is of
    only one.

    Both runs are normalised with one table: the table of the first version, or the table of the other version if the first
    has none.
    """
    if version == other:
        table, note = data_tables.choose("normalise", version)
        return table, note
    for each in (version, other):
        if data_tables.has("normalise", each):
            names = f"{data_tables.named(version)} and {data_tables.named(other)}"
            return data_tables.load("normalise", each), f"The runs are of {names}; both are normalised with the table of {each}."
    (table, note), (_, more) = data_tables.choose("normalise", version), data_tables.choose("normalise", other)
    return table, f"{note} {more}"


def compare(a: Iterable[Frame], b: Iterable[Frame], version: str = versions.DEFAULT, other: str | None = None) -> Comparison:
    """Compare two runs; `version` is the Codex version of `a`, `other` that of `b` (default: the same version)."""
    table, note = ruler(version, other or version)
    left, right = normal_form_by(a, table), normal_form_by(b, table)
    found = list(_differences(left, right))
    found.sort(key=lambda difference: (difference.size, difference.a or 0, difference.b or 0))
    return Comparison(len(left), len(right), tuple(found), note)


def equal_after_normalisation(a: Iterable[Frame], b: Iterable[Frame], version: str = versions.DEFAULT) -> bool:
    """Return True if two runs are equal except for times and ids.

    If the two runs are equal, the recorder leaves the existing cassette unchanged.
    """
    left, right = normal_form(a, version), normal_form(b, version)
    return [one.key for one in left] == [one.key for one in right]


def _differences(a: list[NormalEvent], b: list[NormalEvent]) -> Iterator[Difference]:
    start, ends = _common(a, b)
    a, b = a[start : len(a) - ends], b[start : len(b) - ends]
    if len(a) * len(b) > ALIGNED**2:
        a, b = a[:ALIGNED], b[:ALIGNED]
    looks = 0
    for one, other in aligned(a, b):
        if one is None and other is not None:
            yield Difference("extra", other.label, None, other.numbers[0], "$", None, other.value)
        elif other is None and one is not None:
            yield Difference("missing", one.label, one.numbers[0], None, "$", one.value, None)
        elif one is not None and other is not None and one.key != other.key:
            looks += 1
            if looks <= CLOSE_LOOKS:
                yield from _inside(one, other)
            else:
                yield Difference("changed", one.label, one.numbers[0], other.numbers[0], "$", one.value, other.value)


def _common(a: Sequence[NormalEvent], b: Sequence[NormalEvent]) -> tuple[int, int]:
    """Return the number of equal events at the start, and the number of equal events at the end."""
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and a[start].key == b[start].key:
        start += 1
    ends = 0
    while ends < shorter - start and a[-1 - ends].key == b[-1 - ends].key:
        ends += 1
    return start, ends


def aligned(a: Sequence[NormalEvent], b: Sequence[NormalEvent]) -> Iterator[tuple[NormalEvent | None, NormalEvent | None]]:
    """Pair the events of one label; an event without a partner is paired with None."""
    matcher = SequenceMatcher(None, [one.label for one in a], [one.label for one in b], autojunk=False)
    for _, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        if to_a - from_a == to_b - from_b and [x.label for x in a[from_a:to_a]] == [x.label for x in b[from_b:to_b]]:
            yield from zip(a[from_a:to_a], b[from_b:to_b], strict=True)
        else:
            yield from ((one, None) for one in a[from_a:to_a])
            yield from ((None, other) for other in b[from_b:to_b])


def _inside(one: NormalEvent, other: NormalEvent) -> Iterator[Difference]:
    """Yield the differences between two events of one label."""
    values, written = _in_one_form(one.value, other.value)
    if written is not None:
        yield Difference("changed", one.label, one.numbers[0], other.numbers[0], *written)
        if values[0] == values[1]:
            return
    named, common = _by_name(*values), COMMON
    if named != values and named[0] != named[1]:  # otherwise only the order differs, which only their places show
        values, common = named, 0.0  # each differing header is reported
    from deepdiff import DeepDiff  # loading it takes as long as comparing most recordings

    found = DeepDiff(*values, view="tree", ignore_type_in_groups=[], verbose_level=2, threshold_to_diff_deeper=common)
    inner = [level for levels in found.values() for level in levels]
    for level in inner:
        path = "$" + "".join(_step(key) for key in level.path(output_format="list"))
        sides = {"a": level.t1, "b": level.t2}
        present = [name for name, side in sides.items() if type(side).__name__ != "NotPresent"]
        left, right = (sides[name] if name in present else None for name in sides)
        only = present[0] if len(present) == 1 else None
        yield Difference("changed", one.label, one.numbers[0], other.numbers[0], path, left, right, only)
    if not inner:  # the order of keys, or 1 and 1.0: equal to deepdiff, not on the wire
        yield Difference("changed", one.label, one.numbers[0], other.numbers[0], "$", one.value, other.value)


def _in_one_form(one: Any, other: Any) -> tuple[tuple[Any, Any], tuple[str, Any, Any] | None]:
    """Return two events with their values under the same key.

    If an event is stored as text, the second result has the path and the exact texts of both events; otherwise it is None.

    A payload is stored as a value (`data`, `body`) if encoding the value gives the same bytes. If encoding the value gives
    other bytes, the payload is stored as text, with the value as `view`. A direct comparison of a value with a text would
    find no common parts.
    """
    for kind, name in _VALUES:
        sides = one.get(kind), other.get(kind)
        left, right = (_written(side, name) for side in sides)
        if left is not None and right is not None and left != right and None in (left[0], right[0]):
            moved = {**one, kind: _moved(sides[0], name)}, {**other, kind: _moved(sides[1], name)}
            return moved, (f"$.{kind}{WRITTEN}", left[0], right[0])
    return (one, other), None


def _by_name(one: Any, other: Any) -> tuple[Any, Any]:
    """If the headers of two events have different names or another order, return the events with their headers as objects.

    In a comparison by position, one additional header would make all later headers differ (`"etag" and "date"`).
    """
    for kind in ("response", "request"):
        sides = one.get(kind), other.get(kind)
        if all(type(side) is dict and is_headers(side.get("headers")) for side in sides):
            names = [[name for name, _ in side["headers"]] for side in sides]
            if names[0] != names[1]:
                left, right = ({**side, "headers": _joined(side["headers"])} for side in sides)
                return {**one, kind: left}, {**other, kind: right}
    return one, other


def _joined(headers: list[list[str]]) -> dict[str, str]:
    """Return headers by their names in lower case; join the values of repeated headers."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(values) for name, values in found.items()}


def _written(side: Any, name: str) -> tuple[str | None] | None:
    """If a payload has a value, return a tuple with its exact text, or with None if no exact text is stored.

    Return None if the payload has no value.
    """
    if type(side) is dict and "view" in side and type(side.get("text")) is str:
        return (side["text"],)
    return (None,) if type(side) is dict and name in side else None


#: The places of a value that may have a text next to it, and the name of the place without one.
_VALUES = (("sse", "data"), ("ws", "json"), ("request", "body"), ("response", "body"), ("chunk", "body"))


def _moved(payload: dict[str, Any], name: str) -> dict[str, Any]:
    return {key if key != "view" else name: value for key, value in payload.items() if key != "text"}


def _step(key: Any) -> str:
    if type(key) is int:
        return f"[{key}]"
    return f".{key}" if str(key).isidentifier() else f"[{dumps(str(key)).decode()}]"


def _size(value: Any) -> int:
    return 0 if value is None else len(_key(value))


def _short(*values: Any) -> list[str]:
    return excerpts([_key(value).decode() for value in values], SHOWN, BEFORE)
