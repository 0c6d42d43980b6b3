"""The payload of sendUserTurn, field by field. Source: app-server-payloads.md, 2) sendUserTurn."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, SPEC, texts, tool, twins
from suites.proxy.saying import must_be, must_be_one_of, must_be_unset, must_have

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

WHERE = f"{SPEC}, 2) sendUserTurn (chat + optional in responses)"
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
@pytest.mark.spec("turn-default", WHERE, "cwd, approvalPolicy, sandboxPolicy, model, summary of the example")
def test_defaults(proxy: Proxy, endpoint: str, field: str) -> None:
    """With nothing set in the environment, the values are those of the example; none is omitted."""
    params = proxy.post(endpoint).params(METHOD)
    must_be(f"{METHOD}.{field}", params[field], DEFAULTS[field])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-items", WHERE, '"items": [{ "type": "text", "data": { "text": "[user] ...original prompt..." } }]')
def test_items(proxy: Proxy, endpoint: str) -> None:
    """One text item of v1, with the text below `data`."""
    params = proxy.post(endpoint).params(METHOD)
    must_be(f"The keys of each of {METHOD}.items", [sorted(item) for item in params["items"]], [["data", "type"]])
    must_be(f"{METHOD}.items[0].type", params["items"][0]["type"], "text")
    must_have(f"The text of {METHOD}.items", texts(params), proxy.prompt())


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-items-message", WHERE, "`items` of both calls")
def test_the_message_has_the_same_items(proxy: Proxy, endpoint: str) -> None:
    """Turn and message carry the same items."""
    done = proxy.post(endpoint)
    must_be(
        "sendUserMessage.items (those of sendUserTurn)", done.params("sendUserMessage")["items"], done.params(METHOD)["items"]
    )


@pytest.mark.parametrize("content", ["", [], None], ids=["empty", "no-parts", "null"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-items-never-empty", WHERE, "The `items` list is always normalized (non-empty)")
def test_items_are_never_empty(proxy: Proxy, endpoint: str, content: Any) -> None:
    """A prompt without content is refused, or makes an item all the same."""
    message = {"role": "user", "content": content}
    body = {"messages": [message]} if endpoint == "chat" else {"input": [message]}
    done = proxy.post(endpoint, body, ok=False)
    if done.status == 400:
        must_be("The calls for a request that is refused", done.calls("sendUserTurn", "sendUserMessage"), [])
        return
    must_be("The status of the answer to a prompt without content, if it is not 400,", done.status, 200)
    for name in (METHOD, "sendUserMessage"):
        assert done.params(name)["items"] != [], f"{name}.items must not be empty"


@pytest.mark.spec("turn-choices", WHERE, "`choiceCount` and `choice_count` are both set when `n` is provided")
def test_choices(proxy: Proxy) -> None:
    """Both spellings of `n`, as a number."""
    params = proxy.chat({"n": 1}).params(METHOD)
    must_be(f"{METHOD}.choiceCount", twins(params, "choiceCount", "choice_count"), 1)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-choices-unset", WHERE, '"choiceCount": 1, "choice_count": 1')
def test_choices_unasked(proxy: Proxy, endpoint: str) -> None:
    """Without `n` they are omitted, null, or the example's 1; both spellings alike."""
    must_be_one_of(f"{METHOD}.choiceCount", twins(proxy.post(endpoint).params(METHOD), "choiceCount", "choice_count"), (None, 1))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-output-schema", WHERE, '"outputSchema": null, "output_schema": null')
def test_no_output_schema(proxy: Proxy, endpoint: str) -> None:
    """Without a format there is no schema: null or omitted, both spellings alike."""
    must_be(f"{METHOD}.outputSchema", twins(proxy.post(endpoint).params(METHOD), "outputSchema", "output_schema"), None)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-effort-unset", WHERE, "`effort` is included when resolved")
def test_no_effort(proxy: Proxy, endpoint: str) -> None:
    """A plain model implies no effort."""
    must_be_unset(METHOD, proxy.post(endpoint).params(METHOD), "effort")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-tools-unset", WHERE, "`tools` is included when tool definitions exist")
def test_no_tools(proxy: Proxy, endpoint: str) -> None:
    """Without definitions there are no tools."""
    tools = proxy.post(endpoint).params(METHOD).get("tools") or {}
    must_be(f"{METHOD}.tools.definitions, null and omitted being none,", tools.get("definitions") or [], [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("turn-exact", SPEC, "the **exact JSON-RPC payloads** the proxy sends")
def test_no_other_field(proxy: Proxy, endpoint: str) -> None:
    """No field that the documents do not name."""
    body = {"tools": [tool(endpoint)], "n": 1, "temperature": 0.5, "stream": True}
    must_be(f"The fields of {METHOD} that no document names", set(proxy.post(endpoint, body).params(METHOD)) - FIELDS, set())
