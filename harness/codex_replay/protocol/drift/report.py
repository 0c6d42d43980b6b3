"""Convert a drift to the JSON of `codex-replay drift --json`; all other forms of the report are made from this JSON.

``{"drift":1, "from", "to", "counts", "findings":[...], "uncompared":[...], "cassettes": null | {...}}``. docs/drift.md
explains each key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from codex_replay.protocol.drift.experimental import CAPABILITY
from codex_replay.protocol.drift.findings import Drift, DriftFinding

#: The version of the form; a reader refuses what it does not know.
FORMAT = 1


def as_json(drift: Drift, used: Mapping[str, Sequence[int]] | None = None, where: str = "") -> dict[str, Any]:
    """Return `drift` as JSON.

    `used` has the cases in the folder `where` that were compared, each with the numbers of the findings that affect the
    case.
    """
    cases: dict[int, list[str]] = {}
    for case, numbers in (used or {}).items():
        for number in numbers:
            cases.setdefault(number, []).append(case)
    report: dict[str, Any] = {
        "drift": FORMAT,
        "from": drift.old,
        "to": drift.new,
        "counts": {
            **drift.counts,
            "breaking": len(drift.of("breaking")),
            "additive": len(drift.of("additive")),
            **{key: sum(_mark(finding) == key for finding in drift.of("breaking")) for key in ("behind", "without", "with")},
        },
        "findings": [
            _drift_finding(finding)
            | ({mark: CAPABILITY} if (mark := _mark(finding)) else {})
            | ({} if used is None or not finding.breaking else {"cases": cases.get(number, [])})
            for number, finding in enumerate(drift.findings)
        ],
        "uncompared": list(drift.uncompared),
        "cassettes": None,
    }
    if used is not None:
        hit = {case: list(numbers) for case, numbers in used.items() if numbers}
        report["cassettes"] = {"folder": where, "cases": len(used), "hit": len(hit), "hits": hit}
    return report


def _mark(finding: DriftFinding) -> str:
    """Return the word for the clients that notice a finding; "" if all clients notice it."""
    return "behind" if finding.behind else "" if finding.clients == "all" else finding.clients


def _drift_finding(finding: DriftFinding) -> dict[str, Any]:
    change, rule, first = finding.change, finding.rule, finding.places[0]
    return {
        "class": rule.cls,
        "rule": rule.id,
        "kind": first.kind,
        "method": first.method,
        "path": first.shown,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "sends": rule.sender,
        "reads": "server" if rule.sender == "client" else "client",
        "hits": finding.hits,
        "sentence": finding.sentence,
        "type": change.owner if change.owner != first.method else "",
        "places": [{"kind": place.kind, "method": place.method, "path": place.shown} for place in finding.places],
    }


def encode(value: dict[str, Any]) -> str:
    """Return JSON text with one finding per line, so that `diff` shows changed findings. Equal reports give equal texts."""
    lines = []
    for key, each in value.items():
        if isinstance(each, list) and each:
            inner = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in each)
            lines.append(f" {json.dumps(key)}: [\n{inner}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
