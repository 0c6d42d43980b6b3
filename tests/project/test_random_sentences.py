"""The sentences that are drawn at random are prose: no code and no headings, but the text below a heading."""

from __future__ import annotations

from pathlib import Path

from tests.tools.random_sentences import prose, sentences, texts

CODE = "    pytest suites runs all of the cases here.\n\n    A second line of the same code block."


def test_indented_code_is_no_prose() -> None:
    assert [block.strip() for block in prose(f"Before.\n\n{CODE}\n\nAfter.\n\n\tcode after a tab\n")] == ["Before.", "After."]
    assert list(prose(CODE)) == []


def test_a_continued_list_item_is_prose() -> None:
    assert list(prose("- One item\n    of two lines.")) == ["- One item\n    of two lines."]


def test_the_text_below_a_heading_is_prose() -> None:
    assert list(prose("# Head\nText of the page.\n## Next\n\nMore.")) == ["Text of the page.", "More."]


def test_indented_code_of_a_docstring_is_no_prose_and_a_message_keeps_its_indentation() -> None:
    code = CODE.replace("    ", "        ")
    source = f'def f():\n    """Do this.\n\n{code}\n\n    After.\n    """\n    raise E("    It failed.")\n'
    assert ["".join(text.split("\n")) for text in texts(source)] == ["Do this.After.", "    It failed."]


def test_paragraphs_and_list_items_of_a_docstring_are_separate(tmp_path: Path) -> None:
    items = "- The first file has the names.\n- The second file has the values."
    source = f'"""To start it:\n\nThe program reads two files here. fake-codex reads one of them.\n\n{items}\n"""\n'
    (tmp_path / "harness").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "harness" / "m.py").write_text(source, encoding="utf-8")
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / page).write_text("", encoding="utf-8")
    assert [sentence for _, sentence in sentences(tmp_path)] == [
        "The program reads two files here.",
        "fake-codex reads one of them.",
        "- The first file has the names.",
        "- The second file has the values.",
    ]
