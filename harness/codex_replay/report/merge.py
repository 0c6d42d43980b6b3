"""Merge several reports into one, for example of the shards of a run, or of several machines, profiles or Codex versions.

A case with the same program under test, Codex version and profile in several reports is one case. The worst verdict of a
case counts, and all verdicts are listed. If the program under test, Codex version or profile differs, the cases are
separate cases with ids of their own. Each report is read as a whole, because reports are small; traces are streamed, and a
case keeps the trace of the verdict that counts. The functions here read folders, but write nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codex_replay.report import data
from codex_replay.report.data import ROLES, Case, Report, Run, RunOutcome, Trace
from codex_replay.report.traces import read_traces

_RECORDS = ("none", "new", "all")
#: The properties that distinguish two cases with one id, in their order in an id.
Variant = tuple[str, str, str]


@dataclass
class Part:
    """One report to merge: its folder, and the index of its first run in the merged report."""

    folder: Path
    report: Report
    first_run: int = 0
    #: The traces that go into the joined report: their keys here and there.
    traces: dict[str, str] = field(default_factory=dict)


def merge(parts: Sequence[Part], command: str) -> Report:
    """Merge several reports into one.

    Each part gets a list of its traces that the merged report needs; the function `traces` uses the list.
    """
    runs: list[Run] = []
    for part in parts:
        part.first_run = len(runs)
        runs += part.report.get("runs") or [_run(part)]
    reports = [part.report for part in parts]
    joined: Report = {
        "report": data.FORMAT,
        "verdict": "",
        "subject": _subjects(reports),
        "codex": ", ".join(_unique(report["codex"] for report in reports)),
        "profile": ", ".join(_unique(report["profile"] for report in reports)),
        "profiles": _unique(name for report in reports for name in report["profiles"]),
        "record": max((report["record"] for report in reports), key=_RECORDS.index),
        "validated": all(report["validated"] for report in reports),
        "command": command,
        "started": min(report["started"] for report in reports),
        "seconds": round(sum(report["seconds"] for report in reports), 3),
        "cases": _cases(parts),
        "runs": runs,
    }
    if any(report.get("interrupted") for report in reports):
        joined["interrupted"] = True
    if chosen := sum(report.get("stopped_early", 0) for report in reports):
        joined["stopped_early"] = chosen
    if steps := list(dict.fromkeys(step for report in reports for step in report.get("next", []))):
        joined["next"] = steps
    if stale := _unique(line for report in reports for line in report.get("stale", [])):
        joined["stale"] = stale
    if racy := _unique(name for report in reports for name in report.get("racy", [])):
        joined["racy"] = racy
    if any("coverage" in report for report in reports):
        joined["coverage"] = _coverage([report["coverage"] for report in reports if "coverage" in report])
    if found := [report["proxy_fields"] for report in reports if "proxy_fields" in report]:
        joined["proxy_fields"] = _proxy_fields(found)
    for report in reversed(reports):
        if "strength" in report:
            joined["strength"] = report["strength"]
        if "drift" in report:
            joined["drift"] = report["drift"]
    bad = joined.get("interrupted") or joined.get("stale")
    joined["verdict"] = "failed" if bad else data.verdict(joined["cases"])
    return joined


def traces(parts: Iterable[Part]) -> Iterator[Trace]:
    """Yield the traces of a merged report one by one; raises `BadReport` for a broken line of traces. Call `merge` first."""
    for part in parts:
        for trace in read_traces(part.folder):
            name = part.traces.get(trace["case"])
            if name is not None:
                trace["case"] = name
                yield trace


def _run(part: Part) -> Run:
    report = part.report
    return {
        "name": part.folder.name or str(part.folder),
        "command": report["command"],
        "started": report["started"],
        "seconds": report["seconds"],
        "verdict": report["verdict"],
        "subject": report["subject"],
        "codex": report["codex"],
        "profile": report["profile"],
        "cases": len(report["cases"]),
    }


def _variant(report: Report, case: Case) -> Variant:
    role = ROLES.get(case["suite"], "app-server")
    runs = report.get("runs", [])
    run = runs[case["run"]] if "run" in case and case["run"] < len(runs) else None
    named = (run or report)["subject"]
    # A case in a user's own folder has no role: then all subjects together distinguish it.
    subject = named.get(role) or ", ".join(named.values())
    # The app-server behind a subject of another role distinguishes its cases too.
    return subject, (run or report)["codex"], (run or report)["profile"]


def _cases(parts: Sequence[Part]) -> list[Case]:
    found: dict[str, dict[Variant, list[tuple[Part, Case]]]] = {}
    for part in parts:
        for case in part.report["cases"]:
            found.setdefault(_name(case), {}).setdefault(_variant(part.report, case), []).append((part, case))
    joined = []
    for name, variants in found.items():
        for variant, same in variants.items():
            joined.append(_join(name + _difference(variant, list(variants)), same))
    return joined


def _name(case: Case) -> str:
    """Return the id that a case had before its report was merged."""
    plain = "/".join((case["suite"], case["module"], case["case"]))
    found = re.fullmatch(rf"({re.escape(plain)}(?:#\d+)?) \(.*\)", case["id"], re.DOTALL)
    return found[1] if found else case["id"]


def _difference(one: Variant, all_of: list[Variant]) -> str:
    """Return the parts that make an id unique: the program under test, the Codex version and the profile, if they differ between
    the runs.
    """
    if len(all_of) == 1:
        return ""
    words = (one[0], f"Codex {one[1]}", f"profile {one[2]}")
    return f" ({', '.join(words[i] for i in range(3) if len({variant[i] for variant in all_of}) > 1)})"


def _join(name: str, same: list[tuple[Part, Case]]) -> Case:
    report: list[RunOutcome] = [one for part, case in same for one in _outcomes(part, case)]
    part, worst = min(same, key=lambda pair: data.OUTCOMES.index(pair[1]["outcome"]))
    joined: Case = {**worst, "id": name, "run": part.first_run + worst.get("run", 0)}
    joined["recorded"] = _unique(path for _, case in same for path in case["recorded"])
    joined.pop("told", None)
    if len(report) > 1:
        joined["told"] = report
    if worst["story"] is not None:
        joined["story"] = part.traces[worst["story"]] = name
    return joined


def _outcomes(part: Part, case: Case) -> list[RunOutcome]:
    before = case.get("told") or [
        {"run": case.get("run", 0), "outcome": case["outcome"], "seconds": case["seconds"], "message": case["message"]}
    ]
    return [{**one, "run": one["run"] + part.first_run} for one in before]


def _subjects(reports: list[Report]) -> dict[str, str]:
    roles = _unique(role for report in reports for role in report["subject"])
    return {
        role: ", ".join(_unique(report["subject"][role] for report in reports if role in report["subject"])) for role in roles
    }


def _proxy_fields(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the fields that one proxy sent in several runs: add the counts; a field is valid only if it was valid in every run.

    If the runs tested several proxies, only the fields of the first proxy are kept, because each report before the merge still
    has the fields of its own proxy.
    """
    profiles: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for name, rows in (
        (name, rows) for each in found if each["proxy"] == found[0]["proxy"] for name, rows in each["profiles"].items()
    ):
        mine = profiles.setdefault(name, {})
        for row in rows:
            old = mine.setdefault((row["method"], row["field"]), dict[str, Any].fromkeys(row))
            for key, value in row.items():
                old[key] = value if old.get(key) is None else old[key] if value is None else _both(old[key], value)
    return {**found[0], "profiles": {name: list(mine.values()) for name, mine in sorted(profiles.items())}}


def _both(one: Any, other: Any) -> Any:
    """Merge two values of a row: two verdicts, two counts, or two equal names."""
    if isinstance(one, bool):
        return one and other
    return one + other if isinstance(one, int) else one


def _coverage(all_of: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the union of the coverage of all runs.

    If an item was refused in one run and has a result in another run, the result counts.
    """
    joined: dict[str, Any] = {}
    for one in all_of:
        for sort, names in one.items():
            known = joined.setdefault(sort, {})
            for name, sight in names.items():
                if name not in known or _shown(sight) > _shown(known[name]):
                    known[name] = sight
    return joined


def _shown(sight: Any) -> int:
    return 2 * bool(sight.get("case")) - bool(sight.get("refused")) if isinstance(sight, dict) else -1


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
