"""The envelope of every call, which calls there are, and their order. Source: app-server-payloads.md."""

from __future__ import annotations

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, SPEC, conversation_id, tool

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

ENVELOPE = f"{SPEC}, JSON-RPC envelope (all methods)"
FLOW = f"{SPEC}, Transport flow summary"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-jsonrpc", ENVELOPE, '"jsonrpc": "2.0"')
def test_jsonrpc(proxy: Proxy, endpoint: str) -> None:
    """Every call says that it is JSON-RPC 2.0."""
    done = proxy.post(endpoint)
    assert [(call["method"], call.get("jsonrpc")) for call in done.calls(*CALLS)] == [(name, "2.0") for name in CALLS]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-keys", ENVELOPE, '{"jsonrpc", "id", "method", "params"}')
def test_keys(proxy: Proxy, endpoint: str) -> None:
    """A call has these four keys and no other."""
    calls = proxy.post(endpoint).calls(*CALLS)
    assert [sorted(call) for call in calls] == [["id", "jsonrpc", "method", "params"]] * 3


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-id", ENVELOPE, '"id": 4')
def test_ids(proxy: Proxy, endpoint: str) -> None:
    """Every id is a number or a string, and on one connection none comes twice."""
    proxy.post(endpoint)
    proxy.post(endpoint)
    frames = [frame for done in proxy.exchanges for frame in done.frames if frame.sender == "client" and frame.kind == "request"]
    ids = [(frame.child, frame.value["id"]) for frame in frames]
    assert all(type(number) in (int, str) for _, number in ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-order", FLOW, "1) newConversation (always) 2) sendUserTurn 3) sendUserMessage (always)")
def test_the_three_calls(proxy: Proxy, endpoint: str) -> None:
    """One request makes these calls, each once, in this order."""
    assert [call["method"] for call in proxy.post(endpoint).calls(*CALLS)] == CALLS


@pytest.mark.parametrize("given", ["true", "false"])
@pytest.mark.spec("calls-skip-turn", FLOW, "gated by `PROXY_RESPONSES_SKIP_TURN`")
def test_skip_turn(proxy: Proxy, given: str) -> None:
    """On responses the turn is skipped entirely when the variable says so."""
    done = proxy.responses(env={"PROXY_RESPONSES_SKIP_TURN": given})
    assert [call["method"] for call in done.calls(*CALLS)] == (CALLS if given == "false" else [CALLS[0], CALLS[2]])


@pytest.mark.spec("calls-skip-turn-chat", FLOW, "The chat endpoint sends both `sendUserTurn` and `sendUserMessage`")
def test_skip_turn_is_not_for_chat(proxy: Proxy) -> None:
    """The variable is for responses alone."""
    done = proxy.chat(env={"PROXY_RESPONSES_SKIP_TURN": "true"})
    assert [call["method"] for call in done.calls(*CALLS)] == CALLS


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-stream", FLOW, "up to three calls per request")
def test_streaming_makes_the_same_calls(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """Whether the answer is streamed is no matter of which calls there are."""
    assert [call["method"] for call in proxy.post(endpoint, {"stream": stream}).calls(*CALLS)] == CALLS


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-conversation", f"{SPEC}, 2) sendUserTurn", '"conversationId": "019bfd08-57c5-71f0-b8ef-c44ff460ff21"')
def test_conversation_id(proxy: Proxy, endpoint: str) -> None:
    """Turn and message go into the conversation that newConversation opened."""
    done = proxy.post(endpoint)
    opened = conversation_id(done)
    assert [done.params(name)["conversationId"] for name in CALLS[1:]] == [opened, opened]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-fresh", FLOW, "newConversation (always)")
def test_each_request_has_a_conversation_of_its_own(proxy: Proxy, endpoint: str) -> None:
    """Two requests never share a conversation."""
    assert conversation_id(proxy.post(endpoint)) != conversation_id(proxy.post(endpoint))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-accepted", FLOW, "The proxy talks to app-server over JSON-RPC")
def test_no_call_is_refused(proxy: Proxy, endpoint: str) -> None:
    """The app-server answers none of these calls with an error, tools and a schema included."""
    shaped = {"type": "json_schema", "name": "s", "schema": {"type": "object", "properties": {}}}
    extra = {"text": {"format": shaped}} if endpoint == "responses" else {"response_format": {"type": "json_object"}}
    done = proxy.post(endpoint, {"tools": [tool(endpoint)], **extra})
    assert [frame.raw for frame in done.frames if frame.sender == "server" and frame.kind == "error"] == []
