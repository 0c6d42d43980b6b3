"""What an answer says of a turn that failed, and whether that failure is the one that the case is about."""

from __future__ import annotations

from typing import Any

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from codex_replay.plugin.proxy.no_end import ends_turn

#: Seconds between a failure and the answer that reports it. A proxy that waits for an idle timeout is later.
AT_ONCE = 2.0


def failure(done: Exchange) -> Any:
    """The error of a failed answer, whole or streamed; AssertionError when it does not tell of one."""
    if not done.is_stream:
        if done.status < 400:
            raise AssertionError(f"The turn failed, but the status of the answer is {done.status}: {done.body[:300]!r}")
        return done.json["error"]
    for value in (event.value for event in done.events if isinstance(event.value, dict)):
        if value.get("type") in ("response.failed", "response.incomplete"):
            return value["response"].get("error") or value["response"].get("incomplete_details")
        if value.get("error") or value.get("type") == "error":
            return value.get("error") or value
    raise AssertionError(f"the turn failed, but the stream does not say so: {done.body[-500:]!r}")


def must_come_of_the_fault(proxy: Proxy, done: Exchange) -> None:
    """The answer must come of the model's fault: after the end of the turn that failed, and at once.

    A refusal of the proxy's own (at capacity, say), an answer before the fault and an idle timeout after it have nothing to do
    with the fault, whatever their status is. The frames of a proxy that is attached to by its URL cannot be seen: it is not
    judged by them.
    """
    __tracebackhide__ = True
    if proxy.attached:
        return
    answered = f"{done.method} {done.path} was answered {done.answered}"
    if not proxy.model_calls():
        raise AssertionError(
            f"{answered}, but the model was never asked: the proxy must send the request to its app-server, and report the "
            f"model's fault: {done.body[:300]!r}"
        )
    ends = [frame.t for frame in done.frames if frame.sender == "server" and ends_turn(frame.value) and frame.t <= done.ended]
    if not ends:
        raise AssertionError(
            f"{answered} before its app-server had reported the end of the turn: the proxy must wait for "
            f"turn/completed (or codex/event/task_complete), or for an error that is not retried: {done.body[:300]!r}"
        )
    must_be_at_once(done, ends[-1], "the app-server had reported the failed turn")


def must_be_at_once(done: Exchange, since: float, what: str) -> None:
    """The answer must end at most `AT_ONCE` seconds after `since` (seconds since the epoch), when `what` happened."""
    __tracebackhide__ = True
    late = done.ended - since
    if late > AT_ONCE:
        raise AssertionError(
            f"The answer to {done.method} {done.path} must end within {AT_ONCE:g} s after {what}, but it ended after "
            f"{late:.1f} s: the proxy must report the failure, and not wait for an idle timeout. It was answered {done.answered}."
        )
