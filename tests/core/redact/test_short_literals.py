"""A literal of a few characters: gone wherever it stands by itself, and no part of other words."""

from __future__ import annotations

import pytest

from codex_replay.core.redact.literals import SHORT
from codex_replay.core.redact.redactor import Redactor


def gone(text: str, literal: str) -> str:
    return Redactor(literals={literal: "gone"}).redact(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("chunked, block, k-means, top_k, 3k, k9", "chunked, block, k-means, top_k, 3k, k9"),
        ('["transfer-encoding","chunked"]', '["transfer-encoding","chunked"]'),
        ('["x-one","k"]', '["x-one","gone"]'),
        ('{"key":"k","kind":"ok"}', '{"key":"gone","kind":"ok"}'),
        ("it is k.", "it is gone."),
        ("a=k&b=%3Dk%26", "a=gone&b=%3Dgone%26"),
        ('"a\\nk\\n"', '"a\\ngone\\n"'),
        ('"{\\"key\\":\\"k\\"}"', '"{\\"key\\":\\"gone\\"}"'),
        ("\x1b[1mk\x1b[0m", "\x1b[1mgone\x1b[0m"),
        ("k", "gone"),
    ],
)
def test_a_short_literal_is_replaced_where_it_stands_whole(text: str, clean: str) -> None:
    assert gone(text, "k") == clean
    assert gone(clean, "k") == clean


def test_an_end_that_is_no_letter_needs_no_border() -> None:
    assert gone("x!k!y", "!k!") == "xgoney"
    assert gone("x!kk", "!k") == "x!kk"


def test_a_longer_literal_is_replaced_anywhere() -> None:
    literal = "x" * SHORT
    assert gone(f"a{literal}b", literal) == "agoneb"
    assert gone(f"a{literal[1:]}b", literal[1:]) == f"a{literal[1:]}b"


def test_lint_and_redact_agree() -> None:
    redactor = Redactor(literals={"k": "gone"})
    assert redactor.findings(b"chunked k") == [("literal", 8, 9)]
