"""Calls and their outputs. Source: docs/contract/lite.md, "Tool output follow-up", "Error output format" and the edge cases."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.exact import ERROR
from suites.lite_client.expected import ADD, call, items, outputs, part_of, then, user_texts
from suites.lite_protocol import CUSTOM_TOOL

CUSTOM: dict[str, Any] = {
    "tools": [CUSTOM_TOOL],
    "results": [
        {"name": "apply_patch", "input": "*** Begin Patch\n+ü\n", "output": "Done!"},
        {"name": "apply_patch", "output": "no"},
    ],
}


@pytest.mark.spec("follow-up-both-items", "LITE-57")
def test_call_and_output(lite_client: LiteClient) -> None:
    """After a call, the client's next input has the unchanged call, followed by the output of the call."""
    run = lite_client(script=then(call()), tools=ADD)
    assert run.text() == "done"
    both = [item for item in run.turns[1].body["input"] if str(item.get("type")).startswith("function_call")]
    assert [item["type"] for item in both] == ["function_call", "function_call_output"]
    assert part_of({"type": "function_call", "name": "add", "arguments": '{"a":2,"b":3}', "call_id": "call_1"}, both[0])
    assert part_of({"type": "function_call_output", "call_id": "call_1", "output": "5"}, both[1])


@pytest.mark.spec("follow-up-whole-input", "LITE-44", "LITE-57")
def test_the_conversation_so_far_is_sent_again(lite_client: LiteClient) -> None:
    """Each input of the client begins with the previous input, because the backend does not store responses."""
    script = [{"items": [call()]}, {"items": [call({"a": 20, "b": 30}, "call_2")]}, "done"]
    run = lite_client("Add up.", script=script, tools=ADD)
    assert run.text() == "done"
    first, second, third = [request.body["input"] for request in run.turns]
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert user_texts(run.turns[2]) == ["Add up."]
    assert outputs(run.turns[2]) == {"call_1": "5", "call_2": "50"}


@pytest.mark.spec("follow-up-reasoning", "LITE-40", "LITE-44")
def test_reasoning_goes_back(lite_client: LiteClient) -> None:
    """The client sends each reasoning item back unchanged, before the call that followed the item.

    The backend does not store responses (`store` is false), so the client must send the reasoning; the real Codex also sends the
    reasoning before the call.
    """
    first, second = ({"type": "reasoning", "summary": ["Adding"], "encrypted_content": f"b3BhcXV{end}"} for end in "ls")
    script = [{"items": [first, call()]}, {"items": [second, call({"a": 20, "b": 30}, "call_2")]}, "done"]
    run = lite_client(script=script, tools=ADD)
    assert run.text() == "done"
    report = [item.get("encrypted_content") or item.get("call_id") for item in run.turns[2].body["input"]]
    assert [word for word in report if word] == ["b3BhcXVl", "call_1", "call_1", "b3BhcXVs", "call_2", "call_2"]
    assert [item["encrypted_content"] for item in items(run.turns[1], "reasoning")] == ["b3BhcXVl"]


@pytest.mark.spec("follow-up-items", "LITE-33", "LITE-40", source="OpenAI API reference, Responses", says="input: items")
def test_what_goes_back_are_items_as_they_came(lite_client: LiteClient) -> None:
    """The client sends the model's reasoning and messages back in the form of the API: with their role, and the type of each
    part.

    A client may leave out the type of a message, and may send the text as a plain string.
    """
    thought = {"type": "reasoning", "summary": ["Adding"], "encrypted_content": "b3BhcXVl"}
    run = lite_client(script=[{"items": [thought, "I add.", call()]}, "done"], tools=ADD)
    assert run.text() == "done"
    found = run.turns[1].body["input"]
    assert [item.get("summary") for item in found if item.get("type") == "reasoning"] == [
        [{"type": "summary_text", "text": "Adding"}]
    ]
    messages = [item for item in found if item.get("type", "message") == "message"]
    assert [message.get("role") for message in messages] == ["user", "assistant"]
    content = messages[1]["content"]
    parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else content
    assert [(part.get("type"), part.get("text")) for part in parts] == [("output_text", "I add.")]
    for part in parts:
        for name in ("annotations", "logprobs"):
            assert part.get(name, []) == [], f"{name} of the model's text must go back unchanged, or be left out"


