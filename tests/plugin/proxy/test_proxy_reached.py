"""What the suite for proxies takes for a text that reached the model, and for an output under its own call, in any form."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.reached import Called, must_be_paired, must_reach

A = Called("call_A", "north", "herons")
B = Called("call_B", "south", "lanterns")


def proxy(*inputs: Any, instructions: str = "Be kind.") -> Proxy:
    """A proxy whose model got these inputs."""
    calls = [{"body": {"instructions": instructions, "input": given}} for given in inputs]
    asked = SimpleNamespace(calls=lambda: [{"method": "turn/start"}], status=200, shown=lambda most: "'{}'")
    return cast("Proxy", SimpleNamespace(model_calls=lambda: calls, exchanges=[asked], marker="case-1;"))


def user(text: str) -> Any:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def call(call_id: str, path: str) -> Any:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": json.dumps({"path": path})}


def output(call_id: str, said: Any) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": said}


CALLS = "[call call_A north]\n[call call_B south]\n"
AS_CHAT = [{"id": "call_A", "arguments": '{"path":"north"}'}, {"id": "call_B", "arguments": '{"path":"south"}'}]
PAIRED: dict[str, Any] = {
    "items": [call("call_A", "north"), call("call_B", "south"), output("call_B", "lanterns"), output("call_A", "herons")],
    "items with parts": [
        call("call_A", "north"),
        output("call_A", [{"type": "input_text", "text": "herons"}]),
        user("lanterns call_B"),
    ],
    "items with ids of the proxy's own": [
        call("x1", "north"),
        call("x2", "south"),
        output("x1", "herons"),
        output("x2", "lanterns"),
    ],
    "lines": [user(f"{CALLS}[output call_B] lanterns\n[output call_A] herons")],
    "lines twice": [user(f"{CALLS}[output call_A] herons\n[output call_B] lanterns")] * 2,
    "a text": f"{CALLS}[output call_A] herons\n[output call_B] lanterns",
    "ids behind": [user(f"{CALLS}herons (call_A)\nlanterns (call_B)")],
    "json": [user(json.dumps([*AS_CHAT, {"id": "call_B", "content": "lanterns"}, {"id": "call_A", "content": "herons"}]))],
    "json, ids behind": [
        user(json.dumps([*AS_CHAT, {"content": "lanterns", "id": "call_B"}, {"content": "herons", "id": "call_A"}]))
    ],
    "at its call, without ids": [user("look(north) -> herons\nlook(south) -> lanterns")],
    "messages of their own": [user("call_A north"), user("call_B south"), user("call_B: lanterns"), user("call_A: herons")],
}
WRONG: dict[str, tuple[Any, str]] = {
    "items swapped": (
        [call("call_A", "north"), output("call_B", "herons"), output("call_A", "lanterns")],
        "under the call_id 'call_B'",
    ),
    "items under one id": ([output("call_A", "herons"), output("call_A", "lanterns")], "input[1] under the call_id 'call_A'"),
    "lines swapped": ([user(f"{CALLS}[output call_A] lanterns\n[output call_B] herons")], "under call_A"),
    "lines under the first": ([user(f"{CALLS}[output call_A] herons\n[output call_A] lanterns")], "under call_A"),
    "lines under the last": ([user(f"{CALLS}[output call_B] herons\n[output call_B] lanterns")], "under call_B"),
    "lines without ids": ([user(f"{CALLS}[output] herons\n[output] lanterns")], "under call_B"),
    "nothing but outputs": ([user("herons\nlanterns")], "without the id or the arguments of its call"),
    "ids behind, swapped": ([user(f"{CALLS}herons (call_B)\nlanterns (call_A)")], "under call_"),
    "one lost": ([user(f"{CALLS}[output call_A] herons")], "The output of call_B ('lanterns') did not reach the model."),
}


@pytest.mark.parametrize("given", PAIRED.values(), ids=PAIRED)
def test_outputs_under_their_own_calls(given: Any) -> None:
    must_be_paired(proxy(given), A, B)


@pytest.mark.parametrize(("given", "sentence"), WRONG.values(), ids=WRONG)
def test_outputs_under_other_calls(given: Any, sentence: str) -> None:
    with pytest.raises(AssertionError) as failed:
        must_be_paired(proxy(given), A, B)
    assert sentence in str(failed.value)
    assert "Texts of request 1 to the model:\n" in str(failed.value)


def test_a_text_reaches_the_model_wherever_it_stands() -> None:
    must_reach(proxy([user("one")], instructions="Be terse."), ("instructions", "terse"), ("messages[0]", "one"))
    must_reach(proxy("one and two"), ("messages[0]", "one"), ("messages[1]", "two"))


def test_a_text_that_is_lost_out_of_order_or_not_in_every_request() -> None:
    with pytest.raises(AssertionError, match=r"messages\[0\] of the client's request \('three'\) did not reach the model"):
        must_reach(proxy([user("one")]), ("messages[0]", "three"))
    with pytest.raises(AssertionError, match=r"\('one'\) reached the model before messages\[0\], which comes first there"):
        must_reach(proxy([user("one"), user("two")]), ("messages[0]", "two"), ("messages[1]", "one"))
    with pytest.raises(AssertionError, match="Texts of request 2 to the model"):
        must_reach(proxy([user("one")], [user("two")]), ("messages[0]", "one"))


def test_a_request_that_never_reached_the_model() -> None:
    with pytest.raises(
        AssertionError, match=r"it contains 'case-1;'\) reached the model. The proxy sent its app-server: turn/start"
    ):
        must_reach(proxy(), ("messages[0]", "one"))
