"""The table of rules: every row refuses its violation, lets the good request pass, and can be switched off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import RULES, Violation, check, unknown_rules
from codex_fakes.backend.rules.tokens import Tokens, auth_error

CHATGPT = "/backend-api/codex/responses"
PLATFORM = "/v1/responses"
UUID = "01234567-89ab-cdef-0123-456789abcdef"
HEADERS = {"authorization": "Bearer at-1", "chatgpt-account-id": "acc-1", "originator": "codex_cli_rs", "session_id": UUID}
HEADERS["user-agent"] = "codex_cli_rs/0.92.0"
AUTH = {"mode": "auto", "access_token": "at-1", "account_id": "acc-1"}
CALL = {"type": "function_call", "name": "add", "arguments": '{"a":1}', "call_id": "c1"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "5"}


def body(**changes: Any) -> dict[str, Any]:
    """Make the request body of LITE-31 to LITE-42 with changes; None takes a key out."""
    full = {
        "model": "gpt-5.2-codex",
        "instructions": "system text",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "tools": [{"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}}],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": UUID,
        "text": {"verbosity": "medium"},
        **changes,
    }
    return {key: value for key, value in full.items() if value is not None}


def judge(
    value: object, *, path: str = CHATGPT, headers: dict[str, str | None] | None = None, auth: Any = None, off: Any = ()
) -> str | None:
    """Return the id of the rule that a request violates, or None."""
    sent = {**HEADERS, **(headers or {})}
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    found = check(Asked(path, lambda name: sent.get(name), data, Tokens(AUTH if auth is None else auth)), off)
    if not isinstance(found, Violation):
        return None
    assert json.loads(found.body())["error"]["message"] == found.message
    assert found.message.endswith(".")
    return found.rule


KEY = {"mode": "api_key", "api_key": "at-1"}
VIOLATIONS: dict[str, Any] = {
    "bearer-missing": {"headers": {"authorization": None}},
    "bearer-expired": {"auth": {**AUTH, "access": "expired"}},
    "bearer-revoked": {"auth": {**AUTH, "access": "revoked"}},
    "bearer-wrong": {"headers": {"authorization": "Bearer other"}},
    "account-missing": {"headers": {"chatgpt-account-id": None}, "auth": {"mode": "chatgpt"}},
    "account-wrong": {"headers": {"chatgpt-account-id": "acc-2"}},
    "account-under-key": {"auth": KEY},
    "originator-missing": {"headers": {"originator": None}},
    "user-agent-missing": {"headers": {"user-agent": None}},
    "session-id": {"headers": {"session_id": "7"}},
    "json": {"value": b"{"},
    "model-missing": {"value": body(model=None)},
    "input-missing": {"value": body(input=None)},
    "type": {"value": body(input=5)},
    "unknown-parameter": {"value": body(modle="x")},
    "previous-response": {"value": body(previous_response_id="resp_1")},
    "store-false": {"value": body(store=True)},
    "stream-true": {"value": body(stream=False)},
    "tool-type": {"value": body(tools=[{"type": "functoin", "name": "x"}])},
    "tool-name": {"value": body(tools=[{"type": "function", "function": {"name": "x"}}])},
    "tool-choice": {"value": body(tool_choice={"type": "function", "name": "sub"})},
    "item-type": {"value": body(input=[{"type": "massage"}])},
    "item-fields": {"value": body(input=[{**CALL, "arguments": {"a": 1}}, OUTPUT])},
    "message-content": {"value": body(input=[{"role": "user", "content": [{"type": "text", "text": "x"}]}])},
    "output-without-call": {"value": body(input=[OUTPUT])},
    "call-without-output": {"value": body(input=[CALL])},
}


def test_every_rule_has_a_violation_here_and_a_source() -> None:
    assert [rule.id for rule in RULES] == list(VIOLATIONS)
    assert all(rule.source for rule in RULES)


@pytest.mark.parametrize("rule", VIOLATIONS)
def test_the_rule_refuses_its_violation_and_can_be_switched_off(rule: str) -> None:
    asked = {"value": body(), **VIOLATIONS[rule]}
    assert judge(**asked) == rule
    if rule not in ("json", "account-missing"):  # nothing can be read from what is not JSON; no account is also a wrong one
        assert judge(**asked, off=(rule,)) is None


def test_the_request_of_the_spec_passes() -> None:
    assert judge(body()) is None


@pytest.mark.parametrize(
    ("edge", "value"),
    [
        ("1: invalid tool schema", body(tools=[{"type": "function", "name": "add", "parameters": {"type": "objekt", "x": 1}}])),
        ("1: schema is no object", body(tools=[{"type": "function", "name": "add", "parameters": "none"}])),
        ("2: arguments that are not JSON", body(input=[{**CALL, "arguments": "{not json"}, OUTPUT])),
        ("4: no tools", body(tools=[], input="please call the add function")),
        ("5: 20k output", body(input=[CALL, {**OUTPUT, "output": "x" * 20_000}])),
        ("6: mixed order", body(input=[CALL, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}, OUTPUT])),
        ("error output as plain text", body(input=[CALL, {**OUTPUT, "output": "err: mul failed"}])),
    ],
)
def test_the_edge_cases_of_the_spec_pass(edge: str, value: dict[str, Any]) -> None:
    assert judge(value) is None, edge


def test_edge_case_3_holds_for_custom_tools_and_for_the_kind_of_call() -> None:
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "5"}
    assert judge(body(input=[output])) == "output-without-call"
    assert judge(body(input=[CALL, OUTPUT, output])) == "output-without-call"
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": "x", "call_id": "c1"}
    assert judge(body(input=[call, output])) is None


def test_the_output_of_a_local_shell_call_is_that_of_a_function() -> None:
    """As Codex sends it; the call alone is complete, and another call_id is no call of the output."""
    call = {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": {"type": "exec", "command": ["ls"]}}
    assert judge(body(input=[call, OUTPUT])) is None
    assert judge(body(input=[call, {**OUTPUT, "call_id": "c2"}])) == "output-without-call"
    assert judge(body(input=[call, {**OUTPUT, "type": "custom_tool_call_output"}])) == "output-without-call"


def test_a_call_without_an_id_is_judged_where_its_rule_is_switched_off() -> None:
    call = {"type": "function_call", "name": "add", "arguments": "{}"}
    assert judge(body(input=[call]), off=["item-fields"]) == "call-without-output"
    assert judge(body(input=[{**call, "call_id": ["c1"]}, OUTPUT]), off=["item-fields"]) == "output-without-call"


def test_a_path_of_another_kind_asks_for_no_auth_and_allows_more() -> None:
    sent = dict.fromkeys(HEADERS)
    assert judge(body(store=True, stream=False), path=PLATFORM, headers=sent, auth={"mode": "auto"}) is None
    assert judge(body(previous_response_id="resp_1", input=[OUTPUT]), path=PLATFORM, headers=sent, auth={"mode": "auto"}) is None
    assert judge(body(), path=PLATFORM, headers=sent, auth={"mode": "chatgpt"}) == "bearer-missing"
    assert judge(body(), path=CHATGPT, headers=sent, auth={"mode": "none"}) is None


@pytest.mark.parametrize("value", [b"[]", b"3", b"null", b"\xff", b"", b'{"a":1', body(input=[3]), body(tools=[None])])
def test_nonsense_is_refused_and_not_a_crash(value: Any) -> None:
    assert judge(value) is not None


@pytest.mark.parametrize(
    "key", ["model", "input", "tools", "stream", "store", "include", "text", "reasoning", "metadata", "user"]
)
def test_a_wrong_type_names_the_parameter(key: str) -> None:
    value = body(**{key: 7})
    found = check(Asked(PLATFORM, lambda name: None, json.dumps(value).encode(), Tokens({"mode": "auto"})))
    assert isinstance(found, Violation)
    assert (found.rule, found.param, found.code) == ("type", key, "invalid_type")


def test_a_mistake_in_rules_off_is_said() -> None:
    assert unknown_rules(["json"]) is None
    assert 'rules_off: "jsno" is not a rule.' in str(unknown_rules(["jsno"]))


# tokens


def test_refresh_tokens_rotate_and_are_good_once() -> None:
    tokens = Tokens({"access_token": "a1", "refresh_token": "r1"})
    fresh = tokens.use_refresh("r1")
    assert isinstance(fresh, dict)
    assert tokens.check_bearer("a1", "chatgpt") == "expired"
    assert tokens.check_bearer(fresh["access_token"], "chatgpt") is None
    assert tokens.use_refresh("r1") == (
        "refresh_token_reused",
        "The refresh token was already used; each works once. Log in again.",
    )
    again = tokens.use_refresh(fresh["refresh_token"])
    assert isinstance(again, dict)
    assert again["refresh_token"] not in ("r1", fresh["refresh_token"])


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("expired", "refresh_token_expired"),
        ("reused", "refresh_token_reused"),
        ("revoked", "refresh_token_invalidated"),
        ("unknown", "refresh_token_unknown"),
    ],
)
def test_each_state_of_a_refresh_token_has_its_code(state: str, code: str) -> None:
    for auth in ({"refresh": state}, {"refresh_token": "r1", "refresh": state}):
        refused = Tokens(auth).use_refresh("r1")
        assert isinstance(refused, tuple)
        assert refused[0] == code


def test_a_refresh_token_that_was_never_issued_is_unknown() -> None:
    refused = Tokens({"refresh_token": "r1"}).use_refresh("r2")
    assert isinstance(refused, tuple)
    assert refused[0] == "refresh_token_unknown"


def test_an_access_token_can_be_good_for_so_many_requests() -> None:
    tokens = Tokens({"access_token": "a1", "access_uses": 2})
    assert [tokens.check_bearer("a1", "chatgpt") for _ in range(3)] == [None, None, "expired"]


def test_without_tokens_any_will_do() -> None:
    tokens = Tokens({"mode": "auto"})
    assert tokens.check_bearer("x", "chatgpt") is None
    assert isinstance(tokens.use_refresh("y"), dict)
    assert tokens.check_bearer("x", "chatgpt") is None


@pytest.mark.parametrize(
    "auth", [{"mod": "none"}, {"mode": "x"}, {"access": "old"}, {"refresh": "x"}, {"access_uses": 0}, {"refresh_answer": {}}]
)
def test_a_mistake_in_auth_is_said(auth: dict[str, Any]) -> None:
    assert str(auth_error(auth)).startswith("auth")


def test_an_item_that_is_no_object_passes_where_its_rule_is_off() -> None:
    message = {"type": "message", "role": "user", "content": "hi"}
    assert judge(body(input=["a type of text", 5, None, [message], message])) == "item-type"
    assert judge(body(input=["a type of text", 5, None, [message], message]), off=["item-type"]) is None
    assert judge(body(input=[5, {**message, "role": "nobody"}]), off=["item-type"]) == "message-content"
