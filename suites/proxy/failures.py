"""Checks of an answer after a failed turn: it reports an error, and the case itself caused the error."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy, SubjectFailure
from codex_replay.plugin.proxy.no_end import SUBMISSIONS, ends_turn, is_quiet
from codex_replay.plugin.proxy.process import RunningProxy
from codex_replay.plugin.proxy.wire import WireFrame
from suites.proxy.expected import asking
from suites.proxy.saying import must_be_answered

#: The maximum seconds between a failure and the answer that reports it. A proxy that waits for an idle timeout takes longer.
AT_ONCE = 2.0
#: What must come after a client has hung up; a proxy that never does it is waited for less in later cases.
FREED = "After the client disconnected: turn/interrupt (or interruptConversation), or the end of the app-server,"
#: The maximum seconds in which the turn of an answered request ends.
SETTLES = 2.0
#: The calls that end a turn before its own end.
INTERRUPTS = ("turn/interrupt", "interruptConversation")
#: The notifications that carry text of the model, those of threads (v2) and those of conversations (v1).
TEXTS = ("item/agentMessage/delta", "codex/event/agent_message_content_delta")
#: Keys of a turn that fails: the model thinks for 300 ms, so that a proxy that answers before the fault is clearly too early.
THINKS: dict[str, Any] = {"first_delay_ms": 300}
#: Seconds between the beginning of a turn and the end of its app-server, for the same reason.
WATCHED = 0.3
#: The maximum seconds from the signal that ends an app-server to its end.
ENDS = 5.0
#: What an answer must report after the app-server was killed.
DIED = "The app-server died during the turn"
#: Seconds within which a proxy must serve again after its app-server has died; it may wait between two starts.
BACK_OFF = 8.0


def failure(done: Exchange, what: str = "The turn failed") -> Any:
    """Return the error of a failed answer, streamed or not; raises AssertionError if the answer has no error.

    `what` is the event that the answer must report.
    """
    if not done.is_stream:
        if done.status < 400:
            raise AssertionError(f"{what}, but the status of the answer is {done.status}: {done.shown()}")
        return done.json["error"]
    for value in (event.value for event in done.events if isinstance(event.value, dict)):
        if value.get("type") in ("response.failed", "response.incomplete"):
            return value["response"].get("error") or value["response"].get("incomplete_details")
        if value.get("error") or value.get("type") == "error":
            return value.get("error") or value
    raise AssertionError(f"{what}, but the stream reports no error: {done.shown(-500)}")


def of_its_threads(done: Exchange) -> list[WireFrame]:
    """Return the JSON-RPC messages about the threads in which the proxy submitted the prompt of a request.

    After an answer with a tool call, the proxy may interrupt the turn, even during the next request.
    """
    threads = {_thread(frame) for frame in done.frames if frame.sender == "client" and _method(frame) in SUBMISSIONS}
    return [frame for frame in done.frames if _thread(frame) in threads - {None}]


def settle(proxy: Proxy) -> None:
    """Wait until the turns of the last request have ended, but not longer than `SETTLES` seconds.

    A turn that continues after its answer would send its events during the next request of the case, and could change
    the next answer by chance. The cases about foreign threads test late events of earlier turns.
    """
    if proxy.running is not None and not proxy.attached:
        proxy.running.wire.until(is_quiet, SETTLES, proxy.exchanges[-1].frames)


def _method(frame: WireFrame) -> Any:
    return frame.value.get("method") if isinstance(frame.value, dict) else None


def _thread(frame: WireFrame) -> Any:
    params = frame.value.get("params") if isinstance(frame.value, dict) else None
    return (params.get("threadId") or params.get("conversationId")) if isinstance(params, dict) else None


def must_come_of_the_fault(proxy: Proxy, done: Exchange) -> None:
    """Check that the model's fault caused the answer: the answer comes directly after the end of the failed turn.

    The check fails if the proxy itself refused the request, answered before the fault, or answered only after an idle
    timeout. If only the URL of the proxy is known, the suite cannot see the frames, and nothing is checked.
    """
    __tracebackhide__ = True
    if proxy.attached:
        return
    answered = f"{done.method} {done.path} was answered {done.answered}"
    if not proxy.model_calls():
        raise AssertionError(
            f"{answered}, but the model was never asked: the proxy must send the request to its app-server, and report the "
            f"model's fault: {done.shown()}"
        )
    # A proxy that gives up interrupts the turn, and the end that follows is its own doing.
    frames = of_its_threads(done)
    sent = [frame for frame in frames if frame.sender == "client" and frame.kind == "request"]
    until = min([done.ended, *(frame.t for frame in sent if frame.value["method"] in INTERRUPTS)])
    ends = [frame.t for frame in frames if frame.sender == "server" and ends_turn(frame.value) and frame.t <= until]
    if not ends:
        raise AssertionError(
            f"{answered} before its app-server had reported the end of the turn: the proxy must wait for "
            f"turn/completed (or codex/event/task_complete), or for an error that is not retried: {done.shown()}"
        )
    must_be_at_once(done, ends[-1], "the app-server had reported the failed turn")


def must_come_of_the_text(proxy: Proxy, done: Exchange) -> None:
    """Check that the model's text caused the error: the answer ends directly after the app-server has sent the text.

    The check fails if the proxy itself refused the request, or answered only after an idle timeout. If only the URL of the
    proxy is known, the suite cannot see the frames, and nothing is checked.
    """
    __tracebackhide__ = True
    if proxy.attached:
        return
    sent = [frame for frame in of_its_threads(done) if frame.sender == "server" and frame.kind == "notification"]
    texts = [frame.t for frame in sent if frame.value["method"] in TEXTS and frame.t <= done.ended]
    if not texts:
        raise AssertionError(
            f"{done.method} {done.path} was answered {done.answered} before its app-server had sent any text of the model: an "
            f"error is allowed only for the text that the model wrote: {done.shown()}"
        )
    must_be_at_once(done, texts[-1], "the app-server had sent the model's text")


def must_be_at_once(done: Exchange, since: float, what: str, begun: float | None = None) -> None:
    """Check that the answer ended after the event `what`, and at most `AT_ONCE` seconds later.

    `since` is the time of the event, in seconds of the monotonic clock. If `begun` is given, the answer may also end between
    `begun` and `since`.
    """
    __tracebackhide__ = True
    late, early = done.ended - since, (since if begun is None else begun) - done.ended
    if early > 0:
        raise AssertionError(
            f"{done.method} {done.path} was answered {done.answered} {early:.2f} s before {what}: the proxy must answer when the "
            f"failure comes, and not before it: {done.shown()}"
        )
    if late > AT_ONCE:
        raise AssertionError(
            f"The answer to {done.method} {done.path} must end within {AT_ONCE:g} s after {what}, but it ended after "
            f"{late:.1f} s: the proxy must report the failure, and not wait for an idle timeout. It was answered {done.answered}."
        )


def must_be_served_without(proxy: Proxy, endpoint: str, body: Mapping[str, Any], refused: str) -> None:
    """Check that the proxy serves the same request without the part that it `refused`.

    If the proxy also refuses the request without this part, the refusal has another cause.
    """
    __tracebackhide__ = True
    done = proxy.post(endpoint, body, ok=False)
    must_be_answered(done, 200, f"without {refused}, because only that may be refused,")


def is_refused(done: Exchange, *names: str) -> bool:
    """Return True if the proxy refused a request with status 400, and the error names one of the given parts of the request."""
    if done.status != 400:
        return False
    error = json.dumps(done.json.get("error"))
    return any(re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", error) for name in names)


def with_optional(proxy: Proxy, ask: Callable[..., Exchange], **optional: Any) -> tuple[Exchange, bool]:
    """Send a request with optional members, such as `stream_options`; return the answer, and whether the members were accepted.

    A proxy may refuse an optional member with status 400 if the error names the member, and if the proxy serves the same
    request without the members. If the proxy refuses a member, return the answer to the request without the members.
    """
    __tracebackhide__ = True
    try:
        return ask(**optional), True
    except SubjectFailure:
        if not is_refused(proxy.exchanges[-1], *optional):
            raise
    return ask(), False


def must_be_served_with_calls(proxy: Proxy, ask: Callable[[], Exchange]) -> Exchange:
    """Send a request with calls and outputs of tools in its history; return the answer.

    Skip the case if a proxy without tools refuses the request with an error that names the part.
    """
    __tracebackhide__ = True
    try:
        return ask()
    except SubjectFailure:
        tools = {"text-tools", "native-tools"} & {*proxy.able}
        if tools or not is_refused(proxy.exchanges[-1], "tool", "tool_calls", "function_call", "function_call_output"):
            raise
    pytest.skip("not verified: the proxy supports no tools, and refuses calls and outputs of tools in the history")


def killed_in_turn(proxy: Proxy, endpoint: str, stream: bool, script: list[Any], *, begun: Sequence[str]) -> Exchange:
    """Send a request, kill the app-server once it has sent a frame with a text of `begun`, and return the answer.

    The app-server is killed `WATCHED` seconds after the frame with the text `begun`. An answer before the kill is not
    caused by the end of the app-server.
    """
    __tracebackhide__ = True
    running = proxy.process(script=script)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(proxy.post, endpoint, {"stream": stream}, script=script, ok=False)

        def of_the_turn() -> list[WireFrame]:
            return [frame for frame in list(running.wire.frames) if any(text in frame.raw for text in begun)]

        came = running.wire.until(lambda _: bool(of_the_turn()) or asked.done(), 10)
        if not (frames := of_the_turn()):
            assert came, "The proxy's app-server must start the turn within 10 s, but it did not."
            early = asked.result()  # re-raises the exception of the request
            raise AssertionError(
                f"The proxy answered {early.answered} before its app-server had started the turn: {early.shown()}"
            )
        time.sleep(WATCHED)
        killed, child = time.monotonic(), frames[-1].child
        os.kill(int(child), signal.SIGTERM)
        done = asked.result()
    # A busy machine may need a while for the end itself: the limit begins when the proxy can see it.
    running.wire.until(lambda _: child in running.wire.ended, ENDS)
    must_be_at_once(done, running.wire.ended.get(child, killed), "the end of its app-server", begun=killed)
    return done


def without_app_server(
    proxy: Proxy, running: RunningProxy, endpoint: str, script: list[Any], starts: Callable[[], list[float]]
) -> Exchange | None:
    """End the app-servers of a proxy, and return its answer to a request; return None if the proxy itself ends with them.

    An app-server that the proxy had started in reserve shows itself only when it serves a request. The suite then ends this
    app-server too, and repeats the request. `starts` returns the times of the starts that have failed.
    """
    __tracebackhide__ = True
    running.wire.update()
    _end_app_servers(running, running.wire.frames)
    while True:
        if running.process is None or running.process.exited.wait(WATCHED):
            return None
        asked = time.monotonic()
        try:
            done = proxy.post(endpoint, asking(endpoint, "And now?"), script=script, ok=False)
        except SubjectFailure:
            if any(t >= asked for t in starts()) or not running.process.exited.wait(AT_ONCE):
                raise
            return None
        if proxy.running is not running:
            return None  # it had ended just before the request, so that another process has served it
        if not _end_app_servers(running, done.frames):
            return done


def _end_app_servers(running: RunningProxy, frames: Sequence[WireFrame]) -> bool:
    """End the app-servers that sent or received these frames, and wait for their ends; return False if none of them ran."""
    last = {frame.child: frame for frame in frames if frame.child not in running.wire.ended}
    children = [frame for frame in last.values() if frame.child_runs()]
    for frame in children:
        with contextlib.suppress(ProcessLookupError):  # a proxy may end its app-server after each request
            os.kill(int(frame.child), signal.SIGTERM)
    if not running.wire.until(lambda _: not any(frame.child_runs() for frame in children), ENDS):
        raise SubjectFailure(f"The app-server must end within {ENDS:g} s after SIGTERM, but it still runs.")
    return bool(children)


def served_again(proxy: Proxy, endpoint: str, **given: Any) -> Exchange:
    """Repeat a request until the proxy serves it; the limit is the longest allowed wait between two starts of the app-server.

    Return the answer.
    """
    __tracebackhide__ = True
    body = asking(endpoint, "Again?")
    deadline = time.monotonic() + BACK_OFF
    while True:
        try:
            done = proxy.post(endpoint, body, **given, ok=False)
        except SubjectFailure as why:
            raise AssertionError(f"A request that came after the proxy's app-server had died was not answered: {why}") from None
        if done.status == 200:
            return done
        if time.monotonic() > deadline:
            raise AssertionError(
                f"The proxy must serve again within {BACK_OFF:g} s after its app-server has died, but {done.method} {done.path} "
                f"was answered {done.answered}: {done.shown()}"
            )
        time.sleep(0.3)
