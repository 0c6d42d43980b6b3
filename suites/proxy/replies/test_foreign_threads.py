"""An app-server sends events of every thread on one connection; an answer has only the text of its own thread.

Source: docs/contract/real-0.92.md, section 4. The events of a foreign thread are inserted into those of the app-server, fake or
real (`shell/rpc/inserting.py`); the events of a neighbour and of an earlier turn come from the app-server itself.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codex_replay.plugin.base.checking import has_conversations
from codex_replay.plugin.proxy.fixture import Exchange, Proxy, SubjectFailure
from suites.proxy.answers import read
from suites.proxy.expected import ENDPOINTS, WORKS, asking, format_of, tool
from suites.proxy.failures import is_refused, settle
from suites.proxy.reached import model_bodies, strings
from suites.proxy.saying import must_be, short

pytestmark = pytest.mark.proxy_profile(WORKS)

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
FOREIGN = "01a2b3c4-0000-7000-8000-00000000f0e1"
UNKNOWN = "(unknown)"
WORDS = "Words of another thread. "
FIRST, LAST = "First of its own. ", "Last of its own."
TEXT = FIRST + LAST
SPENT = {"totalTokens": 99_999, "inputTokens": 90_000, "cachedInputTokens": 0, "outputTokens": 9_999, "reasoningOutputTokens": 0}
ERROR = {"message": WORDS, "codexErrorInfo": "other", "additionalDetails": None}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a notification in the form for a listener of conversations (v1)."""
    params = {"id": "0", "msg": {"type": kind, **fields}, "conversationId": FOREIGN}
    return {"method": f"codex/event/{kind}", "params": params}


def about(method: str, **params: Any) -> dict[str, Any]:
    """A notification of threads (v2)."""
    return {"method": method, "params": {**params, "threadId": FOREIGN}}


def of_turn(method: str, **params: Any) -> dict[str, Any]:
    """Return a notification of a turn, in the form for a listener of conversations (v1)."""
    return about(method, **params, turnId="0")


def ended(status: str, error: Any = None) -> dict[str, Any]:
    """Return the notification of the end of the foreign turn."""
    return about("turn/completed", turn={"id": "0", "items": [], "status": status, "error": error})


#: What the foreign thread says, as 0.92 sends it: both forms of each event.
EVENTS: dict[str, list[dict[str, Any]]] = {
    "text": [
        event("agent_message_content_delta", thread_id=FOREIGN, turn_id="0", item_id="msg_f", delta=WORDS),
        of_turn("item/agentMessage/delta", itemId="msg_f", delta=WORDS),
        event("agent_message_delta", delta=WORDS),
        of_turn("item/completed", item={"type": "agentMessage", "id": "msg_f", "text": WORDS}),
        event("agent_message", message=WORDS),
    ],
    "completed": [event("task_complete", last_agent_message=WORDS), ended("completed")],
    "error": [
        event("error", message=WORDS, codex_error_info="other"),
        of_turn("error", error=ERROR, willRetry=False),
        ended("failed", ERROR),
    ],
    "usage": [of_turn("thread/tokenUsage/updated", tokenUsage={"total": SPENT, "last": SPENT, "modelContextWindow": 258_400})],
}
#: The model's message. One message, because a proxy that ends its answer at the first message mixes no threads.
IN_TWO = {"type": "text", "text": TEXT, "deltas": [FIRST, LAST]}
#: The foreign events come behind its first piece.
PIECE = f'"delta":{json.dumps(FIRST)}}}'


def thread_of(frames: list[Any], words: str) -> str:
    """Return the id of the thread (or conversation) in which the proxy submitted a text with the given words."""
    for frame in frames:
        params = frame.value.get("params") if frame.sender == "client" and isinstance(frame.value, dict) else None
        if isinstance(params, dict) and ("threadId" in params or "conversationId" in params) and words in frame.raw:
            return str(params.get("threadId") or params.get("conversationId"))
    return UNKNOWN


