"""The pages for writers of clients list every value that a suite asks for to the letter: their tables are the suite's data."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"editor_client": "docs/editor-client.md", "lite_client": "docs/lite-client.md"}


def table(suite: str) -> list[str]:
    """The table that the page of a suite must have, from the suite's data."""
    rows = importlib.import_module(f"suites.{suite}.exact").ROWS
    lines = [f"| {what} | {value} | `{check}` |" for what, value, check in rows]
    return ["| what | must be | check |", "|---|---|---|", *lines]


@pytest.mark.parametrize("suite", PAGES)
def test_the_page_has_the_suites_own_values(suite: str) -> None:
    """When this fails, put what it prints in the place of the page's table."""
    wanted = "\n".join(table(suite))
    print(wanted)
    assert f"\n\n{wanted}\n\n" in (ROOT / PAGES[suite]).read_text(encoding="utf-8"), "the page's table is not the suite's"


@pytest.mark.parametrize("suite", PAGES)
def test_each_value_names_a_check_that_the_suite_has(suite: str) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "suites" / suite).glob("test_*.py"))
    checks = set(re.findall(r'mark\.spec\(\s*"([a-z-]+)"', text))
    named = {check for _, _, check in importlib.import_module(f"suites.{suite}.exact").ROWS}
    assert sorted(named - checks) == []


@pytest.mark.parametrize("suite", PAGES)
def test_every_value_is_one_that_a_case_compares(suite: str) -> None:
    """A constant that no case takes from the table would be a claim of the page alone."""
    module = importlib.import_module(f"suites.{suite}.exact")
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "suites" / suite).glob("*.py") if path.stem != "exact")
    constants = {name for name in vars(module) if name.isupper()} - {"ROWS"}
    assert sorted(name for name in constants if not re.search(rf"\b{name}\b", text)) == []
