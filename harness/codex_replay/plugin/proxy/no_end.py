"""Explain why an answer of a proxy did not end: the app-server's last message, the open requests, and whether the turn had
ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codex_replay.core.text.plural import plural
from codex_replay.core.wire.jsonrpc import is_reply, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codex_replay.plugin.proxy.http import Exchange
    from codex_replay.plugin.proxy.wire import WireFrame

#: The notifications that end a turn, those of conversations (v1) and those of threads (v2).
ENDS = ("turn/completed", "error", "codex/event/error", "codex/event/task_complete", "codex/event/turn_aborted")
#: The requests that start a turn, and the notifications of conversations (v1) of which each turn has exactly one at its end.
SUBMISSIONS = ("turn/start", "sendUserTurn", "sendUserMessage")
ENDS_OF_V1 = ("codex/event/task_complete", "codex/event/turn_aborted")


def ends_turn(message: Any) -> bool:
    """Return True for a notification that ends a turn. An error after which Codex tries again does not end it."""
    if not isinstance(message, dict) or message.get("method") not in ENDS:
        return False
    params = message.get("params")
    return not (isinstance(params, dict) and message["method"] == "error" and params.get("willRetry") is True)


def turn_is_open(frames: Sequence[WireFrame]) -> bool:
    """Return True if the client started more turns than the server has ended.

    A thread (v2) is also sent the notifications of v1, so that the larger of the two counts is the number of ended turns.
    """
    methods = [(frame.sender, frame.value.get("method")) for frame in frames if frame.kind in ("request", "notification")]
    started: int = sum(sender == "client" and method in SUBMISSIONS for sender, method in methods)
    v2: int = sum(sender == "server" and method == "turn/completed" for sender, method in methods)
    v1: int = sum(sender == "server" and method in ENDS_OF_V1 for sender, method in methods)
    return started > max(v1, v2)


def no_end(done: Exchange, *, attached: bool) -> str:
    """Return the sentences for an answer without an end: its cause according to the frames, the problem, and the received part.

    The frames of an `attached` proxy are not visible, so its cause is unknown.
    """
    cause = "" if attached else _cause(done.frames, done.ended) + " "
    came = f"Status {done.status} and {plural(len(done.body), 'byte')} had come." if done.status else "No byte of it had come."
    return f"{cause}{done.method} {done.path}: {done.problem}. {came}"


def _cause(frames: Sequence[WireFrame], at: float) -> str:
    """Return what `frames` show of the cause; `at` is when the client gave up, in seconds since the epoch."""
    if not any(frame.sender == "client" for frame in frames):
        return "The proxy sent nothing to its app-server for this request."
    if waiting := _unanswered(frames, "server"):
        return f"The proxy did not answer the app-server's request {waiting}, so the turn cannot end."
    end = next((frame for frame in frames if frame.sender == "server" and ends_turn(frame.value)), None)
    if end is not None:
        return f"The turn had ended ({label(end.value)}, {at - end.t:.1f} s before), but the proxy did not end the answer."
    if waiting := _unanswered(frames, "client"):
        return f"The app-server had not answered {waiting}."
    last = next((frame for frame in reversed(frames) if frame.sender == "server"), None)
    if last is None:
        return "The app-server had sent nothing."
    return f"The turn had not ended; the app-server's last message was {label(last.value)}, {at - last.t:.1f} s before."


def _unanswered(frames: Sequence[WireFrame], sender: str) -> str:
    """Return the method and id of the first request of `sender` that the other side did not answer; "" if there is none."""
    replied = {(frame.child, str(frame.value["id"])) for frame in frames if frame.sender != sender and is_reply(frame.value)}
    for frame in frames:
        if frame.sender == sender and frame.kind == "request" and (frame.child, str(frame.value["id"])) not in replied:
            return f"{label(frame.value)} (id {frame.value['id']})"
    return ""
