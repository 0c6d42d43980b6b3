"""The reference proxy: its parts as functions, and the program in front of a stand-in that does what the prompt says."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.reference.proxy.answering.events import Delta, Event, Item, Replies, Usage
from codex_replay.reference.proxy.answering.tool_calls import ToolCallParser
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
from tests.reference.proxy_driver import Proxy, plan, running
from tests.support.processes import ended

SPECIFIED = Settings(profile="as-specified")
WORKS = Settings()
ADD = {
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
FLAT = {"type": "function", **ADD}
NESTED = {"type": "function", "function": ADD}

# -- the calls in a text ---------------------------------------------------------------------------------------------------


def call(name: str = "t", arguments: str = '{"a":1}') -> str:
    return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) + "</tool_call>"


T = ("t", '{"a":1}')
VECTORS: dict[str, tuple[str, list[Any]]] = {
    "no call": ("hello", ["hello"]),
    "one call": (call(), [T]),
    "text around it": (f"a {call()} b", ["a ", T, " b"]),
    "two calls, space between": (f"{call()}\n{call('u')}\n", [T, ("u", '{"a":1}')]),
    "two calls, nothing between": (call() * 2, [T, T]),
    "in an array": (
        '<tool_call>[{"name":"t","arguments":"{}"},{"name":"u","arguments":{"b":1.0}}]</tool_call>x',
        [("t", "{}"), ("u", '{"b":1.0}'), "x"],
    ),
    "a fence inside": ('<tool_call>\n```json\n{"name":"t"}\n```\n</tool_call> after', [("t", "{}"), " after"]),
    "a trailing >": ('<tool_call>{"name":"t","arguments":"{}"}></tool_call>z', [("t", "{}"), "z"]),
    "a > after the tag": (call() + ">z", [T, "z"]),
    "a brace too many": ('<tool_call>{"name":"t","arguments":"{}"}}</tool_call>z', [("t", "{}"), "z"]),
    "closing tag repeated": (call() + "</tool_call>\n</tool_call> z", [T, " z"]),
    "opening tag repeated": ("<tool_call>" + call(), [T]),
    "closing tag missing at the end": ('<tool_call>{"name":"t","arguments":"{}"}', [("t", "{}")]),
    "closing tag missing before text": ('<tool_call>{"name":"t","arguments":"{}"}\nmore', [("t", "{}"), "\nmore"]),
    "closing tag missing before a call": (
        '<tool_call>{"name":"t","arguments":"{}"}' + call("u"),
        [("t", "{}"), ("u", '{"a":1}')],
    ),
    "closing tag in a string": (call("t", '{"s":"</tool_call>"}'), [("t", '{"s":"</tool_call>"}')]),
    "arguments as an object": ('<tool_call>{"arguments":{"k":1,"k":2.0},"name":"t"}</tool_call>', [("t", '{"k":1,"k":2.0}')]),
    "arguments empty": ('<tool_call>{"name":"t","arguments":""}</tool_call>', [("t", "{}")]),
    "arguments null": ('<tool_call>{"name":"t","arguments":null}</tool_call>', [("t", "{}")]),
    "arguments not escaped": ('<tool_call>{"name":"t","arguments":"{"a":"b"}"}</tool_call>', [("t", '{"a":"b"}')]),
    "a name twice": ('<tool_call>{"name":"a","name":"b","arguments":"{}"}</tool_call>', [("b", "{}")]),
    "arguments under another name": (
        '<tool_call>{"name":"t","args":{}}</tool_call>',
        ['<tool_call>{"name":"t","args":{}}</tool_call>'],
    ),
    "odd characters": (call("t", '{"s":"\u2028\u2029\U0001f600"}'), [("t", '{"s":"\u2028\u2029\U0001f600"}')]),
    "half a surrogate pair": ('<tool_call>{"name":"t","arguments":"\\ud800"}</tool_call>', [("t", "\ud800")]),
    "real line ends in a string": ('<tool_call>{"name":"t","arguments":"{\n}"}</tool_call>', [("t", "{\n}")]),
    "cut off in the object": ('a <tool_call>{"name":"t","argum', ["a "]),
    "cut off in the tag": ("a <tool_ca", ["a "]),
    "cut off after the tag": ("a <tool_call>", ["a "]),
    "cut off in the closing tag": ('<tool_call>{"name":"t"}</tool_', [("t", "{}")]),
    "a < at the end": ("1 <", ["1 <"]),
    "a < after a call": (call() + " <", [T, " <"]),
    "in a code block": (f"```\n{call()}\n```\n{call('u')}", [f"```\n{call()}\n```\n", ("u", '{"a":1}')]),
    "in a block of tildes": (f"~~~xml\n{call()}\n~~~", [f"~~~xml\n{call()}\n~~~"]),
    "in a code span": (f"say `{call()}` ok", [f"say `{call()}` ok"]),
    "a lone back-tick before": (f"a ` b {call()}", ["a ` b ", T]),
    "the tag in prose": ("The <tool_call> tag", ["The <tool_call> tag"]),
    "not JSON": ("<tool_call>{bad}</tool_call> rest", ["<tool_call>{bad}</tool_call> rest"]),
    "a brace missing": ('<tool_call>{"name":"t"</tool_call> b ' + call(), ['<tool_call>{"name":"t"</tool_call> b ', T]),
    "a quote missing": ('<tool_call>{"name":"t</tool_call> b ' + call(), ['<tool_call>{"name":"t</tool_call> b ', T]),
    "white space alone": (" \n", [" \n"]),
    "white space before a call": (" \n" + call(), [T]),
    "a code block after a call without an end": ('<tool_call>{"name":"t"}\n```py\nx\n```', [("t", "{}"), "\n```py\nx\n```"]),
}


def parsed(text: str, cuts: list[int] | None = None, parser: Any = ToolCallParser) -> list[Any]:
    reader = parser()
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts or []), len(text)]
    out: list[Any] = []
    pieces = [piece for a, b in pairwise(edges) for piece in reader.feed(text[a:b])]
    for piece in [*pieces, *reader.close()]:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece if isinstance(piece, str) else tuple(piece))
    return out


@pytest.mark.parametrize("case", VECTORS)
def test_calls_are_found_however_the_text_is_cut(case: str) -> None:
    text, wanted = VECTORS[case]
    assert parsed(text) == wanted
    assert parsed(text, list(range(len(text)))) == wanted
    for cut in range(len(text)):
        assert parsed(text, [cut]) == wanted, cut


@given(
    st.lists(st.sampled_from([*(text for text, _ in VECTORS.values()), "`", "\n", "</tool_call>", "```", "<", '"']), max_size=5),
    st.lists(st.integers(0, 999), max_size=6),
)
def test_the_cuts_never_matter(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    assert parsed(text, cuts) == parsed(text)


@given(st.text(alphabet="a <>`\n~"), st.lists(st.integers(0, 99), max_size=4))
def test_text_without_a_tag_is_never_changed(text: str, cuts: list[int]) -> None:
    assert "".join(parsed(text, cuts)) == text


def test_a_megabyte_of_arguments_in_small_pieces() -> None:
    arguments = json.dumps({"x": 'line "quoted"\n' * 80_000})
    reader = ToolCallParser()
    text = call("t", arguments)
    found = [piece for at in range(0, len(text), 64) for piece in reader.feed(text[at : at + 64])]
    assert [*found, *reader.close()] == [("t", arguments)]


class Naive:
    """What a parser does that looks for the tags in the whole text, at the end."""

    def __init__(self) -> None:
        self.said = ""

    def feed(self, text: str) -> list[Any]:
        self.said += text
        return []

    def close(self) -> list[Any]:
        parts = re.split(r"<tool_call>(.*?)</tool_call>", self.said)
        found = [json.loads(part) if at % 2 else part for at, part in enumerate(parts) if part]
        return [part if isinstance(part, str) else (part["name"], part["arguments"]) for part in found]


def test_a_naive_parser_fails_most_of_the_hard_vectors() -> None:
    failed = set()
    for case, (text, wanted) in VECTORS.items():
        try:
            ok = parsed(text, parser=Naive) == wanted
        except (ValueError, KeyError, TypeError):
            ok = False
        failed |= set() if ok else {case}
    assert {"no call", "one call", "text around it"}.isdisjoint(failed)
    assert len(failed) > 25


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


# -- the program -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["as-specified", "works-on-0.92"])
def proxy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("proxy"), PROXY_PROFILE=request.param) as found:
        yield found


def ask(**what: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": plan(**what)}]}


def test_health_models_and_keys(proxy: Proxy) -> None:
    assert proxy.ask("GET", "/health", headers={"authorization": ""}).json["status"] == "ok"
    assert {"gpt-5.2", "gpt-5.2-codev-l"} <= {model["id"] for model in proxy.ask("GET", "/v1/models").json["data"]}
    assert proxy.ask("GET", "/v1/models/gpt-5.2").json["id"] == "gpt-5.2"
    for path, method in (("/v1/models", "GET"), ("/v1/responses", "POST"), ("/v1/chat/completions", "POST")):
        refused = proxy.ask(method, path, {}, {"authorization": "Basic x"})
        assert (refused.status, refused.json["error"]["code"]) == (401, "invalid_api_key")
    assert proxy.ask("POST", "/v1/nothing", {}).status == 404
    assert proxy.ask("GET", "/v1/responses").status == 405
    assert proxy.ask("POST", "/v1/responses", b"{").status == 400
    assert proxy.ask("GET", "/health", headers={"x-request-id": "mine"}).headers["x-request-id"] == "mine"


def test_a_chat_whole_and_in_chunks(proxy: Proxy) -> None:
    whole = proxy.chat({**ask(say=["Hel", "lo"], odd=True), "model": "gpt-5.2-codev-l"}).json
    assert whole["choices"][0]["message"]["content"] == "Hello"
    assert (whole["model"], whole["choices"][0]["finish_reason"]) == ("gpt-5.2-codev-l", "stop")
    assert whole["usage"]["total_tokens"] == 13
    assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    events = proxy.chat({**ask(say=["Hel", "lo"]), "stream": True, "stream_options": {"include_usage": True}}).events
    assert events[-1] == "[DONE]"
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-2]) == "Hello"
    assert [event["choices"][0]["finish_reason"] for event in events[:-2]][-1] == "stop"
    assert events[-2]["usage"]["completion_tokens"] == 3


def test_responses_whole_and_as_events(proxy: Proxy) -> None:
    whole = proxy.responses({"input": plan(say=["Hello"], more=["Again"])}).json
    assert [item["content"][0]["text"] for item in whole["output"]] == ["Hello", "Again"]
    assert whole["usage"]["output_tokens_details"] == {"reasoning_tokens": 1}
    events = proxy.responses({"input": plan(say=["Hel", "lo\u2028"]), "stream": True}).events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello\u2028"


@pytest.mark.parametrize("mode", ["openai-json", "obsidian-xml"])
def test_calls_in_the_text(proxy: Proxy, mode: str) -> None:
    said = ["a <tool", '_call>{"name":"add","argum', 'ents":{"a": 1}}</tool_call>', ' b <tool_call>{"na']
    message = proxy.chat({**ask(say=said), "tools": [NESTED]}, x_proxy_output_mode=mode).json["choices"][0]["message"]
    whole = proxy.responses({"input": plan(say=said), "tools": [FLAT]}, x_proxy_output_mode=mode).json
    streamed = proxy.responses({"input": plan(say=said), "tools": [FLAT], "stream": True}, x_proxy_output_mode=mode).events
    kinds = [item["type"] for item in whole["output"]]
    assert [item["type"] for item in streamed[-1]["response"]["output"]] == kinds
    if mode == "openai-json":
        assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        assert message["content"] == "a  b "
        assert kinds == ["message", "function_call", "message"]
        deltas = [event["delta"] for event in streamed if event["type"] == "response.output_text.delta"]
        assert "".join(deltas) == "a  b "
    else:
        markup = '<tool_call>{"name":"add","arguments":"{\\"a\\": 1}"}</tool_call>'
        assert message["content"] == f"a {markup} b "
        assert "tool_calls" not in message
        assert whole["output"][0]["content"][0]["text"] == message["content"]


def test_native_calls_end_the_turn_and_leave_nothing_open(proxy: Proxy) -> None:
    before = len(proxy.frames())
    body = {**ask(say=["Let me."], calls=[["add", '{"a": 1}'], ["add", '{"a": 2}']]), "tools": [NESTED]}
    choice = proxy.chat(body).json["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    v2 = bool(proxy.calls("turn/start"))
    wanted = [("call_0", '{"a": 1}'), ("call_1", '{"a": 2}')] if v2 else [("call_0", '{"a":1}')]
    assert [(c["id"], c["function"]["arguments"]) for c in choice["message"]["tool_calls"]] == wanted
    assert proxy.chat(ask(say=["next"])).json["choices"][0]["message"]["content"] == "next"
    frames = [frame for _, frame in proxy.frames()[before:]]
    interrupt = next(at for at, frame in enumerate(frames) if frame.get("method") in ("turn/interrupt", "interruptConversation"))
    answers = [frame for frame in frames[interrupt:] if frame.get("id") == 78 and "result" in frame]
    assert [answer["result"]["success"] for answer in answers] == [False]
    assert proxy.chat({**body, "parallel_tool_calls": False}).json["choices"][0]["message"]["tool_calls"][1:] == []


def test_without_tools_markup_is_text(proxy: Proxy) -> None:
    assert proxy.chat(ask(say=[call()])).json["choices"][0]["message"]["content"] == call()
    quiet = proxy.chat({**ask(say=[call()]), "tools": [NESTED], "tool_choice": "none"}).json
    assert quiet["choices"][0]["message"]["content"] == call()


def test_what_another_thread_says_is_not_heard(proxy: Proxy) -> None:
    answer = proxy.chat(ask(say=["mine"], foreign=True)).json
    assert answer["choices"][0]["message"]["content"] == "mine"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("item/commandExecution/requestApproval", {"decision": "decline"}),
        ("item/fileChange/requestApproval", {"decision": "decline"}),
        ("execCommandApproval", {"decision": "denied"}),
        ("applyPatchApproval", {"decision": "denied"}),
        ("item/tool/requestUserInput", {"answers": {}}),
        ("item/unheard/of", None),
    ],
)
def test_what_the_server_asks_is_answered(proxy: Proxy, method: str, answer: Any) -> None:
    assert proxy.chat(ask(ask=[method, {}], say=["after"])).json["choices"][0]["message"]["content"] == "after"
    replies = [frame for _, frame in proxy.frames() if frame.get("id") == 77]
    assert replies[-1]["jsonrpc"] == "2.0"
    assert replies[-1].get("result") == answer


def test_an_upstream_error_is_an_http_error_or_ends_the_stream(proxy: Proxy) -> None:
    fail = ["too long", "contextWindowExceeded", "context_window_exceeded"]
    for stream in (False, True):
        refused = proxy.chat({**ask(fail=fail), "stream": stream})
        assert (refused.status, refused.json["error"]["code"]) == (400, "context_length_exceeded")
    chunks = proxy.chat({**ask(say=["half"], fail=fail), "stream": True}).events
    assert chunks[-2]["error"]["code"] == "context_length_exceeded"
    assert chunks[-1] == "[DONE]"
    events = proxy.responses({"input": plan(say=["half"], fail=fail), "stream": True}).events
    assert (events[-1]["type"], events[-1]["response"]["error"]["code"]) == ("response.failed", "context_length_exceeded")
    assert proxy.chat(ask(refuse=True)).status == 502


@pytest.mark.parametrize(("how", "status"), [("die", 502), ("hang", 504)])
def test_a_server_that_dies_or_hangs_is_replaced(proxy: Proxy, how: str, status: int) -> None:
    assert proxy.chat(ask(**{how: True})).status == status
    events = proxy.responses({"input": plan(say=["half"], **{how: True}), "stream": True}).events
    assert events[-1]["type"] == "response.failed"
    assert proxy.chat(ask(say=["again"])).json["choices"][0]["message"]["content"] == "again"


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_whose_end_is_lost_ends_all_the_same(tmp_path: Path, stream: bool) -> None:
    """0.92 loses it now and then: the last reply is known by its raw items and its usage, long before the idle timeout."""
    with running(tmp_path, PROXY_PROFILE="works-on-0.92", PROXY_IDLE_TIMEOUT_MS="60000") as proxy:
        done = proxy.responses({"input": plan(say=["all"], raw=["message"], lost=True), "stream": stream})
        response = done.events[-1]["response"] if stream else done.json
        assert (response["status"], response["output"][0]["content"][0]["text"]) == ("completed", "all")
        assert proxy.calls("turn/interrupt") == [], "a turn that is through answers no interrupt"
        assert proxy.chat(ask(say=["next"])).json["choices"][0]["message"]["content"] == "next"


def test_a_reply_that_calls_is_not_the_last() -> None:
    usage, said, called = Usage(1, 0, 1, 0, 2), Item(False), Item(True)

    def through(*events: Event) -> list[bool]:
        replies = Replies()
        found = []
        for event in events:
            replies.saw(event)
            found.append(replies.through)
        return found

    assert through(Item(False), said, usage, usage) == [False, False, True, True]
    assert through(said, called, usage, usage, Item(False), Delta("m", "x"), said, usage) == [*[False] * 7, True]
    assert through(said, usage, Delta("m", "x")) == [False, True, False], "it goes on"
    assert through(usage) == [False], "no reply has come"


def test_a_client_that_goes_away_frees_its_turn(proxy: Proxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=120)
    body = json.dumps({"model": "gpt-5.2", "stream": True, **ask(say=["half"], wait=True)})
    connection.request("POST", "/v1/chat/completions", body, {"authorization": "Bearer key"})
    response = connection.getresponse()
    assert response.fp is not None
    assert response.readline().startswith(b"data: ")
    before = len(proxy.calls("turn/interrupt") + proxy.calls("interruptConversation"))
    response.close()
    connection.close()
    assert proxy.chat(ask(say=["next"])).status == 200
    waited = threading.Event()
    for _ in range(100):
        if len(proxy.calls("turn/interrupt") + proxy.calls("interruptConversation")) > before:
            break
        waited.wait(0.05)
    else:
        pytest.fail("the turn was never interrupted")


def test_many_clients_never_mix(proxy: Proxy) -> None:
    def one(number: int) -> tuple[int, str]:
        word = f"answer {number}"
        if number % 2:
            return number, proxy.chat(ask(say=list(word))).json["choices"][0]["message"]["content"]
        return number, proxy.responses({"input": plan(say=[word])}).json["output"][0]["content"][0]["text"]

    with ThreadPoolExecutor(8) as pool:
        assert all(text == f"answer {number}" for number, text in pool.map(one, range(24)))


def test_the_calls_and_their_envelopes(tmp_path: Path) -> None:
    with running(tmp_path, PROXY_PROFILE="as-specified", PROXY_RESPONSES_SKIP_TURN="true", PROXY_API_KEYS="a,key") as proxy:
        assert proxy.ask("GET", "/v1/models", headers={"authorization": "Bearer b"}).status == 401
        proxy.chat({"messages": [{"role": "user", "content": "hi"}]})
        proxy.responses({"input": "hi"})
        proxy.responses({"input": "Generate a title for this conversation:\nUser: hello"})
        frames = [frame for _, frame in proxy.frames()]
    assert [frame["method"] for frame in frames] == [
        "initialize", "initialized", "newConversation", "addConversationListener", "sendUserTurn", "sendUserMessage",
        "newConversation", "addConversationListener", "sendUserMessage",
    ]  # fmt: skip
    assert {frame["jsonrpc"] for frame in frames} == {"2.0"}
    ids = [frame["id"] for frame in frames if "id" in frame]
    assert len(set(ids)) == len(ids) == 8
    assert frames[4]["params"]["items"] == frames[5]["params"]["items"] == [{"type": "text", "data": {"text": "[user] hi"}}]
    assert frames[8]["params"]["items"] == [{"type": "text", "data": {"text": "hi"}}]


def test_one_submission_a_request_on_092(tmp_path: Path) -> None:
    with running(tmp_path) as proxy:
        proxy.chat({"messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "high"})
        assert [frame["method"] for _, frame in proxy.frames()] == ["initialize", "initialized", "thread/start", "turn/start"]
        assert proxy.calls("turn/start")[0]["effort"] == "high"
        assert proxy.chat({"messages": [{"role": "user", "content": "hi"}], "n": 2}).status == 400


def test_several_app_servers_share_the_work_and_all_end_with_the_proxy(tmp_path: Path) -> None:
    with running(tmp_path, PROXY_CHILDREN="2") as proxy, ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: proxy.chat(ask(hang=True)).status, range(2)))
        assert done == [504, 504]
        pids = {pid for pid, _ in proxy.frames()}
        assert len(pids) == 2
        assert proxy.chat(ask(say=["x"])).status == 200
        pids |= {pid for pid, _ in proxy.frames()}
        assert proxy.close() == 0
    assert [pid for pid in pids if not ended(pid)] == []


@pytest.mark.parametrize("profile", ["as-specified", "works-on-0.92"])
def test_a_server_that_does_not_reply_is_replaced(tmp_path: Path, profile: str) -> None:
    with running(tmp_path, PROXY_PROFILE=profile, PROXY_RPC_TIMEOUT_MS="2500") as proxy:
        refused = proxy.chat(ask(mute=True))
        assert (refused.status, refused.json["error"]["code"]) == (504, "app_server_timeout")
        assert proxy.chat(ask(say=["again"])).json["choices"][0]["message"]["content"] == "again"
        assert len({pid for pid, _ in proxy.frames()}) == 2


def test_a_server_that_cannot_be_started_is_a_502(tmp_path: Path) -> None:
    with running(tmp_path, CODEX_BIN=str(tmp_path / "nowhere")) as proxy:
        refused = proxy.chat(ask())
        assert (refused.status, refused.json["error"]["code"]) == (502, "app_server_gone")
        assert proxy.ask("GET", "/health").status == 200


def test_http_at_its_edges(proxy: Proxy) -> None:
    def raw(data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=120) as client:
            client.sendall(data)
            found = b""
            while chunk := client.recv(65536):
                found += chunk
            return found

    assert b" 400 " in raw(b"nonsense\r\n\r\n").split(b"\r\n")[0]
    old = raw(b"GET /health HTTP/1.0\r\n\r\n")
    assert b" 200 " in old.split(b"\r\n")[0]
    body = json.dumps({"model": "m", "stream": True, **ask(say=["old"])}).encode()
    head = b"POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer k\r\ncontent-length: %d\r\n\r\n" % len(body)
    assert b"chunked" not in (stream := raw(head + body))
    assert stream.endswith(b"data: [DONE]\n\n")
    two = raw(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert two.count(b'"status":"ok"') == 2


def test_bad_settings_end_it_with_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(json.JSONDecodeError):
        Proxy({"PROXY_PROFILE": "wrong"})
    assert "PROXY_PROFILE is 'wrong'; it must be as-specified, works-on-0.92, speaks-v2." in capfd.readouterr().err


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    with running(tmp_path) as proxy:
        assert proxy.chat(ask()).status == 200
        proxy.process.send_signal(signal.SIGINT)
        assert proxy.process.wait(10) == 0
