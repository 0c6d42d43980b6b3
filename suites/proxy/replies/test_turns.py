"""One request of a client leads to one complete turn, and the client gets its text unchanged.

Source: docs/contract/real-0.92.md, sections 2 and 4.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.answers import arguments, must_say, read
from suites.proxy.expected import ENDPOINTS, WORKS, native, tool
from suites.proxy.failures import (
    AT_ONCE,
    DIED,
    THINKS,
    failure,
    killed_in_turn,
    must_be_at_once,
    must_come_of_the_fault,
    served_again,
    settle,
    with_optional,
    without_app_server,
)
from suites.proxy.saying import must_be, short

pytestmark = pytest.mark.proxy_profile(WORKS)

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
#: The calls that give the app-server a text to answer.
SUBMISSIONS = ("sendUserTurn", "sendUserMessage", "turn/start", "turn/steer")
#: Each piece begins with the one before, or is equal to it; a model that counts or repeats itself says such things.
PIECES = ["ha", "ha", "ha!", "ha! ", "1", "10", "100", " ", " 100", " 100", "\n", "\n\n", "end"]
#: Arguments with an id of 64 bits, as databases and chat services have them, and characters outside ASCII.
PRECISE: dict[str, Any] = {"path": "«naïve» \U0001f600", "id": 9007199254740993, "also": ["", None, 0.1]}
#: A message that the model writes for 3 s.
SPREAD = ["First. ", *["More. "] * 60, "Last."]
#: What an app-server sends when a turn begins: to the listeners of a thread (v2), and to those of a conversation (v1).
BEGUN = ('"turn/started"', '"codex/event/task_started"')
#: Starts of an app-server that ends at once, a second; one more for each request is fair, too.
STARTS = 5
#: Milliseconds until a slow model begins: more than the 5 s after which an impatient proxy gives up.
SLOW = 6000


@BOTH
@STREAM
@pytest.mark.model("Once.")
@pytest.mark.spec("one-submission", "REAL-80")
def test_one_request_is_one_submission(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The proxy submits each prompt once: with sendUserTurn (or turn/start), or with sendUserMessage.

    If a proxy submits a prompt twice, the app-server joins the two prompts or answers both; chance decides.
    """
    done = proxy.post(endpoint, {"stream": stream})
    sent = [call["method"] for call in done.calls(*SUBMISSIONS)]
    if proxy.attached or len(sent) == 1:
        return
    raise AssertionError(
        f"The proxy submitted the prompt of one request {len(sent)} times ({', '.join(sent) or 'no call'}), and the model got "
        f"{len(proxy.model_calls())} requests: each submission that the app-server does not join with another is a model call. "
        "Submit the prompt once."
    )


