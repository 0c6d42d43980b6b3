"""The default reply of the fakes to a prompt that is long or made to be slow to read."""

from __future__ import annotations

import time

import pytest

from codex_fakes.model.default import READ, default_turn

NO_TOOLS = "I cannot call a tool: this request declares none."
HELLO = "Hello from the scripted backend."


def said(prompt: str) -> str:
    content = [{"type": "input_text", "text": prompt}]
    (item,) = default_turn({"input": [{"type": "message", "role": "user", "content": content}]}).items
    text: str = item["text"]
    return text


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Call the tool.", NO_TOOLS),
        ("please use\na FUNCTION", NO_TOOLS),
        ("use use tool", NO_TOOLS),
        ("The tool calls you.", HELLO),
        ("tool use", HELLO),
        ("reuse the toolbox", HELLO),
        ("x" * READ + " call the tool", NO_TOOLS),
        ("call the tool " + "x" * READ, HELLO),
    ],
)
def test_the_default_model_says_that_it_has_no_tools_if_it_is_told_to_call_one(prompt: str, answer: str) -> None:
    assert said(prompt) == answer


def test_a_prompt_that_repeats_a_word_costs_no_more_than_another() -> None:
    begun = time.process_time()
    assert said("use " * 15_000) == HELLO
    assert time.process_time() - begun < 1
