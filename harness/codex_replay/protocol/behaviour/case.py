"""Compare two runs of one case, on two Codex versions: find every change in the server's frames.

Strategy. Events with the same label are paired: first the equal events, then similar events. Because events are paired by
label, a missing or an additional frame does not change the other pairs. An event without a partner is reported as missing,
as new, or as occurring a different number of times. The members of two paired events are compared. If the other run has two
pairs in another order, the order is a change, unless a declared race allows both orders.

If one run ended early because the case failed, only the same part of the other run is compared: up to the first client frame that
the failed run never sent.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from codex_replay.protocol.behaviour.run_form import Entry, Form, blank
from codex_replay.protocol.behaviour.values import ABSENT, At, Names, differences

#: The maximum number of pairs to try when events of two runs are matched; above it they are matched in order.
TRIED = 2500


@dataclass(frozen=True, slots=True)
class Change:
    """One change: its `rule` (see `RULES`), the method or event, the path in the frame, the old value and the new value."""

    rule: str
    label: str
    path: str = ""
    before: Any = ABSENT
    after: Any = ABSENT
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the identity of the change, by which equal changes are recognised.

        If two runs of the same version also show a change with the same identity, the change is noise, and is not reported.
        """
        return (self.rule, self.label, self.path)


#: rule -> its description, the most informative rule first.
RULES: dict[str, str] = {
    "unheard": "the client's answer has another effect: the model receives another text",
    "refused": "a request that succeeded now fails",
    "accepted": "a request that failed now succeeds",
    "vanished": "no longer sent",
    "doubled": "sent once more, with the same content",
    "order": "sent in another order",
    "oftener": "sent oftener",
    "rarer": "sent less often",
    "error text": "another error text",
    "value": "another value",
    "identity": "refers to something else than before",
    "gone": "the member is no longer sent",
    "appeared": "not sent before",
    "new": "a new member",
    "assertion": "the case fails, and no frame shows why",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """The traffic of one case in one run: a normalised conversation for each server of the case, and the result of the case.

    If the case declares that the real server has more than one correct behaviour, `racy` is the reason.
    """

    case: str
    outcome: str
    early: bool = False
    sentence: str = ""
    servers: tuple[Form, ...] = field(default=(), repr=False)
    racy: str = ""

    @property
    def client(self) -> int:
        """Return the number of frames that the clients of the case have sent."""
        return sum(len(server.client) for server in self.servers)

    def end(self) -> str:
        """Return after which frame the run ended early, and the reason."""
        after = f" after {self.servers[-1].last}" if self.servers and self.servers[-1].last else ""
        return f"{self.sentence}{after}"


def changes(before: Kept, after: Kept) -> list[Change]:
    """Return the differences between two runs of a case, each difference once."""
    found: dict[tuple[Any, ...], Change] = {}
    for one, other in zip(before.servers, after.servers, strict=False):
        for change in _conversation(one, other, cut_one=after.early, cut_other=before.early):
            found.setdefault((*change.key, change.note, blank(_text(change.before)), blank(_text(change.after))), change)
    return list(found.values())


def _conversation(one: Form, other: Form, *, cut_one: bool, cut_other: bool) -> Iterator[Change]:
    end_one = one.end_for(other) if cut_one else None
    end_other = other.end_for(one) if cut_other else None
    pairs: list[tuple[Entry, Entry]] = []
    labels = dict.fromkeys(message.label for form in (one, other) for message in form.said)
    for label in labels:
        left, right = ([message for message in form.said if message.label == label] for form in (one, other))
        both, only_left, only_right = paired(_until(left, end_one), _until(right, end_other))
        # Events after the end of the shorter run are ignored, not counted as missing.
        only_left = only_left[len(right) - len(_until(right, end_other)) :]
        only_right = only_right[len(left) - len(_until(left, end_one)) :]
        pairs += both
        yield from _unpaired(label, only_left, only_right, left, right)
    pairs.sort(key=lambda pair: pair[0].seen)
    yield from _order(pairs, one, other)
    heard = list(_heard(one, other))
    yield from heard
    report = {(_text(change.before), _text(change.after)) for change in heard}
    names = Names()
    for left_text, right_text in pairs:
        for change in _inside(left_text, right_text, names):
            if not (change.path.endswith("_output].output") and (_text(change.before), _text(change.after)) in report):
                yield change


def _until(said: list[Entry], end: int | None) -> list[Entry]:
    return said if end is None else [each for each in said if each.seen < end]


def _unpaired(
    label: str,
    only_left: Sequence[Entry],
    only_right: Sequence[Entry],
    left: Sequence[Entry],
    right: Sequence[Entry],
) -> Iterator[Change]:
    for message in only_left:
        yield Change("rarer" if right else "vanished", label, "", message.value, ABSENT)
    for message in only_right:
        again = sum(each.text == message.text for each in right) > max(1, sum(each.text == message.text for each in left))
        yield Change(("doubled" if again else "oftener") if left else "appeared", label, "", ABSENT, message.value)


def _inside(one: Entry, other: Entry, names: Names) -> Iterator[Change]:
    left, right = one.value, other.value
    if one.label.startswith("reply to ") and isinstance(left, dict) and isinstance(right, dict):
        refused, accepted = "result" in left and "error" in right, "error" in left and "result" in right
        if refused or accepted:
            yield Change("refused" if refused else "accepted", one.label, "$", _answer(left), _answer(right))
            return
    for at in differences(left, right, names):
        yield Change(_rule(at), one.label, at.path, at.before, at.after)


def _answer(reply: dict[str, Any]) -> Any:
    return reply["error"].get("message") if isinstance(reply.get("error"), dict) else {"result": reply.get("result")}


def _rule(at: At) -> str:
    if at.identity:
        return "identity"
    if at.before is ABSENT or at.after is ABSENT:
        return "new" if at.before is ABSENT else "gone"
    texts = isinstance(at.before, str) and isinstance(at.after, str)
    return "error text" if texts and at.path.endswith((".message", ".additionalDetails")) and "rror" in at.path else "value"


def _heard(one: Form, other: Form) -> Iterator[Change]:
    """Yield the differences in the tool outputs that the model gets, where the client sent the same answers in both runs."""
    for call, before in one.calls.items():
        after = other.calls.get(call)
        if after is None or before.method != after.method or blank(_text(before.reply)) != blank(_text(after.reply)):
            continue
        if blank(_text(before.output)) != blank(_text(after.output)):
            result = before.reply.get("result") if isinstance(before.reply, dict) else None
            shape = "{" + ", ".join(result) + "}" if isinstance(result, dict) else _text(result)
            path = "upstream body.input[function_call_output].output"
            yield Change("unheard", before.method, path, before.output, after.output, f"the client replies {shape}")


# ------------------------------------------------------------------ which event is which


def paired(left: Sequence[Entry], right: Sequence[Entry]) -> tuple[list[tuple[Entry, Entry]], list[Entry], list[Entry]]:
    """Pair the events with one label in their order; return the pairs, and the unpaired events of each run."""
    pairs: list[tuple[Entry, Entry]] = []
    alone: tuple[list[Entry], list[Entry]] = ([], [])
    matcher = SequenceMatcher(None, [message.text for message in left], [message.text for message in right], autojunk=False)
    for tag, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        a, b = left[from_a:to_a], right[from_b:to_b]
        if tag == "equal" or len(a) == len(b):
            pairs += zip(a, b, strict=True)
            continue
        inner = _most_alike(a, b)
        pairs += [(a[i], b[j]) for i, j in inner]
        alone[0].extend(message for i, message in enumerate(a) if i not in {i for i, _ in inner})
        alone[1].extend(message for j, message in enumerate(b) if j not in {j for _, j in inner})
    return pairs, alone[0], alone[1]


def _most_alike(a: Sequence[Entry], b: Sequence[Entry]) -> list[tuple[int, int]]:
    """Pair two lists of events without changing their order, so that paired events are as similar as possible.

    Each event of the shorter list gets a partner in the longer list.
    """
    if not a or not b or len(a) * len(b) > TRIED:
        return [(index, index) for index in range(min(len(a), len(b)))]
    leaves_a, leaves_b = ([set(_leaves(message.value)) for message in side] for side in (a, b))
    # The best value of pairing the first i with the first j; one more than shared counts, so that pairing beats leaving out.
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a)):
        for j in range(len(b)):
            here = best[i][j] + 1 + len(leaves_a[i] & leaves_b[j])
            best[i + 1][j + 1] = max(here, best[i][j + 1], best[i + 1][j])
    found, i, j = [], len(a), len(b)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found.append((i, j))
    return found[::-1]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, blank(_text(value))


