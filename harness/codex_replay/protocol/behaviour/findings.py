"""Make the result of `drift --behaviour`: the changes between two Codex versions, over all cases, as one JSON value.

All cases run twice on the first version. Differences between two runs of a case on the same version are noise: they are
counted, but not reported for the case. If two runs of one case on the same version have frames in different orders, a
different order of these frames is noise in every case, because few runs show a race. A case that has fewer than three
comparable runs is listed under `not_compared`, with the reason. A case may declare that the real server has more than one
correct behaviour. Findings that only cases with several correct behaviours show are listed separately (`racy`).

The changes of all cases are merged: changes with the same rule, method and path become one finding. Equal changes of one
member in several methods also become one finding. If one version sends no events of a family (`codex/event/*`), the changes
of all events of the family become one finding.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codex_replay.core.text.truncate import excerpts, truncate
from codex_replay.protocol.behaviour.case import RULES, Change, Kept, changes, labels
from codex_replay.protocol.behaviour.run_form import blank
from codex_replay.protocol.behaviour.values import ABSENT

FORMAT = 1
#: The same change of the same member in so many methods is one finding; so is a family of so many removed (or new) kinds.
TOGETHER = 3
EXAMPLES = 3
#: Characters of a value that is shown; of longer texts what is around the first difference.
SHOWN = 240
_RANK = {rule: number for number, rule in enumerate(RULES)}
_DIGITS = re.compile(r"\d+")
#: What the first version keeps in places where it is known to be volatile is elsewhere in others.
_TIME = re.compile(r"\b20\d\d-\d\d-\d\d(?:T[\d:.-]+Z?)?")


@dataclass
class BehaviourFinding:
    """One change: its `rule`, its methods or events, its path, and the cases that show it, with their values."""

    rule: str
    labels: list[str]
    path: str
    note: str
    seen: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    family: str = ""

    @property
    def cases(self) -> list[str]:
        """The cases that show the change."""
        return sorted({case for cases in self.seen.values() for case in cases})

    def value(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the finding as a JSON value. Cases are indexes into `names`, and the values that most cases show come first."""
        most = sorted(self.seen, key=lambda pair: (-len(self.seen[pair]), pair))
        found: dict[str, Any] = {"rule": self.rule, "what": RULES[self.rule]}
        found["method"] = self.family or (self.labels[0] if len(self.labels) == 1 else f"{len(self.labels)} methods")
        if len(self.labels) > 1:
            found["methods"] = sorted(self.labels)
        found["path"] = self.path
        if self.note:
            found["note"] = self.note
        found["examples"] = [
            {"before": before, "after": after, "case": min(self.seen[before, after])} for before, after in most[:EXAMPLES]
        ]
        return {**found, "variants": len(most), "count": len(self.cases), "cases": [names.index(case) for case in self.cases]}