def only_its_own(done: Exchange, own: str, foreign: str, what: str, wanted: str, words: str) -> None:
    """Check that an answer has the text of its own thread, and not of another thread.

    The AssertionError names the foreign thread that changed the answer.
    """
    if own == foreign != UNKNOWN:
        raise AssertionError(
            f"Two requests share the thread {own} ({what}): each gets events of the other, and the model gets the conversations "
            "of both. Open a new thread for each request."
        )
    compare = "Compare the threadId (conversationId) of each event with the threadId of the request."
    between = f"thread {foreign} ({what}), which is not the request's own, {own}"
    if own == UNKNOWN:
        raise AssertionError(
            f"{done.method} {done.path} was answered {done.answered}, and the proxy had not submitted its prompt ({what}): "
            f"{done.shown()}"
        )
    if done.status != 200:
        raise AssertionError(
            f"{done.method} {done.path} was answered {done.answered} after an event of {between}: {done.shown()}. {compare}"
        )
    text = read(done).text
    if words and _solid(words) in _solid(text):
        raise AssertionError(f"The answer to {done.method} {done.path} has text of {between}: {short(text)}. {compare}")
    if _solid(text) != _solid(wanted):
        raise AssertionError(
            f"The answer to {done.method} {done.path} must be {short(wanted)}, but it is {short(text)} after an event of "
            f"{between}. {compare}"
        )


def _solid(text: str) -> str:
    """Return a text without white space: a proxy that parts messages by a line, or trims them, mixes no threads."""
    return "".join(text.split())


@BOTH
@STREAM
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.model(
    turns=[
        {
            "items": [IN_TWO],
            "delay_ms": 30,
            "usage": {"input_tokens": 12, "output_tokens": 3},
            "times": "always",
        }
    ]
)
@pytest.mark.spec("foreign-thread", "REAL-50")
def test_events_of_a_foreign_thread(proxy: Proxy, endpoint: str, stream: bool, kind: str) -> None:
    """The text, end, error and usage of another thread do not change the answer to a request."""
    # A server that sends codex/event/* repeats the piece in them: the foreign events come behind the last.
    v1 = has_conversations(proxy.version)
    events = [frame for frame in EVENTS[kind] if v1 or not frame["method"].startswith("codex/event/")]
    after = PIECE + "}" if v1 else PIECE
    insert = json.dumps({"after": after, "lines": [json.dumps(frame) for frame in events]})

    def ask(**more: Any) -> Exchange:
        return proxy.post(endpoint, {"stream": stream, **more}, env={"CODEX_REPLAY_INSERT": insert}, ok=False)

    counted = stream and endpoint == "chat" and kind == "usage"
    done = ask(stream_options={"include_usage": True}) if counted else ask()
    if counted and is_refused(done, "stream_options"):
        done = ask()
    if not proxy.attached and not any(FOREIGN in frame.raw for frame in done.frames):
        raise AssertionError(
            f"The app-server has sent no text of the model, so no foreign event came after it. {done.method} {done.path} "
            f"was answered {done.answered}: {done.shown()}"
        )
    own = thread_of(done.frames, proxy.marker)
    only_its_own(done, own, FOREIGN, kind, TEXT, WORDS)
    if re.search(r'_tokens": ?(99999|90000)\b', done.body.decode("utf-8", "replace")):
        raise AssertionError(
            f"The usage of the answer is that of thread {FOREIGN}, which is not the request's own, {own}: {done.shown(-300)}"
        )


#: What the neighbour does while the first request runs.
NEIGHBOURS: dict[str, dict[str, Any]] = {
    "completed": {"items": [WORDS]},
    "failed": {"status": 500, "error": {"message": WORDS}},
}


@BOTH
@pytest.mark.parametrize("kind", NEIGHBOURS)
@pytest.mark.model("")
@pytest.mark.spec("thread-beside", "REAL-50")
def test_a_neighbour_that_ends_first(proxy: Proxy, endpoint: str, kind: str) -> None:
    """If two requests run at the same time, the request that ends or fails first does not change the answer to the other."""
    if proxy.clients < 2:
        pytest.skip("not verified: the proxy serves one client at a time (clients = 1)")
    slow, quick = proxy.prompt("Take your time"), "And what is quick?"
    script = [
        {"match": proxy.marker, "items": [IN_TWO], "delay_ms": 100, "times": "always"},
        {"match": "what is quick", **NEIGHBOURS[kind], "times": "always"},
    ]
    running = proxy.process(script=script)

    def ask(prompt: str) -> Exchange:
        return proxy.post(endpoint, {**asking(endpoint, prompt), "stream": True}, script=script, ok=False)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, slow)
        second = pool.submit(ask, quick)
        try:
            done, other = first.result(), second.result()
        except SubjectFailure as failure:
            raise AssertionError(
                f"Two requests ran at the same time, and an answer did not end. {failure} If a single request ends, the proxy "
                "gives events of one thread to the other request: compare the threadId (conversationId) of each event."
            ) from None
    running.wire.update()
    own, foreign = (thread_of(running.wire.frames, words) for words in (proxy.marker, quick))
    only_its_own(done, own, foreign, f"a request at the same time, which {kind}", TEXT, WORDS)
    if kind == "completed":
        only_its_own(other, foreign, own, "a request at the same time", WORDS, FIRST)


