"""What a run comes to: a table for the terminal, report.json and junit.xml for machines, and the exit status.

report.json is `{"report": 1, "verdict", "subject", "codex", "profile", "record", "validated", "seconds", "cases": [...]}`; a case
is `{"suite", "module", "case", "outcome", "seconds", "message", "recorded"}` with outcome passed, failed or skipped. A run of the
app-server suite adds "coverage" (see `coverage.Coverage.report`).
Exit statuses: 0 verified, 1 failed, 4 usage, 5 nothing verified.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from harness.plugin.coverage import Coverage

FORMAT = 1
#: Whom a suite judges; a suite of the user's own judges an app-server.
ROLES = {"backend": "backend", "lite_client": "lite-client", "editor_client": "editor-client", "proxy": "proxy"}


@dataclass(slots=True)
class CaseResult:
    """How one case ended; `seconds` is its whole time, `message` the first line of what failed or why it was skipped."""

    suite: str
    module: str
    case: str
    outcome: str = "passed"
    seconds: float = 0.0
    message: str = ""
    recorded: list[str] = field(default_factory=list)


class Verdict:
    """Collects the cases of a run."""

    def __init__(self, subject: str, codex: str, profile: str, record: str, others: Mapping[str, str] | None = None) -> None:
        """`subject` is the app-server; `others` are the subjects of the other roles, by role."""
        self.subject, self.codex, self.profile, self.record = subject, codex, profile, record
        self.others = dict(others or {})
        self.cases: dict[str, CaseResult] = {}
        self.seconds = 0.0
        self.validated = True
        self.coverage: Coverage | None = None

    def add(self, said: dict[str, Any], outcome: str, seconds: float, message: str) -> None:
        """Take in one phase of a case; a failure in any phase is the case's."""
        key = "{suite}/{module}/{case}".format(**said)
        result = self.cases.setdefault(key, CaseResult(said["suite"], said["module"], said["case"]))
        result.seconds = round(result.seconds + seconds, 4)
        result.recorded = said.get("recorded", []) or result.recorded
        if outcome != "passed" and result.outcome != "failed":
            result.outcome, result.message = outcome, message

    def count(self, outcome: str) -> int:
        """How many cases ended so."""
        return sum(case.outcome == outcome for case in self.cases.values())

    @property
    def word(self) -> str:
        """`failed`, `verified` or `nothing verified`."""
        if self.count("failed"):
            return "failed"
        return "verified" if self.count("passed") else "nothing verified"

    def table(self) -> list[str]:
        """Return the verdict table, a line per module and the sums."""
        rows: list[tuple[str, ...]] = [("suite", "module", "cases", "passed", "failed", "skipped", "time")]
        for suite, module in sorted({(case.suite, case.module) for case in self.cases.values()}):
            rows.append((suite, module, *self._sums(lambda c, s=suite, m=module: (c.suite, c.module) == (s, m))))
        rows.append(("all", "", *self._sums(lambda case: True)))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(text.ljust(w) if i < 2 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        ]
        rule = "-" * len(lines[0])
        return [lines[0], rule, *lines[1:-1], rule, lines[-1]]

    def _sums(self, chosen: Any) -> tuple[str, ...]:
        cases = [case for case in self.cases.values() if chosen(case)]
        counts = [sum(case.outcome == outcome for case in cases) for outcome in ("passed", "failed", "skipped")]
        return (str(len(cases)), *(str(count) for count in counts), f"{sum(case.seconds for case in cases):.2f} s")

    @property
    def subjects(self) -> dict[str, str]:
        """The subjects that these cases judged, by role."""
        roles = {ROLES.get(case.suite, "app-server") for case in self.cases.values()} or {"app-server"}
        named = {"app-server": self.subject, **self.others}
        return {role: name for role, name in named.items() if role in roles}

    def sentence(self) -> str:
        """Return the verdict in one line."""
        of = (
            ", ".join(f"{role} {name}" for role, name in self.subjects.items()) + f" (Codex {self.codex}), profile {self.profile}"
        )
        if not self.validated:
            of += ", frames not validated"
        if self.word == "nothing verified":
            return f"NOTHING VERIFIED: no case passed; {of}."
        if self.word == "failed":
            return f"FAILED: {self.count('failed')} of {len(self.cases)} cases; {of}."
        skipped = f", {self.count('skipped')} skipped" if self.count("skipped") else ""
        return f"VERIFIED: {self.count('passed')} cases{skipped}; {of}."

    def write(self, folder: Path) -> Path:
        """Write report.json and junit.xml into `folder`; return the former's path. OSError when that cannot be done."""
        folder.mkdir(parents=True, exist_ok=True)
        report = {
            "report": FORMAT,
            "verdict": self.word,
            "subject": self.subjects,
            "codex": self.codex,
            "profile": self.profile,
            "record": self.record,
            "validated": self.validated,
            "seconds": round(self.seconds, 3),
            "cases": [asdict(case) for case in self.cases.values()],
        }
        if self.coverage is not None:
            report["coverage"] = self.coverage.report()
        path = folder / "report.json"
        path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        ElementTree.ElementTree(self._junit()).write(folder / "junit.xml", encoding="utf-8", xml_declaration=True)
        return path

    def _junit(self) -> ElementTree.Element:
        counts = {"tests": str(len(self.cases)), "failures": str(self.count("failed")), "skipped": str(self.count("skipped"))}
        root = ElementTree.Element("testsuites", counts)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            {
                "name": ", ".join(f"{role} {name}" for role, name in self.subjects.items()),
                **counts,
                "time": f"{self.seconds:.3f}",
            },
        )
        for case in self.cases.values():
            element = ElementTree.SubElement(
                suite,
                "testcase",
                {"classname": f"{case.suite}.{case.module}", "name": case.case, "time": f"{case.seconds:.4f}"},
            )
            if case.outcome != "passed":
                kind = "failure" if case.outcome == "failed" else "skipped"
                # XML has no form for most control characters, and a server's words may hold any.
                text = "".join(c if c >= " " or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in case.message)
                ElementTree.SubElement(element, kind, {"message": text})
        return root
