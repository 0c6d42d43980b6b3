"""Store the result and the trace of each phase (set-up, call, teardown) of a case, in the process that runs the case.

A trace is written to a file in the spool folder and not into pytest's reports, so that a worker that dies loses only one
trace. An error while a trace is collected does not change the verdict: the report then contains a sentence instead of the
trace.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.error_text import describe
from codex_replay.plugin.reporting.case_result import CaseResult
from codex_replay.plugin.reporting.spec import spec_of, title_of
from codex_replay.plugin.reporting.trace import TRACE_SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from codex_replay.plugin.base.naming import CaseName
    from codex_replay.plugin.reporting.session import Session

#: How many characters of each side of a comparison are kept.
LONGEST_SIDE = 1 << 14


def phase_result(
    session: Session,
    item: Any,
    call: pytest.CallInfo[None],
    report: pytest.TestReport,
    name: CaseName,
    *,
    role: str | None,
    recorded: Iterable[str],
    shown: Iterable[str],
) -> CaseResult:
    """Return the result of one phase of a case; the keyword arguments are fields of `CaseResult`."""
    title, spec, compared = "", None, None
    if report.when == "setup":
        title, spec = title_of(item, name.case), spec_of(item, str(name))
    # The last comparison that failed is the reason of the failure only if the failure names it: a case may have caught one.
    error = call.excinfo.value if report.failed and call.excinfo is not None else None
    if session.compared is not None and type(error) is AssertionError and " == " in describe(error, str):
        clean = session.trace_collector().clean
        expected, actual = (clean(_side(value))[:LONGEST_SIDE] for value in session.compared)
        compared = (expected, actual)
    return CaseResult(name, role, title, spec, tuple(recorded), tuple(shown), compared)


def keep_trace(session: Session, item: Any, report: pytest.TestReport) -> None:
    """Write the trace of a passed or failed case to the spool folder, unless the run writes no report."""
    source = item.stash.get(TRACE_SOURCE, None)
    if source is None or not session.tells or not (report.failed or (report.when == "call" and report.passed)):
        return
    try:
        trace = source(session.trace_collector(), report.passed)
        if trace is not None:
            session.need_spool().put(item.nodeid, trace)
    except Exception as error:  # whatever a broken subject made of it: the verdict is
        report.sections.append(("No trace", f"The trace cannot be shown: {type(error).__name__}: {error}"))


def _side(value: object) -> str:
    """Return the expected or the actual value of a comparison as text: as JSON if possible, so that the report can align both
    values.
    """
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=describe)
    except (TypeError, ValueError, RecursionError):
        return describe(value)
