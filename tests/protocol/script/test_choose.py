"""Which turn of a script answers a request: the rule itself, held against a reading of it that remembers nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.protocol.script import choose
from codex_replay.protocol.script.choose import Choice
from codex_replay.protocol.script.expect import mismatch
from codex_replay.protocol.script.script import Turn

MARKERS = st.sampled_from(["a", "ab", "b", "ba", "c", ""])
MATCHES = st.one_of(
    st.just({}),
    MARKERS.map(lambda marker: {"prompt": marker}),
    st.lists(MARKERS, max_size=2).map(lambda markers: {"prompt": markers}),
    st.just({"model": "m"}),
    st.tuples(MARKERS, st.sampled_from("mn")).map(lambda pair: {"prompt": pair[0], "model": pair[1]}),
)
TURNS = st.lists(st.builds(Turn, match=MATCHES, times=st.sampled_from([1, 2, None])), max_size=6)
BODIES = st.builds(
    lambda texts, model: {"model": model, "input": [{"type": "message", "role": "user", "content": text} for text in texts]},
    st.lists(st.text("abc", max_size=4), max_size=3),
    st.sampled_from("mn"),
)


class Plain:
    """The rule as the documentation tells it."""

    def __init__(self, turns: list[Turn]) -> None:
        self.left: list[float] = [float("inf") if turn.times is None else turn.times for turn in turns]
        self.turns = turns

    def choose(self, body: dict[str, Any]) -> int | None:
        for plain in (False, True):
            for i, turn in enumerate(self.turns):
                if self.left[i] and (not turn.match) == plain and mismatch(turn.match, body, None) is None:
                    self.left[i] -= 1
                    return i
        return None


def faithful(choice: Choice, turns: list[Turn], bodies: list[dict[str, Any]]) -> None:
    plain = Plain(turns)
    for body in bodies:
        chosen = choice.choose(body, None)
        assert (None if isinstance(chosen, str) else chosen[0]) == plain.choose(body)


@given(TURNS, st.lists(BODIES, max_size=8))
def test_the_rule(turns: list[Turn], bodies: list[dict[str, Any]]) -> None:
    faithful(Choice(turns), turns, bodies)


@given(TURNS, st.lists(BODIES, max_size=8))
def test_what_was_forgotten_makes_no_difference(turns: list[Turn], bodies: list[dict[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "_TEXTS", 1)
        faithful(Choice(turns), turns, bodies)


class Stale(Choice):
    """Looks only into the first text, as if the others were known to hold nothing."""

    def _markers_in(self, texts: Any) -> set[str]:
        return super()._markers_in(texts[:1])


def test_a_memory_that_is_wrong_is_found() -> None:
    turns = [Turn(match={"prompt": "b"})]
    bodies = [{"model": "m", "input": [{"type": "message", "role": "user", "content": text} for text in ("a", "b")]}]
    with pytest.raises(AssertionError):
        faithful(Stale(turns), turns, bodies)


def test_a_miss_names_the_first_refusals_and_counts_no_more() -> None:
    choice = Choice([Turn(match={"prompt": f"m{i}"}) for i in range(9)])
    said = choice.choose({"input": "nothing"}, None)
    assert said == "No turn of the script matches this request. " + " ".join(
        f'turns[{i}]: No text of the input contains "m{i}".' for i in range(3)
    )
    assert choice.unused() == list(range(9))


def test_a_used_script_says_so() -> None:
    choice = Choice([Turn(), Turn(match={"prompt": "x"})])
    assert [choice.choose({"input": "x"}, None)[:1], choice.choose({"input": "y"}, None)[:1]] == [(1,), (0,)]
    assert str(choice.choose({"input": "z"}, None)).startswith("All 2 turns of the script are used")
    assert choice.unused() == []
    choice = Choice([Turn()])
    assert isinstance(choice.choose({"input": "x"}, None), tuple)
    assert str(choice.choose({"input": "y"}, None)).startswith("The only turn of the script is used: add a turn, or")
    assert Choice([]).choose({"input": "x"}, None) == "The script has no turns: add one."


USER = {"type": "message", "role": "user", "content": "first"}
CALL = {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "5 files"}
AGAIN = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and second"}]}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}


@pytest.mark.parametrize(
    ("match", "items", "there"),
    [
        ({"user": "first"}, [USER], True),
        ({"user": "first"}, [USER, SAID, AGAIN], False),
        ({"user": "second"}, [USER, SAID, AGAIN], True),
        ({"user": "x"}, [], False),
        ({"pattern": "^f.*t$"}, [USER], True),
        ({"pattern": "^f.*t$"}, [AGAIN], False),
        ({"tool_pattern": "^[5-6] f"}, [USER, CALL, OUTPUT, SAID, AGAIN], True),
        ({"tool_pattern": "^6$"}, [USER, CALL, OUTPUT], False),
        ({"tool_pattern": "f"}, [USER], False),
        ({"tool": "5"}, [USER, CALL, OUTPUT], True),
        ({"tool": "6"}, [USER, CALL, OUTPUT], False),
        ({"tool": "5"}, [USER, CALL, OUTPUT, SAID, AGAIN], False),
        ({"tool": "a"}, [{**OUTPUT, "output": [{"type": "input_text", "text": "a"}]}], True),
        ({"instructions": "brief"}, [USER], True),
        ({"instructions": "long"}, [USER], False),
        ({"turn": 1}, [USER], True),
        ({"turn": 2}, [USER, CALL, CALL, OUTPUT, OUTPUT], True),
        ({"turn": 3}, [USER, {"type": "reasoning"}, CALL, OUTPUT, SAID, AGAIN], True),
        ({"turn": 1}, [USER, CALL, OUTPUT], False),
    ],
)
def test_what_a_turn_matches_of_a_conversation(match: dict[str, Any], items: list[Any], there: bool) -> None:
    body = {"model": "m", "instructions": "Be brief.", "input": items}
    assert isinstance(Choice([Turn(match=match)]).choose(body, None), tuple) == there