def outcome(
    before: Mapping[str, Kept],
    control: Mapping[str, Kept],
    after: Mapping[str, Kept],
    versions: tuple[str, str],
    step: Callable[[], object] = lambda: None,
    again: Mapping[str, Kept] | None = None,
    compare: Callable[[Kept, Kept], list[Change]] = changes,
    *,
    chosen: str = "",
) -> dict[str, Any]:
    """Return the changes between the two versions as one JSON value.

    `before` and `control` are two runs on the first version, and `after` is a run on the second version; each has the
    traffic by case.

    The function `step` is called after each case, to show the progress. `again` is a second run of some cases on the second
    version; a change that `again` does not show is noise, too. `compare` is the function that compares two runs of a case.
    `chosen` is the expression that selected the cases, if only some cases were run; the result contains the expression.
    """
    names = sorted({*before, *control, *after})
    not_compared = {name: why for name in names if (why := _obstacle(name, before, control, after, versions))}
    noise: dict[str, set[tuple[str, str, str]]] = {}
    raw: dict[str, list[Change]] = {}
    for name in names:
        if name not in not_compared:
            noise[name] = {change.key for change in compare(before[name], control[name])}
            raw[name] = compare(before[name], after[name])
            second = (again or {}).get(name)
            if second is not None and second.early == after[name].early and second.servers:
                confirmed = {change.key for change in compare(before[name], second)}
                noise[name] |= {change.key for change in raw[name] if change.key not in confirmed}
        step()
    races = {key for keys in noise.values() for key in keys if key[0] == "order"}
    found: dict[str, list[Change]] = {}
    muted: Counter[tuple[str, str, str]] = Counter()
    for name, all_changes in raw.items():
        loud = [change for change in all_changes if change.key not in noise[name] and change.key not in races]
        if after[name].outcome == "failed" and before[name].outcome == control[name].outcome == "passed" and not all_changes:
            loud = [Change("assertion", name, "", "passed", after[name].sentence)]
        found[name] = loud
        muted.update(noise[name])
    findings = _findings(found, before, after)
    sure = [finding for finding in findings if not all(before[case].racy or after[case].racy for case in finding.cases)]
    racy = [finding for finding in findings if finding not in sure]
    many = [finding for finding in sure if len(finding.cases) > 1]
    single = [finding for finding in sure if len(finding.cases) == 1]
    ends = [_end(after[name], versions[1]) for name in found if after[name].early]
    ends += [_end(before[name], versions[0]) for name in found if before[name].early]
    changed = [name for name, loud in found.items() if loud]
    return {
        "behaviour": FORMAT,
        "from": versions[0],
        "to": versions[1],
        **({"chosen": chosen} if chosen else {}),
        "totals": {
            "cases": len(names),
            "compared": len(found),
            "changed": len(changed),
            "unchanged": len(found) - len(changed),
            "not_compared": len(not_compared),
            "ended_early": len(ends),
            "findings": len(sure),
            "single_case": len(single),
            "racy": len(racy),
            "noise": len(muted),
        },
        "findings": [finding.value(names) for finding in many],
        "single": [finding.value(names) for finding in single],
        "racy": [finding.value(names) for finding in racy],
        "ended_early": ends,
        "not_compared": [{"case": name, "why": why} for name, why in not_compared.items()],
        "noise": [
            {"rule": rule, "method": label, "path": path, "cases": count}
            for (rule, label, path), count in sorted(muted.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
        "cases": names,
    }


def doubtful(found: Mapping[str, Any]) -> list[str]:
    """Return the cases that need a second run on the second version: racy cases, and cases with a finding that no other case
    shows.
    """
    alone = {finding["cases"][0] for finding in found["single"]}
    return [found["cases"][at] for at in sorted(alone | {at for finding in found["racy"] for at in finding["cases"]})]


def _end(kept: Kept, version: str) -> dict[str, str]:
    return {"case": kept.case, "version": version, "ends_early_at": shown(kept.end())}


def _obstacle(
    name: str, before: Mapping[str, Kept], control: Mapping[str, Kept], after: Mapping[str, Kept], versions: tuple[str, str]
) -> str:
    """Return the reason why a case cannot be compared, or ""."""
    runs = ((before, versions[0]), (control, f"{versions[0]} (control)"), (after, versions[1]))
    for run, version in runs:
        kept = run.get(name)
        if kept is None:
            return f"{version} has no recording of this case"
        if kept.outcome in ("skipped", "lost"):
            return f"{kept.outcome} on {version}: {kept.sentence}"
        if not any(server.said for server in kept.servers):
            return f"the server of {version} sent no message" + (f": {kept.sentence}" if kept.sentence else "")
    one, two = before[name], control[name]
    if one.early != two.early or (one.early and one.client != two.client):
        ended = one if one.early else two
        return f"the two runs of {versions[0]} ended differently: {ended.end()}"
    return ""


# ------------------------------------------------------------------ gathering


def _findings(found: Mapping[str, list[Change]], before: Mapping[str, Kept], after: Mapping[str, Kept]) -> list[BehaviourFinding]:
    single: dict[tuple[str, str, str, str], BehaviourFinding] = {}
    for case, loud in found.items():
        for change in loud:
            label = change.label if change.rule != "assertion" else "the case itself"
            key = (change.rule, label, change.path, change.note)
            finding = single.setdefault(key, BehaviourFinding(change.rule, [label], change.path, change.note))
            finding.seen.setdefault(examples(change.before, change.after), set()).add(case)
    shown_before = {label for case in found for label in labels(before[case])}
    shown_after = {label for case in found for label in labels(after[case])}
    rest = _families(list(single.values()), shown_before, shown_after)
    rest = _together(rest)
    return sorted(rest, key=lambda each: (_RANK[each.rule], -len(each.cases), each.labels, each.path, each.note))


def _families(findings: list[BehaviourFinding], before: set[str], after: set[str]) -> list[BehaviourFinding]:
    """If the other version sends no event of a family (`codex/event/`), merge the findings about all events of this family into
    one finding.
    """
    for rule, here, there in (("vanished", before, after), ("appeared", after, before)):
        groups: dict[str, list[BehaviourFinding]] = {}
        for finding in findings:
            head = finding.labels[0].partition(" ")[0].rpartition("/")[0]
            if finding.rule == rule and head and not any(label.startswith(f"{head}/") for label in there):
                groups.setdefault(head, []).append(finding)
        for head, group in groups.items():
            if len(group) >= TOGETHER:
                kinds = [finding.labels[0] for finding in group]
                total = sum(label.startswith(f"{head}/") for label in here)
                merged = _merged(group, BehaviourFinding(rule, kinds, "", f"{total} kinds, all gone", family=f"{head}/*"))
                if rule == "appeared":
                    merged.note = f"{total} kinds, all new"
                findings = [*(finding for finding in findings if finding not in group), merged]
    return findings


def _together(findings: list[BehaviourFinding]) -> list[BehaviourFinding]:
    """Merge findings about equal changes of one member in several methods into one finding."""
    groups: dict[tuple[str, str, str, str], list[BehaviourFinding]] = {}
    for finding in findings:
        if finding.rule in ("value", "new", "gone", "identity", "error text") and finding.path:
            first = max(finding.seen, key=lambda pair: (len(finding.seen[pair]), pair))
            member = re.split(r"[.\[\]]", finding.path)[-1] or finding.path
            # Methods of the two seams stay apart: requests to the model and messages to the client are different things.
            seam = "http" if finding.labels[0].startswith("upstream ") else "rpc"
            key = (finding.rule, seam, member, f"{_shape(first[0])} {_shape(first[1])}")
            groups.setdefault(key, []).append(finding)
    for (_, _, member, _), group in groups.items():
        if len({finding.labels[0] for finding in group}) >= TOGETHER:
            names = sorted({finding.labels[0] for finding in group})
            merged = _merged(group, BehaviourFinding(group[0].rule, names, f"$..{member}", ""))
            findings = [*(finding for finding in findings if finding not in group), merged]
    return findings


def _merged(group: Iterable[BehaviourFinding], into: BehaviourFinding) -> BehaviourFinding:
    for finding in group:
        for pair, cases in finding.seen.items():
            into.seen.setdefault(pair, set()).update(cases)
    return into


def _shape(text: str) -> str:
    """Return a displayed value with its numbers replaced, because two changes that differ only in numbers count as equal."""
    if text.startswith(("{", "[")) or len(text) > 60:
        return text[:1]
    return _DIGITS.sub("0", text)


# ------------------------------------------------------------------ showing


def examples(before: Any, after: Any) -> tuple[str, str]:
    """Return two values for display; long values are cut to the part around their first difference."""
    one, other = (_plain(value) for value in (before, after))
    if (len(one) <= SHOWN and len(other) <= SHOWN) or before is ABSENT or after is ABSENT:
        return truncate(one, SHOWN), truncate(other, SHOWN)
    one, other = excerpts((one, other), SHOWN, SHOWN // 3)
    return one, other


def shown(text: str) -> str:
    """Return a text for display: on one line, truncated, and without the numbers in placeholder names such as `item-1`."""
    plain = re.sub(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "<uuid>", text)
    plain = re.sub(r"(?<![\w.<>])/(?:tmp|var|private|home|root|Users)/[^\s'\"`,)]*", "<path>", plain)
    return truncate(_TIME.sub("<date>", plain).replace("\n", " "), SHOWN)


def _plain(value: Any) -> str:
    return "(absent)" if value is ABSENT else _TIME.sub("<date>", blank(json.dumps(value, ensure_ascii=False)))
