"""The envelope of every call, which calls there are, and their order. Source: app-server-payloads.md."""

from __future__ import annotations

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, SPEC, conversation_id, tool
from suites.proxy.saying import must_be

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

ENVELOPE = f"{SPEC}, JSON-RPC envelope (all methods)"
FLOW = f"{SPEC}, Transport flow summary"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-jsonrpc", ENVELOPE, '"jsonrpc": "2.0"')
def test_jsonrpc(proxy: Proxy, endpoint: str) -> None:
    """Every call says that it is JSON-RPC 2.0."""
    done = proxy.post(endpoint)
    must_be(
        "(method, jsonrpc) of the calls",
        [(call["method"], call.get("jsonrpc")) for call in done.calls(*CALLS)],
        [(name, "2.0") for name in CALLS],
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-keys", ENVELOPE, '{"jsonrpc", "id", "method", "params"}')
def test_keys(proxy: Proxy, endpoint: str) -> None:
    """A call has these four keys and no other."""
    calls = proxy.post(endpoint).calls(*CALLS)
    must_be("The number of calls", len(calls), 3)
    for call in calls:
        must_be(f"The keys of the call of {call['method']}", sorted(call), ["id", "jsonrpc", "method", "params"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-id", ENVELOPE, '"id": 4')
def test_ids(proxy: Proxy, endpoint: str) -> None:
    """Every id is a number or a string, and on one connection none comes twice."""
    proxy.post(endpoint)
    proxy.post(endpoint)
    frames = [frame for done in proxy.exchanges for frame in done.frames if frame.sender == "client" and frame.kind == "request"]
    ids = [(frame.child, frame.value["id"]) for frame in frames]
    for child, number in ids:
        assert type(number) in (int, str), f"the id of a call must be a number or a string, not {number!r} (app-server {child})"
    again = sorted({str(number) for at, number in enumerate(ids) if number in ids[:at]})
    must_be("The (app-server, id) of calls whose id came before on the same connection", again, [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-order", FLOW, "1) newConversation (always) 2) sendUserTurn 3) sendUserMessage (always)")
def test_the_three_calls(proxy: Proxy, endpoint: str) -> None:
    """One request makes these calls, each once, in this order."""
    must_be("The calls of one request", [call["method"] for call in proxy.post(endpoint).calls(*CALLS)], CALLS)


@pytest.mark.parametrize("given", ["true", "false"])
@pytest.mark.spec("calls-skip-turn", FLOW, "gated by `PROXY_RESPONSES_SKIP_TURN`")
def test_skip_turn(proxy: Proxy, given: str) -> None:
    """On responses the turn is skipped entirely when the variable says so."""
    done = proxy.responses(env={"PROXY_RESPONSES_SKIP_TURN": given})
    wanted = CALLS if given == "false" else [CALLS[0], CALLS[2]]
    must_be(f"The calls with PROXY_RESPONSES_SKIP_TURN={given}", [call["method"] for call in done.calls(*CALLS)], wanted)


@pytest.mark.spec("calls-skip-turn-chat", FLOW, "The chat endpoint sends both `sendUserTurn` and `sendUserMessage`")
def test_skip_turn_is_not_for_chat(proxy: Proxy) -> None:
    """The variable is for responses alone."""
    done = proxy.chat(env={"PROXY_RESPONSES_SKIP_TURN": "true"})
    must_be("The calls of a chat with PROXY_RESPONSES_SKIP_TURN=true", [call["method"] for call in done.calls(*CALLS)], CALLS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-stream", FLOW, "up to three calls per request")
def test_streaming_makes_the_same_calls(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """Whether the answer is streamed is no matter of which calls there are."""
    sent = [call["method"] for call in proxy.post(endpoint, {"stream": stream}).calls(*CALLS)]
    must_be(f"The calls of a request with stream: {stream}", sent, CALLS)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-conversation", f"{SPEC}, 2) sendUserTurn", '"conversationId": "019bfd08-57c5-71f0-b8ef-c44ff460ff21"')
def test_conversation_id(proxy: Proxy, endpoint: str) -> None:
    """Turn and message go into the conversation that newConversation opened."""
    done = proxy.post(endpoint)
    opened = conversation_id(done)
    for name in CALLS[1:]:
        must_be(f"{name}.conversationId", done.params(name)["conversationId"], opened)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-fresh", FLOW, "newConversation (always)")
def test_each_request_has_a_conversation_of_its_own(proxy: Proxy, endpoint: str) -> None:
    """Two requests never share a conversation."""
    first, second = conversation_id(proxy.post(endpoint)), conversation_id(proxy.post(endpoint))
    assert first != second, f"two requests share the conversation {first!r}; each must open its own"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-accepted", FLOW, "The proxy talks to app-server over JSON-RPC")
def test_no_call_is_refused(proxy: Proxy, endpoint: str) -> None:
    """The app-server answers none of these calls with an error, tools and a schema included."""
    shaped = {"type": "json_schema", "name": "s", "schema": {"type": "object", "properties": {}}}
    extra = {"text": {"format": shaped}} if endpoint == "responses" else {"response_format": {"type": "json_object"}}
    done = proxy.post(endpoint, {"tools": [tool(endpoint)], **extra})
    refused = [frame.raw for frame in done.frames if frame.sender == "server" and frame.kind == "error"]
    must_be("The errors that the app-server answered the calls with", refused, [])
