"""Requests as ordinary clients send them: long prompts, bodies in several packets, a charset, a null.

The module also checks properties of answers on which clients rely.

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

from codex_replay.plugin.proxy.fixture import Proxy, SubjectFailure
from codex_replay.plugin.proxy.http import Chunks
from suites.proxy.answers import must_be_an_object, must_say, read
from suites.proxy.expected import ENDLESS, ENDPOINTS, WORKS, asking
from suites.proxy.failures import FREED, must_be_served_with_calls
from suites.proxy.reached import model_bodies, must_reach, must_reach_once, strings
from suites.proxy.saying import must_be, must_be_answered, short

pytestmark = pytest.mark.proxy_profile(WORKS)

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
#: The calls that start a turn, and those that interrupt one.
SUBMISSIONS = ('"turn/start"', '"sendUserTurn"', '"sendUserMessage"')
INTERRUPTS = ('"turn/interrupt"', '"interruptConversation"')
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
#: More than the 100 KB at which common frameworks stop to read a body by default.
LONG = "A long file. " * 25_000
#: Each character has several bytes, so that any cut of the body but every fourth is inside a character.
WIDE = "\U0001f600" * 40
#: Optional members that the API reference allows to be null; some clients send each member that their user has not set as null.
NULLS = {
    "chat": "frequency_penalty logit_bias logprobs max_completion_tokens max_tokens metadata n presence_penalty "
    "reasoning_effort seed stop store stream stream_options temperature top_p",
    "responses": "include instructions max_output_tokens metadata parallel_tool_calls previous_response_id reasoning store "
    "stream temperature top_p truncation",
}
#: Characters that a proxy changes if it normalises, escapes or encodes a text on its way to the model.
CHARACTERS = {
    "an accent after its letter": "cafe\u0301",
    "a ligature": "\ufb01n",
    "an emoji": "gl\u00fcck \U0001f9ea",
    "a line separator": "up\u2028down",
    "a line end of Windows": "one\r\ntwo",
    "a tab": "left\tright",
    "markup": "<b>&amp; &lt;</b>",
    "a backslash": "C:\\new",
    "a template": "{name} ${name} %s",
}
INDENTED = "\n\n  Indented,\n    as code is.\n"


@BOTH
@pytest.mark.model("Read.")
@pytest.mark.spec("long-prompt", source="OpenAI API reference", says="a prompt may fill the context of the model")
def test_a_long_prompt(proxy: Proxy, endpoint: str) -> None:
    """A prompt of 325 KB reaches the model completely."""
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
    """A body is decoded as a whole, even if its network packets end inside characters."""
    data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt(WIDE))}, ensure_ascii=False).encode()
    at = data.index("\U0001f600".encode())
    done = proxy.ask("POST", PATHS[endpoint], Chunks(data[: at + 2], data[at + 2 : at + 9], data[at + 9 :]))
    must_be(f"The status of the answer to a body in three pieces ({done.shown(200)})", done.status, 200)
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
    """The proxy accepts a JSON body with the content type `application/json; charset=utf-8`."""
    done = proxy.post(endpoint, headers={"Content-Type": "application/json; charset=utf-8"}, ok=False)
    must_be(f"The status of the answer to POST {done.path} with a charset in the Content-Type", done.status, 200)


@BOTH
@STREAM
@pytest.mark.model({"type": "text", "text": INDENTED, "deltas": [INDENTED[:2], INDENTED[2:4], INDENTED[4:]]})
@pytest.mark.spec("white-space", "EDIT-15")
def test_white_space_at_the_ends(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The proxy keeps white space at the start and the end of the model's text, because clients show code."""
    must_say(proxy.post(endpoint, {"stream": stream}), INDENTED)


