"""The proxy as an HTTP service: connections that stay open, silent streams, earlier responses, and health checks.

Source: RFC 9112, section 9.3; the HTML standard, section 9.2; the Responses API reference. The health checks are the paths
that common process managers use.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.answers import must_have_messages, read
from suites.proxy.expected import CALLS, ENDPOINTS, PATHS, WORKS, asking, tool
from suites.proxy.failures import served_again, settle, with_optional
from suites.proxy.reached import model_bodies, shown, strings
from suites.proxy.saying import must_be, must_be_answered, short

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model(turns=[{"items": ["Hi."], "times": "always"}])]

#: A model of Codex that the other requests of the suite do not name.
OTHER = "gpt-5.2-codex"
HEALTH = ("/healthz", "/readyz")
#: The model is silent before its first word, and again in the middle; a proxy may keep the connection alive meanwhile.
SILENCE = {"type": "wait", "ms": 1500}
#: The fake Codex keeps its threads on disk, as the real Codex does: thread/resume of another process finds them.
KEPT = {"CODEX_REPLAY_STATE": "1"}


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


def continued(proxy: Proxy, earlier: str, body: dict[str, Any], **given: Any) -> Exchange | None:
    """Send a request with previous_response_id; return None if the proxy refuses it with an error that names the field."""
    __tracebackhide__ = True
    done = proxy.responses({**body, "previous_response_id": earlier}, ok=False, **given)
    if done.status == 200:
        return done
    if done.status not in (400, 404):
        raise AssertionError(
            f"A request with previous_response_id was answered {done.answered}: {done.shown(300)}. Continue the conversation "
            "(after a new start of the app-server: with thread/resume), or refuse the field with status 400 or 404."
        )
    error = done.json["error"]
    names = ["previous_response_id", *(body.keys() & {"model"})]
    assert any(name in json.dumps(error) for name in names), f"the error must name previous_response_id; it is {error!r}"
    return None


def must_know(proxy: Proxy, words: str, when: str = "") -> None:
    """Check that the last request to the model has the given words of the conversation; `when` ends the first sentence."""
    __tracebackhide__ = True
    body = model_bodies(proxy)[-1]
    if not any(words in text for _, text in strings(body)):
        raise AssertionError(
            f"A request with previous_response_id was answered 200, but {words!r} of the conversation did not reach the model"
            f"{when}: pass the conversation on, or refuse the field with status 400.\n{shown(body, 1)}"
        )


EARLIER = pytest.mark.spec(
    "previous-response", source="OpenAI API reference, Responses", says="previous_response_id: create multi-turn conversations"
)


@pytest.mark.parametrize("stream", [False, pytest.param(True, marks=pytest.mark.needs("stream"))], ids=["whole", "stream"])
@EARLIER
def test_an_earlier_response_is_known_or_refused(proxy: Proxy, stream: bool) -> None:
    """The proxy either supports `previous_response_id`, or refuses it with an error that names the field."""
    first = proxy.responses({"input": "The heron is called Ada.", "stream": stream}, env=KEPT)
    answer = next(event.value["response"] for event in first.events if event.value.get("response")) if stream else first.json
    settle(proxy)
    if continued(proxy, answer["id"], {"model": OTHER}, env=KEPT):
        must_know(proxy, "called Ada")
        must_be(
            "The model that answers a request with previous_response_id, which names another model than the earlier request,",
            model_bodies(proxy)[-1]["model"],
            OTHER,
        )


@EARLIER
def test_the_earlier_response_of_another_client(proxy: Proxy) -> None:
    """A request continues the response that it names, and not the conversation of another client."""
    first = proxy.responses({"input": "The heron is called Ada."}, env=KEPT).json
    settle(proxy)
    proxy.responses({"input": "The otter is called Bob."}, env=KEPT)
    settle(proxy)
    if not continued(proxy, first["id"], {}, env=KEPT):
        return
    body = model_bodies(proxy)[-1]
    if any("called Bob" in text for _, text in strings(body)):
        raise AssertionError(
            "The request names the first response in previous_response_id, but the model got the prompt of a later request "
            "('called Bob'), which another client may have sent. Keep a thread (or a history) for each conversation.\n"
            f"{shown(body, 1)}"
        )
    must_know(proxy, "called Ada", " after a request of another client")


@pytest.mark.spec(
    "previous-response-unknown",
    source="OpenAI API reference, Responses",
    says="The unique ID of the previous response to the model",
)
def test_an_earlier_response_that_does_not_exist(proxy: Proxy) -> None:
    """The proxy refuses a `previous_response_id` that it has never given to a client."""
    unknown = "resp_0a1b2c3d4e5f60718293a4b5c6d7e8f9"
    if continued(proxy, unknown, {}):
        raise AssertionError(
            f"The proxy has never given the id of previous_response_id ({unknown}) to a client, but it answered 200. The client "
            "believes that the model knows the earlier conversation, and it does not. Refuse an unknown id with status 400 and "
            "an error that names previous_response_id; OpenAI's code is `previous_response_not_found`."
        )


@pytest.mark.model(
    turns=[
        {"items": ["One."], "usage": {"input_tokens": 100, "output_tokens": 10}},
        {"items": ["Two."], "usage": {"input_tokens": 200, "output_tokens": 20}},
    ]
)
@pytest.mark.spec("previous-response-usage", source="OpenAI API reference, Responses", says="usage: token usage details")
def test_the_usage_after_an_earlier_response(proxy: Proxy) -> None:
    """The usage of an answer does not include the usage of the earlier responses of its conversation."""
    first = proxy.responses({}, env=KEPT).json
    settle(proxy)
    done = continued(proxy, first["id"], {"input": proxy.prompt("And two?")}, env=KEPT)
    if done and (usage := done.json.get("usage")):
        must_be(
            "usage.total_tokens of the second response of a conversation (the model used 110 tokens for the first response and "
            "220 for the second, and thread/tokenUsage/updated has both in `total`)",
            usage["total_tokens"],
            220,
        )


@pytest.mark.spec(
    "previous-response-after-death", "REAL-94", source="OpenAI API reference, Responses", says="previous_response_id"
)
def test_an_earlier_response_after_the_death_of_the_app_server(proxy: Proxy) -> None:
    """If the app-server ends between two requests of a conversation, the second request continues it, or is refused with 400."""
    if proxy.attached:
        pytest.skip("not verified: the app-server of a proxy that is given as a URL cannot be ended; give a command")
    done = proxy.responses({"input": "The heron is called Ada."}, env=KEPT)
    settle(proxy)
    for child in {int(frame.child) for frame in done.frames}:
        with contextlib.suppress(ProcessLookupError):  # a proxy may end its app-server after each request
            os.kill(child, signal.SIGTERM)
    served_again(proxy, "responses", env=KEPT)
    settle(proxy)
    if continued(proxy, done.json["id"], {"input": proxy.prompt("What is it called?")}, env=KEPT):
        must_know(
            proxy, "called Ada", " after the end of the app-server (a new app-server knows a thread only after thread/resume)"
        )


@pytest.mark.needs("native-tools")
@pytest.mark.model(
    turns=[
        {
            "items": [
                {"type": "function_call", "name": "getFileTree", "arguments": {"path": "north-quay"}, "call_id": "call_North7"}
            ]
        },
        {"items": ["Herons."], "times": "always"},
    ]
)
@pytest.mark.spec(
    "previous-response-tools",
    source="OpenAI API reference, Responses",
    says="function_call_output: The output of a function tool call",
)
def test_the_output_of_a_call_of_an_earlier_response(proxy: Proxy) -> None:
    """An output that a client sends with `previous_response_id` reaches the model, in a turn that answers the client."""
    first = proxy.responses({"tools": [tool("responses")]}, env=KEPT)
    calls = read(first).calls
    must_be("The names of the calls after a native call of the model", [call.name for call in calls], ["getFileTree"])
    settle(proxy)
    output = proxy.prompt("Eleven herons stood there.")
    items = [{"type": "function_call_output", "call_id": calls[0].id, "output": output}]
    if done := continued(proxy, first.json["id"], {"input": items}, env=KEPT):
        must_know(proxy, "Eleven herons")
        must_be("The text of the answer to the output of a tool", read(done).text, "Herons.")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("model-reaches-model", "PAY-08", source="OpenAI API reference", says="model: used to generate the response")
def test_the_model_of_each_request(proxy: Proxy, endpoint: str) -> None:
    """Each request is answered by the model that it names, also if an earlier request of the conversation named another one."""
    messages: list[Any] = []
    for model, text in ((OTHER, ""), ("gpt-5.2", "And now?")):
        messages.append({"role": "user", "content": proxy.prompt(text) if text else proxy.prompt()})
        before = len(proxy.model_calls())
        given = {"model": model, "messages" if endpoint == "chat" else "input": messages}
        done = proxy.post(endpoint, given, ok=False)
        if done.status in (400, 404) and "model" in json.dumps(done.json.get("error")):
            pytest.skip(f"not verified: the proxy refuses the model {model}: {done.shown()}")
        must_be_answered(done, 200, f"for the model {model}")
        settle(proxy)
        for body in model_bodies(proxy)[before:]:
            must_be(f"The model that Codex used for a request with `model: {model}`", body["model"], model)
        messages.append({"role": "assistant", "content": "Hi."})


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "json-object-reaches-model", source="OpenAI API reference", says='response_format: {"type": "json_object"} enables JSON mode'
)
def test_json_mode(proxy: Proxy, endpoint: str) -> None:
    """The format `json_object` reaches the model, as a format or as an instruction, or the proxy refuses it."""
    proxy.post(endpoint)
    settle(proxy)
    calls = model_bodies(proxy)
    wanted = {"type": "json_object"}
    asked = {"response_format": wanted} if endpoint == "chat" else {"text": {"format": wanted}}
    if not with_optional(proxy, lambda **more: proxy.post(endpoint, more), **asked)[1]:
        return
    for body in model_bodies(proxy)[len(calls) :]:
        kind = ((body.get("text") or {}).get("format") or {}).get("type")
        if not kind and occurrences(body, "json") <= occurrences(calls[0], "json"):
            raise AssertionError(
                "The client asked for JSON with the format `json_object`, and the proxy answered 200, but the request to the "
                "model is the same as without the format: the client cannot parse a text. Add a sentence to "
                "developerInstructions (`Answer with one JSON object.`), or refuse the format with status 400."
            )


def occurrences(body: Any, word: str) -> int:
    """Return how often a request to the model contains a word, in any case."""
    return sum(text.lower().count(word) for _, text in strings(body))


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
