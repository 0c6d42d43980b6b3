"""Each page of the documentation begins with its reader: the first two sentences say for whom the page is, or for what."""

from __future__ import annotations

import re

import pytest

from tests.laws.import_graph import ROOT

_READER = re.compile(r"\bThis page is for \w+|\bfor tests of its clients\b")
#: The first page describes the project, and has the table of readers below.
_LANDING = "docs/index.md"


def reader(text: str) -> str | None:
    """Return the words that name the reader in the first two sentences of a page, or None."""
    body = text.partition("\n\n")[2]
    sentences = re.split(r"(?<=[.:])\s", " ".join(body.partition("\n\n")[0].split()))
    found = _READER.search(" ".join(sentences[:2]))
    return found[0] if found else None


def test_every_page_begins_with_its_reader() -> None:
    pages = sorted({*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")})
    texts = {name: page.read_text("utf-8") for page in pages if (name := page.relative_to(ROOT).as_posix()) != _LANDING}
    assert len(texts) > 30
    assert [name for name, text in texts.items() if reader(text) is None] == []


@pytest.mark.parametrize(
    "text",
    ["# A\n\nCodex sends events. They are many. This page is for authors.\n", "# A\n\n```console\nThis page is a riddle.\n```\n"],
)
def test_a_page_without_a_reader_is_found(text: str) -> None:
    assert reader(text) is None