@BOTH
@pytest.mark.model("")
@pytest.mark.spec("disconnect-beside", "REAL-73")
def test_a_neighbour_that_hangs_up(proxy: Proxy, endpoint: str) -> None:
    """If a client hangs up, the proxy ends only its turn: another client that waits gets its complete answer."""
    if proxy.clients < 2:
        pytest.skip("not verified: the proxy serves one client at a time (clients = 1)")
    script = [
        {"match": proxy.marker, "items": [IN_TWO], "delay_ms": 300, "times": "always"},
        {"match": "what is quick", "items": ["word " * 50, {"type": "wait", "ms": 30_000}, WORDS], "times": "always"},
    ]
    proxy.process(script=script)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(proxy.post, endpoint, {"stream": True}, script=script, ok=False)
        quick = {**asking(endpoint, "And what is quick?"), "stream": True}
        other = proxy.post(endpoint, quick, script=script, stop_after="word word", ok=False)
    must_be("The status of the answer to the client that hangs up", other.status, 200)
    problem = "" if first.exception() is None else str(first.exception())
    if not problem and (done := first.result()).status != 200:
        problem = f"it was answered {done.answered}"
    if not problem and _solid(text := read(done).text) != _solid(TEXT):
        problem = f"its text must be {short(TEXT)}, but is {short(text)}"
    if problem:
        raise AssertionError(
            f"A client hung up, and the answer to another client at the same time was not complete: {problem}. If a client hangs "
            "up, end only its own turn."
        )


@BOTH
@pytest.mark.model("")
@pytest.mark.spec("thread-before", "REAL-50", "REAL-73")
def test_an_earlier_turn_that_nobody_reads(proxy: Proxy, endpoint: str) -> None:
    """If a client hangs up, the rest of its turn does not appear in the answer to the next client."""
    late, next_prompt = {"type": "wait", "ms": 150}, "And what is next?"
    script = [
        {"match": proxy.marker, "items": ["word " * 50, late, WORDS], "times": "always"},
        {"match": "what is next", "items": [IN_TWO], "delay_ms": 60, "times": "always"},
    ]
    proxy.post(endpoint, {"stream": True}, script=script, stop_after="word word", ok=False)
    done = proxy.post(endpoint, {**asking(endpoint, next_prompt), "stream": True}, script=script, ok=False)
    assert proxy.running is not None, "The proxy must still be running after the answer."
    frames = proxy.running.wire.frames
    own, foreign = thread_of(frames, next_prompt), thread_of(frames, proxy.marker)
    only_its_own(done, own, foreign, "an earlier request, whose client hung up", TEXT, WORDS)


@BOTH
@pytest.mark.model("Hi.")
@pytest.mark.spec(
    "conversation-before", source="OpenAI API reference", says="A list of messages comprising the conversation so far"
)
def test_nothing_of_an_earlier_request_reaches_the_model(proxy: Proxy, endpoint: str) -> None:
    """The model gets only the conversation in the request, and no prompt of an earlier request or of another client."""
    earlier = "The lighthouse keeper's secret."
    proxy.post(endpoint, asking(endpoint, earlier), ok=False)
    settle(proxy)
    proxy.post(endpoint)
    for body in model_bodies(proxy):
        for path, text in strings(body):
            if earlier in text:
                raise AssertionError(
                    f"The model got a prompt of an earlier request ({earlier!r}, {path}), which another client may have sent. "
                    "Open a new thread for each request."
                )


#: Without this variable a proxy may drop system messages of chat (docs/contract/payloads.md, Chat endpoint); with it, it may not.
KEPT = {"PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false"}
SECRET = "lighthouseKeeper"


def setting(endpoint: str, kind: str) -> dict[str, Any]:
    """Return the part of a request that sets the instructions, the tools, the effort or the schema of its answer."""
    if kind == "tools":
        return {"tools": [tool(endpoint, SECRET)]}
    if kind == "schema":
        return format_of(endpoint)
    if kind == "effort":
        return {"reasoning_effort": "low"} if endpoint == "chat" else {"reasoning": {"effort": "low"}}
    messages = [{"role": "system", "content": f"Obey {SECRET}."}, {"role": "user", "content": "Hello."}]
    return {"messages": messages} if endpoint == "chat" else {"instructions": f"Obey {SECRET}."}


