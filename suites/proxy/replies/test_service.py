"""The proxy as an HTTP service: connections that stay open, silent streams, earlier responses, and health checks.

Source: RFC 9112, section 9.3; the HTML standard, section 9.2; the Responses API reference. The health checks are the paths
that common process managers use.
"""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.answers import must_have_messages, read
from suites.proxy.expected import CALLS, ENDPOINTS, PATHS, WORKS, asking
from suites.proxy.failures import settle
from suites.proxy.reached import strings
from suites.proxy.saying import must_be, short

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model(turns=[{"items": ["Hi."], "times": "always"}])]

HEALTH = ("/healthz", "/readyz")
#: The model is silent before its first word, and again in the middle; a proxy may keep the connection alive meanwhile.
SILENCE = {"type": "wait", "ms": 1500}


@pytest.mark.parametrize("kind", ["whole", "stream", "refused"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "keep-alive", source="RFC 9112, 9.3", says="A client that does not support persistent connections MUST send the close option"
)
def test_a_connection_serves_several_requests(proxy: Proxy, endpoint: str, kind: str) -> None:
    """After an answer, the connection stays open, or the answer has the header `Connection: close`.

    After a refused request (without a key), the connection also stays open, or the answer has `Connection: close`. The body of a
    refused request is not a part of the next request.
    """
    stream = kind == "stream"
    proxy.post(endpoint, {"stream": stream})
    assert proxy.running is not None, "The proxy must still be running after the answer."
    parts = urlsplit(proxy.running.url)
    data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt()), "stream": stream}).encode()
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=10)
    try:
        for number, status in enumerate((401, 401, 200) if kind == "refused" else (200, 200, 200), 1):
            login = {"Authorization": f"Bearer {proxy.running.key}"} if status == 200 else {}
            after = ", after a refused request whose body the proxy must read," if kind == "refused" and number > 1 else ""
            headers = {**login, "Content-Type": "application/json"}
            try:
                connection.request("POST", parts.path + PATHS[endpoint], data, headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise AssertionError(
                    f"Request {number} to {PATHS[endpoint]} on one connection{after} got no complete answer "
                    f"({type(error).__name__}), but the answer before it did not say `Connection: close`: keep the "
                    "connection open, or send that header."
                ) from None
            must_be(f"The status of the answer to request {number} on one connection{after}", answer.status, status)
            if (answer.getheader("connection") or "").lower() == "close":
                return
    finally:
        connection.close()


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.model(turns=[{"items": [SILENCE, "Still. ", SILENCE, "Here."], "times": "always"}])
@pytest.mark.spec("keep-alive-comments", source="HTML standard, 9.2.7", says="a comment line (one starting with a ':' character)")
def test_a_silent_stream_has_no_event_without_an_object(proxy: Proxy, endpoint: str) -> None:
    """If the model is silent, the proxy may send SSE comments, but no event whose data is not JSON."""
    done = proxy.post(endpoint, {"stream": True})
    events = [event for event in done.events if event.data != "[DONE]"]
    if wrong := [event.data for event in events if not isinstance(event.value, dict)]:
        raise AssertionError(
            f"While the model was silent, the stream had {len(wrong)} events whose data is not a JSON object, the first "
            f"{short(wrong[0])}: clients fail to decode such an event. To keep a connection alive, send a comment, a line that "
            "begins "
            "with a colon (`: ping`)."
        )
    must_have_messages(read(done).text, "Still.", "Here.")


@pytest.mark.spec(
    "previous-response", source="OpenAI API reference, Responses", says="previous_response_id: create multi-turn conversations"
)
def test_an_earlier_response_is_known_or_refused(proxy: Proxy) -> None:
    """The proxy either supports `previous_response_id`, or refuses it with an error that names the field."""
    first = proxy.responses({"input": "The heron is called Ada."}).json
    settle(proxy)
    done = proxy.responses({"previous_response_id": first["id"]}, ok=False)
    if done.status == 200:
        for call in proxy.model_calls():
            report = [text for _, text in strings(call["body"])]
            if not any("called Ada" in text for text in report):
                raise AssertionError(
                    "A request with previous_response_id was answered 200, but the earlier response did not reach the model: "
                    "pass the conversation on, or refuse the field with status 400."
                )
        return
    must_be(f"The status of the answer to {done.method} {done.path} with previous_response_id", done.status, 400)
    error = done.json["error"]
    assert "previous_response_id" in json.dumps(error), f"the error must name previous_response_id; it is {error!r}"


@pytest.mark.parametrize("path", HEALTH)
@pytest.mark.spec("health", source="Process managers", says="GET /healthz and GET /readyz")
def test_the_health_of_a_proxy_that_serves(proxy: Proxy, path: str) -> None:
    """If the proxy has `/healthz` or `/readyz`, the path answers 200 while the proxy serves requests.

    A request to the path starts no conversation.
    """
    proxy.process()
    done = proxy.ask("GET", path)
    if done.status == 404:
        pytest.skip(f"not verified: the proxy does not serve GET {path}")
    must_be(f"The status of the answer to GET {path} of a proxy that serves requests", done.status, 200)
    must_be(f"The proxy's messages to its app-server for GET {path}", [call["method"] for call in done.calls(*CALLS)], [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("sandbox-closed", "PAY-23", "PAY-28")
def test_no_full_access_for_every_client(proxy: Proxy, endpoint: str) -> None:
    """Without PROXY_SANDBOX_MODE, the proxy does not give the commands of the model full access to the machine."""
    if proxy.attached:
        pytest.skip("not verified: the calls of a proxy that is given as a URL cannot be seen; give a command")
    if "PROXY_SANDBOX_MODE" in proxy.process().subject.env:
        pytest.skip("not verified: the settings of the project give the proxy PROXY_SANDBOX_MODE")
    done = proxy.post(endpoint)
    for call in done.calls():
        for name in ("sandbox", "sandboxPolicy"):
            policy = (call.get("params") or {}).get(name)
            kind = policy.get("type") if isinstance(policy, dict) else policy
            if kind in ("danger-full-access", "dangerFullAccess"):
                raise AssertionError(
                    f"{name} of {call['method']} is {short(policy)}, although PROXY_SANDBOX_MODE is not set: by a prompt, each "
                    "client of the proxy can change every file of this machine. Send `read-only`, unless the variable says more."
                )
