"""The documents whose commands need the real Codex, run whole and offline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.documents import ROOT, Document, run

DOCUMENTS = [
    document
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("tutorials/*.md"))]
    if (document := Document.read(path)).sessions("real")
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_commands_do_what_the_document_shows(document: Document, tmp_path: Path) -> None:
    assert run(document, tmp_path, "yes", "real") == []


def test_there_is_something_to_run() -> None:
    assert "README.md" in [document.name for document in DOCUMENTS]
