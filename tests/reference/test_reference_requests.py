"""The reference proxy makes instructions and the calls to its app-server of a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.asking.examples import example_for_schema
from codex_replay.reference.proxy.asking.instructions import RULES, tool_instructions
from codex_replay.reference.proxy.asking.intercept import intercepted
from codex_replay.reference.proxy.asking.models import ALIASES, normalize_model
from codex_replay.reference.proxy.asking.normalise import Asked, chat_request, responses_request
from codex_replay.reference.proxy.asking.parameters import summarize_schema_parameters
from codex_replay.reference.proxy.asking.tools import read_tools
from codex_replay.reference.proxy.errors import ProxyError, from_codex
from codex_replay.reference.proxy.settings import BadSetting, Settings, from_env
from codex_replay.reference.proxy.wire.json_text import for_client, for_server
from tests.reference.proxy_driver import ADD, FLAT, NESTED

SPECIFIED = Settings(profile="as-specified")
WORKS = Settings()


# -- the instructions ------------------------------------------------------------------------------------------------------

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
HARD = {
    "d": {"type": "string", "format": "date"},
    "p": {"type": "string", "pattern": "^[a-z]{3}$"},
    "l": {"type": "string", "minLength": 12},
    "m": {"type": "string", "maxLength": 2},
    "c": {"const": {"z": 1}},
    "i": {"type": ["null", "integer"]},
    "s": {"type": "integer", "multipleOf": 7, "minimum": 10},
    "q": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True},
}


def thing(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """A schema of an object; all its properties are required if nothing else is said."""
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


NARROW = {"type": "number", "exclusiveMinimum": 0.5, "maximum": 0.7}
NESTED_SCHEMA = thing(f=thing(p={"enum": ["x", "y"]}, q={"type": "array", "items": NARROW, "minItems": 2}))
NODE = thing(next={"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]})
SCHEMAS: dict[str, Any] = {
    "anything": {},
    "true": True,
    "no properties": {"type": "object"},
    "one of two required": thing(["b"], a=TEXT, b={"type": "integer", "minimum": 5}),
    "nested": NESTED_SCHEMA,
    "anyOf and oneOf": thing(u={"anyOf": [{"type": "null"}, TEXT]}, o={"oneOf": [NUMBER, TEXT]}),
    "a list of nodes": {"$defs": {"n": NODE}, **thing(root={"$ref": "#/$defs/n"})},
    "a tree": {"$defs": {"t": thing(kids={"type": "array", "items": {"$ref": "#/$defs/t"}})}, "$ref": "#/$defs/t"},
    "itself": thing([], k={"type": "array", "items": {"$ref": "#"}}),
    "hard values": thing(**HARD),
    "allOf": {"allOf": [thing(a=TEXT), {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}]},
    "a required name without a schema": {"type": "object", "required": ["x"], "additionalProperties": NUMBER},
    "two names at least": {"type": "object", "minProperties": 2},
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_an_example_is_an_object_that_the_schema_allows(case: str) -> None:
    schema = SCHEMAS[case]
    example = example_for_schema(schema)
    assert isinstance(example, dict)
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(example)


def test_every_parameter_has_its_line() -> None:
    lines = summarize_schema_parameters(NESTED_SCHEMA)
    assert lines == ["f (object, required)", "f.p (one value, required) one of x, y", "f.q (array of number, required)"]
    assert summarize_schema_parameters({}) == ["none"]


def tools(*functions: dict[str, Any], **more: Any) -> Any:
    return read_tools({"tools": [{"type": "function", **function} for function in functions], **more})


def test_the_instructions_are_the_rules_the_conditions_the_schemas_and_the_examples() -> None:
    strict = {**ADD, "name": "sub", "strict": True}
    choice = {"type": "function", "name": "add"}
    text = tool_instructions(tools(ADD, strict, tool_choice=choice))
    conditions = 'Tool choice is forced: you MUST call "add".\nStrict tools: sub. Arguments MUST conform exactly to schema.'
    assert text.startswith(f'{RULES}\n\n{conditions}\n\nAvailable tools (schema):\n- add: {{"type":"object",')
    assert text.endswith(
        "Tool: sub\nDescription: Adds.\nParameters:\n- a (integer, required)\nExample tool_call:\n"
        '<tool_call>{"name":"sub","arguments":"{\\"a\\":1}"}</tool_call>'
    )
    assert "\n\n\n" not in text
    assert tool_instructions(tools()) == ""
    for word in ("none", "required"):
        assert f"\n\nTool choice is {word}: " in tool_instructions(tools(ADD, tool_choice=word))
    assert "Tool choice" not in tool_instructions(tools(ADD, tool_choice="auto"))


def test_the_rules_are_the_spec_s_own_lines() -> None:
    spec = Path(__file__).parents[2] / "suites" / "proxy" / "developer-instructions.txt"
    assert spec.read_text(encoding="utf-8").startswith(RULES + "\n\nTool choice is none")


# -- requests --------------------------------------------------------------------------------------------------------------


def chat(settings: Settings = SPECIFIED, **body: Any) -> Asked:
    return chat_request({"model": "gpt-5.2", "messages": [{"role": "user", "content": "hi"}], **body}, settings)


def responses(settings: Settings = SPECIFIED, **body: Any) -> Asked:
    return responses_request({"model": "gpt-5.2", "input": "hi", **body}, settings)


def test_messages_become_lines_and_images_follow_their_role() -> None:
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:,x"}},
        {"type": "text", "text": "well"},
    ]
    called = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    asked = chat(
        messages=[
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c1", "content": "5"},
        ]
    )
    assert payloads.v1_items(asked) == [
        {"type": "text", "data": {"text": "[user] look\n[user]"}},
        {"type": "image", "data": {"image_url": "data:,x"}},
        {"type": "text", "data": {"text": "[user] well\n[function_call name=add call_id=c1] {}\n[tool_output call_id=c1] 5"}},
    ]
    assert asked.system == ("be kind",)


def test_items_are_never_empty() -> None:
    assert payloads.v1_items(chat(messages=[{"role": "system", "content": "x"}])) == [{"type": "text", "data": {"text": ""}}]
    assert payloads.v1_items(responses(input=[])) == [{"type": "text", "data": {"text": ""}}]


def test_developer_texts_go_to_the_instructions_and_the_client_s_instructions_come_last() -> None:
    given = [
        {"role": "developer", "content": "one"},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "two"}]},
    ]
    asked = responses(input=[*given, {"role": "user", "content": "hi"}], instructions="three", tools=[FLAT])
    told = payloads.new_conversation(asked, SPECIFIED)["developerInstructions"]
    assert told == tool_instructions(asked.tools) + "\n\none\n\ntwo\n\nthree"
    assert payloads.send_user_turn("c", asked, SPECIFIED)["developerInstructions"] == told
    assert payloads.new_conversation(asked, SPECIFIED)["baseInstructions"] is None


def test_system_messages_of_a_chat_are_dropped_unless_they_are_asked_for() -> None:
    asked = chat(messages=[{"role": "system", "content": "one"}, {"role": "user", "content": "hi"}])
    assert payloads.new_conversation(asked, SPECIFIED)["baseInstructions"] is None
    kept = payloads.new_conversation(asked, SPECIFIED._replace(ignore_system=False))
    assert kept["baseInstructions"] == "one"
    assert kept["developerInstructions"] is None


def test_the_payloads_of_a_plain_chat_are_the_spec_s() -> None:
    asked = chat(model="gpt-5.2-codev-l", n=1, tools=[NESTED], max_tokens=65000)
    assert payloads.new_conversation(asked, SPECIFIED) == {
        "model": "gpt-5.2",
        "cwd": "/tmp/codex-work",
        "approvalPolicy": "never",
        "sandbox": "read-only",
        "developerInstructions": tool_instructions(asked.tools),
        "baseInstructions": None,
        "compactPrompt": None,
        "config": None,
        "includeApplyPatchTool": False,
    }
    turn = payloads.send_user_turn("c", asked, SPECIFIED)
    assert list(turn) == [
        "conversationId", "items", "cwd", "approvalPolicy", "sandboxPolicy", "model", "summary", "effort", "choiceCount",
        "choice_count", "tools", "outputSchema", "output_schema", "developerInstructions",
    ]  # fmt: skip
    assert (turn["effort"], turn["choiceCount"], turn["tools"]) == ("low", 1, {"definitions": [NESTED]})
    message = payloads.send_user_message("c", asked, SPECIFIED)
    assert list(message) == [
        "conversationId", "items", "includeUsage", "include_usage", "stream", "temperature", "topP", "top_p", "maxOutputTokens",
        "max_output_tokens", "tools", "responseFormat", "response_format", "finalOutputJsonSchema", "final_output_json_schema",
    ]  # fmt: skip
    assert (message["maxOutputTokens"], message["stream"], message["temperature"]) == (65000, False, None)


def test_effort_goes_on_the_message_of_responses_and_the_explicit_one_wins() -> None:
    implied, explicit = responses(model="gpt-5.2-codev-l"), responses(model="gpt-5.2-codev-l", reasoning={"effort": "high"})
    assert payloads.send_user_message("c", implied, SPECIFIED)["reasoning"] == {"effort": "low"}
    assert payloads.send_user_message("c", explicit, SPECIFIED)["reasoning"] == {"effort": "high"}
    assert "reasoning" not in payloads.send_user_message("c", responses(), SPECIFIED)
    assert "reasoning" not in payloads.send_user_message("c", chat(model="gpt-5.2-codev-l"), SPECIFIED)
    assert implied.model == ("gpt-5.2-codev-l", "gpt-5.2", "low")


def test_the_manifest_can_be_left_out() -> None:
    asked = responses(tools=[FLAT])
    omit = SPECIFIED._replace(omit_manifest=True)
    assert payloads.send_user_message("c", asked, SPECIFIED)["tools"] == {"definitions": [NESTED]}
    assert payloads.new_conversation(asked, SPECIFIED)["dynamicTools"] == [
        {"name": "add", "description": "Adds.", "inputSchema": ADD["parameters"]}
    ]
    for params in (
        payloads.new_conversation(asked, omit),
        payloads.send_user_turn("c", asked, omit),
        payloads.send_user_message("c", asked, omit),
    ):
        assert {"tools", "dynamicTools"}.isdisjoint(params)
    assert "Available tools" in payloads.new_conversation(asked, omit)["developerInstructions"]


def test_a_schema_of_the_answer_reaches_its_fields() -> None:
    schema = {"type": "object"}
    flat = {"type": "json_schema", "name": "x", "schema": schema}
    nested = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    for asked, shape in ((responses(text={"format": flat}), flat), (chat(response_format=nested), nested)):
        message = payloads.send_user_message("c", asked, SPECIFIED)
        assert message["responseFormat"] == message["response_format"] == shape
        assert message["finalOutputJsonSchema"] == message["final_output_json_schema"] == schema
        assert payloads.turn_start("t", asked)["outputSchema"] == schema


def test_on_092_the_tools_are_dynamic_tools_and_the_instructions_say_nothing_of_markup() -> None:
    params = payloads.thread_start(responses(WORKS, tools=[FLAT], instructions="last"), WORKS)
    assert [tool["name"] for tool in params["dynamicTools"]] == ["add"]
    assert params["developerInstructions"] == "last"
    assert "dynamicTools" not in payloads.thread_start(responses(WORKS, tools=[FLAT], tool_choice="none"), WORKS)


BAD_REQUESTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "no messages": (chat, {"messages": []}),
    "an unknown role": (chat, {"messages": [{"role": "robot", "content": "x"}]}),
    "a tool that is no function": (responses, {"tools": [{"type": "web_search"}]}),
    "a tool without a name": (responses, {"tools": [{"type": "function"}]}),
    "a choice of no tool": (responses, {"tools": [FLAT], "tool_choice": {"type": "function", "name": "other"}}),
    "an unknown effort": (responses, {"reasoning": {"effort": "much"}}),
    "a stream that is no boolean": (chat, {"stream": "yes"}),
    "no input": (responses, {"input": None}),
    "an unknown item": (responses, {"input": [{"type": "mystery"}]}),
    "a file": (responses, {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}),
    "something before": (responses, {"previous_response_id": "resp_1"}),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_a_bad_request_is_400_with_a_sentence(case: str) -> None:
    make, body = BAD_REQUESTS[case]
    with pytest.raises(ProxyError) as caught:
        make(**body)
    assert caught.value.status == 400
    assert caught.value.message.endswith(".")


def test_aliases() -> None:
    assert set(ALIASES) == {f"gpt-5.2-codev-{letter}" for letter in ("l", "m", "h", "xh")}
    assert normalize_model(" GPT-5.2-codev-XH ") == (" GPT-5.2-codev-XH ", "gpt-5.2", "xhigh")
    assert normalize_model("o9") == ("o9", "o9", None)


def test_settings() -> None:
    found = from_env({"PROXY_API_KEYS": "a, b", "PORT": "80", "PROXY_RESPONSES_SKIP_TURN": "true", "PROXY_SANDBOX_MODE": ""})
    assert (found.keys, found.port, found.skip_turn, found.sandbox) == (("a", "b"), 80, True, "read-only")
    for name in (
        "PROXY_PORT",
        "PROXY_PROFILE",
        "PROXY_TOOL_CALLS",
        "PROXY_APPROVAL_POLICY",
        "PROXY_RESPONSES_SKIP_TURN",
        "PROXY_EXPERIMENTAL_API",
        "PROXY_RESPONSES_OUTPUT_MODE",
    ):
        with pytest.raises(BadSetting, match=name):
            from_env({name: "nonsense"})


def test_surrogates_reach_neither_side_as_something_it_cannot_read() -> None:
    assert for_server({"a": "\ud800\u2028"}) == '{"a":"\ufffd\u2028"}\n'.encode()
    assert for_client({"a": "\ud800\u2028\U0001f600"}) == b'{"a":"\\ud800\\u2028\\ud83d\\ude00"}'


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Generate a concise title for this conversation.\n\nUser: why is the sky blue at noon", "why is the sky blue"),
        ("Please summarize this conversation:\nUser: hello there", "hello there"),
        ("Write a title for my poem about rain", None),
        ("What is the title of this chat show?", None),
    ],
)
def test_titles_and_summaries_are_answered_here(text: str, answer: str | None) -> None:
    assert intercepted(responses(input=text)) == answer
    assert intercepted(responses(input=text, tools=[FLAT])) is None


ERRORS: list[tuple[str, Any, int, str]] = [
    ("x", "contextWindowExceeded", 400, "context_length_exceeded"),
    ("x", "context_window_exceeded", 400, "context_length_exceeded"),
    ("x", "usageLimitExceeded", 429, "insufficient_quota"),
    ("x", {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, 429, "rate_limit_exceeded"),
    ("x", {"response_too_many_failed_attempts": {"http_status_code": 503}}, 503, "upstream_unavailable"),
    ("exceeded retry limit, last status: 429 Too Many Requests", "other", 429, "rate_limit_exceeded"),
    ("unexpected status 503 Service Unavailable: , url: x", "other", 503, "upstream_unavailable"),
    ("unexpected status 403 Forbidden: , url: x", "other", 502, "upstream_error"),
    ("stream disconnected before completion: stream closed before response.completed", "other", 502, "upstream_error"),
    ("stream disconnected before completion: idle timeout waiting for SSE", "other", 504, "upstream_timeout"),
    ("x", "internalServerError", 502, "upstream_error"),
    ('{"error":{"message":"no such field"}}', "other", 400, "bad_request"),
    ("x", None, 502, "upstream_error"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "info", "status", "code"), ERRORS)
def test_a_failed_turn_becomes_the_right_error(message: str, info: Any, status: int, code: str) -> None:
    error = from_codex(message, info)
    assert (error.status, error.code) == (status, code)