# ------------------------------------------------------------------ order


def _order(pairs: list[tuple[Entry, Entry]], one: Form, other: Form) -> Iterator[Change]:
    """Yield each pair of labels whose order is reversed in the other run, unless a declared race allows both orders."""
    stay = _longest_rising([right.seen for _, right in pairs])
    for index, (left, right) in enumerate(pairs):
        if index in stay:
            continue
        near = sorted((at for at in range(len(pairs)) if at != index), key=lambda at: (abs(at - index), at))
        for at in near:
            left2, right2 = pairs[at]
            turned = (left.seen < left2.seen) != (right.seen < right2.seen)
            if turned and left.label != left2.label and _is_ordered(left, left2, one) and _is_ordered(right, right2, other):
                first, second = (left, left2) if left.seen < left2.seen else (left2, left)
                labels = f"{first.label}, {second.label}"
                yield Change("order", labels, "", f"{first.label}, then {second.label}", f"{second.label}, then {first.label}")
                break


def _is_ordered(one: Entry, other: Entry, form: Form) -> bool:
    """Return True if two events of one run must have the same order in every run."""
    same_side = one.mark.lane == other.mark.lane and one.mark.lane.startswith("rpc")
    return same_side and form.order.ordered(form.order.kind_of(one.mark), form.order.kind_of(other.mark))


def _longest_rising(values: Sequence[int]) -> set[int]:
    """Return the indexes of a longest increasing subsequence of `values`."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, value in enumerate(values):
        place = bisect_left(tails, value)
        before.append(ends[place - 1] if place else -1)
        tails[place : place + 1] = [value]
        ends[place : place + 1] = [index]
    found: set[int] = set()
    index = ends[-1] if ends else -1
    while index >= 0:
        found.add(index)
        index = before[index]
    return found


def _text(value: Any) -> str:
    return "(absent)" if value is ABSENT else json.dumps(value, sort_keys=True)


def labels(kept: Kept) -> Iterable[str]:
    """Return the labels of all events in a run of a case."""
    return {message.label for server in kept.servers for message in server.said}
