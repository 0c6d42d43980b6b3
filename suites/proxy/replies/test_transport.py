"""The transport of requests and answers: how bodies are sent, queries in URLs, and an app-server that writes to stderr.

Source: RFC 9112, sections 6.2 and 7.1; RFC 3986, section 3.4; docs/proxy.md.
"""

from __future__ import annotations

import json

import pytest

from codex_replay.plugin.proxy.fixture import Proxy, SubjectFailure
from codex_replay.plugin.proxy.http import Chunks
from suites.proxy.answers import must_say
from suites.proxy.expected import ENDPOINTS, WORKS, asking
from suites.proxy.reached import must_reach
from suites.proxy.saying import must_be_answered

pytestmark = [pytest.mark.proxy_profile(WORKS), pytest.mark.model("Hi.")]

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
WIDE = "Grüße, 你好, \U0001f600"
#: More than a pipe of common systems takes (64 KB) before someone has to read it.
NOISE = 512 * 1024


@BOTH
@pytest.mark.spec("chunked-request", source="RFC 9112, 7.1", says="A recipient MUST be able to parse and decode the chunked")
def test_a_body_in_chunks(proxy: Proxy, endpoint: str) -> None:
    """The proxy reads a body with `Transfer-Encoding: chunked` and no Content-Length, which some clients send."""
    data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt())}).encode()
    headers = {"Transfer-Encoding": "chunked"}
    try:
        done = proxy.ask("POST", PATHS[endpoint], Chunks(data[:20], data[20:]), headers=headers)
    except SubjectFailure as why:
        raise AssertionError(f"A request whose body has `Transfer-Encoding: chunked` was not answered: {why}") from None
    must_be_answered(done, 200, "with a body in `Transfer-Encoding: chunked`, which has no Content-Length,")
    must_say(done, "Hi.")


@BOTH
@pytest.mark.spec("query-string", source="RFC 3986, 3.4", says="The query component contains non-hierarchical data")
def test_a_query_is_no_part_of_the_path(proxy: Proxy, endpoint: str) -> None:
    """The proxy ignores a query in the URL; some SDKs add a query, for example `?api-version=1`, to each URL."""
    body = {"model": "gpt-5.2", **asking(endpoint, proxy.prompt())}
    done = proxy.ask("POST", f"{PATHS[endpoint]}?api-version=1", body)
    must_be_answered(done, 200, "with the query of the URL, which a proxy may ignore,")
    must_say(done, "Hi.")


@BOTH
@pytest.mark.model({"type": "text", "text": WIDE, "deltas": [WIDE[:4], WIDE[4:]]})
@pytest.mark.spec("content-length-bytes", source="RFC 9112, 6.2", says="the message body length in octets")
def test_the_length_of_an_answer_is_in_bytes(proxy: Proxy, endpoint: str) -> None:
    """The Content-Length of an answer is its number of bytes, not of characters, so that the client gets the whole body."""
    done = proxy.post(endpoint)
    try:
        json.loads(done.body)
    except ValueError:
        raise AssertionError(
            f"The answer with the text {WIDE!r} is cut off: it ends with {done.shown(-40)}. The Content-Length is "
            f"{done.header('content-length')}; a Content-Length counts the bytes of the body in UTF-8 and not its characters."
        ) from None
    must_say(done, WIDE)


@BOTH
@pytest.mark.spec("server-stderr", source="pipe(7)", says="a write(2) will block until sufficient data has been read")
def test_an_app_server_that_writes_much_to_stderr(proxy: Proxy, endpoint: str) -> None:
    """The proxy reads the stderr of its app-server, or lets it inherit stderr; a full pipe would block the app-server."""
    try:
        done = proxy.post(endpoint, env={"CODEX_REPLAY_STDERR": str(NOISE)})
    except SubjectFailure as why:
        raise AssertionError(
            f"The app-server wrote {NOISE // 1024} KB to stderr, and the request was not answered: a pipe that nobody reads is "
            f"full after 64 KB, and then the app-server stops. Read its stderr, or let it inherit that of the proxy. {why}"
        ) from None
    must_say(done, "Hi.")


@pytest.mark.spec(
    "reasoning-items", source="OpenAI API reference, Responses: input", says="Be sure to include these items in your input"
)
def test_the_reasoning_of_an_earlier_answer(proxy: Proxy) -> None:
    """If a client sends back the output of an earlier answer, including reasoning items, the messages reach the model."""
    messages = [
        {"role": "user", "content": "Where is the heron?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It flew to the quay."}]},
        {"role": "user", "content": proxy.prompt("And now?")},
    ]
    done = proxy.responses({"input": messages}, ok=False)
    must_be_answered(done, 200, "with a reasoning item, which an earlier answer may have had,")
    must_reach(proxy, ("input[0]", "Where is the heron?"), ("input[2].content[0]", "It flew to the quay."))


@BOTH
@pytest.mark.spec("half-an-emoji", source="RFC 8259, 8.2", says="unpredictable: a JSON text with an unpaired surrogate")
def test_half_an_emoji(proxy: Proxy, endpoint: str) -> None:
    """The proxy serves or refuses a prompt that a client has cut in the middle of an emoji: Codex drops a line with a half."""
    data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt("Fine \ud83d"))}).encode()
    try:
        done = proxy.ask("POST", PATHS[endpoint], data, headers={"Content-Type": "application/json"})
    except SubjectFailure as why:
        raise AssertionError(
            "The prompt ends with half an emoji (\\ud83d). Codex cannot read a line of JSON with it, and does not answer such a "
            f"line: send U+FFFD instead, or refuse the request with status 400. {why}"
        ) from None
    if done.status != 400:
        must_be_answered(done, 200, "with half an emoji (\\ud83d) in its prompt, or refused with 400,")
        must_say(done, "Hi.")
