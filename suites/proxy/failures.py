"""How an answer reports a failed turn, and whether the reported failure is the one that the case caused."""

from __future__ import annotations

from typing import Any

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from codex_replay.plugin.proxy.no_end import ends_turn

#: The maximum seconds between a failure and the answer that reports it. A proxy that waits for an idle timeout takes longer.
AT_ONCE = 2.0
#: The calls that end a turn before its own end.
INTERRUPTS = ("turn/interrupt", "interruptConversation")
#: Keys of a turn that fails: the model thinks for 300 ms, so that a proxy that answers before the fault is clearly too early.
THINKS: dict[str, Any] = {"first_delay_ms": 300}
#: Seconds between the beginning of a turn and the end of its app-server, for the same reason.
WATCHED = 0.3


def failure(done: Exchange) -> Any:
    """Return the error of a failed answer, whole or streamed; raises AssertionError if the answer has no error."""
    if not done.is_stream:
        if done.status < 400:
            raise AssertionError(f"The turn failed, but the status of the answer is {done.status}: {done.body[:300]!r}")
        return done.json["error"]
    for value in (event.value for event in done.events if isinstance(event.value, dict)):
        if value.get("type") in ("response.failed", "response.incomplete"):
            return value["response"].get("error") or value["response"].get("incomplete_details")
        if value.get("error") or value.get("type") == "error":
            return value.get("error") or value
    raise AssertionError(f"The turn failed, but the stream has no error: {done.body[-500:]!r}")


def must_come_of_the_fault(proxy: Proxy, done: Exchange) -> None:
    """Check that the model's fault caused the answer: the answer comes after the end of the failed turn, and at once.

    The fault does not cause a refusal by the proxy itself (at capacity, for example), an answer before the fault, or an idle
    timeout after it. If the proxy is known only by its URL, its frames are not visible, so this check does nothing.
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
    # A proxy that gives up interrupts the turn, and the end that follows is its own doing.
    sent = [frame for frame in done.frames if frame.sender == "client" and frame.kind == "request"]
    until = min([done.ended, *(frame.t for frame in sent if frame.value["method"] in INTERRUPTS)])
    ends = [frame.t for frame in done.frames if frame.sender == "server" and ends_turn(frame.value) and frame.t <= until]
    if not ends:
        raise AssertionError(
            f"{answered} before its app-server had reported the end of the turn: the proxy must wait for "
            f"turn/completed (or codex/event/task_complete), or for an error that is not retried: {done.body[:300]!r}"
        )
    must_be_at_once(done, ends[-1], "the app-server had reported the failed turn")


def must_be_at_once(done: Exchange, since: float, what: str) -> None:
    """Check that the answer ended after `what`, and within `AT_ONCE` seconds; `since` is its time (seconds since the epoch)."""
    __tracebackhide__ = True
    late = done.ended - since
    if late < 0:
        raise AssertionError(
            f"{done.method} {done.path} was answered {done.answered} {-late:.2f} s before {what}: the proxy must answer when the "
            f"failure comes, and not before it: {done.body[:300]!r}"
        )
    if late > AT_ONCE:
        raise AssertionError(
            f"The answer to {done.method} {done.path} must end within {AT_ONCE:g} s after {what}, but it ended after "
            f"{late:.1f} s: the proxy must report the failure, and not wait for an idle timeout. It was answered {done.answered}."
        )
