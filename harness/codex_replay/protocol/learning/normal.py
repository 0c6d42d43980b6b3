"""Learn the table `normalise` of a Codex version, which lists the allowed differences between two runs of one scenario.

The first step finds the keys whose values are paths. All runs use the same home folder, so the runs do not differ there:
the keys are those whose texts are mostly paths in the home folder. The second step compares the two runs of each pair with
the rules that were learnt so far. Each differing leaf suggests a mask (see `masks`), and each pair of server frames in
reversed order suggests a race. A suggested rule is accepted if the comparison needs it. Each pair of runs is compared again
until no new rule is suggested. Differences that remain are reported, and not masked.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.learning.leaves import Leaf, leaves
from codex_replay.protocol.learning.masks import IDENTITY, STRUCTURE, by_key, by_text
from codex_replay.protocol.recordings.compare import NormalEvent, aligned, normal_form_by

#: A pair is compared so many times at most; each round can only need what the round before had hidden.
ROUNDS = 6
#: What the comparison itself adds to an event; it is no part of the traffic.
_OWN = (("from",), ("exchange",), ("form",), ("marks",))
#: Members of an event that are no part of its message.
_OUTER = ("msg", "request", "response", "ws", "sse")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of one scenario: the name of the scenario, and the frames of both runs."""

    name: str
    a: Sequence[Frame]
    b: Sequence[Frame]


@dataclass(slots=True)
class Row:
    """One rule that was learnt from recordings.

    `part` is the part of the table, `rule` is the text of the rule, and `seen` has the scenarios that need the rule.
    """

    part: str
    rule: str
    example: str
    seen: list[str] = field(default_factory=list)

    def encode(self) -> dict[str, Any]:
        """The row in its JSON form, for `learnt.json`."""
        return {"part": self.part, "rule": self.rule, "scenarios": len(self.seen), "first": self.seen[0], "example": self.example}


@dataclass(slots=True)
class Learnt:
    """The result of learning: the table, the evidence for each row, the scenarios with equal runs, and the scenarios with
    different runs.

    Each scenario with different runs has one sentence about the first difference.
    """

    table: dict[str, Any]
    rows: list[Row]
    equal: list[str]
    unexplained: dict[str, str]


def learn(pairs: Iterable[Pair], base: dict[str, Any], about: str, home: str) -> Learnt:
    """Return the table with which the two runs of as many pairs as possible are equal; learning starts from the table `base`.

    `home` is the name that replaces the real home folder in all recordings.
    """
    learner = _Learner(copy.deepcopy(base) | {"about": about})
    pairs = list(pairs)
    learner.paths(pairs, home)
    for pair in pairs:
        learner.pair(pair)
    # A rule of a later pair may complete an earlier one.
    for pair in pairs:
        learner.pair(pair)
    learner.closed = True
    equal, unexplained = [], {}
    for pair in pairs:
        learner.count(pair, base)
        left, right = learner.forms(pair)
        if [each.key for each in left] == [each.key for each in right]:
            equal.append(pair.name)
        else:
            unexplained[pair.name] = first_difference(left, right)
    return Learnt(learner.table, list(learner.rows.values()), equal, unexplained)


