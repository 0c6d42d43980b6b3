"""Write the result of `drift --behaviour` as Markdown, or as JSON with one line for each finding."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

#: So many cases of a finding are named.
NAMED = 3


def to_json(found: Mapping[str, Any]) -> str:
    """Return the result as JSON with one list entry per line, so that `diff` can compare two results."""
    parts = []
    for key, value in found.items():
        if isinstance(value, list) and value:
            lines = ",\n".join("  " + json.dumps(each, ensure_ascii=False) for each in value)
            parts.append(f' "{key}": [\n{lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def markdown(found: Mapping[str, Any]) -> str:
    """Return the result of `drift --behaviour` as a Markdown page."""
    before, after, totals = found["from"], found["to"], found["totals"]
    some = f" -k {shlex.quote(found['chosen'])}" if "chosen" in found else ""
    made = f"`codex-replay drift --behaviour {before} {after}{some} --markdown FILE`"  # such an expression has no backtick
    cases = "the cases of the app-server suite that match the expression" if some else "the cases of the app-server suite"
    lines = [
        f"# Changes in behaviour from Codex {before} to {after}",
        "",
        f"Made by {made}: {cases}, run",
        "offline on both binaries. The frames are compared after normalisation. docs/behavioural-drift.md explains this page.",
        "",
        summary(found) if not some else _cell(summary(found)),
        "",
    ]
    if found["findings"]:
        lines += ["## Seen in several cases", "", *_table(found["findings"], found["cases"])]
    if found["single"]:
        lines += ["## Seen in one case", "", *_table(found["single"], found["cases"])]
    if found["racy"]:
        lines += ["## Seen only where the server has more than one correct behaviour", ""]
        lines += ["The cases of these changes declare that they are `racy`, so another run may give other results.", ""]
        lines += _table(found["racy"], found["cases"])
    if found["ended_early"]:
        lines += ["## Cases that end early", ""]
        lines += [
            "In a case that ended early, only the frames before its end are compared.",
            "",
            "| case | on | ends early at |",
            "|---|---|---|",
        ]
        lines += [f"| {each['case']} | {each['version']} | {_cell(each['ends_early_at'])} |" for each in found["ended_early"]]
        lines.append("")
    if found["not_compared"]:
        lines += ["## Not compared", "", "| case | why |", "|---|---|"]
        lines += [f"| {each['case']} | {_cell(each['why'])} |" for each in found["not_compared"]]
        lines.append("")
    if found["noise"]:
        lines += [
            "## Noise",
            "",
            f"Ignored, because these values differ between two runs of one version ({totals['noise']} kinds).",
            "",
        ]
        lines += ["| kind | method | where | cases |", "|---|---|---|---:|"]
        lines += [
            f"| {each['rule']} | {_code(each['method'])} | {_code(each['path'])} | {each['cases']} |" for each in found["noise"]
        ]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def summary(found: Mapping[str, Any]) -> str:
    """Return one or two sentences about the compared versions and the result."""
    totals = found["totals"]
    many = totals["findings"] - totals["single_case"]
    message = f"Only the cases of -k {found['chosen']!r} were run. " if "chosen" in found else ""
    message += f"{totals['compared']} of {totals['cases']} cases compared: {totals['changed']} changed, "
    message += f"{totals['unchanged']} unchanged, {totals['not_compared']} not compared. "
    message += f"{totals['findings']} findings, {many} of them in several cases"
    message += f", and {totals['racy']} where the server has more than one correct behaviour" if totals["racy"] else ""
    return f"{message}; {totals['ended_early']} cases end early."


def place(finding: Mapping[str, Any]) -> str:
    """Return the place of a finding: the path of the changed value, and the kind of change."""
    return "; ".join(text for text in (finding["path"], finding.get("note", "")) if text)


def which(finding: Mapping[str, Any], names: Sequence[str], most: int = NAMED) -> str:
    """Return the names of the first cases of a finding, and the number of the others."""
    first = ", ".join(names[at].partition("/")[2] for at in finding["cases"][:most])
    rest = len(finding["cases"]) - most
    return first + (f" and {rest} more" if rest > 0 else "")


def _table(findings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    lines = ["| what | method | where | before | after | cases | which |", "|---|---|---|---|---|---:|---|"]
    for finding in findings:
        example = finding["examples"][0]
        method = _code(finding["method"])
        if "methods" in finding and len(finding["methods"]) <= 12:
            method += ": " + ", ".join(_code(name) for name in finding["methods"])
        cells = [f"**{finding['rule']}**: {finding['what']}", method, _code(finding["path"])]
        if finding.get("note"):
            cells[-1] = "; ".join(text for text in (cells[-1], _cell(finding["note"])) if text)
        cells += [_code(example["before"]), _code(example["after"]), str(finding["count"]), _cell(which(finding, names))]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    """Return a text for a table cell: one line, with the special characters of Markdown and HTML escaped."""
    plain = " ".join(text.split()).replace("\\", "\\\\")
    for sign in ("|", "<", ">", "*", "_", "[", "]", "`"):
        plain = plain.replace(sign, f"\\{sign}")
    return plain


def _code(text: str) -> str:
    """Return text as Markdown code for a table cell; a text with a backtick gets a longer fence."""
    plain = " ".join(text.split()).replace("|", "\\|")
    if not plain:
        return ""
    if "`" not in plain:
        return f"`{plain}`"
    fence = "``" if "``" not in plain else "```"
    return f"{fence} {plain} {fence}"