@BOTH
@STREAM
@pytest.mark.model({"type": "reasoning", "summary": ["Nothing is left to say."]})
@pytest.mark.spec("empty-answer", source="OpenAI API reference", says="the content of a message may be empty")
def test_a_model_that_says_nothing(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If a turn completes without a text, the proxy sends an empty answer and no error."""
    done = proxy.post(endpoint, {"stream": stream}, ok=False)
    must_be(f"The status of the answer to {done.method} {done.path} after a completed turn without a text", done.status, 200)
    answer = read(done)
    must_be("The text of the answer to a model that only reasons (its reasoning is not a text for the user)", answer.text, "")
    must_be("The reason for its end", answer.ended, "stop" if endpoint == "chat" else "completed")


@pytest.mark.model("Done.")
@pytest.mark.spec(
    "null-content", source="OpenAI API reference, Chat", says="content is required unless tool_calls is specified; it may be null"
)
def test_a_message_without_a_content(proxy: Proxy) -> None:
    """If the content of a message with calls is null, the proxy does not send the text `null` to the model."""
    function = {"name": "getFileTree", "arguments": '{"path": "a"}'}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "What is there?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "b.txt"},
        {"role": "user", "content": proxy.prompt("And now?")},
    ]
    must_be_served_with_calls(proxy, lambda: proxy.chat({"messages": messages}))
    for body in model_bodies(proxy):
        for path, text in strings(body):
            nothing = re.search(r"(?:^|[\s:\])])(?:null|None|undefined)\s*$", text, re.MULTILINE)
            assert not nothing, f"{path} of the request to the model has a text for the null of a message: {text[-300:]!r}"


@BOTH
@STREAM
@pytest.mark.model("Now.")
@pytest.mark.spec("created-seconds", source="OpenAI API reference", says="created: the Unix timestamp (in seconds)")
def test_the_time_of_an_answer(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """In an answer, `created` (or `created_at`) is the current time in seconds since 1970."""
    done = proxy.post(endpoint, {"stream": stream})
    for event in done.events if stream else ():
        must_be_an_object(event)
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


class Leaving:
    """A client that sends one request without a stream and disconnects; `frames` has the JSON-RPC messages since the request."""

    def __init__(self, proxy: Proxy, endpoint: str, env: dict[str, str] | None = None) -> None:
        self._patience = proxy.patience
        self._running = proxy.process(env)
        self._running.wire.update()
        self.frames: list[Any] = []
        parts = urlsplit(self._running.url)
        data = json.dumps({"model": "gpt-5.2", **asking(endpoint, proxy.prompt())}).encode()
        self._connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=10)
        headers = {"Authorization": f"Bearer {self._running.key}", "Content-Type": "application/json"}
        self._connection.request("POST", parts.path + PATHS[endpoint], data, headers)

    def hang_up(self) -> None:
        """Close the connection."""
        self._connection.close()

    def within(self, seconds: float, sender: str, *words: str) -> bool:
        """Return True if `sender` sends a message with one of the given words before the time limit."""
        return self._running.wire.until(lambda frames: _has(frames, sender, words), seconds, self.frames)

    def freed(self) -> bool:
        """Return True if the proxy interrupts the turn or ends the app-server within 5 s.

        After several waits without success, the limit is shorter.
        """
        self.waited = self._patience.part(5, FREED)
        freed = self._running.wire.until(
            lambda frames: _has(frames, "client", INTERRUPTS) or not any(frame.child_runs() for frame in frames),
            self.waited,
            self.frames,
        )
        self._patience.count(not freed, FREED)
        return freed


def _has(frames: list[Any], sender: str, words: tuple[str, ...]) -> bool:
    return any(frame.sender == sender and word in frame.raw for frame in frames for word in words)


@BOTH
@pytest.mark.model(turns=[ENDLESS])
@pytest.mark.spec("disconnect-whole", "REAL-73")
def test_a_client_that_does_not_wait_for_a_whole_answer(proxy: Proxy, endpoint: str) -> None:
    """If a client that waits for a whole answer disconnects, the proxy interrupts the turn or ends its app-server."""
    client = Leaving(proxy, endpoint)
    try:
        if not client.within(10, "server", "word word"):
            raise AssertionError("The app-server must begin the turn within 10 s, but it has sent no text of the model.")
    finally:
        client.hang_up()
    if not client.freed():
        raise AssertionError(
            f"The client of POST {PATHS[endpoint]} hung up before the answer (without a stream), but within {client.waited:g} s "
            "the proxy sent no turn/interrupt (or interruptConversation), and it did not end the app-server: the turn continues."
        )


#: What the client waits for before it hangs up, and the reply of the app-server that comes half a second late then.
MOMENTS = {
    "the-thread-opens": (('"thread/start"', '"newConversation"'), ['"result":{"thread":', '"result":{"conversationId":']),
    "the-turn-starts": (SUBMISSIONS, ['"result":{"turn":']),
}


@BOTH
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.model(turns=[ENDLESS])
@pytest.mark.spec("disconnect-early", "REAL-73")
def test_a_client_that_hangs_up_early(proxy: Proxy, endpoint: str, moment: str) -> None:
    """If the client hangs up while the app-server opens its thread or starts its turn, no turn continues."""
    calls, late = MOMENTS[moment]
    client = Leaving(proxy, endpoint, env={"CODEX_REPLAY_INSERT": json.dumps({"delay": late, "seconds": 0.5})})
    try:
        if not client.within(10, "client", *calls):
            raise AssertionError(f"The proxy must send {' or '.join(calls)} for POST {PATHS[endpoint]} within 10 s.")
    finally:
        client.hang_up()
    if not client.within(1.5, "client", *SUBMISSIONS) or client.freed():
        return
    raise AssertionError(
        f"The client of POST {PATHS[endpoint]} hung up before the app-server had answered {' or '.join(calls)}. The proxy "
        f"started the turn, and within {client.waited:g} s it sent no turn/interrupt (or interruptConversation), and it "
        "did not end the app-server: the turn continues without a client. Check after each reply of the app-server whether the "
        "client is still connected."
    )


#: The seconds that a turn of `ENDLESS` lasts at least.
LASTS = len(ENDLESS["items"][0]["deltas"]) * ENDLESS["delay_ms"] / 1000


@BOTH
@pytest.mark.model(
    turns=[
        {"match": "Hello", **ENDLESS},
        {"match": "Quick?", "items": ["Quick."], "times": "always"},
    ]
)
@pytest.mark.spec("clients-beside", "REAL-50")
def test_a_long_answer_holds_up_no_other_client(proxy: Proxy, endpoint: str) -> None:
    """If a second request comes while another request runs, the proxy answers the second before the other has ended."""
    if proxy.clients < 2:
        pytest.skip("not verified: the proxy serves one client at a time (clients = 1)")
    client = Leaving(proxy, endpoint)
    try:
        if not client.within(10, "server", "word word"):
            raise AssertionError("The app-server must begin the turn within 10 s, but it has sent no text of the model.")
        done = proxy.post(endpoint, asking(endpoint, proxy.prompt("Quick?")))
        must_say(done, "Quick.")
        first = next(frame.t for frame in client.frames if "word word" in frame.raw)
        if (late := done.ended - first) > LASTS:
            raise SubjectFailure(
                f"The answer came {late:.1f} s after the other turn had begun; the other turn lasts {LASTS:g} s."
            )
    except SubjectFailure as why:
        raise AssertionError(
            "A request that came during the turn of another request was not answered during this turn: the proxy serves "
            f"one client at a time. Serve several at the same time, or set `clients = 1` in the proxy's table. {why}"
        ) from None
    finally:
        client.hang_up()


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec(
    "system-texts-once",
    "HAND-40",
    source="OpenAI API reference, Chat Completions: messages; Responses: input",
    says="A list of messages comprising the conversation so far",
)
def test_system_texts_come_once(proxy: Proxy, endpoint: str) -> None:
    """A system text at the start, one between the messages, and `instructions` reach the model in order and once each."""
    texts = ["Answer as a pirate would.", "Never name a ship."]
    messages = [{"role": "system", "content": texts[0]}, {"role": "user", "content": "Hello there."}]
    messages += [{"role": "assistant", "content": "Hi."}, {"role": "system", "content": texts[1]}]
    messages.append({"role": "user", "content": proxy.prompt()})
    name, more = ("messages", {}) if endpoint == "chat" else ("input", {"instructions": "Speak in rhymes of herrings."})
    proxy.post(endpoint, {name: messages, **more}, env={"PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false"})
    must_reach_once(proxy, (f"{name}[0] (role system)", texts[0]), (f"{name}[3] (role system)", texts[1]))
    must_reach_once(proxy, *more.items())


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec(
    "answer-ids",
    source="OpenAI API reference, Chat Completions: id; Responses: id",
    says="A unique identifier for the chat completion. Unique identifier for this Response",
)
def test_the_ids_of_two_answers(proxy: Proxy, endpoint: str) -> None:
    """Two answers have different ids, because clients store answers by their ids."""
    first, second = (proxy.post(endpoint).json.get("id") for _ in range(2))
    if first == second:
        raise AssertionError(
            f"Two answers of POST {PATHS[endpoint]} have the same id, {first!r}; each must have a different one."
        )


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec("null-settings", source="OpenAI API reference", says="temperature: number or null; each is optional")
def test_settings_that_are_null(proxy: Proxy, endpoint: str) -> None:
    """The proxy treats an optional member that is null as absent."""
    done = proxy.post(endpoint, dict.fromkeys(NULLS[endpoint].split()), ok=False)
    must_be_answered(done, 200, "with optional members that are null, as if they were absent,")
    must_say(done, "Hi.")


@BOTH
@pytest.mark.parametrize("empty", ["text-before-a-call", "output"])
@pytest.mark.model("Hi.")
@pytest.mark.spec("empty-content", source="OpenAI API reference", says="content: string or array; output: string or array")
def test_an_empty_content_in_the_history(proxy: Proxy, endpoint: str, empty: str) -> None:
    """The proxy serves a history in which the text before a call, or the output of a tool, is an empty string."""
    text, output = ("", "Eleven herons.") if empty == "text-before-a-call" else ("I shall look.", "")
    function = {"name": "getFileTree", "arguments": '{"path":"north-quay"}'}
    call = {"id": "call_North7", "type": "function", "function": function}
    messages: list[Any] = [{"role": "assistant", "content": text, "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": output}]
    if endpoint == "responses":
        messages = [{"role": "assistant", "content": text}, {"type": "function_call", "call_id": call["id"], **function}]
        messages += [{"type": "function_call_output", "call_id": call["id"], "output": output}]
    given = [{"role": "user", "content": "Look."}, *messages, {"role": "user", "content": proxy.prompt("And now?")}]
    body = {"messages" if endpoint == "chat" else "input": given}
    try:
        done = must_be_served_with_calls(proxy, lambda: proxy.post(endpoint, body))
    except SubjectFailure:
        must_be_answered(proxy.exchanges[-1], 200, f"with an empty {empty.replace('-', ' ')} in its history")
        raise
    must_say(done, "Hi.")
    must_reach(proxy, ("the arguments of the earlier call", "north-quay"), ("the last message", proxy.marker))


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec("characters-reach-model", "HAND-22", source="RFC 8259, 8.1", says="JSON text MUST be encoded using UTF-8")
def test_characters_that_are_easily_changed(proxy: Proxy, endpoint: str) -> None:
    """Texts of the user and of the system, and outputs of tools, reach the model with their characters unchanged."""
    kinds = {who: {kind: f"{who}: {text}." for kind, text in CHARACTERS.items()} for who in ("user", "system", "tool")}
    texts = {who: "|".join(each.values()) for who, each in kinds.items()}
    call = {"name": "getFileTree", "arguments": "{}"}
    if endpoint == "chat":
        made: Any = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
        output: Any = {"role": "tool", "tool_call_id": "call_1", "content": texts["tool"]}
    else:
        made = {"type": "function_call", "call_id": "call_1", **call}
        output = {"type": "function_call_output", "call_id": "call_1", "output": texts["tool"]}
    begun = [{"role": who, "content": texts[who]} for who in ("system", "user")]
    given = [*begun, made, output, {"role": "user", "content": proxy.prompt("And now?")}]
    body = {"messages" if endpoint == "chat" else "input": given}
    must_be_served_with_calls(proxy, lambda: proxy.post(endpoint, body, env={"PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false"}))
    for request in model_bodies(proxy):
        whole = "\n".join(text for _, text in strings(request))
        for who, each in kinds.items():
            if lost := [(at, kind) for at, (kind, text) in enumerate(each.items()) if text not in whole]:
                came = whole[whole.find(f"{who}: ") :].split("|") if f"{who}: " in whole else []
                raise AssertionError(
                    f"A text of the {who} changed on the way to the model ({', '.join(kind for _, kind in lost)}): the client "
                    f"sent {short([each[kind] for _, kind in lost])}, but the model got "
                    f"{short([came[at] for at, _ in lost if at < len(came)])}. Pass on each text unchanged: do not normalise, "
                    "escape or re-encode it."
                )
