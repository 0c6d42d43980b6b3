"""The script format: what is a script, and what is said of one that is not."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_fakes.backend.rules.tokens import KEYS
from codex_fakes.model import faults
from codex_replay.protocol.script import expect
from codex_replay.protocol.script.expect import difference, mismatch
from codex_replay.protocol.script.keys import ITEM_KEYS, SCRIPT_KEYS, TURN_KEYS
from codex_replay.protocol.script.script import BadScript, Script, Turn, parse


def test_the_shortest_script_is_a_list_of_texts() -> None:
    assert parse(["a", "b"]) == Script((Turn(({"type": "text", "text": "a"},)), Turn(({"type": "text", "text": "b"},))))


def test_defaults_hold_for_every_turn_that_does_not_say_otherwise() -> None:
    script = parse({"defaults": {"delta": 3, "headers": {"x": "1"}}, "turns": ["a", {"items": ["b"], "delta": 5}]})
    assert [turn.delta for turn in script.turns] == [3, 5]
    assert script.turns[0].headers == (("x", "1"),)


def test_short_forms_are_spelled_out() -> None:
    turn = parse([{"match": "m", "times": "always", "fault": "reset", "items": []}]).turns[0]
    assert (turn.match, turn.times, turn.fault) == ({"prompt": "m"}, None, {"name": "reset"})
    assert parse({"auth": "none"}).auth == {"mode": "none"}


BAD: dict[str, tuple[Any, str]] = {
    "not a script": (3, 'A script is a JSON object with a list "turns", but this is 3.'),
    "unknown key": ({"turn": []}, 'the script: "turn" is not a key of a script (did you mean "turns"?)'),
    "turns not a list": ({"turns": {}}, "the script.turns must be a list, not an object."),
    "turn not an object": ([[]], "turns[0] must be a string or an object, not a list."),
    "two letters swapped": ([{"itmes": []}], 'turns[0]: "itmes" is not a key of a turn (did you mean "items"?)'),
    "unknown turn key": ([{"item": []}], 'turns[0]: "item" is not a key of a turn (did you mean "items"?)'),
    "key of a turn": ({"itmes": []}, 'the script: "itmes" is not a key of a script (did you mean "items", a key of a turn?)'),
    "key of an item": (
        [{"argument": {}}],
        'turns[0]: "argument" is not a key of a turn (did you mean "arguments", a key of the item function_call?)',
    ),
    "nothing near": ({"zzzz": 1}, 'the script: "zzzz" is not a key of a script. The allowed keys are turns'),
    "unknown kind": ([{"items": [{"type": "txt"}]}], 'turns[0].items[0]: "txt" is not a kind of item (did you mean "text"?)'),
    "no kind": ([{"items": [{}]}], 'turns[0].items[0] has no "type". The types are text, '),
    "unknown item key": (
        [{"items": [{"type": "text", "txt": "x"}]}],
        'turns[0].items[0]: "txt" is not a key of a text item (did you mean "text"?)',
    ),
    "missing key": ([{"items": [{"type": "function_call"}]}], 'turns[0].items[0]: a function_call item needs "name".'),
    "wrong type": (
        [{"items": [{"type": "text", "text": 1}]}],
        "turns[0].items[0].text must be a string, not 1. Write it in quotes.",
    ),
    "true is no number": ([{"times": True}], 'turns[0].times must be a whole number (1 or more), or "always", not true.'),
    "wrong word": ({"otherwise": "x"}, "the script.otherwise must be one of miss, default, ask, not 'x'."),
    "deltas do not join": (
        [{"items": [{"type": "text", "text": "ab", "deltas": ["a"]}]}],
        'turns[0].items[0]: the joined "deltas" differ from the "text"',
    ),
    "more after the end": ([{"items": [{"type": "error"}, "x"]}], 'turns[0].items[0] is "error", which ends a reply'),
    "error without status": ([{"error": {}}], 'turns[0] has an "error" or a "body" but no "status"'),
    "items with a status": ([{"status": 500, "items": ["x"]}], 'turns[0] has "items" and status 500'),
    "status out of range": ([{"status": 99}], "turns[0].status must be an HTTP status from 200 to 599, not 99."),
    "unknown expectation": (
        [{"expect": {"modle": "x"}}],
        'turns[0].expect: "modle" is not a key of an expectation (did you mean "model"?)',
    ),
    "expectation of a wrong type": ([{"match": {"body": []}}], 'turns[0].match: "body" must be an object.'),
    "headers": ([{"headers": {"a": 1}}], 'turns[0].headers["a"] must be a string of one line, not 1.'),
    "negative delay": ([{"delay_ms": -1}], "turns[0].delay_ms must be a number of milliseconds, from 0 to 86400000, not -1."),
    "usage": ([{"usage": {"input_tokens": "x"}}], "turns[0].usage.input_tokens must be a whole number, 0 or more, not 'x'."),
    "usage of another type": ([{"usage": 5}], "turns[0].usage must be null, or an object of whole numbers, not 5."),
    "models": ({"models": [1]}, "models[0] must be an object, not 1."),
    "defaults": (
        {"defaults": {"items": []}},
        'defaults: "items" is not a key of the defaults (did you mean "items", a key of a turn?)',
    ),
    "word of the API": (
        [{"items": [{"type": "message"}]}],
        'turns[0].items[0]: "message" is not a kind of item (did you mean "text"?)',
    ),
    "key of the API": (
        [{"items": [{"type": "text", "content": "a"}]}],
        'turns[0].items[0]: "content" is not a key of a text item (did you mean "text"?)',
    ),
    "a number as a text": (
        [{"times": "2"}],
        "turns[0].times must be a whole number (1 or more), or \"always\", not '2'. Remove the quotes.",
    ),
    "yaml's no": ([{"items": [False]}], "turns[0].items[0] must be a string or an object, not false. Write it in quotes."),
    "a turn that yaml reads": ([2], "turns[0] must be a string or an object, not 2. Write it in quotes."),
    "json as an object": (
        [{"items": [{"type": "text", "text": {"a": 1}}]}],
        "turns[0].items[0].text must be a string, not an object. Write the JSON value as a string.",
    ),
    "one item": ([{"items": {"type": "text", "text": "a"}}], "turns[0].items must be a list, not an object. Put it into a list."),
    "unknown usage": (
        [{"usage": {"input_token": 1}}],
        'turns[0].usage: "input_token" is not a key of the usage (did you mean "input_tokens"?)',
    ),
    "negative usage": ([{"usage": {"input_tokens": -1}}], ".usage.input_tokens must be a whole number, 0 or more, not -1."),
    "deltas of an object": (
        [{"items": [{"type": "function_call", "name": "f", "arguments": {"a": 1}, "deltas": ["{}"]}]}],
        'turns[0].items[0]: the joined "deltas" differ from the "arguments"',
    ),
    "annotations": (
        [{"items": [{"type": "text", "text": "a", "annotations": ["b"]}]}],
        "turns[0].items[0].annotations must be a list of objects, not a list.",
    ),
    "two lines in a header": ([{"headers": {"a": "b\r\nc: d"}}], 'turns[0].headers["a"] must be a string of one line, not'),
    "a header's name": ([{"headers": [["a b", "c"]]}], "turns[0].headers: 'a b' cannot be the name of an HTTP header."),
    "half a header": ([{"headers": [["a", "b"], ["c"]]}], "turns[0].headers[1] must be a pair [name, value], not a list."),
    "two lines in a pair": ([{"headers": [["a", "b\n"]]}], "turns[0].headers[0][1] must be a string of one line, not"),
    "two lines in a header of a handshake": (
        {"websocket": {"headers": {"a": "b\nc"}}},
        'websocket.headers["a"] must be a string of one line, not',
    ),
    "the second handshake": (
        {"websocket": {"handshakes": ["ok", "http_4x4"]}},
        "websocket.handshakes[1] must be one of ok, closed, reset, http_400,",
    ),
    "an answer": (
        {"answers": {"model/list": [{"result": {}}, {"reslt": {}}]}},
        'answers["model/list"][1]: "reslt" is not a key of an answer (did you mean "result"?)',
    ),
    "an answer without a result": ({"answers": {"x": {}}}, 'answers["x"] must have either "result" or "error".'),
    "an answer as a string": ({"answers": {"x": "y"}}, "answers[\"x\"] must be an object, not 'y'."),
    "a fault without effect": (
        [{"status": 500, "fault": "reset"}],
        'turns[0] has status 500 and the fault "reset": an error response has no fault. Remove the fault or "status".',
    ),
    "a group that is not there": (
        [{"match": {"pattern": "(a)"}, "items": ["${2}"]}],
        "turns[0].items has ${2}, but the pattern has 1 group. Write ${0} for the whole match.",
    ),
    "a group that no output has": (
        [{"match": {"tool_pattern": "(a)"}, "items": ["${2}"]}],
        "turns[0].items has ${2}, but the pattern has 1 group. Write ${0} for the whole match.",
    ),
    "two patterns": (
        [{"match": {"tool_pattern": "a", "pattern": "b"}, "items": ["a"]}],
        'turns[0].match: "pattern" and "tool_pattern" cannot be used together, because both name the groups of the items.',
    ),
    **{
        f"result {name}": (
            [{"items": [{"type": "function_call", "name": "f", "result": result}]}],
            f"turns[0].items[0].result{told}",
        )
        for name, result, told in [
            (
                "duration",
                {"duration_ms": "long"},
                ".duration_ms must be a whole number of milliseconds, from 0 to 86400000, not 'long'.",
            ),
            ("part of a millisecond", {"duration_ms": 0.5}, ".duration_ms must be a whole number of milliseconds"),
            (
                "endless",
                {"duration_ms": 10**12},
                ".duration_ms must be a whole number of milliseconds, from 0 to 86400000, not 1",
            ),
            ("exit code", {"exit_code": None}, ".exit_code must be a whole number of at most 32 bits, not null."),
            ("large exit code", {"exit_code": 2**31}, ".exit_code must be a whole number of at most 32 bits, not 2147483648."),
            ("stdout", {"stdout": 5}, ".stdout must be a string, not 5. Write it in quotes."),
            ("aggregated", {"aggregated": None}, ".aggregated must be a string, not null."),
            ("hang", {"hang": "no"}, ".hang must be true or false, not 'no'."),
            ("amendment", {"amendment": "ls"}, ".amendment must be a list of strings, or null, not 'ls'."),
            ("misspelt", {"exitcode": 1}, ': "exitcode" is not a key of the result of a call (did you mean "exit_code"?)'),
            ("actions", {"actions": {}}, ".actions must be a list of objects, not an object. Put it into a list."),
            ("an action", {"actions": ["ls"]}, ".actions[0] must be an object, not 'ls'."),
            ("an empty action", {"actions": [{}]}, '.actions[0]: an action needs "type".'),
            ("a kind of action", {"actions": [{"type": "run", "cmd": "x"}]}, ".actions[0].type must be one of read, list_files"),
            ("denied", {"denied": True}, ".denied must be an object, not true."),
            ("within denied", {"denied": {"stderr": 1}}, ".denied.stderr must be a string, not 1."),
            ("denied twice", {"denied": {"denied": {}}}, '.denied: "denied" is not a key of the output in the sandbox'),
            ("changes", {"changes": []}, ".changes must be an object of file paths, not a list."),
            (
                "a change",
                {"changes": {"a.b": 1}},
                '.changes["a.b"] must be an object whose "type" is one of add, delete, update, not 1.',
            ),
            (
                "a kind of change",
                {"changes": {"a": {"type": "move"}}},
                '.changes["a"] must be an object whose "type" is one of add,',
            ),
            ("no content", {"changes": {"a": {"type": "add"}}}, '.changes["a"]: a change of the type add needs "content".'),
            (
                "move",
                {"changes": {"a": {"type": "update", "unified_diff": "", "move_path": 1}}},
                '.changes["a"].move_path must be',
            ),
        ]
    },
    "endless wait": (
        [{"items": [{"type": "wait", "ms": 1e300}]}],
        "turns[0].items[0].ms must be a number of milliseconds, from 0 to",
    ),
}


@pytest.mark.parametrize(("value", "sentence"), BAD.values(), ids=BAD.keys())
def test_a_mistake_is_told_with_its_place(value: Any, sentence: str) -> None:
    with pytest.raises(BadScript) as error:
        parse(value)
    assert sentence in str(error.value)
    assert str(error.value).endswith(".")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["turns", "items", "type", "text", "x"]), inner),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_a_script_or_a_sentence(value: object) -> None:
    with contextlib.suppress(BadScript):
        assert isinstance(parse(value), Script)


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_messages_of_the_system_are_instructions(role: str) -> None:
    body = {"model": "m", "input": [{"role": role, "content": "Be kind."}]}
    assert (mismatch({"instructions": "kind"}, body, None) is None) == (role != "user")


REQUEST = {
    "model": "m",
    "store": False,
    "tools": [{"type": "function", "name": "add"}],
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do case-7; now"}]},
        {"type": "function_call_output", "call_id": "c1", "output": "5"},
    ],
}
HEADERS = [("Originator", "me"), ("x", "1")]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"prompt": "case-7;"},
        {"prompt": ["case-7;", "now"]},
        {"model": "m"},
        {"body": {"tools": [{"name": "add"}], "store": False}},
        {"absent": ["previous_response_id"]},
        {"headers": {"originator": "me", "Y": None}},
        {"outputs": {"c1": "5"}},
    ],
)
def test_expectations_that_hold(wanted: dict[str, Any]) -> None:
    assert mismatch(wanted, REQUEST, HEADERS) is None


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"prompt": "case-8;"}, 'No text of the input contains "case-8;".'),
        ({"model": "n"}, "model is 'm', expected 'n'."),
        ({"body": {"store": 0}}, "body.store is False, expected 0."),
        ({"body": {"tools": []}}, "body.tools has 1 entries, expected 0."),
        ({"body": {"tools": [{"name": "sub"}]}}, "body.tools[0].name is 'add', expected 'sub'."),
        ({"body": {"text": {}}}, "body.text is missing."),
        ({"absent": ["store"]}, 'The body has "store"'),
        ({"headers": {"originator": "you"}}, "The header originator is 'me', expected 'you'."),
        ({"headers": {"z": "1"}}, "The header z is missing."),
        ({"headers": {"x": None}}, "The header x was expected to be absent, but is '1'."),
        ({"outputs": {"c2": "5"}}, "The input has no output for the call c2."),
        ({"outputs": {"c1": "6"}}, "The output of the call c1 is '5', expected '6'."),
        ({"outputs": {"c1": "Wall time: 0 seconds"}}, "The output of the call c1 is '5', expected 'Wall time: 0 seconds'."),
    ],
)
def test_expectations_that_fail_say_where(wanted: dict[str, Any], sentence: str) -> None:
    assert sentence in str(mismatch(wanted, REQUEST, HEADERS))


def test_a_string_input_is_a_prompt_too() -> None:
    assert mismatch({"prompt": "a"}, {"input": "cat"}, []) is None


@given(json_values)
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert difference(value, value) is None


# the page to learn it from


def test_the_page_names_every_key_kind_and_fault() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scripts.md").read_text()
    for table in (SCRIPT_KEYS, TURN_KEYS, ITEM_KEYS, *ITEM_KEYS.values(), KEYS, faults.NAMES, expect.KEYS):
        missing = [word for word in table if f"`{word}`" not in page and f'"{word}"' not in page]
        assert missing == []


def test_every_example_of_the_page_is_a_script() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scripts.md").read_text()
    examples = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 4
    for example in examples:
        value = json.loads(example)
        parse({"turns": [value]} if isinstance(value, dict) and "expect" in value else value)


@pytest.mark.parametrize(
    ("match", "sentence"),
    [
        ({"pattern": "("}, '"pattern" is not a regular expression'),
        ({"tool_pattern": "("}, '"tool_pattern" is not a regular expression'),
        ({"turn": 0}, '"turn" must be a whole number, 1 or more'),
        ({"turn": True}, '"turn" must be a whole number, 1 or more'),
        ({"repeated": 1}, '"repeated" must be true or false'),
        ({"user": 1}, '"user" must be a string'),
        ({"tools": "x"}, 'did you mean "tool"'),
    ],
)
def test_a_wrong_match_is_named(match: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadScript) as error:
        parse([{"match": match}])
    assert sentence in str(error.value)


_CALL = [{"type": "function_call", "call_id": "c"}, {"type": "function_call_output", "call_id": "c", "output": "5"}]


@pytest.mark.parametrize(
    ("sent", "repeated"),
    [
        ("user: a", False),
        ("user: a | user: a", False),  # submitted twice before the model answered
        ("user: a | assistant: A | user: a", True),
        ("user: a | user: b | assistant: A | user: a", True),
        ("user: a | assistant: A | user: b", False),
        ("user: b | assistant: B | user: a", False),  # a history that a client passes on
        ("assistant: A | user: a", False),
        ("user: a | call", False),  # the next call of the same reply
        ("user: a | call | user: a", True),
        ("user: a | assistant: A | user: a | call", True),
        ("user: a | assistant: A | user: a | user: b", False),
        ("", False),
    ],
)
def test_a_message_is_repeated_if_the_model_has_answered_it(sent: str, repeated: bool) -> None:
    items: list[dict[str, Any]] = []
    for part in filter(None, sent.split(" | ")):
        role, _, text = part.partition(": ")
        items += _CALL if role == "call" else [{"type": "message", "role": role, "content": text}]
    for wanted in (True, False):
        assert (mismatch({"repeated": wanted}, {"input": items}, []) is None) is (repeated is wanted)


@pytest.mark.parametrize(
    ("sent", "equal"),
    [
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\n1", True),
        ("Exit code: 0\nWall time: 12.5 seconds\nOutput:\n1", True),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\n1", False),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\n2", False),
        ("Exit code: 0\nOutput:\n1", False),
    ],
)
def test_the_wall_time_of_a_command_is_not_compared(sent: str, equal: bool) -> None:
    wanted = {"outputs": {"c1": "Exit code: 0\nWall time: 0.1 seconds\nOutput:\n1"}}
    body = {"input": [{"type": "function_call_output", "call_id": "c1", "output": sent}]}
    assert (mismatch(wanted, body, []) is None) is equal
