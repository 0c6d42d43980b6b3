"""Write a report as Markdown, short enough for a pull request: the verdict, sums for each suite and document, and the failed
cases.

The most important parts of the report come first. A part that does not fit completely is omitted, and the number of omitted
parts is written. All texts of a case are escaped, so that they cannot become markup, mentions or links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from codex_replay.core.text.truncate import shortened
from codex_replay.core.text.visible import visible
from codex_replay.report.data import Case, Report, Sums, by_spec, by_suite, sums
from codex_replay.report.group_failures import sentences, skip_reasons

#: GitHub refuses comments of more than 65,536 characters.
MOST = 60_000
#: So many sorts of things to see are named: methods, notifications and events.
SORTS = 5
#: The characters that are markup at their place; everywhere else, they are readable without a backslash.
_ACTIVE = re.compile(
    r"""[\\`*|~]                                   # anywhere
    | (?<![^\W_])_ | _(?![^\W_])                    # not inside a word
    | ^\[ | \[(?=\^) | \](?=[(\[:])                 # a check box, a footnote; a link, or the definition of one
    | <(?=[A-Za-z/!?]) | &(?=\#?\w)                 # a tag, an entity
    | @(?=\w) | \#(?=\w) | :(?=//) | :(?=[\w+-]+:) # a mention, an issue, an address, an emoji
    | ^[\#>+-] | ^\d+[.)](?=\s|$)                    # a heading, a quotation, a list
    """,
    re.VERBOSE,
)
_WORDS = {"verified": "VERIFIED", "failed": "FAILED", "nothing verified": "NOTHING VERIFIED"}


def markdown(report: Report, most: int = MOST) -> str:
    """Return the summary, at most `most` characters long."""
    cases = report["cases"]
    total = sums(cases)
    page = _Page(most - 200)
    page.add(f"## codex-replay: {_WORDS[report['verdict']]}\n\n{_headline(report, total)}\n")
    page.all("### Do this next\n", [f"{n}. {_step(step)}\n" for n, step in enumerate(report.get("next", []), 1)], "step")
    failed = [case for case in cases if case["outcome"] == "failed"]
    page.add(_table(("suite",), [((suite,), sums(of)) for suite, of in by_suite(cases).items()]))
    page.all("### Most common failures\n", [f"- {escaped(line)}\n" for line in sentences(failed, most=None)], "cause")
    page.all(f"### Failed: {len(failed)}\n", [_failure(case) for case in failed], "failure")
    page.all("### Stale lines of the baseline\n", [f"- {code(check)}\n" for check in report.get("stale", [])], "line")
    page.all("### Racy: a different result when rerun\n", [f"- {code(check)}\n" for check in report.get("racy", [])], "check")
    known = [case for case in cases if case["outcome"] == "known"]
    page.all(f"### Known failures: {len(known)}\n", [_known(case) for case in known], "known failure")
    skipped = sum(case["outcome"] == "skipped" for case in cases)
    page.all(f"### Skipped: {skipped}\n", [f"- {escaped(line)}\n" for line in skip_reasons(cases, most=None)], "reason")
    rows = [((document, section), sums(of)) for document, sections in by_spec(cases).items() for section, of in sections.items()]
    documents = [
        ((document,), sums(case for of in sections.values() for case in of)) for document, sections in by_spec(cases).items()
    ]
    page.add(_table(("spec document",), documents))
    if "strength" in report:
        page.add(_strength(report["strength"]))
    if "coverage" in report:
        page.add(_coverage(report["coverage"]))
    for one in report.get("runs", []):
        page.add(f"- {escaped(one['name'])}: {one['verdict']}, {one['cases']} cases, {code(one['command'])}\n")
    bad = [row for row in rows if row[1]["failed"] or row[1]["known"]]
    page.add(_table(("spec document", "section with failures"), bad))
    return page.text


class _Page:
    """A text with a maximum length; a block that does not fit is left out completely."""

    def __init__(self, most: int) -> None:
        self.text = ""
        self._most = most

    def add(self, block: str) -> bool:
        """Add a block if it fits into the maximum length."""
        if len(self.text) + len(block) + 1 > self._most:
            return False
        self.text += ("\n" if self.text and not block.startswith("- ") else "") + block if block else ""
        return True

    def all(self, head: str, blocks: list[str], what: str) -> None:
        """Add a heading and as many blocks as fit, and the number of blocks that do not fit."""
        if not blocks or not self.add(head):
            return
        self.text += "\n"
        for i, block in enumerate(blocks):
            if len(self.text) + len(block) > self._most:
                left = len(blocks) - i
                self.text += f"\n{left} more {what}{'s' if left > 1 else ''}: see report.json or report.html.\n"
                self._most = len(self.text)
                return
            self.text += block


def escaped(text: str) -> str:
    """Return `text` on one line, without any markup."""
    return _ACTIVE.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", visible(" ".join(text.split())))


def code(text: str) -> str:
    """Return `text` on one line as a code span, even if it contains backticks."""
    line = visible(" ".join(text.split())) or " "
    ticks = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _step(step: str) -> str:
    """Return one recommended step as Markdown; a command after ": " is formatted as code."""
    text, colon, command = step.partition(": ")
    runs = command.startswith(("pytest ", "codex-replay "))
    return f"{escaped(text)}: {code(command)}" if colon and runs else escaped(step)


def _headline(report: Report, total: Sums) -> str:
    parts = [
        f"{total['cases']} cases",
        *(f"{total[each]} {each}" for each in ("passed", "failed", "known", "skipped") if total[each]),
    ]
    subjects = ", ".join(f"{role} {code(name)}" for role, name in report["subject"].items())
    profiles = ", ".join(report["profiles"])
    line = f"{', '.join(parts)} in {report['seconds']:.1f} s. "
    line += f"Subject: {subjects} (Codex {escaped(report['codex'])}), profile {escaped(profiles)}."
    if chosen := report.get("stopped_early"):
        line += " The run stopped early: the first cases all failed, most of them for one cause,"
        line += f" and the rest of {chosen} did not run."
    if report.get("interrupted"):
        line += " The run was interrupted; the other cases did not run."
    return line if report["validated"] else line + " Frames were not validated."


def _table(names: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], Sums]]) -> str:
    if not rows:
        return ""
    known = any(row["known"] for _, row in rows)
    counts = ("cases", "passed", "failed", *(("known",) if known else ()), "skipped")
    lines = ["| " + " | ".join((*names, *counts)) + " |", "|" + "---|" * len(names) + "---:|" * len(counts)]
    for cells, row in rows:
        words = [escaped(shortened(cell, 120)) for cell in cells]
        lines.append("| " + " | ".join([*words, *(str(row[each]) for each in counts)]) + " |")  # type: ignore[literal-required]
    return "\n".join(lines) + "\n"


def _failure(case: Case) -> str:
    spec = case["spec"]
    held = f"  \n  {escaped(shortened(_place(spec), 200))}" if spec else ""
    if spec and "links" in spec:
        held += "  \n  " + escaped(", ".join(spec["links"]))
    return f"- **{escaped(case['id'])}**{held}  \n  {escaped(shortened(case['message'], 400))}  \n  {code(case['again'])}\n"


def _place(spec: Any) -> str:
    return ", ".join(part for part in (spec["document"], spec["section"]) if part) + (f": {spec['text']}" if spec["text"] else "")


def _known(case: Case) -> str:
    return f"- {escaped(case['id'])}: {escaped(shortened(case['message'], 300))}\n"


def _strength(found: dict[str, Any]) -> str:
    message = found.get("strength", found)
    if not isinstance(message, dict) or not isinstance(message.get("variants"), int):
        return ""
    return f"Strength: {message.get('killed')} of {message['variants']} broken variants were found.\n"


def _coverage(found: dict[str, Any]) -> str:
    sorts = [(sort, names) for sort, names in found.items() if isinstance(names, dict)]
    parts = [f"{escaped(sort)} {_seen(names.values())} of {len(names)}" for sort, names in sorts[:SORTS]]
    more = f", and {len(sorts) - SORTS} enumerations (report.json has all)" if len(sorts) > SORTS else ""
    return f"Protocol coverage: {', '.join(parts)}{more}.\n"


def _seen(sights: Iterable[Any]) -> int:
    return sum(isinstance(sight, dict) and bool(sight.get("case")) for sight in sights)
