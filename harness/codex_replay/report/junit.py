"""Write a report as JUnit XML: one `testsuite` for each suite, one `testcase` for each case.

JUnit XML has no standard, so only elements that Jenkins, GitLab and GitHub Actions all understand are written. A known
failure is written as skipped, with its reason, so that programs that read the file count the same failures as the run.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from codex_replay.report.data import Case, Report, by_suite, sums

#: What XML 1.0 has no form for (section 2.2, Char).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Return `text` without characters that XML does not allow; a replacement stands for each of them."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def junit(report: Report) -> str:
    """Return a whole JUnit document."""
    root = ElementTree.Element("testsuites", {**_counts(report["cases"]), "time": f"{report['seconds']:.3f}"})
    for suite, cases in by_suite(report["cases"]).items():
        message = {"name": clean(suite), **_counts(cases), "time": f"{sums(cases)['seconds']:.4f}"}
        element = ElementTree.SubElement(root, "testsuite", {**message, "timestamp": clean(report["started"])})
        properties = ElementTree.SubElement(element, "properties")
        for name, value in [("codex", report["codex"]), ("profile", report["profile"]), *report["subject"].items()]:
            ElementTree.SubElement(properties, "property", {"name": name, "value": clean(value)})
        for case in cases:
            _case(element, case)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(cases: list[Case]) -> dict[str, str]:
    found = sums(cases)
    skipped = found["skipped"] + found["known"]
    return {"tests": str(found["cases"]), "failures": str(found["failed"]), "errors": "0", "skipped": str(skipped)}


def _case(suite: ElementTree.Element, case: Case) -> None:
    message = {"classname": f"{case['suite']}.{case['module']}", "name": case["case"], "file": case["nodeid"].partition("::")[0]}
    element = ElementTree.SubElement(suite, "testcase", {key: clean(value) for key, value in message.items()})
    element.set("time", f"{case['seconds']:.4f}")
    if case["outcome"] == "failed":
        failure = ElementTree.SubElement(element, "failure", {"message": clean(case["message"])})
        spec = case["spec"]
        held = [f"Spec: {spec['document']}, {spec['section']}: {spec['text']}", *spec.get("links", ())] if spec else []
        failure.text = clean("\n".join([*held, case["details"], f"Again: {case['again']}"]))
    elif case["outcome"] != "passed":
        lead = "known: " if case["outcome"] == "known" else ""
        ElementTree.SubElement(element, "skipped", {"message": clean(lead + case["message"])})
