"""Requests as ordinary clients send them: long ones, bodies in pieces, a charset, a null; and answers as clients rely on them.

Source: RFC 9110, section 8.3; RFC 8259, section 8.1; the OpenAI API reference.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from codex_replay.plugin.proxy.http import Chunks
from suites.proxy.answers import must_say, read
from suites.proxy.expected import ENDPOINTS, WORKS, asking
from suites.proxy.reached import model_bodies, strings
from suites.proxy.saying import must_be, short

pytestmark = pytest.mark.proxy_profile(WORKS)

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
#: More than the 100 KB at which common frameworks stop to read a body by default.
LONG = "A long file. " * 25_000
#: Each character has several bytes, so that any cut of the body but every fourth is inside a character.
WIDE = "\U0001f600" * 40
INDENTED = "\n\n  Indented,\n    as code is.\n"


@BOTH
@pytest.mark.model("Read.")
@pytest.mark.spec("long-prompt", source="OpenAI API reference", says="a prompt may fill the context of the model")
def test_a_long_prompt(proxy: Proxy, endpoint: str) -> None:
    """A prompt of 325 KB reaches the model whole."""
    done = proxy.post(endpoint, asking(endpoint, proxy.prompt(LONG)), ok=False)
    must_be(f"The status of the answer to POST {done.path} with a prompt of {len(LONG)} bytes", done.status, 200)
    for body in model_bodies(proxy):
        longest = max(len(text) for _, text in strings(body))
        assert longest >= len(LONG), (
            f"the prompt had {len(LONG)} bytes, but the longest text of the model's request has {longest}"
        )


@BOTH
@pytest.mark.model("Read.")
@pytest.mark.spec("body-in-pieces", source="RFC 8259, 8.1", says="JSON text MUST be encoded using UTF-8")
def test_a_body_that_comes_in_pieces(proxy: Proxy, endpoint: str) -> None:
    """A body whose network pieces end inside characters is decoded as a whole."""
    data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt(WIDE))}, ensure_ascii=False).encode()
    at = data.index("\U0001f600".encode())
    done = proxy.ask("POST", PATHS[endpoint], Chunks(data[: at + 2], data[at + 2 : at + 9], data[at + 9 :]))
    must_be(f"The status of the answer to a body in three pieces ({done.body[:200]!r})", done.status, 200)
    calls = [text for call in proxy.model_calls() for _, text in strings(call["body"]) if proxy.marker in text]
    if not calls or any(WIDE not in text for text in calls):
        raise AssertionError(
            f"A prompt that came in three network pieces, two of which end inside a character, reached the model as "
            f"{short(calls)}: join the bytes of a body before decoding them."
        )


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec("content-type-charset", source="RFC 9110, 8.3", says="application/json; charset=utf-8")
def test_a_content_type_with_a_charset(proxy: Proxy, endpoint: str) -> None:
    """`application/json; charset=utf-8` is JSON."""
    done = proxy.post(endpoint, headers={"Content-Type": "application/json; charset=utf-8"}, ok=False)
    must_be(f"The status of the answer to POST {done.path} with a charset in the Content-Type", done.status, 200)


@BOTH
@STREAM
@pytest.mark.model({"type": "text", "text": INDENTED, "deltas": [INDENTED[:2], INDENTED[2:4], INDENTED[4:]]})
@pytest.mark.spec("white-space", "EDIT-15")
def test_white_space_at_the_ends(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """White space at the start and at the end of the model's text is text: clients show code."""
    must_say(proxy.post(endpoint, {"stream": stream}), INDENTED)


