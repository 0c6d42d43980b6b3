"""The six edge cases of the specification, and the follow-up request.

Source: docs/contract/lite.md, "Edge Case Behavior (Observed)".
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.backend.conversation import Backend
from suites.backend.expected import CALL, CALL_ADD, CUSTOM_CALL, CUSTOM_OUTPUT, OUTPUT, REPEAT, body, completed, refused, user
from suites.lite_protocol import CUSTOM_TOOL, FUNCTION_TOOL

#: Each case runs over HTTP and over a WebSocket.
pytestmark = pytest.mark.both_transports


@pytest.mark.spec("edge-1-invalid-schema", "LITE-63")
@pytest.mark.parametrize("parameters", [{"type": "banana"}, "no schema", {"type": "object", "properties": [1]}])
def test_1_an_invalid_schema_is_ignored(backend: Backend, parameters: object) -> None:
    """A request with an invalid tool schema succeeds, and the model does not call the tool."""
    answer = completed(backend.ask(body(user(CALL_ADD), tools=[{**FUNCTION_TOOL, "parameters": parameters}])))
    assert [item["type"] for item in answer.items if item["type"] == "function_call"] == []


@pytest.mark.spec("edge-2-invalid-arguments", "LITE-64")
@pytest.mark.parametrize("arguments", ['{"a":2,', "", "a = 2", "[2", '{"a":2}}'], ids=["cut", "empty", "words", "list", "brace"])
def test_2_arguments_that_are_no_json(backend: Backend, arguments: str) -> None:
    """The backend accepts an earlier call of the model whose arguments are not JSON."""
    message = [user("What is 2 + 3?"), {**CALL, "arguments": arguments}, OUTPUT]
    answer = completed(backend.ask(body(*message, tools=[FUNCTION_TOOL])))
    assert answer.text


@pytest.mark.spec("edge-3-output-without-call", "LITE-58", "LITE-65")
def test_3_an_output_without_its_call(backend: Backend) -> None:
    """The backend answers 400 to a function_call_output without its function_call; the error message names the call."""
    assert "call_1" in refused(backend.ask(body(user("What is 2 + 3?"), OUTPUT)), 400)["message"]


@pytest.mark.spec("edge-3-another-call", "LITE-58", "LITE-65")
def test_3_another_call_does_not_count(backend: Backend) -> None:
    """The backend refuses an output whose call_id belongs to no call."""
    refused(backend.ask(body(user("What is 2 + 3?"), {**CALL, "call_id": "call_9"}, OUTPUT)), 400)


@pytest.mark.spec("edge-3-one-of-two", "LITE-58", "LITE-65")
def test_3_a_call_that_is_answered_does_not_count(backend: Backend) -> None:
    """The backend refuses an output whose call is missing, even if the input also has another call and its output."""
    answered = [{**CALL, "call_id": "call_8"}, {**OUTPUT, "call_id": "call_8"}]
    assert "call_1" in refused(backend.ask(body(user("What is 2 + 3?"), *answered, OUTPUT)), 400)["message"]


@pytest.mark.spec("edge-3-custom", "LITE-58", "LITE-65")
def test_3_a_custom_output_without_its_call(backend: Backend) -> None:
    """The backend refuses the output of a custom tool if only a function call has the same call_id."""
    refused(backend.ask(body(user("Patch it."), CUSTOM_OUTPUT)), 400)
    refused(backend.ask(body(user("Patch it."), {**CALL, "call_id": "call_2"}, CUSTOM_OUTPUT)), 400)


@pytest.mark.spec("call-without-output", source="known behaviour of the real service", says="a call without an output is 400")
def test_a_call_without_its_output(backend: Backend) -> None:
    """The backend refuses a call without its output."""
    assert "call_1" in refused(backend.ask(body(user("What is 2 + 3?"), CALL)), 400)["message"]


@pytest.mark.spec("edge-4-no-tools", "LITE-66")
def test_4_asked_to_call_without_tools(backend: Backend) -> None:
    """If the request has no tools, the model answers with text."""
    answer = completed(backend.ask(body(user(CALL_ADD.replace("Say nothing else.", "Use the tool or say why you cannot.")))))
    assert [item["type"] for item in answer.items if item["type"].endswith("_call")] == []
    assert answer.text


@pytest.mark.spec("edge-5-large-output", "LITE-67")
def test_5_a_large_output(backend: Backend) -> None:
    """The backend accepts an output of more than 20,000 characters."""
    completed(backend.ask(body(user("How long is it?"), CALL, {**OUTPUT, "output": "x" * 20_000})))


@pytest.mark.spec("edge-6-mixed-order", "LITE-68")
def test_6_outputs_in_another_order(backend: Backend) -> None:
    """The outputs of several calls may come in any order; the call_id assigns each output to its call."""
    calls = [{**CALL, "call_id": f"call_{i}"} for i in (1, 2, 3)]
    outputs = [{**OUTPUT, "call_id": f"call_{i}", "output": f"result-{i}"} for i in (3, 1, 2)]
    answer = completed(backend.ask(body(user(REPEAT), *calls, *outputs)))
    assert [f"result-{i}" in answer.text for i in (1, 2, 3)] == [True, True, True], answer.text


@pytest.mark.spec("follow-up-rounds", "LITE-57", "LITE-68")
def test_calls_of_several_rounds(backend: Backend) -> None:
    """A call and its output may come after an earlier call with its output and after a message of the model."""
    rounds = [[{**CALL, "call_id": f"call_{i}"}, {**OUTPUT, "call_id": f"call_{i}", "output": f"result-{i}"}] for i in (1, 2, 3)]
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One more.", "annotations": []}]}
    answer = completed(backend.ask(body(user(REPEAT), *rounds[0], *rounds[1], words, *rounds[2])))
    assert "result-3" in answer.text


@pytest.mark.spec("follow-up", "LITE-57")
def test_a_follow_up_with_both(backend: Backend) -> None:
    """If a follow-up has the call and its output, the model knows the output."""
    answer = completed(backend.ask(body(user(REPEAT), CALL, {**OUTPUT, "output": "zq-771"}, tools=[FUNCTION_TOOL])))
    assert "zq-771" in answer.text


@pytest.mark.spec("follow-up-custom", "LITE-57")
def test_a_follow_up_of_a_custom_tool(backend: Backend) -> None:
    """If a follow-up has a custom call and its output, the model knows the output."""
    answer = completed(backend.ask(body(user(REPEAT), CUSTOM_CALL, {**CUSTOM_OUTPUT, "output": "zq-772"}, tools=[CUSTOM_TOOL])))
    assert "zq-772" in answer.text


@pytest.mark.spec("follow-up-error", "LITE-59")
def test_an_error_as_plain_text(backend: Backend) -> None:
    """The backend accepts an error text as the output of a tool."""
    answer = completed(backend.ask(body(user(REPEAT), CALL, {**OUTPUT, "output": "err: mul failed"})))
    assert "mul failed" in answer.text


@pytest.mark.spec("follow-up-utf8", "LITE-57")
def test_text_of_every_script_comes_back(backend: Backend) -> None:
    """The model's text repeats non-ASCII characters of the input unchanged."""
    word = "zoë-漢字-🦀-\u2028end"
    answer = completed(backend.ask(body(user(REPEAT), CALL, {**OUTPUT, "output": word})))
    assert word in answer.text
