"""The file of vectors is what grammar and oracle make; the reference parser passes it; each feature finds wrong parsers."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codex_replay.plugin.proxy.vectors import Outcome, Vector, load_vectors
from tests.strength.tool_calls import grammar
from tests.strength.tool_calls.__main__ import PATH, lines
from tests.strength.tool_calls.broken import BROKEN, Parsed, Parser, reference, silent, unread
from tests.strength.tool_calls.oracle import Undecided, judge, squeezed

VECTORS = load_vectors()
STATEMENTS = re.compile(r'<a id="[a-z]+-\d+"></a>\*\*([A-Z]+-\d+)\*\*')


def fits(found: Parsed, text: str, outcomes: Any) -> bool:
    """Return True if calls and text are one of the outcomes (of a vector, or of the oracle)."""
    calls, shown = found
    for outcome in outcomes:
        wanted = [tuple(call)[:2] for call in outcome.calls]
        same = shown == text if outcome.output == text else squeezed(shown) == squeezed(outcome.output)
        try:
            if not outcome.error and same and [(name, json.loads(said)) for name, said in calls] == wanted:
                return True
        except ValueError:
            return False
    return False


def passes(parser: Parser, vector: Vector) -> bool:
    """Return True if the parser reads a vector rightly, whole, in pieces and cut where the vector says so."""
    sizes = [0] if vector.cuts is not None else [0, 7] if len(vector.text) > 10_000 else [0, 1, 7]
    for size in sizes:
        found = parser(vector.chunks(size))
        if not fits(found, vector.text, vector.outcomes):
            return False
        said = [said for call, (_, said) in zip(vector.verbatim, found[0], strict=False) if call is not None and said != call]
        if said:
            return False
    return True


def test_the_file_is_what_grammar_and_oracle_make() -> None:
    """`python -m tests.strength.tool_calls` writes it."""
    assert PATH.read_text(encoding="ascii") == lines()


def test_there_are_enough_of_them() -> None:
    assert len(VECTORS) >= 120
    assert len({vector.id for vector in VECTORS}) == len(VECTORS)
    assert len({(vector.text, vector.cuts) for vector in VECTORS}) == len(VECTORS)
    assert {vector.feature for vector in VECTORS} == BROKEN.keys()


def test_each_statement_that_is_cited_is_in_the_contract() -> None:
    contract = PATH.parents[4] / "docs" / "contract" / "payloads.md"
    known = set(STATEMENTS.findall(contract.read_text(encoding="utf-8")))
    assert {name for vector in VECTORS for name in vector.statements} <= known
    assert all(vector.statements for vector in VECTORS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_the_reference_parser_reads_it_rightly(vector: Vector) -> None:
    assert passes(reference, vector)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_a_wrong_parser_is_found_by_it(vector: Vector) -> None:
    """No vector is passed by all: one that finds nothing, one that drops the text, or those of its feature."""
    parsers = [unread, silent, *BROKEN[vector.feature].values()]
    assert not all(passes(parser, vector) for parser in parsers)


@pytest.mark.parametrize(("feature", "wrong"), [(feature, wrong) for feature in BROKEN for wrong in BROKEN[feature]])
def test_a_feature_finds_its_wrong_parser(feature: str, wrong: str) -> None:
    parser = BROKEN[feature][wrong]
    assert [vector.id for vector in VECTORS if vector.feature == feature and not passes(parser, vector)]


def test_a_wrong_parser_is_wrong_in_its_own_way() -> None:
    """All but the coarsest read `one` and `plain` rightly, so that it is the feature that finds them."""
    plain = [vector for vector in VECTORS if vector.id in ("one", "plain")]
    coarse = {
        wrong
        for wrongs in BROKEN.values()
        for wrong, parser in wrongs.items()
        if not all(passes(parser, vector) for vector in plain)
    }
    assert coarse == {"finds nothing", "drops the text", "encodes twice", "reads each piece alone"}


# -- oracle and reference on texts that nobody thought of ----------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='a <>{}[]"\\`\n\u2028\U0001f600', max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(alphabet="ab<", max_size=2), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["path", "<tool_call>", "}"]), JSON, max_size=2)
NAMES = st.sampled_from(["getFileTree", "saveNote", "other"])
BODIES = st.builds(
    lambda name, value, text, spaced: json.dumps(
        {"name": name, "arguments": json.dumps(value, ensure_ascii=False) if text else value},
        ensure_ascii=False,
        separators=(", ", " : ") if spaced else (",", ":"),
    ),
    NAMES, OBJECTS, st.booleans() | st.just(True), st.booleans(),
)  # fmt: skip
BLOCKS = st.builds(
    lambda again, lead, body, tail, close: grammar.OPEN * again + lead + body + tail + close,
    st.sampled_from([1, 1, 1, 2]), st.sampled_from(["", "", "\n", "[", "```json\n"]), BODIES,
    st.sampled_from(["", "", "\n", "]", "}", ">", "\n```"]),
    st.sampled_from([grammar.CLOSE] * 4 + [grammar.CLOSE * 2, grammar.CLOSE + ">", ""]),
)  # fmt: skip
PROSE = st.sampled_from(
    ["", " ", "Text. ", "\n", "a < b ", "<b>", "`code` ", "\n```\ncode\n```\n", " <tool_ca", "{}", grammar.OPEN, grammar.CLOSE]
)
TEXTS = st.lists(PROSE | BLOCKS, max_size=5).map("".join)

SEEN: Counter[str] = Counter()


@settings(max_examples=100)
@given(TEXTS)
@example(grammar.ONE + " ")
def test_oracle_and_reference_agree_at_every_cut(text: str) -> None:
    try:
        outcomes = judge(text).outcomes
    except Undecided:
        SEEN["undecided"] += 1
        return
    SEEN["decided"] += 1
    assert fits(reference([text]), text, outcomes), outcomes
    assert fits(reference(list(text)), text, outcomes), outcomes
    for cut in range(1, len(text)):
        assert fits(reference([text[:cut], text[cut:]]), text, outcomes), (cut, outcomes)


def test_most_texts_are_decided() -> None:
    """The property says something: the oracle decides most of what the grammar makes (or no text was made in this process)."""
    assert SEEN["decided"] >= SEEN["undecided"]


@pytest.mark.parametrize(
    "text",
    [
        f"The {grammar.OPEN} tag",
        f"{grammar.ONE} and {grammar.CLOSE}",
        f"{grammar.OPEN}{grammar.BODY} more {grammar.CLOSE}",
        f"{grammar.OPEN}[{grammar.BODY},{grammar.BODY}]{grammar.CLOSE}",
        f"`` ` {grammar.ONE}",
        grammar.call(arguments="no JSON"),
        grammar.call(arguments="[1]"),
    ],
)
def test_the_oracle_does_not_decide_what_no_statement_decides(text: str) -> None:
    """These questions are open; docs/tool-call-vectors.md lists them."""
    with pytest.raises(Undecided):
        judge(text)


def test_pieces_are_the_text() -> None:
    for vector in VECTORS:
        for size in (0, 7):
            pieces = vector.chunks(size)
            assert "".join(pieces) == vector.text
            assert len(pieces) >= len(list(pairwise((0, *(vector.cuts or ()), len(vector.text)))))
    assert Outcome().calls == ()
