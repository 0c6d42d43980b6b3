"""Tool-call dialects as data: what a configuration may declare, and the vectors that are generated for each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.base.subjects import BadSubject
from codex_replay.plugin.proxy.dialects import DIALECTS, Dialect, DialectVector, parse, vectors
from codex_replay.plugin.proxy.subject import parse_proxy
from codex_replay.reference.proxy.answering.dialect import DialectParser

OWN = {"open": "<<call ", "close": ">>", "content": "json", "name": "tool", "arguments": "input"}
#: The named ones, and three of one's own: JSON, elements with JSON in one of them, and closing markup as long as one character.
ALL = [
    *DIALECTS.values(),
    *parse([OWN, {"open": "[[", "close": "]]", "content": "elements"}, {"open": "@{", "close": "\u00a7"}], "it"),
]
Parsed = tuple[list[tuple[str, Any]], str]


def reference(dialect: Dialect, pieces: Sequence[str]) -> Parsed:
    """What the parser of the reference proxy finds."""
    parser = DialectParser(json.loads(dialect.data()))
    found = [part for piece in pieces for part in parser.feed(piece)] + parser.close()
    calls = [(part.name, json.loads(part.arguments)) for part in found if not isinstance(part, str)]
    return calls, "".join(part for part in found if isinstance(part, str))


def fits(vector: DialectVector, found: Parsed) -> bool:
    calls, text = found
    return calls == list(vector.calls) and " ".join(text.split()) == " ".join(vector.output.split())


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.open.strip())
def test_the_reference_parser_passes_at_every_cut(dialect: Dialect) -> None:
    for vector in vectors(dialect):
        assert fits(vector, reference(dialect, list(vector.text))), vector
        for at in range(len(vector.text)):
            found = reference(dialect, [vector.text[:at], vector.text[at:]])
            assert fits(vector, found), (vector.id, at, found)


def first_close(dialect: Dialect, pieces: Sequence[str]) -> Parsed:
    """A call ends at the first closing markup, within a string too; what is no call then is dropped."""
    text, calls = "".join(pieces), []
    pattern = re.escape(dialect.open) + "(.*?)" + re.escape(dialect.close.strip())
    for block in re.findall(pattern, text, re.S):
        calls += reference(dialect, [dialect.open + block + dialect.close])[0]
    return calls, re.sub(pattern, "", text, flags=re.S)


#: What is wrong -> a parser that does so.
BROKEN: dict[str, Callable[[Dialect, Sequence[str]], Parsed]] = {
    "finds nothing": lambda dialect, pieces: ([], "".join(pieces)),
    "drops the text": lambda dialect, pieces: (reference(dialect, pieces)[0], ""),
    "keeps the markup in the text": lambda dialect, pieces: (reference(dialect, pieces)[0], "".join(pieces)),
    "takes the first call": lambda dialect, pieces: (reference(dialect, pieces)[0][:1], reference(dialect, pieces)[1]),
    "loses what is not ASCII": lambda dialect, pieces: reference(dialect, ["".join(pieces).encode("ascii", "ignore").decode()]),
    "shows a call that is cut off": lambda dialect, pieces: (
        ([], "".join(pieces))
        if "".join(pieces).rfind(dialect.open) > "".join(pieces).rfind(dialect.close)
        else reference(dialect, pieces)
    ),
}


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.open.strip())
@pytest.mark.parametrize("wrong", BROKEN)
def test_a_vector_finds_each_wrong_parser(dialect: Dialect, wrong: str) -> None:
    assert any(not fits(vector, BROKEN[wrong](dialect, list(vector.text))) for vector in vectors(dialect))


@pytest.mark.parametrize("dialect", [each for each in ALL if each.content == "json"], ids=lambda dialect: dialect.open.strip())
def test_a_vector_finds_a_call_that_ends_in_a_string(dialect: Dialect) -> None:
    assert any(not fits(vector, first_close(dialect, [vector.text])) for vector in vectors(dialect))


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.open.strip())
def test_a_cut_finds_a_parser_that_reads_each_piece_alone(dialect: Dialect) -> None:
    [vector] = [each for each in vectors(dialect) if each.id == "text-around"]
    for at in range(len(vector.text) + 1):
        found = [reference(dialect, [piece]) for piece in (vector.text[:at], vector.text[at:])]
        alone = ([call for calls, _ in found for call in calls], "".join(text for _, text in found))
        inside = len("Before. ") < at < len(vector.text) - len(" After.")
        assert fits(vector, alone) is not inside, at


def test_the_oracle_is_independent_of_the_reference_parser() -> None:
    """The vectors are made without the reference's code: what is loaded with them has none of it."""
    code = "import sys, codex_replay.plugin.proxy.dialects\nprint(*(n for n in sys.modules if '.reference' in n))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("use_tol", "must be tool_call, use_tool, fenced, or a table"),
        ({"open": "<a>"}, "close must be a text that is not empty"),
        ({"open": " ", "close": "b"}, "open must be a text that is not empty"),
        ({"open": "a", "close": "b", "key": "c"}, "has no key 'key'"),
        ({"open": "a", "close": 1}, "close must be a text"),
        ({"open": "a", "close": "b", "content": "xml"}, "content must be json or elements, not 'xml'"),
        ({"open": "a", "close": "b", "name": ""}, "name is empty; it must be the key under which a call has its tool."),
        (
            {"open": "a", "close": "b", "arguments": ""},
            "arguments is empty; it must be the key under which a call has its arguments.",
        ),
    ],
)
def test_a_wrong_dialect_is_a_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(BadSubject, match=re.escape(sentence)):
        parse(given, "[tool.codex-replay.proxy.mine]")


def test_a_proxy_declares_its_dialects() -> None:
    row = {"command": "true", "tool_calls": ["use_tool", OWN]}
    assert [dialect.open for dialect in parse_proxy("mine", {"mine": row}).tool_calls] == ["<use_tool>", "<<call "]
    assert [dialect.id for dialect in parse_proxy("true", {}).tool_calls] == ["tool_call"]


@pytest.mark.parametrize(("told", "status"), [("", 0), ("env PROXY_TOOL_CALLS= ", 1)], ids=["honest", "deaf"])
def test_the_suite_judges_a_declared_dialect(tmp_path: Path, told: str, status: int) -> None:
    """A proxy that finds the calls of its own dialect passes; one that does not know it fails, and the message has the text."""
    command = f"{told}{sys.executable} -P -m codex_replay.reference.proxy"
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in OWN.items())
    text = f"[tool.codex-replay.proxy.mine]\ncommand = {json.dumps(command)}\n[tool.codex-replay.proxy.mine.tool_calls]\n{table}"
    (tmp_path / "codex-replay.toml").write_text(text)
    words = ["run", "proxy/replies/test_dialects.py", "-k", "own-1-two and chat", "-n", "1", "--plain", "--report", "out"]
    argv = [str(Path(sys.executable).with_name("codex-replay")), *words]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout[-2000:]
    if status:
        assert "The model wrote 2 tool calls in its text, but the client got none." in done.stdout
        assert " The dialect is own-1." in done.stdout
        assert "The vector two: Two calls, in order." in done.stdout
