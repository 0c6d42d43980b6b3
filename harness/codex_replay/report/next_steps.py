"""Choose the next steps after a failed run: advice from the plugin, the most frequent cause, and the command that reruns one of
its cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from codex_replay.core.text.numbers import plural
from codex_replay.core.text.truncate import truncate
from codex_replay.report.data import Report
from codex_replay.report.group_failures import FEW, LONGEST, groups

#: How the message of a case begins that passes, although the baseline lists it as a known failure.
STALE = "Stale: "


def next_steps(
    report: Report, advice: Iterable[str] = (), listed: bool = False, racy: Collection[str] = frozenset()
) -> list[str]:
    """Return the next steps for the user, the most useful first; return an empty list for a run without failed cases.

    `advice` are sentences from the plugin. If `listed` is True, the baseline now lists the failures (`--update-baseline`),
    and no step says to fix them. `racy` are the node ids of the failed cases that passed when they were rerun: other failures
    are more useful to fix first.
    """
    cases = report["cases"]
    steps = list(advice)
    if stale := report.get("stale"):
        names = ", ".join(map(repr, stale[:FEW])) + (f" and {len(stale) - FEW} more" if len(stale) > FEW else "")
        steps.append(f"Remove from the baseline what passes now, or add --update-baseline: {names}.")
    failures = [case for case in cases if not case["message"].startswith(STALE)]
    certain = [case for case in failures if case["nodeid"] not in racy]
    without = ""
    if len(certain) < len(failures) and any(case["outcome"] == "failed" for case in certain):
        without = f", without {len(failures) - len(certain)} that passed when rerun"
        failures = certain
    found = [] if listed else groups(failures, least=1, most=1)
    if not found:
        return steps
    [(text, indexes)] = found
    failed = sum(case["outcome"] == "failed" for case in failures)
    if len(indexes) == len(cases) > 1:
        cause = "one cause of every failure"
    elif len(indexes) == 1 < failed:
        cause = f"first of {failed} failed cases, which have different causes"
    else:
        cause = f"most common cause ({len(indexes)} of {plural(failed, 'failed case')}{without})"
    steps.append(f"Fix the {cause}: {truncate(text, LONGEST)}")
    if again := failures[indexes[0]]["again"]:
        steps.append(f"Rerun one of these cases: {again}")
    if report.get("stopped_early"):
        steps.append("Run every case despite the failures: add --no-early-stop.")
    return steps