def settings_in(body: Any) -> dict[str, Any]:
    """Return the settings of a request to the model that another request may have left behind."""
    found = {"instructions": SECRET in str(strings(body)), "tools": SECRET in json.dumps(body.get("tools"))}
    return {**found, "effort": (body.get("reasoning") or {}).get("effort"), "schema": (body.get("text") or {}).get("format")}


@BOTH
@pytest.mark.parametrize("kind", ["instructions", "tools", "effort", "schema"])
@pytest.mark.model("Hi.")
@pytest.mark.spec("settings-before", source="OpenAI API reference", says="instructions, tools, reasoning, text: of the request")
def test_no_setting_of_an_earlier_request_reaches_the_model(proxy: Proxy, endpoint: str, kind: str) -> None:
    """The instructions, tools, effort and schema of a request do not apply to later requests of other clients."""
    proxy.post(endpoint, env=KEPT)
    # A proxy may have an effort of its own for a request without one.
    wanted = {**settings_in(model_bodies(proxy)[-1]), "instructions": False, "tools": False, "schema": None}
    proxy.post(endpoint, {**asking(endpoint, "Hello."), **setting(endpoint, kind)}, env=KEPT, ok=False)
    settle(proxy)
    for _ in range(3):  # a proxy may have several app-servers, and use them in turn
        proxy.post(endpoint, env=KEPT)
        settle(proxy)
    for body in model_bodies(proxy)[1:]:
        if settings_in(body)[kind] != wanted[kind]:
            raise AssertionError(
                f"The model got the {kind} of an earlier request ({short(setting(endpoint, kind))}), which another client may "
                "have sent, with a request that has none. Send each setting of a request only for its own thread and turn."
            )


def of_item(method: str, **params: Any) -> dict[str, Any]:
    """Return a notification of the request's own turn; `shell/rpc/inserting.py` writes the ids."""
    return {"method": method, "params": {"threadId": "{threadId}", "turnId": "{turnId}", "itemId": "item_o", **params}}


SAID = {"type": "userMessage", "id": "u", "content": [{"type": "text", "text": "Ferret "}]}
#: What a turn sends besides the text of the model: a word of it, and its notification.
BESIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "the output of a command": ("Aardvark", of_item("item/commandExecution/outputDelta", delta="Aardvark ")),
    "the output of a patch": ("Badger", of_item("item/fileChange/outputDelta", delta="Badger ")),
    "the reasoning": ("Caribou", of_item("item/reasoning/textDelta", contentIndex=0, delta="Caribou ")),
    "the summary of the reasoning": ("Dormouse", of_item("item/reasoning/summaryTextDelta", summaryIndex=0, delta="Dormouse ")),
    "the progress of an MCP tool": ("Echidna", of_item("item/mcpToolCall/progress", message="Echidna ")),
    "the prompt": ("Ferret", of_item("item/completed", item=SAID)),
    "an item of a later version": ("Heron", of_item("item/completed", item={"type": "later", "id": "l", "text": "Heron "})),
    "a diff": ("Gibbon", of_item("turn/diff/updated", diff="Gibbon ")),
}


@BOTH
@STREAM
@pytest.mark.model(turns=[{"items": [TEXT], "first_delay_ms": 200, "times": "always"}])
@pytest.mark.spec("only-the-model", "REAL-72", "REAL-61", "EDIT-15")
def test_only_the_text_of_the_model_is_the_answer(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The output of commands, the reasoning and the other items of the turn are not in the text of the answer."""
    insert = {"after": '"method":"turn/started"', "lines": [json.dumps(frame) for _, frame in BESIDES.values()]}
    done = proxy.post(endpoint, {"stream": stream}, env={"CODEX_REPLAY_INSERT": json.dumps(insert)})
    text = read(done).text
    for what, (word, frame) in BESIDES.items():
        if word in text:
            raise AssertionError(
                f"The text of the answer has {what} ({word!r}, from {frame['method']}): {short(text)}. "
                "Take the text only from item/agentMessage/delta, or from item/completed of an agentMessage."
            )
    must_be("The text of the answer, white space left out,", _solid(text), _solid(TEXT))
