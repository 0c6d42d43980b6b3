"""Collect the result of a run case by case, for the table in the terminal, the data of the report, and the exit status.

The exit statuses are: 0 verified, 1 failed, 4 usage error, 5 nothing verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from codex_replay.core.text.numbers import plural
from codex_replay.core.text.truncate import shortened
from codex_replay.report import data
from codex_replay.report.data import ROLES, Alone, Case, Outcome, Report
from codex_replay.report.group_failures import cause as cause_of
from codex_replay.report.group_failures import groups

if TYPE_CHECKING:
    from codex_replay.plugin.base.naming import CaseName
    from codex_replay.plugin.reporting.case_result import CaseResult
    from codex_replay.plugin.reporting.coverage import Coverage

#: How many characters of a message and of a whole failure are kept.
LONGEST_MESSAGE, LONGEST_DETAILS = 1000, 1 << 16


class Verdict:
    """Records the results of all cases of a run, and computes the verdict."""

    def __init__(self, subject: str, codex: str, profile: str, record: str, others: Mapping[str, str] | None = None) -> None:
        """`subject` is the name of the app-server; `others` has the names of the other programs under test, by role."""
        self.subject, self.codex, self.profile, self.record = subject, codex, profile, record
        self.others = dict(others or {})
        self.cases: dict[str, Case] = {}
        self.seconds = 0.0
        self.validated = True
        self.interrupted = False
        self.stopped_early = False
        self.planned = 0  # how many cases were chosen
        self.stale: list[str] = []
        self.racy: list[str] = []
        self.passed_again: set[str] = set()  # the node ids of new failures that passed when rerun
        self.listed: tuple[str, int] = ("", 0)  # the baseline file that the run wrote, and how many failed cases it lists
        self.unclaimed = 0  # how many cases were skipped because they need an undeclared capability
        self.coverage: Coverage | None = None
        self._of_node: dict[str, str] = {}
        self._ended: set[str] = set()
        self._roles: set[str] = set()

    def add(
        self, nodeid: str, result: CaseResult, outcome: Outcome, seconds: float, message: str = "", details: str = ""
    ) -> None:
        """Record the result of one phase of a case. The outcome of a case is the worst outcome of its phases."""
        case = self._case(nodeid, result.name)
        self._roles.add(result.role or ROLES.get(result.name.suite, "app-server"))
        case["seconds"] = round(case["seconds"] + seconds, 4)
        case["recorded"] = list(result.recorded) or case["recorded"]
        case["title"] = result.title or case["title"]
        case["spec"] = result.spec or case["spec"]
        worst = data.worst([case["outcome"], outcome])
        if outcome != "passed" and (worst != case["outcome"] or not case["message"]):
            case["outcome"] = worst
            case["message"] = shortened(message, LONGEST_MESSAGE)
            case["details"] = shortened(details, LONGEST_DETAILS)
            case["expected"], case["actual"] = result.compared or (None, None)

    def end(self, nodeid: str) -> None:
        """Record that a case has ended: its last phase has a result."""
        self._ended.add(nodeid)

    def run_again(self, nodeid: str, alone: list[Alone]) -> None:
        """Record the results of a case that was rerun."""
        if (case := self.case_of(nodeid)) is not None:
            case["alone"] = alone

    def judge_again(self, nodeid: str, outcome: Outcome, why: str, racy: str | None) -> None:
        """Change the outcome of a case after its rerun.

        `racy` is the name of the check if the case was racy and the baseline does not mark the check as racy.
        """
        if (case := self.case_of(nodeid)) is not None:
            case["outcome"] = outcome
            case["message"] = shortened(f"{why}\n{case['message']}".rstrip(), LONGEST_MESSAGE)
        if racy is not None:
            self.racy.append(racy)

    def interrupt(self) -> None:
        """Remove the cases that did not end, because such a case might still have failed."""
        self.interrupted = True
        for nodeid in [nodeid for nodeid in self._of_node if nodeid not in self._ended]:
            if self.cases[self._of_node[nodeid]]["outcome"] == "passed":
                del self.cases[self._of_node.pop(nodeid)]

    def case_of(self, nodeid: str) -> Case | None:
        """Return the case with the given node id, or None if no phase of the case was recorded."""
        key = self._of_node.get(nodeid)
        return self.cases[key] if key is not None else None

    def _case(self, nodeid: str, case: CaseName) -> Case:
        key = self._of_node.get(nodeid)
        if key is None:
            key = name = str(case)
            for number in range(2, len(self.cases) + 2):  # two classes of one module may have methods with one name
                if key not in self.cases:
                    break
                key = f"{name}#{number}"
            self._of_node[nodeid] = key
            self.cases[key] = {
                "id": key,
                "suite": case.suite,
                "module": case.module,
                "case": case.case,
                "nodeid": nodeid,
                "title": "",
                "spec": None,
                "outcome": "passed",
                "seconds": 0.0,
                "message": "",
                "details": "",
                "expected": None,
                "actual": None,
                "recorded": [],
                "again": "",
                "story": None,
            }
        return self.cases[key]

    def count(self, outcome: Outcome) -> int:
        """Return the number of cases with the given outcome."""
        return sum(case["outcome"] == outcome for case in self.cases.values())

    @property
    def word(self) -> str:
        """The verdict as a word: `failed`, `verified` or `nothing verified`."""
        return "failed" if self.stale or self.interrupted else data.verdict(self.cases.values())

    def table(self) -> list[str]:
        """Return the verdict table: one line for each module, and the totals."""
        outcomes: list[Outcome] = ["passed", "failed", "skipped"]
        if self.count("known"):
            outcomes.insert(2, "known")
        modules: dict[tuple[str, str], list[Case]] = {}
        for case in self.cases.values():
            modules.setdefault((case["suite"], case["module"]), []).append(case)
        rows: list[tuple[str, ...]] = [("suite", "module", "cases", *outcomes, "time")]
        rows += [(suite, module, *_sums(modules[suite, module], outcomes)) for suite, module in sorted(modules)]
        rows.append(("all", "", *_sums(list(self.cases.values()), outcomes)))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(_cell(text, widths[i], i) for i, text in enumerate(row)) for row in rows]
        rule = "-" * len(lines[0])
        return [lines[0], rule, *lines[1:-1], rule, lines[-1]]

    @property
    def subjects(self) -> dict[str, str]:
        """The names of the programs under test in all cases of the run, by role."""
        roles = self._roles or {"app-server"}
        named = {"app-server": self.subject, **self.others}
        return {role: name for role, name in named.items() if role in roles}

    def sentence(self) -> str:
        """Return the verdict of the run in one line."""
        of = (
            ", ".join(f"{role} {name}" for role, name in self.subjects.items()) + f" (Codex {self.codex}), profile {self.profile}"
        )
        if not self.validated:
            of += ", frames not validated"
        if self.interrupted:
            failed = f", {self.count('failed')} failed" if self.count("failed") else ""
            return f"INTERRUPTED after {plural(len(self.cases), 'case')}{failed}; the others did not run; {of}."
        if self.stopped_early:
            ran = plural(len(self.cases), "case")
            found = groups(list(self.cases.values()), least=1, most=1)
            cause = f": {found[0][0].rstrip('.')}" if found else ""
            causes = Counter(cause_of(case["message"]) for case in self.cases.values() if case["outcome"] == "failed")
            who = "They all" if len(causes) == 1 else f"{max(causes.values(), default=0)} of them"
            return f"FAILED: stopped early after {ran} of {self.planned}. {who} failed for one cause{cause}. Subject: {of}."
        if self.count("failed"):
            file, many = self.listed
            listed = f", all listed in {file} now" if file and many == self.count("failed") else ""
            return f"FAILED: {self.count('failed')} of {plural(len(self.cases), 'case')}{listed}{self._skipped()}; {of}."
        if self.stale:
            return f"FAILED: {plural(len(self.stale), 'stale check')} of the baseline; {of}."
        if self.word == "nothing verified":
            known = self.count("known")
            still = "1 case still fails" if known == 1 else f"{known} cases still fail"
            listed = f"; {still}, as listed in the baseline" if known else ""
            return f"NOTHING VERIFIED: no case passed{listed}{self._skipped()}; {of}."
        more = [f", {plural(self.count('known'), 'known failure')}"] if self.count("known") else []
        more += [f", {len(self.racy)} of them racy and not listed"] if self.racy else []
        passed, cases = self.count("passed"), plural(len(self.cases), "case")
        verified = cases if passed == len(self.cases) else f"{passed} of {cases}"
        return f"VERIFIED: {verified}{''.join(more)}{self._skipped()}; {of}."

    def _skipped(self) -> str:
        why = f" ({self.unclaimed} need{'s' * (self.unclaimed == 1)} an undeclared capability)" if self.unclaimed else ""
        return f", {self.count('skipped')} skipped{why}" if self.count("skipped") else ""

    def report(self, command: str, started: str) -> Report:
        """Return the data of the report, not yet redacted."""
        report: Report = {
            "report": data.FORMAT,
            "verdict": self.word,
            "subject": self.subjects,
            "codex": self.codex,
            "profile": self.profile,
            "profiles": [self.profile],
            "record": self.record,
            "validated": self.validated,
            "command": command,
            "started": started,
            "seconds": round(self.seconds, 3),
            "cases": list(self.cases.values()),
        }
        if self.interrupted:
            report["interrupted"] = True
        if self.stopped_early:
            report["stopped_early"] = self.planned
        if self.stale:
            report["stale"] = list(self.stale)
        if self.racy:
            report["racy"] = list(self.racy)
        if self.coverage is not None:
            report["coverage"] = self.coverage.report()
        return report


def _sums(cases: list[Case], outcomes: list[Outcome]) -> tuple[str, ...]:
    counts = [sum(case["outcome"] == outcome for case in cases) for outcome in outcomes]
    return (str(len(cases)), *(str(count) for count in counts), f"{sum(case['seconds'] for case in cases):.2f} s")


def _cell(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column < 2 else text.rjust(width)