@BOTH
@STREAM
@pytest.mark.model({"type": "text", "text": "".join(PIECES), "deltas": PIECES})
@pytest.mark.spec("repeated-deltas", "EDIT-15")
def test_deltas_that_repeat_what_was_said(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The proxy treats a delta as new text, even if the delta equals the previous delta or begins with it."""
    got, wanted = read(proxy.post(endpoint, {"stream": stream})).text, "".join(PIECES)
    if got != wanted:
        raise AssertionError(
            f"Text is lost or doubled if a delta begins with the text of the previous delta: the model said "
            f"{short(PIECES)}, but the answer is {short(got)}. Append each delta as it is."
        )


@BOTH
@STREAM
@pytest.mark.model(turns=[{"items": [], "fault": "missing_completed"}, {"items": ["At the second try."]}])
@pytest.mark.spec("retried-stream", "REAL-96", "REAL-97")
def test_a_stream_that_codex_repeats(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """An `error` with `willRetry` does not end the turn: Codex asks the model again, and the client gets the answer to the
    second request."""
    done = proxy.post(endpoint, {"stream": stream}, env={"CODEX_REPLAY_STREAM_RETRIES": "1"}, ok=False)
    got = read(done).text if done.status == 200 else f"(answered {done.answered}: {done.shown()})"
    if "At the second try." not in got:
        retried = any(frame.sender == "server" and '"willRetry":true' in frame.raw for frame in done.frames)
        why = "An `error` with willRetry true ended the answer, although Codex asks the model again. " if retried else ""
        raise AssertionError(
            f"{why}The answer must have the text of the second request, 'At the second try.', but it has {short(got)}. "
            "Wait for the end of the turn."
        )
    must_say(done, "At the second try.")
    # If a proxy submits the prompt twice, chance decides whether the app-server joins the two: each counts.
    asked = max(len(proxy.model_calls()), 1 + len(done.calls(*SUBMISSIONS)))
    must_be("The number of requests that the model got, the broken one and its repetition", asked, 2)


def finally_failed(cases: dict[str, dict[str, Any]]) -> list[Any]:
    """Return a case for each failure after which the same request must fail again."""
    turns = {name: {"items": [item], **THINKS, "times": "always"} for name, item in cases.items()}
    return [pytest.param(name, id=name, marks=pytest.mark.model(turns=[turn])) for name, turn in turns.items()]


@BOTH
@pytest.mark.parametrize(
    "kind",
    finally_failed(
        {
            "quota": {"type": "failed", "code": "insufficient_quota", "message": "no money"},
            "context": {"type": "failed", "code": "context_length_exceeded", "message": "too long"},
        }
    ),
)
@pytest.mark.spec("fault-not-retried", "REAL-98")
def test_a_failed_turn_is_not_submitted_again(proxy: Proxy, endpoint: str, kind: str) -> None:
    """If a turn fails and a retry cannot help, the proxy reports the failure and does not submit the prompt again."""
    done = proxy.post(endpoint, ok=False, within=AT_ONCE)
    must_come_of_the_fault(proxy, done)
    assert failure(done), f"the error in the answer is empty: {done.shown(-300)}"
    sent = [call["method"] for call in done.calls(*SUBMISSIONS)]
    asked = len(proxy.model_calls())
    if len(sent) > 1 or asked != 1:
        raise AssertionError(
            f"After the failed turn ({kind}) the proxy submitted the prompt again: it sent {', '.join(sent) or 'no call'}, and "
            f"the model got {asked} requests. Codex has its own retries; report the failure to the client."
        )


@BOTH
@pytest.mark.model(turns=[{"items": ["At last."], "first_delay_ms": SLOW, "times": "always"}])
@pytest.mark.spec("slow-model", source="OpenAI API reference", says="a reasoning model may take minutes before its first word")
def test_a_model_that_thinks_for_long(proxy: Proxy, endpoint: str) -> None:
    """If the model thinks for seconds before its first word, the proxy waits."""
    done = proxy.post(endpoint, ok=False)
    if done.status != 200:
        raise AssertionError(
            f"The model was silent for {SLOW / 1000:g} s before its first word, and {done.method} {done.path} was answered "
            f"{done.answered} after {done.ended - done.started:.1f} s: a model may think for minutes, so wait longer."
        )
    must_say(done, "At last.")


#: The model sends the message only as a whole, without a delta.
WHOLE = {"type": "message", "role": "assistant", "id": "msg_whole", "content": [{"type": "output_text", "text": "All at once."}]}


@BOTH
@pytest.mark.model(
    turns=[{"items": [{"type": "text", "text": "".join(SPREAD), "deltas": SPREAD}], "delay_ms": 50, "times": "always"}]
)
@pytest.mark.spec(
    "stream-during-the-turn", "EDIT-15", source="OpenAI API reference", says="stream: data is sent as it is generated"
)
def test_a_stream_has_the_text_during_the_turn(proxy: Proxy, endpoint: str) -> None:
    """A client that asks for a stream gets the first words while the model still writes."""
    done = proxy.post(endpoint, {"stream": True}, stop_after="First.")
    if whole := [frame.t for frame in done.frames if frame.sender == "server" and "Last." in frame.raw]:
        raise AssertionError(
            f"The stream had no text while the model wrote, for 3 s: the client got the first word {done.ended - whole[0]:.1f} s "
            "after the app-server had sent the last word. Pass on each item/agentMessage/delta (or "
            "codex/event/agent_message_delta) when it comes, and do not collect the text."
        )


@BOTH
@STREAM
@pytest.mark.model({"type": "item", "item": WHOLE})
@pytest.mark.spec("message-without-deltas", source="OpenAI API reference, Responses", says="response.output_item.done")
def test_a_message_without_deltas(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The client gets the text of an agent message for which the app-server sends no deltas."""
    answer = read(proxy.post(endpoint, {"stream": stream}))
    if answer.text != "All at once.":
        raise AssertionError(
            f"The app-server sent the agent message 'All at once.' only as a whole, and the text of the answer is "
            f"{short(answer.text)}: if a message had no deltas, take its text from item/completed (or codex/event/agent_message)."
        )


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model(native(path=None))
@pytest.mark.spec("call-without-arguments", source="OpenAI API reference, Chat Completions; Responses", says="arguments")
def test_a_native_call_without_arguments(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The arguments of a native call without arguments are the text of an empty JSON object."""
    calls = read(proxy.post(endpoint, {"stream": stream, "tools": [tool(endpoint)]})).calls
    must_be("The names of the calls after a native call of the model", [call.name for call in calls], ["getFileTree"])
    if arguments(calls[0].arguments) != {}:
        raise AssertionError(
            f"The model called getFileTree without arguments. The `arguments` of the call in the answer must be the text '{{}}', "
            f"because clients decode this text as JSON. The proxy sent {short(calls[0].arguments)}."
        )


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model({**native(), "arguments": PRECISE})
@pytest.mark.spec("arguments-of-a-native-call", "REAL-62", source="OpenAI API reference, Chat Completions", says="arguments")
def test_the_arguments_of_a_native_call(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The arguments of a native call keep long whole numbers and characters outside ASCII."""
    calls = read(proxy.post(endpoint, {"stream": stream, "tools": [tool(endpoint)]})).calls
    must_be("The names of the calls after a native call of the model", [call.name for call in calls], ["getFileTree"])
    if not isinstance(given := arguments(calls[0].arguments), dict):
        raise AssertionError(f"The arguments of a native call must be one JSON object, but they are {short(given)}.")
    if given != PRECISE:
        raise AssertionError(
            f"The arguments of a native call have changed: the model wrote {short(PRECISE)}, but the client got "
            f"{short(calls[0].arguments)}. A number above 2**53 is not exact as a JavaScript number or as a float: pass on the "
            "text in `arguments` of rawResponseItem/completed, or decode item/tool/call with exact numbers."
        )


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model(native(path="first"), native(call_id="call_10", path="second"))
@pytest.mark.spec("order-of-native-calls", "REAL-62", source="OpenAI API reference", says="tool_calls: generated by the model")
def test_the_order_of_native_calls(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The client gets two native calls of one reply in the order in which the model made them."""
    calls = read(proxy.post(endpoint, {"stream": stream, "tools": [tool(endpoint)]})).calls
    if [arguments(call.arguments) for call in calls] == [{"path": "second"}, {"path": "first"}]:  # tool-calls-ids counts them
        raise AssertionError(
            "The client got the two native calls of the model in reverse order. The app-server requests the outputs "
            "(item/tool/call) in any order: take the calls in the order of rawResponseItem/completed."
        )


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model(native(path="first"), native(call_id="call_10", path="second"))
@pytest.mark.spec(
    "parallel-tool-calls", source="OpenAI API reference", says="parallel_tool_calls: enable parallel function calling"
)
def test_one_native_call_at_a_time(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """With `parallel_tool_calls: false`, an answer has at most one call, or the proxy refuses the field."""
    body = {"stream": stream, "tools": [tool(endpoint)]}
    done, taken = with_optional(proxy, lambda **more: proxy.post(endpoint, body | more), parallel_tool_calls=False)
    if taken and len(calls := read(done).calls) > 1:
        raise AssertionError(
            f"The client sent `parallel_tool_calls: false`, and the answer has {len(calls)} calls: such a client runs only "
            "one of them, and the model waits for the others. Pass on the first call of the reply, or refuse the field."
        )


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model(turns=[{"items": [native()], "times": 1}, {"items": ["Nobody reads this."], "times": "always"}])
@pytest.mark.spec("call-ends-the-turn", "REAL-63", "REAL-73")
def test_a_native_call_ends_the_turn(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """After an answer with a native call, the model gets no further request, because no client reads its answer."""
    done = proxy.post(endpoint, {"stream": stream, "tools": [tool(endpoint)]})
    must_be("The names of the calls after a native call of the model", [c.name for c in read(done).calls], ["getFileTree"])
    settle(proxy)
    if (asked := len(proxy.model_calls())) > 1:
        raise AssertionError(
            f"The client got the native call of the model, but the model got {asked} requests: the proxy answered the request "
            "item/tool/call, and the turn went on without the output of the client. Send turn/interrupt before this reply."
        )


@BOTH
@STREAM
@pytest.mark.needs("native-tools")
@pytest.mark.model("I will look. ", native())
@pytest.mark.spec("text-beside-a-call", "REAL-62", source="OpenAI API reference, Chat Completions", says="content, tool_calls")
def test_the_text_before_a_native_call(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If the model writes a text and then calls a tool, the client gets the text and the call."""
    answer = read(proxy.post(endpoint, {"stream": stream, "tools": [tool(endpoint)]}))
    must_be("The names of the calls of an answer with a text before its call", [c.name for c in answer.calls], ["getFileTree"])
    if answer.text.strip() != "I will look.":
        raise AssertionError(
            f"The model wrote 'I will look. ' before its native call, but the text of the answer is {short(answer.text)}: "
            "an answer with calls has its text, too."
        )


@BOTH
@STREAM
@pytest.mark.model(turns=[{"status": 401, "error": {"message": "no access"}, **THINKS, "times": "always"}])
@pytest.mark.spec("fault-401", "REAL-98")
def test_a_backend_that_refuses_the_login(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If the login of the proxy's own Codex is refused, the proxy answers immediately with 401 or a 5xx, and a message."""
    done = proxy.post(endpoint, {"stream": stream}, ok=False, within=AT_ONCE)
    must_come_of_the_fault(proxy, done)
    error = failure(done)
    assert isinstance(error, dict), f"the error of the answer must be an object, not {error!r}"
    assert error.get("message"), f"the error of the answer must have a message: {error!r}"
    if not done.is_stream and done.status != 401 and done.status < 500:
        raise AssertionError(
            f"{done.method} {done.path} must be answered 401 or 5xx if the backend refuses the login (401), but was answered "
            f"{done.answered}: {done.shown()}"
        )


@BOTH
@STREAM
@pytest.mark.model("")
@pytest.mark.spec("server-death-before", "REAL-94")
def test_an_app_server_that_dies_before_the_first_word(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If the app-server dies before the first text, the request fails immediately with a server error.

    The proxy then serves the next request.
    """
    script = [
        {"match": proxy.marker, "items": [{"type": "wait", "ms": 30_000}, "never"], "times": "always"},
        {"items": ["Again."], "times": "always"},
    ]
    done = killed_in_turn(proxy, endpoint, stream, script, begun=BEGUN)
    assert failure(done, DIED), f"the failure in the answer is empty: {done.shown(-300)}"
    must_say(served_again(proxy, endpoint, script=script), "Again.")


@BOTH
@pytest.mark.model("")
@pytest.mark.spec("server-death-at-start", "REAL-94")
def test_an_app_server_that_dies_at_its_start(proxy: Proxy, endpoint: str) -> None:
    """If the app-server dies at its start, the proxy reports an error immediately and waits between restarts."""
    script = [{"items": ["Again."], "times": "always"}]
    proxy.post(endpoint, script=script)
    running = proxy.process(script=script)
    began, before = time.monotonic(), len(proxy.exchanges)
    with running.codex_ends_at_its_start() as starts:
        done = without_app_server(proxy, running, endpoint, script, starts)
        if done is None:
            return  # it ends with its app-server, and leaves the next start to its process manager
        # The answer comes of the first start for this request, which a busy machine may delay; without one, of earlier ends.
        first = next((t for t in starts() if t >= done.started), done.started)
        must_be_at_once(done, first, "the end of the app-server at its start", begun=done.started)
        assert failure(done, "The app-server died at its start"), f"the error in the answer is empty: {done.shown(-300)}"
        assert done.status >= 500, (
            f"{done.method} {done.path} must be answered a server's error (502 or 503) while the app-server ends at its start, "
            f"but was answered {done.answered}: {done.shown()}"
        )
        time.sleep(1)
        seconds, requests, number = time.monotonic() - began, len(proxy.exchanges) - before, len(starts())
    if number > STARTS * seconds + requests:
        raise AssertionError(
            f"The proxy started its app-server {number} times in {seconds:.1f} s, for {requests} requests, although each ended "
            f"at its start: wait between two starts, so that there are at most {STARTS} a second."
        )
    must_say(served_again(proxy, endpoint, script=script), "Again.")


#: The app-server refuses to open a thread, or a conversation of v1.
REFUSES = {
    "refuse": ['"result":{"thread":', '"result":{"conversationId":'],
    "error": {"code": -32600, "message": "no such model"},
}


@BOTH
@STREAM
@pytest.mark.model("Hi.")
@pytest.mark.spec("refused-call", source="JSON-RPC 2.0, 5", says="error: This member is REQUIRED on error")
def test_a_call_that_the_app_server_refuses(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """If the app-server refuses to open a conversation, the client immediately gets an error."""
    done = proxy.post(endpoint, {"stream": stream}, env={"CODEX_REPLAY_INSERT": json.dumps(REFUSES)}, ok=False)
    assert failure(done, "The app-server refused to open a thread"), f"the error is empty: {done.shown(-300)}"
    refused = [f for f in done.frames if f.sender == "server" and f.kind == "error"]
    assert refused, f"The proxy answered {done.answered} before it had opened a thread: {done.shown()}"
    must_be_at_once(done, refused[0].t, "the app-server had refused the call")
