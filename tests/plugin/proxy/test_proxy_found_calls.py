"""What a failure says of an answer whose calls or text are not those of the model."""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.proxy.vectors import load_vectors
from codex_replay.report.group_failures import cause
from suites.proxy.answers import Answer, Call
from suites.proxy.found_calls import UNFOUND, must_fit

VECTORS = {vector.id: vector for vector in load_vectors()}
FILES, NOTE = Call("1", "getFileTree", '{"path":"a/b"}'), Call("2", "saveNote", '{"title":"x"}')
NONE_OF_ONE = "The model wrote 1 tool call in its text, but the client got none."


MARKUP = "The text for the client contains the markup of tool calls:"
ARGUMENTS = "The arguments of the tool call 'getFileTree' are not"
NO_ARGUMENTS = "The tool call 'getFileTree' has no arguments: the client must get '{{}}', but it got {}."
SWAPPED = [
    "The tool call must be of 'getFileTree', but it is of 'saveNote'.",
    "The tool call must be of 'saveNote', but it is of 'getFileTree'.",
]
TEXT = "The text for the client"
BLANKS = r"The text for the client has other white space: the text must be '  a\n\n\tb  \r\n c  ', but it is 'a\n\n\tb \n c'."


@pytest.mark.parametrize(
    ("vector", "answer", "sentence"),
    [
        ("one", Answer(), NONE_OF_ONE),
        ("one", Answer(VECTORS["one"].text), f"{NONE_OF_ONE} {MARKUP} '<tool_call>', '</tool_call>'.\n{UNFOUND}"),
        ("two", Answer("", [NOTE]), "The model wrote 2 tool calls in its text, but the client got 1."),
        ("one", Answer("", [FILES, FILES]), "The client got 2 tool calls, but the model wrote 1."),
        ("plain", Answer("Just text.", [FILES]), "The client got 1 tool call, but the model wrote none."),
        ("two", Answer("", [NOTE, FILES]), " ".join(SWAPPED)),
        ("one", Answer("", [Call("1", "getFileTree", '{"path":')]), f"{ARGUMENTS} valid JSON."),
        ("one", Answer("", [Call("1", "getFileTree", "{}")]), f"{ARGUMENTS} those that the model wrote."),
        ("arguments-null", Answer("", [Call("1", "getFileTree", "null")]), NO_ARGUMENTS.format("'null'")),
        ("arguments-empty-string", Answer("", [Call("1", "getFileTree", "")]), NO_ARGUMENTS.format("''")),
        ("text-after", Answer("</tool_call> Done.", [FILES]), f"{MARKUP} '</tool_call>'."),
        (
            "text-after",
            Answer("one.", [FILES]),
            f"{TEXT} lacks a part of the model's text: the text must be 'Done.', but it is 'one.'.",
        ),
        (
            "text-after",
            Answer("x Done.", [FILES]),
            f"{TEXT} has a part that is not for the user: the text must be 'Done.', but it is 'x Done.'.",
        ),
        ("text-after", Answer("No.", [FILES]), f"{TEXT} is wrong: the text must be 'Done.', but it is 'No.'."),
        ("plain-white-space", Answer("a\n\n\tb \n c"), BLANKS),
    ],
)
def test_a_failure_begins_with_what_is_wrong(vector: str, answer: Answer, sentence: str) -> None:
    with pytest.raises(AssertionError) as raised:
        must_fit(answer, VECTORS[vector])
    found, after = str(raised.value).split("\nThe vector ")
    assert found == sentence
    assert after.startswith(f"{vector} (PAY-")
    assert f"The model wrote: {VECTORS[vector].text!r}\n" in after


def test_each_allowed_outcome_passes() -> None:
    for vector in VECTORS.values():
        for outcome in vector.outcomes:
            if not outcome.error:
                calls = [Call(name=name, arguments=json.dumps(arguments)) for name, arguments in outcome.calls]
                must_fit(Answer(outcome.output, calls), vector)


def test_lost_calls_of_different_vectors_are_one_cause() -> None:
    causes = set()
    for vector in ("one", "keys-in-other-order", "arguments-nested", "arguments-numbers"):
        with pytest.raises(AssertionError) as raised:
            must_fit(Answer(), VECTORS[vector])
        causes.add(cause(str(raised.value)))
    assert len(causes) == 1
