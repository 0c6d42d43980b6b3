"""A word of 64 KB or more is encoded data: only its ends are searched, and a secret that goes on to its end is removed whole."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.text import BLOCK, END, middles
from codex_replay.core.redact.triggers import Triggers

KEY = "sk-proj-" + "a1B2" * 12
WORD = base64.urlsafe_b64encode(Random(1).randbytes(300_000)).decode().replace("=", "")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the texts that were searched."""
    sizes: list[int] = []
    finds = Triggers.finds

    def counted(self: Triggers, low: bytes) -> object:
        sizes.append(len(low))
        return finds(self, low)

    monkeypatch.setattr(Triggers, "finds", counted)
    return sizes


PLAIN = base64.b64encode(Random(2).randbytes(300_000)).decode()


@pytest.mark.parametrize("word", [WORD, PLAIN, "x" * 400_000, "deadbeef" * 50_000])
def test_a_long_word_is_searched_at_its_ends_only(word: str, searched: list[int]) -> None:
    redactor = Redactor(paths={"/work": "/home/user/work"})
    searched.clear()
    text = json.dumps({"a": f"{word} {KEY}", "b": KEY + " " + word, "password": "x" + word}).encode()
    clean = redactor.redact(text)
    assert KEY.encode() not in clean
    assert json.loads(clean) == {"a": f"{word} sk-redacted-1", "b": f"sk-redacted-1 {word}", "password": "redacted-password-1"}
    assert max(searched) < 3 * 2 * END + 1000
    assert redactor.redact(clean) is clean


def test_a_secret_that_is_a_long_word_is_removed_whole() -> None:
    jwt = ".".join(("eyJhbGciOiJSUzI1NiJ9", "eyJzdWIiOiJ4In0", WORD))
    for text in (
        f"Bearer {WORD}",
        f"x={jwt}",
        f"-H 'Authorization: Bearer {WORD}'",
        f"OPENAI_API_KEY={WORD} y",
        f"sk-proj-1{WORD} y",
    ):
        clean = Redactor().redact(text.encode())
        assert len(clean) < 300, text[:40]
        assert clean.endswith(text[-2:].encode()) or text[-2:] == WORD[-2:]


def test_a_literal_is_found_in_the_middle_of_a_long_word() -> None:
    half = len(WORD) // 2
    clean = Redactor(literals={"Bluebird77": "project"}).redact(f'"{WORD[:half]}Bluebird77{WORD[half:]}"'.encode())
    assert clean == f'"{WORD[:half]}project{WORD[half:]}"'.encode()


def test_the_places_of_long_words() -> None:
    random = Random(2)
    for _ in range(200):
        text, expected = b"", []
        for _ in range(random.randrange(1, 5)):
            text += b" " * random.randrange(1, 2 * BLOCK)
            size = random.choice((10, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 5 * BLOCK + random.randrange(BLOCK)))
            if size >= 2 * BLOCK:
                expected.append((len(text) + END, len(text) + size - END))
            text += b"w" * size
        assert middles(text + b" ") == expected
        assert middles(text) == expected