@pytest.mark.spec("follow-up-error-text", "LITE-59")
def test_an_error_is_plain_text(lite_client: LiteClient) -> None:
    """For a failed call, the client sends plain text as the output: `err: ` followed by the error of the given result."""
    run = lite_client(script=then(call(name="mul")), tools=ADD)
    assert run.text() == "done"
    assert outputs(run.turns[1]) == {"call_1": f"{ERROR}mul failed"}


@pytest.mark.spec("follow-up-unknown-function", "LITE-59")
def test_a_function_that_is_not_there(lite_client: LiteClient) -> None:
    """For a call to an unknown function, the client sends an error as the output, and the conversation continues."""
    run = lite_client(script=then(call(name="divide")), tools=ADD)
    assert run.text() == "done"
    assert str(outputs(run.turns[1])["call_1"]).startswith(ERROR)


@pytest.mark.parametrize("arguments", ['{"a":2,', "not json", ""], ids=["cut", "words", "empty"])
@pytest.mark.spec("edge-invalid-arguments", "LITE-64")
def test_arguments_that_are_not_json(lite_client: LiteClient, arguments: str) -> None:
    """The client sends invalid arguments back unchanged, with an error as the output, and the conversation continues."""
    run = lite_client(script=then(call(arguments)), tools=ADD)
    assert run.text() == "done"
    assert [item["arguments"] for item in items(run.turns[1], "function_call")] == [arguments]
    assert str(outputs(run.turns[1])["call_1"]).startswith(ERROR)


@pytest.mark.spec("edge-large-output", "LITE-67")
def test_a_large_output_is_sent_whole(lite_client: LiteClient) -> None:
    """The client does not shorten an output of 20,000 characters."""
    output = "".join(f"{number:05d} é\n" for number in range(2500))
    assert len(output) == 20_000
    run = lite_client(script=then(call()), tools={**ADD, "results": [{"name": "add", "output": output}]})
    assert run.text() == "done"
    assert outputs(run.turns[1]) == {"call_1": output}


@pytest.mark.parametrize("delays", [(80, 0, 40), (40, 80, 0), (80, 40, 0)], ids=["2-3-1", "3-1-2", "3-2-1"])
@pytest.mark.spec("edge-parallel-calls", "LITE-68")
def test_parallel_calls(lite_client: LiteClient, delays: tuple[int, int, int]) -> None:
    """If a response has several calls, the client sends the output of each call with its call id, in any order."""
    results = [
        {"name": "add", "arguments": {"a": n, "b": n}, "output": f"{n + n}", "delay_ms": delay}
        for n, delay in enumerate(delays, 1)
    ]
    calls = [call({"a": n, "b": n}, f"call_{n}") for n in (1, 2, 3)]
    run = lite_client(script=then(*calls), tools={**ADD, "results": results})
    assert run.text() == "done"
    assert len(run.turns) == 2
    assert {item["call_id"] for item in items(run.turns[1], "function_call")} == {"call_1", "call_2", "call_3"}
    assert outputs(run.turns[1]) == {"call_1": "2", "call_2": "4", "call_3": "6"}


@pytest.mark.spec("follow-up-empty-output", "LITE-57")
def test_an_empty_output_is_an_output(lite_client: LiteClient) -> None:
    """The client also sends an output for a call with an empty result."""
    run = lite_client(script=then(call()), tools={**ADD, "results": [{"name": "add", "output": ""}]})
    assert run.text() == "done"
    assert outputs(run.turns[1]) == {"call_1": ""}


@pytest.mark.spec("follow-up-custom", "LITE-47", "LITE-57")
def test_a_custom_call(lite_client: LiteClient) -> None:
    """The client treats the input of a freeform tool as text. The call and the output have the types for custom tools."""
    item = {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n+ü\n", "call_id": "call_c"}
    run = lite_client(script=[{"items": [item], "delta": 2}, "done"], tools=CUSTOM)
    assert run.text() == "done"
    assert [part_of(item, given) for given in items(run.turns[1], "custom_tool_call")] == [True]
    assert outputs(run.turns[1], "custom_tool_call_output") == {"call_c": "Done!"}
    assert items(run.turns[1], "function_call_output") == []
