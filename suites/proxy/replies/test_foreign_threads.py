"""An app-server sends events of every thread on one connection; an answer has those of its own thread.

Source: docs/contract/real-0.92.md, section 4. The events of a foreign thread are put among those of the app-server, fake or real
(`shell/rpc/inserting.py`); those of a neighbour and of an earlier turn are the app-server's own.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.answers import read
from suites.proxy.expected import ENDPOINTS, WORKS, asking
from suites.proxy.saying import short

pytestmark = pytest.mark.proxy_profile(WORKS)

BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
FOREIGN = "01a2b3c4-0000-7000-8000-00000000f0e1"
WORDS = "Words of another thread. "
FIRST, LAST = "First of its own. ", "Last of its own."
TEXT = FIRST + LAST
SPENT = {"totalTokens": 99_999, "inputTokens": 90_000, "cachedInputTokens": 0, "outputTokens": 9_999, "reasoningOutputTokens": 0}
ERROR = {"message": WORDS, "codexErrorInfo": "other", "additionalDetails": None}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """A notification as a listener of conversations (v1) gets it."""
    params = {"id": "0", "msg": {"type": kind, **fields}, "conversationId": FOREIGN}
    return {"method": f"codex/event/{kind}", "params": params}


def about(method: str, **params: Any) -> dict[str, Any]:
    """A notification of threads (v2)."""
    return {"method": method, "params": {**params, "threadId": FOREIGN}}


def of_turn(method: str, **params: Any) -> dict[str, Any]:
    """The same, of a turn of the thread."""
    return about(method, **params, turnId="0")


def ended(status: str, error: Any = None) -> dict[str, Any]:
    """The end of the foreign turn."""
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
#: The model says it in one piece, and the foreign events come behind that piece.
IN_ONE = {"type": "text", "text": FIRST, "deltas": [FIRST]}
PIECE = f'"delta":{json.dumps(FIRST)}}}'


def thread_of(frames: list[Any], words: str) -> str:
    """Return the thread (or conversation) in which the proxy has submitted a text with these words, to name it in a failure."""
    for frame in frames:
        params = frame.value.get("params") if frame.sender == "client" and isinstance(frame.value, dict) else None
        if isinstance(params, dict) and ("threadId" in params or "conversationId" in params) and words in frame.raw:
            return str(params.get("threadId") or params.get("conversationId"))
    return "(unknown)"


def only_its_own(done: Exchange, own: str, foreign: str, what: str, wanted: str, words: str) -> None:
    """The answer must be the text of its own thread; AssertionError names the foreign thread whose event has changed it."""
    compare = "Compare the threadId (conversationId) of each event with that of the request."
    between = f"thread {foreign} ({what}), which is not the request's own, {own}"
    if done.status != 200:
        raise AssertionError(
            f"{done.method} {done.path} was answered {done.answered} after an event of {between}: {done.body[:300]!r}. {compare}"
        )
    text = read(done).text.replace("\n", "")  # a proxy may part the messages of a turn by a line
    if words and words in text:
        raise AssertionError(f"The answer to {done.method} {done.path} has text of {between}: {short(text)}. {compare}")
    if text != wanted:
        raise AssertionError(
            f"The answer to {done.method} {done.path} must be {short(wanted)}, but it is {short(text)} after an event of "
            f"{between}. {compare}"
        )


@BOTH
@STREAM
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.model(
    turns=[
        {
            "items": [IN_ONE, {"type": "wait", "ms": 60}, LAST],
            "usage": {"input_tokens": 12, "output_tokens": 3},
            "times": "always",
        }
    ]
)
@pytest.mark.spec("foreign-thread", "REAL-50")
def test_events_of_a_foreign_thread(proxy: Proxy, endpoint: str, stream: bool, kind: str) -> None:
    """Text, end, error and usage of a thread that the request did not start change nothing in its answer."""
    # A server that sends codex/event/* repeats the piece in them: the foreign events come behind the last.
    events = [frame for frame in EVENTS[kind] if proxy.has_conversations or not frame["method"].startswith("codex/event/")]
    after = PIECE + "}" if proxy.has_conversations else PIECE
    insert = json.dumps({"after": after, "lines": [json.dumps(frame) for frame in events]})
    more = {"stream_options": {"include_usage": True}} if stream and endpoint == "chat" else {}
    done = proxy.post(endpoint, {"stream": stream, **more}, env={"CODEX_REPLAY_INSERT": insert}, ok=False)
    if not proxy.attached and not any(FOREIGN in frame.raw for frame in done.frames):
        raise AssertionError(
            f"The app-server has sent no text of the model's, so no foreign event came behind it. {done.method} {done.path} "
            f"was answered {done.answered}: {done.body[:300]!r}"
        )
    own = thread_of(done.frames, proxy.marker)
    only_its_own(done, own, FOREIGN, kind, TEXT, WORDS)
    if re.search(r'_tokens": ?(99999|90000)\b', done.body.decode("utf-8", "replace")):
        raise AssertionError(
            f"The usage of the answer is that of thread {FOREIGN}, which is not the request's own, {own}: {done.body[-300:]!r}"
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
    """A request that runs beside another, and ends or fails before it, changes nothing in the other's answer."""
    if proxy.clients < 2:
        pytest.skip("not verified: the proxy serves one client at a time (clients = 1)")
    slow, quick = proxy.prompt("Take your time"), "And what is quick?"
    script = [
        {"match": proxy.marker, "items": [FIRST, {"type": "wait", "ms": 250}, LAST], "times": "always"},
        {"match": "what is quick", **NEIGHBOURS[kind], "times": "always"},
    ]
    running = proxy.process(script=script)

    def ask(prompt: str) -> Exchange:
        return proxy.post(endpoint, {**asking(endpoint, prompt), "stream": True}, script=script, ok=False)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, slow)
        second = pool.submit(ask, quick)
        done, other = first.result(), second.result()
    running.wire.update()
    own, foreign = (thread_of(running.wire.frames, words) for words in (proxy.marker, quick))
    only_its_own(done, own, foreign, f"a request beside it, which {kind}", TEXT, WORDS)
    if kind == "completed":
        only_its_own(other, foreign, own, "a request beside it", WORDS, FIRST)


@BOTH
@pytest.mark.model("")
@pytest.mark.spec("thread-before", "REAL-50", "REAL-73")
def test_an_earlier_turn_that_nobody_reads(proxy: Proxy, endpoint: str) -> None:
    """What comes of the turn of a client that hung up is not a part of the next answer."""
    late, next_prompt = {"type": "wait", "ms": 150}, "And what is next?"
    script = [
        {"match": proxy.marker, "items": ["word " * 50, late, WORDS], "times": "always"},
        {"match": "what is next", "items": [FIRST, {"type": "wait", "ms": 300}, LAST], "times": "always"},
    ]
    proxy.post(endpoint, {"stream": True}, script=script, stop_after=200, ok=False)
    done = proxy.post(endpoint, {**asking(endpoint, next_prompt), "stream": True}, script=script, ok=False)
    assert proxy.running is not None, "The proxy must still be running after the answer."
    frames = proxy.running.wire.frames
    own, foreign = thread_of(frames, next_prompt), thread_of(frames, proxy.marker)
    only_its_own(done, own, foreign, "an earlier request, whose client hung up", TEXT, WORDS)