@BOTH
@STREAM
@pytest.mark.model({"type": "reasoning", "summary": ["Nothing is left to say."]})
@pytest.mark.spec("empty-answer", source="OpenAI API reference", says="the content of a message may be empty")
def test_a_model_that_says_nothing(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """A turn that completes without a text is a success: the answer is empty, and no error."""
    done = proxy.post(endpoint, {"stream": stream}, ok=False)
    must_be(f"The status of the answer to {done.method} {done.path} after a completed turn without a text", done.status, 200)
    answer = read(done)
    must_be("The text of the answer", answer.text, "")
    must_be("The reason for its end", answer.ended, "stop" if endpoint == "chat" else "completed")


@pytest.mark.model("Done.")
@pytest.mark.spec(
    "null-content", source="OpenAI API reference, Chat", says="content is required unless tool_calls is specified; it may be null"
)
def test_a_message_without_a_content(proxy: Proxy) -> None:
    """The content of a message with calls is null: no text `null` reaches the model."""
    function = {"name": "getFileTree", "arguments": '{"path": "a"}'}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "What is there?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "b.txt"},
        {"role": "user", "content": proxy.prompt("And now?")},
    ]
    proxy.chat({"messages": messages})
    for body in model_bodies(proxy):
        for path, text in strings(body):
            nothing = re.search(r"(?:^|[\s:\])])(?:null|None|undefined)\s*$", text, re.MULTILINE)
            assert not nothing, f"{path} of the request to the model has a text for the null of a message: {text[-300:]!r}"


@BOTH
@STREAM
@pytest.mark.model("Now.")
@pytest.mark.spec("created-seconds", source="OpenAI API reference", says="created: the Unix timestamp (in seconds)")
def test_the_time_of_an_answer(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """`created` (`created_at` of a response) is now, in seconds since 1970."""
    done = proxy.post(endpoint, {"stream": stream})
    if endpoint == "chat":
        values = [event.value for event in done.events if isinstance(event.value, dict)] if stream else [done.json]
        times = [value["created"] for value in values]
    else:
        ended = (
            [e.value["response"] for e in done.events if isinstance(e.value, dict) and "response" in e.value] if stream else []
        )
        times = [value["created_at"] for value in (ended or [done.json])]
    assert times, "the answer has no time"
    for reported in times:
        day = 86_400
        if not isinstance(reported, int | float) or abs(reported - time.time()) > day:
            raise AssertionError(
                f"The time of the answer must be now in seconds since 1970 ({time.time():.0f}), but it is {reported!r}."
            )


@BOTH
@pytest.mark.model(turns=[{"items": ["word " * 50, {"type": "wait", "ms": 30_000}, "never"], "times": "always"}])
@pytest.mark.spec("disconnect-whole", "REAL-73")
def test_a_client_that_does_not_wait_for_a_whole_answer(proxy: Proxy, endpoint: str) -> None:
    """If the client of an answer without a stream hangs up, the proxy interrupts the turn, or ends its app-server."""
    running = proxy.process()
    running.wire.update()
    parts = urlsplit(running.url)
    data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt())}).encode()
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=10)
    headers = {"Authorization": f"Bearer {running.key}", "Content-Type": "application/json"}
    connection.request("POST", parts.path + PATHS[endpoint], data, headers)
    frames: list[Any] = []

    def passed(text: str, sender: str) -> bool:
        frames.extend(running.wire.update())
        return any(frame.sender == sender and text in frame.raw for frame in frames)

    def within(seconds: float, found: Any) -> bool:
        deadline = time.monotonic() + seconds
        while not found() and time.monotonic() < deadline:
            time.sleep(0.02)
        return bool(found())

    try:
        if not within(10, lambda: passed("word word", "server")):
            raise AssertionError("The app-server must begin the turn within 10 s, but it has sent no text of the model.")
    finally:
        connection.close()
    if not within(5, lambda: passed("nterrupt", "client") or not any(frame.child_runs() for frame in frames)):
        raise AssertionError(
            f"The client of POST {PATHS[endpoint]} hung up before the answer (without a stream), but within 5 s the proxy sent "
            "no turn/interrupt (or interruptConversation), nor did it end the app-server: the turn goes on for nobody."
        )
