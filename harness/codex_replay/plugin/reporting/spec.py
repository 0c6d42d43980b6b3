"""Find the requirement that a check tests, in its `spec` marker, or in the statements that its docstrings cite.

`@pytest.mark.spec(check, "PAY-07", ...)` gives the check a stable id, and names the statements of the specification that
the check asserts. `source=` and `says=` name and quote a source outside the specification: a page of the documentation, or
a public reference. If a check has no `spec` marker, the docstring of its function or module cites the statements after
"Source:".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codex_replay.report.data import Spec

_PLACE = re.compile(r"(?P<document>[\w./-]+\.(?:md|txt))(?:,? (?P<section>.*))?", re.DOTALL)
_SOURCE = re.compile(r"\bSource:\s+(?P<text>.*?)(?:\n\n|\Z)", re.DOTALL)
_PAGE = re.compile(r"\bdocs/contract/([\w.-]+)\.md")
#: The name of the source that Codex generates itself.
BUNDLE = "the schema bundle"


def spec_of(item: Any, case: str) -> Spec | None:
    """Return the requirement of a test; `case` is the id of the test, which is used if the check has no id.

    A marker on a parameter takes precedence over the marker of the function.

    Raises `UnknownStatement` if the test cites an unknown statement.
    """
    of_the_parameter = (mark for mark in getattr(getattr(item, "callspec", None), "marks", ()) if mark.name == "spec")
    mark = next(of_the_parameter, item.get_closest_marker("spec"))
    if mark is not None and mark.args:
        return _of(mark)
    identifiers, source = source_of(_doc(getattr(item, "function", None)), _doc(getattr(item, "module", None)))
    return spec(case, identifiers, source) if identifiers or source else None


def spec(check: str, identifiers: list[str], source: str = "", says: str = "") -> Spec:
    """Return the requirement of a check for the report.

    The result has the page of the first statement, and the ids, texts and places of all statements.
    """
    from codex_replay.report.contract import describe, resolve

    if not identifiers:
        document, section = place(source)
        return {"check": check, "document": document, "section": section, "line": None, "text": says}
    first = resolve(identifiers[0])
    text = describe(identifiers) if len(identifiers) > 1 else first.text
    if source:
        text += f"\n{source}: {says}" if says else f"\n{source}"
    section, links = ", ".join(identifiers), [resolve(each).link for each in identifiers]
    return {"check": check, "document": first.title, "section": section, "line": None, "text": text, "links": links}


def _of(mark: Any) -> Spec:
    check, *identifiers = (str(word) for word in mark.args)
    return spec(check, identifiers, mark.kwargs.get("source", ""), mark.kwargs.get("says", ""))


def section_of(found: Spec) -> str:
    """Return the text to print below a failure: one line for each cited statement, then the places of the statements."""
    if "links" not in found:
        return ", ".join(part for part in (found["document"], found["section"]) if part) + f": {found['text']}"
    lines = found["text"] if "," in found["section"] else f"{found['section']}: {found['text']}"
    return "\n".join([lines, *found["links"]])


def wrong_citation(items: Iterable[Any]) -> str | None:
    """Return a sentence about the first `spec` marker that cites an unknown statement, or no statement.

    Return None if all `spec` markers are valid.
    """
    from codex_replay.report.contract import UnknownStatement, resolve

    for item, mark in ((each, mark) for each in items for mark in each.iter_markers("spec")):
        if not mark.args:
            continue
        if len(mark.args) == 1 and not mark.kwargs.get("source"):
            return f"{item.nodeid}: its spec marker {mark.args[0]!r} cites no statement of docs/contract. Add one to the marker."
        try:
            for identifier in mark.args[1:]:
                resolve(str(identifier))
        except UnknownStatement as error:
            return f"{item.nodeid}: {error}"
    return None


def place(where: str) -> tuple[str, str]:
    """Return the document and the section in the name of a source."""
    found = _PLACE.fullmatch(where)
    return (found["document"], found["section"] or "") if found else (where, "")


def source_of(*docstrings: str) -> tuple[list[str], str]:
    """Return the statements that a docstring cites after "Source:", and any other source that it names.

    If several docstrings name a source, the first one counts.
    """
    from codex_replay.report.contract import cited, page_titles

    for i, docstring in enumerate(docstrings):
        found = _SOURCE.search(docstring)
        identifiers = cited(found["text"] if found else docstring if i == 0 else "")
        if identifiers:
            return identifiers, ""
        if found is not None and found["text"].startswith("the bundle"):
            return [], BUNDLE
        if found is not None and (named := _PAGE.search(found["text"])) is not None:
            return [], page_titles().get(named[1], named[0])
    return [], ""


def title_of(item: Any, case: str) -> str:
    """Return the title of a case: the first line of its docstring, otherwise its name as words."""
    lines = _doc(getattr(item, "function", None)).strip().splitlines()
    return lines[0].strip() if lines else case.replace("_", " ").strip()


def _doc(thing: Any) -> str:
    found = getattr(thing, "__doc__", None)
    return found if isinstance(found, str) else ""
