"""Choose the next steps after a failed run: advice from the plugin, the most frequent cause, and the command that reruns one of
its cases.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_replay.core.text.plural import plural
from codex_replay.core.text.truncate import truncate
from codex_replay.report.data import Report
from codex_replay.report.group_failures import LONGEST, groups


def next_steps(report: Report, advice: Iterable[str] = ()) -> list[str]:
    """Return the steps, the most useful first; an empty list for a run without failed cases.

    `advice` has sentences from the pytest plugin.
    """
    cases = report["cases"]
    found = groups(cases, least=1, most=1)
    if not found:
        return list(advice)
    [(text, indexes)] = found
    failed = sum(case["outcome"] == "failed" for case in cases)
    all_fail = len(indexes) == len(cases) > 1
    cause = "one cause of every failure" if all_fail else f"most common cause ({len(indexes)} of {plural(failed, 'failed case')})"
    steps = [*advice, f"Fix the {cause}: {truncate(text, LONGEST)}"]
    if again := cases[indexes[0]]["again"]:
        steps.append(f"Rerun one of these cases: {again}")
    if report.get("stopped_early"):
        steps.append("Run every case despite the failures: add --no-early-stop.")
    return steps
