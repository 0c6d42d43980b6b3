"""What a case is held to, and what it is about: read from its `spec` marker, or from the sources that its docstrings name.

`@pytest.mark.spec(id, where, line)`: `where` is a document and a place in it ("app-server-payloads.md, 2. sendUserTurn"), `line`
its words. Without the marker the docstring of the function, else that of its module, may say "Source: DOCUMENT section 4".
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.report.model import Spec

_PLACE = re.compile(r"(?:spec/)?(?P<document>[\w./-]+\.(?:md|txt))(?:,? (?P<section>.*))?", re.DOTALL)
_SOURCE = re.compile(r"\bSource:\s+(?P<said>.*)", re.DOTALL)
_DOCUMENT = re.compile(
    r"(?:spec/)?(?P<document>[\w-]+(?:\.[\w-]+)*\.(?:md|txt))"
    r'(?P<section>(?:,? sections? \d+(?:(?:, | and | to )\d+)*)?(?:, (?:end of )?"[^"]+"(?: and "[^"]+")*)?)'
)
#: What a source is called that is no document but what Codex generates of itself.
BUNDLE = "the schema bundle"


def spec_of(item: Any, case: str) -> Spec | None:
    """Return what a test is held to; `case` is its id, for a check that has none of its own."""
    mark = item.get_closest_marker("spec")
    if mark is not None and len(mark.args) >= 2:
        check, where, *text = (str(word) for word in mark.args)
        document, section = place(where)
        line = mark.kwargs.get("line")
        found: Spec = {"check": check, "document": document, "section": section, "line": line, "text": text[0] if text else ""}
        return found
    for docstring in (_doc(getattr(item, "function", None)), _doc(getattr(item, "module", None))):
        source = source_of(docstring)
        if source is not None:
            return {"check": case, "document": source[0], "section": source[1], "line": None, "text": ""}
    return None


def place(where: str) -> tuple[str, str]:
    """Return the document and the section that a marker names."""
    found = _PLACE.fullmatch(where)
    return (found["document"], found["section"] or "") if found else (where, "")


@cache
def source_of(docstring: str) -> tuple[str, str] | None:
    """Return the first document that a docstring names as its source, and the section; None where it names none."""
    said = _SOURCE.search(docstring)
    if said is None:
        return None
    words = " ".join(said["said"].split("\n\n")[0].split())
    found = _DOCUMENT.search(words)
    if found is not None:
        return found["document"], found["section"].strip(" ,")
    return (BUNDLE, "") if words.startswith("the bundle") else None


def title_of(item: Any, case: str) -> str:
    """Return what a case is about: the first line of its docstring, else its name as words."""
    lines = _doc(getattr(item, "function", None)).strip().splitlines()
    return lines[0].strip() if lines else case.replace("_", " ").strip()


def _doc(thing: Any) -> str:
    found = getattr(thing, "__doc__", None)
    return found if isinstance(found, str) else ""
