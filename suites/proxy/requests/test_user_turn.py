"""The payload of sendUserTurn, field by field. Source: docs/contract/payloads.md, 2) sendUserTurn."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, NO_TOOLS, format_of, prompt_texts, tool, twins
from suites.proxy.failures import must_be_served_without
from suites.proxy.saying import must_be, must_be_answered, must_be_one_of, must_be_unset

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

METHOD = "sendUserTurn"
DEFAULTS: dict[str, Any] = {
    "cwd": "/tmp/codex-work",
    "approvalPolicy": "never",
    "sandboxPolicy": {"type": "read-only"},
    "model": "gpt-5.2",
    "summary": "auto",
}
FIELDS = {
    *DEFAULTS,
    *("conversationId", "items", "effort", "choiceCount", "choice_count", "tools", "outputSchema", "output_schema"),
    "developerInstructions",
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("field", DEFAULTS)
@pytest.mark.spec("turn-default", "PAY-11", "PAY-57")
def test_defaults(proxy: Proxy, endpoint: str, field: str) -> None:
    """Without environment variables, every field of sendUserTurn has the value in the specification's example."""
    params = proxy.post(endpoint).params(METHOD)
    must_be(f"{METHOD}.{field}", params[field], DEFAULTS[field])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-items", "PAY-56")
def test_items(proxy: Proxy, endpoint: str) -> None:
    """`items` of sendUserTurn has one v1 text item, whose `data` has only the prompt."""
    items = proxy.post(endpoint).params(METHOD)["items"]
    wanted = tuple([{"type": "text", "data": {"text": text}}] for text in prompt_texts(endpoint, proxy.prompt()))
    must_be_one_of(f"{METHOD}.items", items, wanted)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-items-message", "PAY-73", "HAND-18")
def test_the_message_has_the_same_items(proxy: Proxy, endpoint: str) -> None:
    """For one request, the proxy sends the same `items` in sendUserTurn and in sendUserMessage."""
    done = proxy.post(endpoint)
    must_be(
        "sendUserMessage.items (those of sendUserTurn)", done.params("sendUserMessage")["items"], done.params(METHOD)["items"]
    )


@pytest.mark.parametrize("content", ["", [], None], ids=["empty", "no-parts", "null"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-items-never-empty", "PAY-69")
def test_items_are_never_empty(proxy: Proxy, endpoint: str, content: Any) -> None:
    """If the prompt is empty, the proxy refuses it or sends at least one item."""
    message = {"role": "user", "content": content}
    body = {"messages": [message]} if endpoint == "chat" else {"input": [message]}
    done = proxy.post(endpoint, body, ok=False)
    if done.status == 400:
        must_be("The calls for a request that is refused", done.calls("sendUserTurn", "sendUserMessage"), [])
        must_be_served_without(proxy, endpoint, {}, "the empty content")
        return
    must_be_answered(done, 200, "with a prompt without content (unless it is refused with 400)")
    for name in (METHOD, "sendUserMessage"):
        assert done.params(name)["items"] != [], f"{name}.items must not be empty"


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.spec("turn-choices", "PAY-64")
def test_choices(proxy: Proxy, n: int) -> None:
    """`choiceCount` and `choice_count` both have the value of the request's `n`."""
    params = proxy.chat({"n": n}).params(METHOD)
    must_be(f"{METHOD}.choiceCount", twins(params, "choiceCount", "choice_count"), n)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-choices-unset", "PAY-65")
def test_choices_unasked(proxy: Proxy, endpoint: str) -> None:
    """Without `n` in the request, choiceCount and choice_count are omitted, null, or 1 as in the example."""
    must_be_one_of(f"{METHOD}.choiceCount", twins(proxy.post(endpoint).params(METHOD), "choiceCount", "choice_count"), (None, 1))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-output-schema", "PAY-06", "PAY-66", "PAY-67")
def test_no_output_schema(proxy: Proxy, endpoint: str) -> None:
    """Without a response format, outputSchema and output_schema are null or omitted."""
    must_be(f"{METHOD}.outputSchema", twins(proxy.post(endpoint).params(METHOD), "outputSchema", "output_schema"), None)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-output-schema-set", "PAY-67")
def test_output_schema_in_both_spellings(proxy: Proxy, endpoint: str) -> None:
    """With a response format, outputSchema and output_schema have the same value."""
    twins(proxy.post(endpoint, format_of(endpoint)).params(METHOD), "outputSchema", "output_schema")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-effort-unset", "PAY-61")
def test_no_effort(proxy: Proxy, endpoint: str) -> None:
    """If the model is not an alias, sendUserTurn has no effort."""
    must_be_unset(METHOD, proxy.post(endpoint).params(METHOD), "effort")


@pytest.mark.parametrize("given", NO_TOOLS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-tools-unset", "PAY-63")
def test_no_tools(proxy: Proxy, endpoint: str, given: str) -> None:
    """If the request has no tools, `tools` of sendUserTurn is null or omitted."""
    must_be_unset(METHOD, proxy.post(endpoint, NO_TOOLS[given]).params(METHOD), "tools")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-exact", "PAY-70", "HAND-20")
def test_no_other_field(proxy: Proxy, endpoint: str) -> None:
    """sendUserTurn has only fields that the documents name."""
    body = {"tools": [tool(endpoint)], "n": 1, "temperature": 0.5, "stream": True, "parallel_tool_calls": False}
    for asked in ({}, body):
        found = set(proxy.post(endpoint, asked).params(METHOD)) - FIELDS
        must_be(f"The fields of {METHOD} that the documents do not name", found, set())