class _Learner:
    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table
        self.rows: dict[tuple[str, str], Row] = {}
        self.closed = False  # no rule is added any more

    def forms(self, pair: Pair) -> tuple[list[NormalEvent], list[NormalEvent]]:
        return normal_form_by(pair.a, self.table), normal_form_by(pair.b, self.table)

    def paths(self, pairs: Iterable[Pair], home: str) -> None:
        """Mask each key whose texts are mostly paths in the folder `home`."""
        others: Counter[str] = Counter()
        found: dict[str, Row] = {}
        for pair in pairs:
            for key, text in _texts([frame.value for frame in pair.a if frame.seam == "rpc"]):
                if text != home and not text.startswith(f"{home}/"):
                    others[key] += 1
                    continue
                others[key] -= 1
                row = found.setdefault(key, Row("keys", key, f"a path below the home of the runs: {text[:60]!r}"))
                row.seen += [] if pair.name in row.seen else [pair.name]
        for key, row in found.items():
            if others[key] < 0 and key not in STRUCTURE and key not in self.table["keys"]:
                self.table["keys"][key] = "path"
                self.rows["keys", key] = row

    def pair(self, pair: Pair) -> None:
        """Learn the rules that the two runs of a pair need."""
        for _ in range(ROUNDS):
            left, right = self.forms(pair)
            if [each.key for each in left] == [each.key for each in right]:
                return
            if not self._masks(pair.name, left, right) and not self._races(pair, left, right):
                return

    def count(self, pair: Pair, base: dict[str, Any]) -> None:
        """For each rule that a pair needs in addition to `base`, store the name of the pair's scenario as evidence."""
        self._masks(pair.name, normal_form_by(pair.a, base), normal_form_by(pair.b, base))

    def _masks(self, name: str, left: list[NormalEvent], right: list[NormalEvent]) -> bool:
        """Add the masks that a pair needs; return True if at least one mask is new."""
        found = False
        for one, other in aligned(left, right):
            if one is None or other is None or one.key == other.key:
                continue
            for leaf in leaves(one.value, other.value):
                if leaf.path[:1] in _OWN or leaf.kind == "shape":
                    continue
                found |= self._mask(name, one.label, leaf)
        return found

    def _mask(self, name: str, label: str, leaf: Leaf) -> bool:
        if leaf.kind == "order":
            key = next((step for step in reversed(leaf.path) if isinstance(step, str)), "")
            return bool(key) and key not in _OUTER and self._add(name, "unordered_keys", key, label, leaf)
        if "headers" in leaf.path and isinstance(leaf.path[-1], str) and leaf.path[-1] != "headers":
            what = by_key(leaf)
            if what is not None:
                return self._add(name, "headers", leaf.path[-1], label, leaf, what)
        elif (what := by_key(leaf)) is not None:
            return self._add(name, "keys", leaf.key, label, leaf, what)
        if type(leaf.left) is str and type(leaf.right) is str and leaf.key not in IDENTITY:
            added = [self._add(name, "strings", row["pattern"], label, leaf, row) for row in by_text(leaf.left, leaf.right)]
            return any(added)
        return False

    def _add(self, name: str, part: str, rule: str, label: str, leaf: Leaf, value: Any = None) -> bool:
        """Add one rule to the table, or note that one more scenario needs the rule; return True if the rule is new."""
        row = self.rows.get((part, rule))
        if row is None and self.closed:
            return False
        if row is None:
            shown = f"{label} {leaf.place}: {str(leaf.left)[-60:]!r} and {str(leaf.right)[-60:]!r}"
            row = self.rows[part, rule] = Row(part, rule, shown)
        if name not in row.seen:
            row.seen.append(name)
        if part == "unordered_keys":
            new = rule not in self.table[part]
            self.table[part] += [rule] if new else []
        elif part == "strings":
            new = all(each["pattern"] != rule for each in self.table[part])
            self.table[part] += [{**value, "why": f"The value differs between two runs: {row.example}."}] if new else []
        else:
            new = rule not in self.table[part]
            self.table[part].setdefault(rule, value)
        return new

    def _races(self, pair: Pair, left: list[NormalEvent], right: list[NormalEvent]) -> bool:
        """If two runs have the same frames in different orders, learn these orders as races, if the runs then become more
        similar.

        Return True if a race was learnt.
        """
        before = _distance(left, right)
        added = [(one, other) for one, other in inversions(left, right) if not self._declared(one, other)]
        if not added:
            return False
        kept = list(self.table["races"])
        self.table["races"] = kept + [
            {"between": [[one], [other]], "why": f"Seen in both orders in two runs of {pair.name}."} for one, other in added
        ]
        if _distance(*self.forms(pair)) >= before:
            self.table["races"] = kept
            return False
        for one, other in added:
            rule = f"{one} / {other}"
            self.rows["races", rule] = Row("races", rule, f"seen in both orders in two runs of {pair.name}", [pair.name])
        return True

    def _declared(self, one: str, other: str) -> bool:
        return any([one] in race["between"] and [other] in race["between"] for race in self.table["races"])


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text in `value` with its key; a text in a list has the key of the list."""
    if type(value) is str:
        yield key, value
    elif type(value) is list:
        for each in value:
            yield from _texts(each, key)
    elif type(value) is dict:
        for name, each in value.items():
            yield from _texts(each, name)


def inversions(left: Sequence[NormalEvent], right: Sequence[NormalEvent]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of server labels whose frames come in opposite orders in the two runs."""
    ours, theirs = _places(left), _places(right)
    common = [place for place in ours if place in theirs]
    seen = set()
    for index, one in enumerate(common):
        for other in common[index + 1 :]:
            if one[0] != other[0] and theirs[one] > theirs[other]:
                pair = (min(one[0], other[0]), max(one[0], other[0]))
                if pair not in seen:
                    seen.add(pair)
                    yield pair


def _places(line: Sequence[NormalEvent]) -> dict[tuple[str, int], int]:
    """Return the position of each server frame in a run.

    The key of each frame is its label, and its number among the frames with the same label.
    """
    counts: dict[str, int] = {}
    found = {}
    for place, event in enumerate(line):
        if event.label.startswith("rpc<"):
            counts[event.label] = number = counts.get(event.label, 0) + 1
            found[event.label, number] = place
    return found


def _distance(left: Sequence[NormalEvent], right: Sequence[NormalEvent]) -> int:
    """Return the number of differing positions in two lists of events."""
    return abs(len(left) - len(right)) + sum(one.key != other.key for one, other in zip(left, right, strict=False))


def first_difference(left: Sequence[NormalEvent], right: Sequence[NormalEvent]) -> str:
    """Return one sentence about the first difference between two lists of events."""
    for one, other in aligned(list(left), list(right)):
        if one is None or other is None:
            only = one or other
            assert only is not None
            return f"{only.label} is only in one run"
        if one.key != other.key:
            leaf = next(leaves(one.value, other.value), None)
            if leaf is None:
                return f"{one.label} differs as written"
            return f"{one.label} differs at {leaf.place}: {str(leaf.left)[:80]!r} and {str(leaf.right)[:80]!r}"
    return "the frames are in another order"
