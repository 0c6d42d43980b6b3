"""Which requests the proxy accepts, and its answers to bad requests.

Source: docs/contract/handoff.md, Route entrypoint ("enforces strict auth").
"""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, WORKS
from suites.proxy.saying import must_be, must_be_answered

pytestmark = [pytest.mark.proxy_profile(WORKS, AS_SPECIFIED), pytest.mark.model("Hi.")]

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
BAD_KEYS: list[Any] = [
    pytest.param(None, id="none"),
    pytest.param("Bearer sk-wrong", id="wrong"),
    pytest.param("Bearer ", id="empty"),
    pytest.param("Basic c2std3Jvbmc6", id="basic"),
]


def no_turn(done: Exchange) -> None:
    """Check that the proxy opened no conversation and started no turn."""
    sent = [call["method"] for call in done.calls(*CALLS, "thread/start", "turn/start")]
    must_be(
        f"The proxy's messages to its app-server for {done.method} {done.path}, which the proxy answers without the app-server,",
        sent,
        [],
    )


def refused(done: Exchange, status: int) -> None:
    """Check that the answer is an error in the form of the OpenAI API, and that the app-server got no request."""
    must_be_answered(done, status)
    message = done.json["error"]["message"]
    assert isinstance(message, str), f"error.message of the answer must be a string, not {message!r}"
    assert message, "error.message of the answer is empty; it must name the error"
    no_turn(done)


@pytest.mark.parametrize("authorization", BAD_KEYS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("auth-required", "HAND-06")
def test_a_bearer_is_required(proxy: Proxy, endpoint: str, authorization: str | None) -> None:
    """Without the correct bearer token, the proxy answers 401."""
    refused(proxy.post(endpoint, headers={"Authorization": authorization}, ok=False), 401)


@pytest.mark.parametrize("change", ["longer", "shorter", "twice"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("auth-whole-key", "HAND-06")
def test_the_whole_key_is_compared(proxy: Proxy, endpoint: str, change: str) -> None:
    """The proxy refuses a bearer token that is only the beginning of the correct key."""
    proxy.post(endpoint)  # the key of this proxy is known only after its start
    assert proxy.running is not None, "no proxy has been started"
    key = proxy.running.key
    wrong = {"longer": f"{key}x", "shorter": key[:-1], "twice": f"{key} {key}"}[change]
    refused(proxy.post(endpoint, headers={"Authorization": f"Bearer {wrong}"}, ok=False), 401)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("auth-case", "HAND-06")
def test_the_scheme_is_written_in_any_case(proxy: Proxy, endpoint: str) -> None:
    """The proxy accepts `Bearer` in any case (RFC 9110, 11.1)."""
    proxy.post(endpoint)  # the key of this proxy is known only after its start
    assert proxy.running is not None, "no proxy has been started"
    done = proxy.post(endpoint, headers={"Authorization": f"bearer {proxy.running.key}"}, ok=False)
    must_be_answered(done, 200, "with `Authorization: bearer KEY`, its scheme in lower case,")


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"", b"\xff\xfe"], ids=["cut", "list", "string", "empty", "not-utf-8"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("bad-body", "HAND-01")
def test_a_body_that_is_no_object(proxy: Proxy, endpoint: str, body: bytes) -> None:
    """If the body of a request is not a JSON object, the proxy answers 400 with an error, and the app-server gets no request."""
    refused(proxy.ask("POST", PATHS[endpoint], body), 400)


@pytest.mark.parametrize("missing", ["input", "messages"])
@pytest.mark.spec("bad-empty", "HAND-01", "PAY-69")
def test_a_request_without_a_prompt(proxy: Proxy, missing: str) -> None:
    """To a request without a prompt, the proxy answers 400 and starts no turn."""
    path = PATHS["responses" if missing == "input" else "chat"]
    refused(proxy.ask("POST", path, {"model": "gpt-5.2"}), 400)


@pytest.mark.expects_failure
@pytest.mark.spec("bad-path", "HAND-10")
def test_an_unknown_path(proxy: Proxy) -> None:
    """The proxy answers 404 to a request with an unknown path."""
    must_be_answered(proxy.ask("POST", "/v1/nothing", {"model": "x"}), 404)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("bad-then-good", "HAND-01", "HAND-09")
def test_a_bad_request_breaks_nothing(proxy: Proxy, endpoint: str) -> None:
    """After an invalid request, the next valid request succeeds."""
    refused(proxy.ask("POST", PATHS[endpoint], b"{"), 400)
    proxy.post(endpoint)


@pytest.mark.parametrize(
    "kind", ["whole", "stream", "refused", "unknown-path", pytest.param("models", marks=pytest.mark.needs("models"))]
)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("request-id", "HAND-02")
def test_request_ids(proxy: Proxy, endpoint: str, kind: str) -> None:
    """Every answer of the proxy has a request id in a header, and all request ids are different."""
    names = ("x-request-id", "request-id", "x-proxy-request-id")
    ids = []
    for _ in range(2):
        if kind in ("whole", "stream"):
            done = proxy.post(endpoint, {"stream": kind == "stream"})
        elif kind == "models":
            done = proxy.ask("GET", "/v1/models")
        else:
            done = proxy.ask("POST", PATHS[endpoint] if kind == "refused" else "/v1/nothing", b"{")
        ids.append(next((value for name in names if (value := done.header(name))), None))
        had = ", ".join(name for name, _ in done.headers)
        assert ids[-1], (
            f"The answer has no id of its request in a header named {', '.join(names[:-1])} or {names[-1]}.\n"
            f"The headers of the answer are: {had}."
        )
    assert ids[0] != ids[1], f"Two answers have the same request id, {ids[0]!r}; each must have a different one."
