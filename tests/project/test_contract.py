"""The contract: its pages are whole, each citation resolves, and the page of the checks is what the sources say."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from codex_replay.report import contract
from tests.tools import traceability_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "contract"
#: The names of the documents that the statements restate; only the contract's own pages say where they come from.
SOURCES = re.compile(
    r"app-server-payloads\.md|(?<!/)responses-handoff\.md, |schema-0\.92-tools\.md|codex-lite-protocol\.md"
    r"|codex-nvim-integration\.txt|real-codex-0\.92\.md"
)
PREFIXES = {"payloads": "PAY", "handoff": "HAND", "schema-tools": "SCHEMA", "lite": "LITE", "editor": "EDIT", "real-0.92": "REAL"}


def texts() -> list[Path]:
    """The files that may cite a statement."""
    folders = (ROOT / name for name in ("harness", "fake_server", "suites", "tests", "docs"))
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".md", ".json", ".js", ".txt")]
    return [path for path in found if path != Path(__file__) and "__pycache__" not in path.parts]


@cache
def checks() -> dict[str, list[str]]:
    return traceability_page.checks(ROOT)


def test_the_statements_of_a_page_are_numbered_from_1() -> None:
    pages = Counter(each.page for each in contract.statements().values())
    expected = [f"{PREFIXES[page]}-{n:02}" for page in contract.PAGES for n in range(1, pages[page] + 1)]
    assert list(contract.statements()) == expected


@pytest.mark.parametrize("page", contract.PAGES)
def test_every_line_of_a_list_is_a_statement(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    found = contract.parse(page, text)
    assert len(found) == len(lines)
    assert all(f'<a id="{each.id.lower()}"></a>' in line for each, line in zip(found, lines, strict=True))
    assert [each.id for each in found if " *" in each.text or not each.section] == []


def test_each_citation_resolves() -> None:
    """Every identifier that any file names is a statement."""
    known = set(contract.statements())
    wrong = {
        str(path.relative_to(ROOT)): missing
        for path in texts()
        if (missing := set(contract.cited(path.read_text(encoding="utf-8"))) - known)
    }
    assert wrong == {}
    assert {other for each in contract.statements().values() for other in each.otherwise} <= known


def test_no_file_names_a_document_that_is_not_here() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in texts()
        if not path.is_relative_to(PAGES) and SOURCES.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_every_rule_of_the_backend_cites_a_statement_or_is_known_of_the_service() -> None:
    from codex_fakes.backend.rules.table import KNOWN, RULES

    assert [rule.id for rule in RULES if rule.source != KNOWN and not contract.cited(rule.source)] == []


def test_every_statement_has_a_check_or_a_reason() -> None:
    """A statement that a check cites has no such reason any more."""
    cited = {each for identifiers in checks().values() for each in identifiers}
    statements = contract.statements().values()
    assert [each.id for each in statements if each.id not in cited and not each.unchecked] == []
    assert [each.id for each in statements if each.id in cited and each.unchecked] == []


def test_the_page_of_the_checks_is_what_the_sources_say() -> None:
    """After a change: `python -m tests.tools.traceability_page > docs/contract/traceability.md`."""
    page = traceability_page.page(checks())
    assert (PAGES / "traceability.md").read_text(encoding="utf-8") == page


def test_every_check_has_an_anchor_of_its_own() -> None:
    names = list(checks())
    assert len({traceability_page.anchor(check) for check in names}) == len(names)


def test_checks_are_found_in_markers_docstrings_and_tables() -> None:
    source = '''
ROWS = {"a": ("EDIT-08", 1)}

@pytest.mark.spec("its-id", "PAY-01", "PAY-02")
def test_one():
    pass

def test_two():
    """It does. (REAL-03)"""

def test_three():
    """It does."""
'''
    assert traceability_page.checks_of(source, tables=True) == [
        ("", ["EDIT-08"]),
        ("its-id", ["PAY-01", "PAY-02"]),
        ("test_two", ["REAL-03"]),
    ]


def test_a_line_has_its_notes_apart() -> None:
    text = (
        '# T\n## S\n- <a id="pay-01"></a>**PAY-01** One. *The real 0.92.0 does otherwise: REAL-01, REAL-02.*\n'
        '- <a id="pay-02"></a>**PAY-02** Two. *No check: It is `3`.*\n'
    )
    one, two = contract.parse("payloads", text)
    assert (one.text, one.otherwise, one.unchecked, one.section, one.title) == ("One.", ("REAL-01", "REAL-02"), "", "S", "T")
    assert (two.text, two.otherwise, two.unchecked) == ("Two.", (), "No check: It is `3`.")
    assert one.link == "docs/contract/payloads.md#pay-01"


def test_an_unknown_identifier_is_a_sentence() -> None:
    with pytest.raises(contract.UnknownStatement, match=r"PAY-999 is not a statement of docs/contract; its pages list"):
        contract.resolve("PAY-999")
