"""Ids that a backend makes up (`resp_...`, `msg_...`): named like uuids, in values and in the very text of an event."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from codex_fakes.scripted.state.ids import uuid7
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.masking import Rules
from codex_replay.core.normalise.normaliser import Normaliser, text_form
from codex_replay.protocol import data_tables
from codex_replay.protocol.recordings.compare import compare

TABLE = data_tables.load("normalise")
HEX = "0123456789abcdef" * 2
#: As two runs make them: of one backend in hex, of another in letters and digits of both cases.
ONE = {"resp": "resp_68af4030baa48193b0b43b4c2a176a1a", "msg": "msg_68af4031", "call": "call_Z0gEIRTJQDIbLxjyhaIYqFkb"}
OTHER = {"resp": "resp_11ffe000baa48193b0b43b4c2a176a1a", "msg": "msg_68af4031", "call": "call_abgEIRTJQ1IbL3jyYaIYqFkb"}


def normal(*values: Any) -> list[Any]:
    normaliser = Normaliser(TABLE)
    for value in values:
        normaliser.learn(value)
    return [normaliser.value(value) for value in values]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"resp_{HEX}", "<resp:1>"),
        (f"no resp_{HEX}, but msg_{HEX}", "no <resp:1>, but <msg:1>"),
        ("call_Z0gEIRTJQDIbLxjyhaIYqFkb", "<call:1>"),
        (f"chatcmpl-{HEX}", "<chatcmpl:1>"),
        (f'{{"call_id":"call_{HEX}"}}', '{"call_id":"<call:1>"}'),
        (f"/v1/responses/resp_{HEX}/cancel", "/v1/responses/<resp:1>/cancel"),
        # What counts is what somebody chose: a number, a name, a short id, a word, a hash, the client id of a program.
        ("resp_1", "resp_1"),
        ("msg_68af4031", "msg_68af4031"),
        ("call_function_arguments_and_more_of_it", "call_function_arguments_and_more_of_it"),
        ("call_internationalisation", "call_internationalisation"),
        ("call_getTheWeatherOfTomorrow", "call_getTheWeatherOfTomorrow"),
        ("app_EMoamEEZ73f0CkXaXp7hrann", "app_EMoamEEZ73f0CkXaXp7hrann"),
        (f"xresp_{HEX}", f"xresp_{HEX}"),
        (f"sha_{HEX}", f"sha_{HEX}"),
    ],
)
def test_an_id_that_nobody_chose_is_named_and_nothing_else(text: str, named: str) -> None:
    assert Normaliser(TABLE).text(text) == named


def test_identity_is_still_compared() -> None:
    a, b = f"msg_{HEX}", f"msg_{HEX[::-1]}"
    assert normal({"id": a}, {"item_id": a}) == normal({"id": b}, {"item_id": b})
    assert normal({"id": a}, {"item_id": a}) != normal({"id": a}, {"item_id": b})
    assert normal({"id": a}) != normal({"id": f"fc_{HEX}"})


@pytest.mark.parametrize("prefix", TABLE["made_ids"]["prefixes"])
def test_each_prefix_is_needed(prefix: str) -> None:
    text = f"{prefix}_{HEX}"
    assert Rules(TABLE).identities(text) == [text]
    fewer = [one for one in TABLE["made_ids"]["prefixes"] if one != prefix]
    assert Rules({**TABLE, "made_ids": {"prefixes": fewer}}).identities(text) == []


def sse(value: Any, text: str | None = None) -> Frame:
    """One event as the wire had it: where `text` is given, in a form of its own."""
    payload = {"event": value["type"], "data": value} if text is None else {"event": value["type"], "text": text, "view": value}
    return Frame(1, 0.0, "http", "server", "sse", b"", payload, 1)


def spaced(value: Any) -> str:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"


EVENT = {"type": "response.created", "response": {"id": ONE["resp"], "created_at": 1763803037, "text": "Hé 10"}}
AGAIN = {"type": "response.created", "response": {"id": OTHER["resp"], "created_at": 1763803999.5, "text": "Hé 10"}}
CHANGES: dict[str, Callable[[Any], str]] = {
    "another text": lambda value: spaced(value).replace(" 10", " 11"),
    "a field less": lambda value: spaced({**value, "response": {"id": value["response"]["id"]}}),
    "the space is gone": lambda value: spaced(value).replace(", ", ","),
    "another end of line": lambda value: spaced(value).replace("\n", "\r\n"),
    "a comment": lambda value: ": busy\n" + spaced(value),
    "an id of the event": lambda value: "id: 7\n" + spaced(value),
    "another escape": lambda value: spaced(value).replace("\\u00e9", "é"),
    "a number written otherwise": lambda value: spaced(value).replace("1763803999.5", "17638039995e-1"),
}


def test_an_event_in_a_form_of_its_own_is_compared_by_what_it_says() -> None:
    assert compare([sse(EVENT, spaced(EVENT))], [sse(AGAIN, spaced(AGAIN))]).equal
    assert compare([sse(EVENT)], [sse(AGAIN)]).equal


@pytest.mark.parametrize("change", CHANGES)
def test_and_still_by_its_form(change: str) -> None:
    text = CHANGES[change](AGAIN)
    data = next(line for line in text.splitlines() if line.startswith("data: "))
    found = compare([sse(EVENT, spaced(EVENT))], [sse(json.loads(data[6:]), text)])
    assert not found.equal


def test_the_form_of_a_text_tells_no_value() -> None:
    assert text_form('{"a": "x", "b" : [1, -2.5, true]}') == '{": ", " : [0, 0, true]}'
    assert text_form('{"a":"\\u0041"}') == '{":"~}'
    assert text_form("[1.50]") == "[0~]"


def test_ids_of_one_moment_sort_in_the_order_of_their_making() -> None:
    made = [uuid7(1_795_508_519.559) for _ in range(1000)]
    assert made == sorted(set(made))
    assert all(uuid.UUID(text).version == 7 for text in made)
