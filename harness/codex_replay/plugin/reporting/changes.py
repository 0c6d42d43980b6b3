"""Find the cases whose result differs from the baseline, and judge them again after they were rerun.

All functions here are pure: they take cases and return sentences.

The kinds of changed cases:

    | kind | the case | red if |
    |---|---|---|
    | new | failed, and no line lists it | it fails again |
    | racy | failed, and a line marks it racy | it fails in every rerun (`Rate.tries`) |
    | stale | passed, and its line lists a failure | it passes again |
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from codex_replay.core.text.numbers import plural
from codex_replay.plugin.reporting.baseline_file import UNEXPLAINED, Line, Rate, one_line
from codex_replay.report.group_failures import groups

if TYPE_CHECKING:
    from codex_replay.report.data import Alone, Case

#: The maximum number of changed cases that are rerun one after another. Of more cases, the workers of the run rerun several at a
#: time. Then the gate reruns so many of them, and the next ones only if no result is red: a broken subject must not cost minutes.
MOST = 30
#: Cases of at least so many seconds mostly waited for an answer that did not come. They use no processor time while they wait, so
#: that several of them at a time do not disturb each other.
WAITED = 2.0
AT_A_TIME = 4
#: The rate of a case that failed once and passed once.
ONCE = Rate(1, 2)
_DIFFERED = {
    "new": "failed in the run, but passed when rerun",
    "racy": "of racy lines failed in the run, but passed when rerun",
    "stale": "passed in the run, but failed when rerun",
}
_NO_RESULT: Alone = {"outcome": "skipped", "seconds": 0.0, "message": "The rerun ended without a result for this case."}


@dataclass
class Change:
    """One case whose result differs from the baseline.

    `check` is the name of the case in a baseline. `line` is the index of the baseline line that lists the case, or None.
    """

    nodeid: str
    check: str
    kind: Literal["new", "racy", "stale"]
    line: int | None = None
    rate: Rate = ONCE
    alone: list[Alone] = field(default_factory=list)

    @property
    def tries(self) -> int:
        """The maximum number of reruns of the case."""
        return self.rate.tries if self.kind == "racy" else 1

    @property
    def confirmed(self) -> bool:
        """Return True if each rerun of the case had the same result as the original run."""
        other = "failed" if self.kind == "stale" else "passed"
        return all(result["outcome"] != other for result in self.alone)

    def sentence(self, path: object, update: bool = False) -> str:
        """Return a sentence about the result of the rerun and the next step; `path` is the baseline file.

        `update` is True if the run writes the baseline.
        """
        failed = sum(result["outcome"] == "failed" for result in self.alone) + (self.kind != "stale")
        of = f"{failed} of {plural(1 + len(self.alone), 'run')}"
        name = repr(self.check)
        if self.kind == "new" and self.confirmed:
            return f"{name} failed in the run, and also when rerun."
        if self.kind == "racy" and self.confirmed:
            return f"{name} is listed as racy ({self.rate}), but failed in {of}. Fix the check, or correct the rate in {path}."
        if self.kind == "stale" and self.confirmed:
            return f"{name} passed in the run, and also when rerun."
        if self.kind == "racy":
            return f"{name} is listed as racy ({self.rate}): it failed in {of}."
        begin = f"racy: {name} {_DIFFERED[self.kind]} ({of})."
        rate = Rate(failed, 1 + len(self.alone))
        if update:
            return f"{begin} {path} lists it with racy: {rate}."
        where = f"{'add to' if self.kind == 'new' else 'mark it in'} {path}"
        if str(path) == os.devnull:
            where = "add to a file, and name this file with --baseline"
        return f"{begin} Fix the race, or {where}: - {one_line(Line(self.check, 'WHY', rate))}"


def plan(
    lines: Sequence[Line], seen: Mapping[str, tuple[bool, list[str], list[int]]], stale: Iterable[int], update: bool = False
) -> list[Change]:
    """Return the cases of a run whose result differs from the baseline.

    `seen` has three values for each node id: True if the case failed, the names by which a baseline can list the case, and
    the indexes of the lines that list it. `stale` are the indexes of the stale lines.

    With `update`, the run writes the baseline, and the failures of racy lines do not count.
    """
    passed_lines = set(stale)
    names = Counter(name for _, of, _ in seen.values() for name in of)
    found = []
    for nodeid, (failed, own, numbers) in seen.items():
        check = next((name for name in own if names[name] == 1), own[-1])
        racy = next((number for number in numbers if lines[number].racy is not None), None)
        if failed and not numbers:
            found.append(Change(nodeid, check, "new"))
        elif failed and racy is not None and not update and all(lines[number].racy for number in numbers):
            rate = lines[racy].racy or ONCE
            found += [Change(nodeid, check, "racy", racy, rate)] if rate.tries else []
        elif not failed:
            found += [Change(nodeid, check, "stale", number) for number in numbers if number in passed_lines][:1]
    return found


def rerun(changes: Sequence[Change], run: Callable[[list[str]], Mapping[str, Alone]], every: bool = False) -> None:
    """Rerun the cases whose result changed, as often as necessary.

    `run` is a function that takes node ids, runs their cases, and returns the results. If there are more than `MOST` cases,
    the first result that makes the run red ends the reruns, and the other cases keep their results; `every` turns this off.
    """
    size = max(len(changes), 1) if every else MOST
    for start in range(0, len(changes), size):
        chosen = changes[start : start + size]
        _rerun(chosen, run)
        if any(change.confirmed for change in chosen):
            return


def _rerun(changes: Sequence[Change], run: Callable[[list[str]], Mapping[str, Alone]]) -> None:
    for number in range(max(change.tries for change in changes)):
        chosen = [change for change in changes if number < change.tries and (number == 0 or change.confirmed)]
        if not chosen:
            return
        results = run([change.nodeid for change in chosen])
        for change in chosen:
            change.alone.append(results.get(change.nodeid, _NO_RESULT))


def batches(nodeids: Sequence[str], duration: Callable[[str], float], workers: int) -> list[tuple[list[str], int]]:
    """Divide the cases of a rerun into lists of node ids; each list has the number of its cases that run at a time.

    The number 0 means that the cases run in one process, one after another.
    `duration` returns the seconds that a case took in the run, and `workers` is the number of workers of the run.
    """
    many = workers if len(nodeids) > MOST else 0
    waited = [nodeid for nodeid in nodeids if duration(nodeid) >= WAITED]
    if workers < 2 or len(waited) < 2:
        return [(list(nodeids), many)]
    others = [nodeid for nodeid in nodeids if duration(nodeid) < WAITED]
    return [*([(others, many)] if others else []), (waited, max(workers, min(AT_A_TIME, len(waited))))]


def results(changes: Sequence[Change], path: object, update: bool) -> list[tuple[str, bool]]:
    """Return the output lines about the rerun cases, each with True if the result is unchanged; `path` is the baseline file.

    If there are more than `MOST` cases, only the cases with another result are named.
    """
    again = [change for change in changes if change.alone]
    if not again:
        return []
    other = [change for change in again if not change.confirmed]
    begin = f"Rerun: {plural(len(again), 'case')}; {len(again) - len(other)} with the same result"
    lines = [(f"{begin}, {len(other)} with a different result.", True)]
    named = again if len(again) <= MOST else other
    if len(named) <= MOST:
        return lines + [(change.sentence(path, update), change.confirmed) for change in named]
    for kind, sentence in _DIFFERED.items():
        if many := sum(change.kind == kind for change in other):
            where = path if update else "report.json"
            lines.append((f"racy: {plural(many, 'case')} {sentence}; {where} names them.", False))
    return lines


def headline(changes: Sequence[Change]) -> str:
    """Return the number of changes of each kind as text."""
    words = {"new": "new failure", "racy": "racy failure", "stale": "stale case"}
    counts = [(sum(change.kind == kind for change in changes), word) for kind, word in words.items()]
    return ", ".join(plural(count, word) for count, word in counts if count)


def new_lines(
    changes: Sequence[Change], seen: Mapping[str, tuple[bool, list[str], list[int]]], messages: Mapping[str, str], entry: int
) -> list[Line]:
    """Return the lines to add to the baseline, for the failures that the baseline does not list yet.

    Failures with the same cause form one entry.

    `messages` has the message of each failed case by node id; `entry` is the number of the first new entry.
    """
    changes = [change for change in changes if change.kind == "new"]
    racy = {change.nodeid for change in changes if change.alone and not change.confirmed}
    others = {name for failed, names, lines in seen.values() if not failed or lines for name in names}
    found: list[Line] = []
    for group, rate in (([c for c in changes if c.nodeid not in racy], None), ([c for c in changes if c.nodeid in racy], ONCE)):
        ours = {change.nodeid for change in group}
        taken = others | {name for nodeid, (_, names, _) in seen.items() if nodeid not in ours for name in names}
        by_cause = _by_cause(group, messages)
        # A name that cases of several causes have would give all of them the reason of one.
        of_causes = Counter(name for _, of in by_cause for name in {n for c in of for n in seen[c.nodeid][1]})
        taken |= {name for name, many in of_causes.items() if many > 1}
        causes = [(cause, {_name(seen[c.nodeid][1], taken) for c in of}) for cause, of in by_cause]
        placed: set[str] = set()
        # The order of the causes does not depend on the order in which workers end.
        for cause, names in sorted(causes, key=lambda found: (-len(found[1]), sorted(found[1]))):
            found += [Line(check, UNEXPLAINED, rate, cause, entry) for check in sorted(names - placed)]
            placed |= names
            entry += 1
    return found


def _by_cause(changes: Sequence[Change], messages: Mapping[str, str]) -> list[tuple[str, list[Change]]]:
    of = [messages.get(change.nodeid, "") for change in changes]
    rows = cast("list[Case]", [{"outcome": "failed", "message": message} for message in of])
    found = [(cause, [changes[i] for i in indexes]) for cause, indexes in groups(rows, least=1, most=None)]
    return [*found, *(("", [change]) for change, message in zip(changes, of, strict=True) if not message.strip())]


def _name(names: list[str], passing: set[str]) -> str:
    """Return the shortest name of a failed case that does not also match a passing case."""
    return next((name for name in names if name not in passing), names[-1])
