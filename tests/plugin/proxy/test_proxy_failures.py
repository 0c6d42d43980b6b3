"""Which failed answers come of the fault that the case caused, and which of the proxy itself."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy, SubjectFailure
from codex_replay.plugin.proxy.vectors import Outcome, Vector
from codex_replay.plugin.proxy.wire import Wire, WireFrame
from suites.proxy.failures import must_be_at_once, must_be_served_without, must_come_of_the_fault, must_come_of_the_text
from suites.proxy.replies import test_turns
from suites.proxy.replies.test_tool_calls import judge

ASKED = {"id": 3, "method": "turn/start", "params": {"threadId": "own"}}
INTERRUPT = {"id": 2, "method": "turn/interrupt", "params": {"threadId": "earlier"}}
DELTA = {"method": "item/agentMessage/delta", "params": {"threadId": "own", "delta": "<tool_call>{"}}
DELTA_OF_V1 = {"method": "codex/event/agent_message_content_delta", "params": {"conversationId": "own", "msg": {"delta": "<"}}}
DELTA_OF_ANOTHER = {"method": "item/agentMessage/delta", "params": {"threadId": "earlier", "delta": "<tool_call>{"}}
STARTED = {"method": "turn/started", "params": {"threadId": "own"}}
FAILED = {"method": "turn/completed", "params": {"threadId": "own", "turn": {"status": "failed"}}}
BROKEN = Vector("cut", "", "A call that is cut off.", (), "<tool_call>{", None, (Outcome(error=True),), ())
AGAIN = b'{"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "Again."}]}]}'
BUSY = b'{"error": {"message": "This proxy is busy.", "code": "rate_limit_exceeded"}}'


def proxy(*answers: Exchange, attached: bool = False) -> Proxy:
    """A proxy that gives these answers to the next requests."""
    left = list(answers)
    given = {"attached": attached, "post": lambda *_, **__: left.pop(0), "model_calls": lambda: [{"body": {}}]}
    return cast("Proxy", SimpleNamespace(**given))


def answer(status: int, *sent: tuple[float, Any], ended: float = 1.0) -> Exchange:
    """An answer that ended at this time; `sent` are the messages of the app-server, with their times."""
    both = [(0.1, "client", INTERRUPT), (0.2, "client", ASKED), *((t, "server", value) for t, value in sent)]
    frames = [WireFrame(t, "7", sender, json.dumps(json.dumps(value)).encode()) for t, sender, value in both]
    return Exchange("POST", "/v1/responses", {}, status, body=BUSY, started=0.0, ended=ended, frames=frames)


@pytest.mark.parametrize("text", [DELTA, DELTA_OF_V1])
def test_an_error_right_behind_the_models_text_comes_of_it(text: Any) -> None:
    must_come_of_the_text(proxy(), answer(502, (0.5, STARTED), (0.9, text)))
    judge(proxy(), answer(502, (0.9, text)), BROKEN)


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (answer(429), "was answered 429 (rate_limit_exceeded) before its app-server had sent any text of the model"),
        (answer(502, (0.5, STARTED)), "before its app-server had sent any text of the model"),
        (answer(502, (0.5, STARTED), (1.1, DELTA)), "before its app-server had sent any text of the model"),
        (answer(502, (0.5, DELTA_OF_ANOTHER)), "before its app-server had sent any text of the model"),
        (answer(504, (0.9, DELTA), ended=5.9), "must end within 2 s after the app-server had sent the model's text"),
    ],
    ids=["at-capacity", "before-the-text", "just-before-the-text", "text-of-another", "idle-timeout"],
)
def test_an_error_of_the_proxy_itself_does_not_come_of_the_text(done: Exchange, why: str) -> None:
    with pytest.raises(AssertionError) as error:
        judge(proxy(), done, BROKEN)
    assert why in str(error.value)


def test_the_interrupt_of_an_earlier_turn_is_not_the_end_of_this_one() -> None:
    must_come_of_the_fault(proxy(), answer(502, (0.5, STARTED), (0.9, FAILED)))


def test_the_frames_of_a_proxy_that_is_a_url_cannot_be_seen() -> None:
    must_come_of_the_text(proxy(attached=True), answer(502))


def test_a_refusal_is_about_a_part_only_if_the_rest_is_served() -> None:
    must_be_served_without(proxy(answer(200)), "responses", {}, "n = 2")
    with pytest.raises(AssertionError, match=r"without n = 2, because only that may be refused, must be answered 200"):
        must_be_served_without(proxy(answer(400)), "responses", {}, "n = 2")


def test_an_answer_may_come_between_the_signal_and_the_end_of_the_app_server() -> None:
    must_be_at_once(answer(502, ended=4.9), 5.0, "the end of its app-server", begun=4.0)
    must_be_at_once(answer(502, ended=6.5), 5.0, "the end of its app-server", begun=4.0)
    with pytest.raises(AssertionError, match=r"was answered 502 .* 0.50 s before the end of its app-server"):
        must_be_at_once(answer(502, ended=3.5), 5.0, "the end of its app-server", begun=4.0)
    with pytest.raises(AssertionError, match=r"within 2 s after the end of its app-server, but it ended after 2.5 s"):
        must_be_at_once(answer(502, ended=7.5), 5.0, "the end of its app-server", begun=4.0)


def test_the_wire_knows_when_an_app_server_ended(tmp_path: Path) -> None:
    (tmp_path / "wire.7").write_bytes(b'{"t":1.5,"got":"{}"}\n{"t":2.5,"ended":-15}\n')
    wire = Wire(tmp_path)
    assert wire.until(lambda frames: len(frames) == 1, 0)
    assert (wire.ended, wire.until(lambda frames: len(frames) == 1, 0)) == ({"7": 2.5}, False)


def dies_at_its_start(folder: Path, post: Callable[[], Exchange], starts: list[float], exited: threading.Event) -> None:
    """Run the case about an app-server that dies at its start, with a proxy whose answers are those of `post`."""
    ends = contextlib.nullcontext(lambda: starts)
    wire = Wire(folder)
    running = SimpleNamespace(wire=wire, process=SimpleNamespace(exited=exited), codex_ends_at_its_start=lambda: ends)

    def send(*_: Any, **__: Any) -> Exchange:
        began, done = time.monotonic(), post()
        done.started, done.ended, done.frames = began, time.monotonic(), wire.update()
        return done

    proxy = SimpleNamespace(attached=False, exchanges=[], running=running, process=lambda **_: running, post=send)
    test_turns.test_an_app_server_that_dies_at_its_start(cast("Proxy", proxy), "responses")


def test_a_spare_app_server_from_before_is_ended_too(tmp_path: Path) -> None:
    """The proxy had started it before app-servers began to end at their start, and shows it only by serving a request."""
    spares = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    served: list[int] = []
    starts: list[float] = []

    def post() -> Exchange:
        for spare in spares[len(served) : len(served) + 1]:
            assert spare.poll() is None
            (tmp_path / f"wire.{spare.pid}").write_text('{"t":1.0,"got":"{}"}\n')
        served.append(502 if len(served) == len(spares) else 200)
        if served[-1] == 200:
            return Exchange("POST", "/v1/responses", {}, 200, body=AGAIN)
        starts.append(time.monotonic())
        return Exchange("POST", "/v1/responses", {}, 502, body=BUSY)

    try:
        dies_at_its_start(tmp_path, post, starts, threading.Event())
    finally:
        for spare in spares:
            spare.kill()
    assert served == [200, 200, 502, 200]
    assert [spare.wait() for spare in spares] == [-signal.SIGTERM] * 2


@pytest.mark.parametrize("on_request", [False, True])
def test_a_proxy_may_end_with_its_app_server_but_not_with_a_request(tmp_path: Path, on_request: bool) -> None:
    exited, starts = threading.Event(), [0.0]
    served: list[int] = []

    def post() -> Exchange:
        served.append(len(served))
        if len(served) == 1:
            return Exchange("POST", "/v1/responses", {}, 200, body=AGAIN)
        exited.set()
        starts.append(time.monotonic() if on_request else 0.0)
        raise SubjectFailure("the connection closed")

    with pytest.raises(SubjectFailure) if on_request else contextlib.nullcontext():
        dies_at_its_start(tmp_path, post, starts, exited)
    assert served == [0, 1]
