"""An error of the system is told in the system's words: no `[Errno N]` of Python's reaches a sentence for people."""

from __future__ import annotations

import ast
import builtins
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_replay.core.text.error_text import error_text

ROOT = Path(__file__).parents[3]
#: Of an OSError neither the number nor the path is said by its text in a way that people read.
SYSTEM = {name for name, found in vars(builtins).items() if isinstance(found, type) and issubclass(found, OSError)}


def whole(source: str) -> Iterator[int]:
    """Yield the lines that put an `OSError` whole into a text."""
    for handler in ast.walk(ast.parse(source)):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None or handler.type is None:
            continue
        if not {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} & SYSTEM:
            continue
        for node in ast.walk(handler):
            put = node.value if isinstance(node, ast.FormattedValue) else None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
                put = node.args[0]
            if isinstance(put, ast.Name) and put.id == handler.name:
                yield node.lineno


#: Files and lines (by a word in them) in which the error is one of ours whose text is a sentence, or no error of the system.
OURS = {
    ("harness/codex_replay/shell/process/subject.py", "isinstance(error, OSError) else"),
    ("harness/codex_replay/cli/record.py", '"strerror", None) or str(error)'),
    ("harness/codex_replay/cli/schema.py", "raise click.UsageError(str(error))"),
    ("fake_server/codex_fakes/backend/routes.py", "does not decode as gzip"),
}


def test_no_error_of_the_system_is_put_whole_into_a_sentence() -> None:
    found = set()
    for path in (*ROOT.glob("harness/codex_replay/**/*.py"), *ROOT.glob("fake_server/codex_fakes/**/*.py")):
        name, lines = path.relative_to(ROOT).as_posix(), path.read_text().splitlines()
        found |= {(name, lines[number - 1].strip()) for number in whole(path.read_text())}
    left = {(name, line) for name, line in found if not any(name == of and part in line for of, part in OURS)}
    assert left == set()


@pytest.mark.parametrize("form", ['f"{error}"', 'f"{error!r}"', "str(error)"])
def test_the_search_finds_one(form: str) -> None:
    assert list(whole(f"try:\n    pass\nexcept (OSError, ValueError) as error:\n    print({form})\n")) == [4]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.json"), "a.json: No such file or directory"),
        (FileNotFoundError(2, "No such file or directory", b"a\xff.json"), "a\\xff.json: No such file or directory"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (TimeoutError("timed out"), "timed out"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("it is no JSON"), "it is no JSON"),
    ],
)
def test_a_reason_is_in_words(error: Exception, said: str) -> None:
    assert error_text(error) == said
