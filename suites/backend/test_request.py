"""Which requests the backend accepts. Source: docs/contract/lite.md, "Request Body" and "Tool Specs", or the real service."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import zstandard

from codex_replay.plugin.backend.answer import Answer
from codex_replay.plugin.backend.conversation import Backend
from suites.backend.expected import CALL, CUSTOM_CALL, CUSTOM_OUTPUT, OUTPUT, body, completed, refused, user
from suites.lite_protocol import CUSTOM_TOOL, FUNCTION_TOOL, WEB_SEARCH_TOOL

#: Each case runs over HTTP and over a WebSocket.
pytestmark = pytest.mark.both_transports


@pytest.mark.spec(
    "body-whole",
    "LITE-31",
    "LITE-32",
    "LITE-33",
    "LITE-34",
    "LITE-35",
    "LITE-36",
    "LITE-37",
    "LITE-38",
    "LITE-39",
    "LITE-40",
    "LITE-41",
    "LITE-42",
)
def test_the_whole_body_of_the_specification(backend: Backend) -> None:
    """The backend accepts a request with every key of the example, including an output schema."""
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    text = {"verbosity": "medium", "format": {"type": "json_schema", "strict": True, "name": "answer", "schema": schema}}
    completed(backend.ask(body(tools=[FUNCTION_TOOL], text=text)))


@pytest.mark.spec("body-format-unnamed", "LITE-42", "LITE-43")
def test_a_format_without_a_name(backend: Backend) -> None:
    """The backend accepts the output format of the example, which has only type, strict and schema."""
    given = {"type": "json_schema", "strict": True, "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    completed(backend.ask(body(text={"verbosity": "medium", "format": given})))


@pytest.mark.spec("body-least", "LITE-31", "LITE-33")
def test_what_may_be_left_out(backend: Backend) -> None:
    """The backend accepts a request without `tools`, `reasoning`, `text` and `include`."""
    left_out: dict[str, Any] = dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls", "reasoning", "include", "text"), ...)
    completed(backend.ask(body(**left_out, prompt_cache_key=...)))


@pytest.mark.spec("body-nulls", "REAL-29")
def test_no_reasoning_is_null(backend: Backend) -> None:
    """The backend accepts null for reasoning; the real client sends it for an unknown model."""
    completed(backend.ask(body(reasoning=None, include=[])))


@pytest.mark.spec("body-gzip", "REAL-26")
@pytest.mark.http_only
def test_a_compressed_body(backend: Backend) -> None:
    """The backend accepts a compressed body."""
    packed = gzip.compress(json.dumps(body()).encode())
    completed(backend.ask(packed, {"content-encoding": "gzip"}))


@pytest.mark.spec("body-zstd", "REAL-26", "REAL-117")
@pytest.mark.http_only
def test_a_body_that_codex_compresses(backend: Backend) -> None:
    """The backend accepts a body that is compressed with zstd, as Codex from 0.93 on compresses bodies."""
    packed = zstandard.compress(json.dumps(body()).encode())
    completed(backend.ask(packed, {"content-encoding": "zstd"}))


@pytest.mark.spec("body-long", "LITE-57", "LITE-67")
def test_a_long_conversation(backend: Backend) -> None:
    """The backend accepts a body of 300 KB: a conversation with 15 outputs of 20,000 characters."""
    rounds = [{**item, "call_id": f"call_{i}"} for i in range(15) for item in (CALL, {**OUTPUT, "output": "x" * 20_000})]
    completed(backend.ask(body(user("How long are they?"), *rounds)))


@pytest.mark.spec("body-unchanged", "LITE-32", "LITE-33", "LITE-37", "LITE-40", "LITE-41", "LITE-42", "LITE-45")
def test_the_model_gets_the_body_unchanged(backend: Backend) -> None:
    """The model gets the values of a request as the client sent them.

    Among the values are null, text that a Unicode normalisation changes, an escaped character, and a long number.
    """
    text = "e\u0301 \u00e9 \ufb01 \u00a0\u2028 \\u0041 \U0001f980  "
    given: dict[str, Any] = {
        "instructions": text,
        "input": [user(text), {**CALL, "arguments": '{"b": 1.50, "a":12345678901234567890}'}, {**OUTPUT, "output": text}],
        "tools": [{**FUNCTION_TOOL, "description": text}],
        "reasoning": {"effort": "low", "summary": None},
        "text": {"verbosity": "low"},
    }
    sent = body(**given)
    backend.says("Hello.", expect={"body": {key: sent[key] for key in (*given, "include", "prompt_cache_key", "tool_choice")}})
    must_have_arrived(backend.ask(sent))


@pytest.mark.spec("headers-unchanged", "LITE-25", "LITE-26", "LITE-28", "REAL-25")
def test_the_model_gets_the_headers_unchanged(backend: Backend) -> None:
    """The model gets the headers that name the client, its conversation and its turn."""
    given = {
        "originator": "my_client",
        "user-agent": "my_client/1.2 (Debian 12; x86_64)",
        "session_id": "0199a1b2-0000-7000-8000-00000000000a",
        "x-codex-turn-state": "state-of-turn-1",
    }
    backend.says("Hello.", expect={"headers": given})
    must_have_arrived(backend.ask(body(), given))


@pytest.mark.spec("turn-state", "REAL-25")
@pytest.mark.http_only
def test_the_client_gets_the_state_of_its_turn(backend: Backend) -> None:
    """The client gets the response header `x-codex-turn-state`, which it must send back in the same turn."""
    backend.says("Hello.", headers={"x-codex-turn-state": "state-of-turn-1"})
    headers = completed(backend.ask(body())).headers
    assert ("x-codex-turn-state", "state-of-turn-1") in [(name.lower(), value) for name, value in headers], headers


def must_have_arrived(answer: Answer) -> None:
    """Check that the model accepted a request; the fake backend answers 501 with the first difference if the request differs."""
    assert answer.status != 501, f"the model got another request than the client sent: {answer.error['message']}"
    completed(answer)


@pytest.mark.spec("body-json", source="known behaviour of the real service", says="a body that is not JSON is 400")
@pytest.mark.parametrize("data", [b"", b"{", b'{"model":"m",}', b"model=m"], ids=["empty", "open", "comma", "form"])
def test_no_json(backend: Backend, data: bytes) -> None:
    """The backend refuses a body that is not JSON."""
    refused(backend.ask(data), 400)


@pytest.mark.spec("body-object", source="known behaviour of the real service", says="a body that is not an object is 400")
@pytest.mark.parametrize("data", [b"[]", b'"hi"', b"null", b"5"])
def test_no_object(backend: Backend, data: bytes) -> None:
    """The backend refuses a JSON body that is not an object."""
    refused(backend.ask(data), 400)


@pytest.mark.spec("body-model", "LITE-31")
def test_no_model(backend: Backend) -> None:
    """A request without `model` is refused."""
    assert "model" in refused(backend.ask(body(model=...)), 400)["message"]


@pytest.mark.spec("body-input", "LITE-33")
def test_no_input(backend: Backend) -> None:
    """A request without `input` is refused."""
    assert "input" in refused(backend.ask(body(input=...)), 400)["message"]


@pytest.mark.spec(
    "body-types",
    "LITE-31",
    "LITE-32",
    "LITE-33",
    "LITE-34",
    "LITE-35",
    "LITE-36",
    "LITE-37",
    "LITE-38",
    "LITE-39",
    "LITE-40",
    "LITE-41",
    "LITE-42",
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", 5),
        ("instructions", 5),
        ("input", 5),
        ("tools", {}),
        ("parallel_tool_calls", "no"),
        ("reasoning", "high"),
        ("store", 0),
        ("stream", "yes"),
        ("include", "reasoning.encrypted_content"),
        ("prompt_cache_key", 7),
        ("text", "medium"),
    ],
)
def test_a_key_of_another_type(backend: Backend, key: str, value: object) -> None:
    """An invalid value of any key is refused; the error message names the key."""
    error = refused(backend.ask(body(**{key: value})), 400)
    assert error["param"] == key
    assert key in error["message"]


@pytest.mark.spec("body-unknown", source="known behaviour of the real service", says="a parameter that does not exist is 400")
def test_an_unknown_key(backend: Backend) -> None:
    """An unknown key is refused; the error message names the key."""
    error = refused(backend.ask(body(max_tokens=5)), 400)
    assert error["param"] == "max_tokens"


@pytest.mark.spec("body-previous-response", "LITE-44")
@pytest.mark.http_only
def test_previous_response_id(backend: Backend) -> None:
    """`previous_response_id` is refused; the whole conversation must be in `input`."""
    assert "previous_response_id" in refused(backend.ask(body(previous_response_id="resp_1")), 400)["message"]


@pytest.mark.spec(
    "body-store", "LITE-38", source="known behaviour of the real service", says="`store` must be false on the ChatGPT path"
)
def test_store(backend: Backend) -> None:
    """The backend refuses a request if `store` is true or missing, because the default of the API is true."""
    for value in (True, ...):
        assert "store" in refused(backend.ask(body(store=value)), 400)["message"]


@pytest.mark.spec(
    "body-stream", "LITE-39", source="known behaviour of the real service", says="`stream` must be true on the ChatGPT path"
)
@pytest.mark.http_only
def test_stream(backend: Backend) -> None:
    """`stream` must be true."""
    for value in (False, ...):
        assert "stream" in refused(backend.ask(body(stream=value)), 400)["message"].lower()


@pytest.mark.spec("tool-function", "LITE-45")
def test_a_function_tool(backend: Backend) -> None:
    """The backend accepts the function tool of the specification."""
    completed(backend.ask(body(tools=[FUNCTION_TOOL])))


@pytest.mark.spec("tool-web-search", "LITE-46")
def test_a_web_search_tool(backend: Backend) -> None:
    """The backend accepts the web search tool of the specification."""
    completed(backend.ask(body(tools=[WEB_SEARCH_TOOL])))


@pytest.mark.spec("tool-custom", "LITE-47")
def test_a_custom_tool(backend: Backend) -> None:
    """The backend accepts the custom tool of the specification."""
    completed(backend.ask(body(tools=[CUSTOM_TOOL])))


@pytest.mark.spec("tool-type", "LITE-45", "LITE-46", "LITE-47")
@pytest.mark.parametrize("tool", [{"type": "funktion", "name": "add"}, {"name": "add"}, "add"], ids=["unknown", "none", "string"])
def test_a_tool_of_no_type(backend: Backend, tool: object) -> None:
    """The backend refuses a tool that has an unknown type or no type, or that is not an object."""
    assert refused(backend.ask(body(tools=[tool])), 400)["param"].startswith("tools[0]")


@pytest.mark.spec("tool-name", "LITE-45")
def test_a_tool_without_a_name(backend: Backend) -> None:
    """The backend refuses a tool with its name inside `function`, which is the form of the chat API."""
    nested = {"type": "function", "function": {"name": "add", "parameters": FUNCTION_TOOL["parameters"]}}
    assert "name" in refused(backend.ask(body(tools=[nested])), 400)["message"]


@pytest.mark.spec("tool-choice", "LITE-35")
@pytest.mark.parametrize("choice", ["always", {"type": "function", "name": "mul"}], ids=["word", "tool"])
def test_a_choice_that_does_not_exist(backend: Backend, choice: object) -> None:
    """The backend refuses a `tool_choice` with an unknown word or an undeclared tool."""
    assert "tool_choice" in refused(backend.ask(body(tools=[FUNCTION_TOOL], tool_choice=choice)), 400)["message"]


@pytest.mark.spec("item-type", "LITE-33")
@pytest.mark.parametrize("item", [{"type": "function_result"}, {"text": "hi"}, "hi"], ids=["unknown", "none", "string"])
def test_an_item_of_no_type(backend: Backend, item: Any) -> None:
    """The backend refuses an item that has an unknown type or no type, or that is not an object; the message names the item."""
    assert refused(backend.ask(body(user("Hi"), item)), 400)["param"].startswith("input[1]")


@pytest.mark.spec("item-fields", "LITE-57")
@pytest.mark.parametrize(
    ("items", "key"),
    [
        ((CALL, OUTPUT), "call_id"),
        ((CALL, OUTPUT), "name"),
        ((CALL, OUTPUT), "arguments"),
        ((CUSTOM_CALL, CUSTOM_OUTPUT), "input"),
        ((OUTPUT, CALL), "output"),
        ((CUSTOM_OUTPUT, CUSTOM_CALL), "output"),
    ],
)
def test_a_call_without_what_belongs_to_it(backend: Backend, items: tuple[dict[str, Any], ...], key: str) -> None:
    """The backend refuses a call or an output that lacks a required field; the message names the field."""
    first = {name: value for name, value in items[0].items() if name != key}
    assert key in refused(backend.ask(body(user("Hi"), first, *items[1:])), 400)["message"]


@pytest.mark.spec("item-arguments", "LITE-57")
def test_arguments_are_a_string(backend: Backend) -> None:
    """The arguments of a call must be a string that contains JSON; the backend refuses an object."""
    assert "arguments" in refused(backend.ask(body(user("Hi"), {**CALL, "arguments": {"a": 2, "b": 3}}, OUTPUT)), 400)["message"]


@pytest.mark.spec("message-role", source="known behaviour of the real service", says="an unknown role is 400")
def test_a_role_that_does_not_exist(backend: Backend) -> None:
    """The backend refuses a message with another role than user, assistant, system and developer."""
    assert "role" in refused(backend.ask(body({**user("Hi"), "role": "robot"})), 400)["message"]


@pytest.mark.spec("message-parts", source="known behaviour of the real service", says="a part of an unknown type is 400")
@pytest.mark.parametrize("content", [[{"type": "text", "text": "Hi"}], 5, ["Hi"]], ids=["chat", "number", "strings"])
def test_a_part_that_does_not_exist(backend: Backend, content: object) -> None:
    """The backend refuses a message part of an unknown type; `text`, the type of the chat API, is also unknown."""
    assert "content" in str(refused(backend.ask(body({**user("Hi"), "content": content})), 400)["param"])


@pytest.mark.spec(
    "message-string",
    source="known behaviour of the real service",
    says="the content of a message, and the input, may be a string",
)
def test_content_and_input_as_strings(backend: Backend) -> None:
    """The backend accepts a string as the content of a message and as `input`."""
    completed(backend.ask(body({"role": "user", "content": "Hi"})))
