"""The envelope of every JSON-RPC call of the proxy, which calls it makes, and their order. Source: docs/contract/payloads.md."""

from __future__ import annotations

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, conversation_id, tool
from suites.proxy.saying import must_be

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-jsonrpc", "PAY-18")
def test_jsonrpc(proxy: Proxy, endpoint: str) -> None:
    """Every call has `jsonrpc` "2.0"."""
    done = proxy.post(endpoint)
    must_be(
        "(method, jsonrpc) of the calls",
        [(call["method"], call.get("jsonrpc")) for call in done.calls(*CALLS)],
        [(name, "2.0") for name in CALLS],
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-keys", "PAY-20")
def test_keys(proxy: Proxy, endpoint: str) -> None:
    """Each call of the proxy has exactly the keys jsonrpc, id, method and params."""
    calls = proxy.post(endpoint).calls(*CALLS)
    must_be("The number of calls", len(calls), 3)
    for call in calls:
        must_be(f"The keys of the call of {call['method']}", sorted(call), ["id", "jsonrpc", "method", "params"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-all-methods", "PAY-19", "PAY-20")
def test_every_method_has_the_envelope(proxy: Proxy, endpoint: str) -> None:
    """All calls of the proxy's process have the same envelope; a notification has no id and may have no params."""
    proxy.post(endpoint)
    assert proxy.running is not None, "The proxy must still be running after the answer."
    for frame in proxy.running.wire.frames:
        if frame.sender == "client" and frame.kind in ("request", "notification"):
            call = frame.value
            must_be(f"jsonrpc of the call of {call['method']}", call.get("jsonrpc"), "2.0")
            wanted = {"id", "jsonrpc", "method", "params"} if frame.kind == "request" else {"jsonrpc", "method"}
            found = set(call) if frame.kind == "request" else set(call) - {"params"}
            must_be(f"The keys of the call of {call['method']}", sorted(found), sorted(wanted))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("envelope-id", "PAY-07")
def test_ids(proxy: Proxy, endpoint: str) -> None:
    """Every id of a call is a number or a string, and occurs once on a connection."""
    proxy.post(endpoint)
    proxy.post(endpoint)
    frames = [frame for done in proxy.exchanges for frame in done.frames if frame.sender == "client" and frame.kind == "request"]
    ids = [(frame.child, frame.value["id"]) for frame in frames]
    for child, number in ids:
        assert type(number) in (int, str), f"the id of a call must be a number or a string, not {number!r} (app-server {child})"
    again = sorted({str(number) for at, number in enumerate(ids) if number in ids[:at]})
    must_be("The (app-server, id) of calls that repeat an id on the same connection", again, [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-order", "PAY-01", "PAY-02", "PAY-03", "HAND-21")
def test_the_three_calls(proxy: Proxy, endpoint: str) -> None:
    """For one client request, the proxy makes exactly the expected calls in the expected order."""
    must_be("The calls of one request", [call["method"] for call in proxy.post(endpoint).calls(*CALLS)], CALLS)


@pytest.mark.parametrize("given", ["true", "false"])
@pytest.mark.spec("calls-skip-turn", "PAY-03", "PAY-04", "PAY-71")
def test_skip_turn(proxy: Proxy, given: str) -> None:
    """For a responses request, PROXY_RESPONSES_SKIP_TURN removes the call sendUserTurn."""
    done = proxy.responses(env={"PROXY_RESPONSES_SKIP_TURN": given})
    wanted = CALLS if given == "false" else [CALLS[0], CALLS[2]]
    must_be(f"The calls with PROXY_RESPONSES_SKIP_TURN={given}", [call["method"] for call in done.calls(*CALLS)], wanted)


@pytest.mark.spec("calls-skip-turn-chat", "PAY-05")
def test_skip_turn_is_not_for_chat(proxy: Proxy) -> None:
    """PROXY_RESPONSES_SKIP_TURN has no effect on chat."""
    done = proxy.chat(env={"PROXY_RESPONSES_SKIP_TURN": "true"})
    must_be("The calls of a chat with PROXY_RESPONSES_SKIP_TURN=true", [call["method"] for call in done.calls(*CALLS)], CALLS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-stream", "PAY-01")
def test_streaming_makes_the_same_calls(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The proxy makes the same calls for a request with a stream and without a stream."""
    sent = [call["method"] for call in proxy.post(endpoint, {"stream": stream}).calls(*CALLS)]
    must_be(f"The calls of a request with stream: {stream}", sent, CALLS)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-conversation", "PAY-55", "PAY-72")
def test_conversation_id(proxy: Proxy, endpoint: str) -> None:
    """sendUserTurn and sendUserMessage have the id of the new conversation."""
    done = proxy.post(endpoint)
    opened = conversation_id(done)
    for name in CALLS[1:]:
        must_be(f"{name}.conversationId", done.params(name)["conversationId"], opened)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-fresh", "PAY-02")
def test_each_request_has_a_conversation_of_its_own(proxy: Proxy, endpoint: str) -> None:
    """The proxy opens a new conversation for each request."""
    first, second = conversation_id(proxy.post(endpoint)), conversation_id(proxy.post(endpoint))
    assert first != second, f"two requests use the same conversation {first!r}; each must open a new one"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("calls-accepted", "PAY-01", "REAL-45")
def test_no_call_is_refused(proxy: Proxy, endpoint: str) -> None:
    """The app-server refuses no call of the proxy, even if the request has tools and a schema."""
    shaped = {"type": "json_schema", "name": "s", "schema": {"type": "object", "properties": {}}}
    extra = {"text": {"format": shaped}} if endpoint == "responses" else {"response_format": {"type": "json_object"}}
    done = proxy.post(endpoint, {"tools": [tool(endpoint)], **extra})
    refused = [frame.raw for frame in done.frames if frame.sender == "server" and frame.kind == "error"]
    must_be("The errors that the app-server answered the calls with", refused, [])
