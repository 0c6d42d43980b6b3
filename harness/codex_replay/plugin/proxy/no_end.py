"""Explain why an answer of a proxy did not end.

The explanation names the last message of the app-server and its open requests, and says whether the prompt was submitted,
and whether the turn or the app-server had ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.numbers import plural
from codex_replay.core.text.truncate import truncate
from codex_replay.core.wire.jsonrpc import is_reply, label

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from codex_replay.plugin.proxy.http import Exchange
    from codex_replay.plugin.proxy.wire import Wire, WireFrame
    from codex_replay.shell.process.patience import Patience

#: The notifications that end a turn, those of conversations (v1) and those of threads (v2).
ENDS = ("turn/completed", "error", "codex/event/error", "codex/event/task_complete", "codex/event/turn_aborted")
#: The requests that start a turn, and the notifications of conversations (v1) of which each turn has exactly one at its end.
SUBMISSIONS = ("turn/start", "sendUserTurn", "sendUserMessage")
#: The notifications that a turn has started.
STARTS = ("turn/started", "codex/event/task_started")
ENDS_OF_V1 = ("codex/event/task_complete", "codex/event/turn_aborted")
#: The reasons why only the proxy can end an answer: a request of the server without a reply, a turn that is over.
UNANSWERED, ENDED, FAILED = "a request of the app-server", "the end of the turn", "the end of a failed turn"
#: The seconds that a proxy has then, unless a case sets less for a turn that failed.
REACTION = 3.0
#: What later cases wait at least. Some proxies wait for a second of silence before they end an answer.
LEAST_REACTION = 1.6
#: The seconds after a turn within which the turn of a further submission begins.
QUIET = 0.05
#: The default limit of a line in Python's asyncio, in bytes.
LONG_LINE = 1 << 16


def ends_turn(message: Any) -> bool:
    """Return True for a notification that ends a turn.

    If Codex retries after an error, the notification of the error does not end the turn.
    """
    if not isinstance(message, dict) or message.get("method") not in ENDS:
        return False
    params = message.get("params")
    return not (isinstance(params, dict) and message["method"] == "error" and params.get("willRetry") is True)


def turn_is_open(frames: Sequence[WireFrame]) -> bool:
    """Return True if the client started more turns than the server has ended.

    The server reports the end of a v2 turn twice, with v1 and with v2 notifications. Therefore, the ends in v1
    notifications and the ends in v2 notifications are counted separately, and the larger count is used.
    """
    methods = [(frame.sender, frame.value.get("method")) for frame in frames if frame.kind in ("request", "notification")]
    started: int = sum(sender == "client" and method in SUBMISSIONS for sender, method in methods)
    v2: int = sum(sender == "server" and method == "turn/completed" for sender, method in methods)
    v1: int = sum(sender == "server" and method in ENDS_OF_V1 for sender, method in methods)
    return started > max(v1, v2)


def running_threads(frames: Sequence[WireFrame]) -> set[Any]:
    """Return the threads (or conversations) with a running turn: a turn that the server has started and not ended.

    Turn ids are not used: if a prompt joins a running turn, the server's reply has the id of another turn, which never ends.
    """
    found: set[Any] = set()
    for frame in frames:
        params = frame.value.get("params") if frame.sender == "server" and frame.kind == "notification" else None
        if isinstance(params, dict):
            thread = params.get("threadId") or params.get("conversationId")
            if frame.value["method"] in STARTS:
                found.add(thread)
            elif frame.value["method"] in ("turn/completed", *ENDS_OF_V1):
                found.discard(thread)
    return found


def are_joined(frames: Sequence[WireFrame]) -> bool:
    """Return True if no turn runs and the client submitted more prompts than there were turns: the server may answer two prompts
    in one turn.
    """
    begun = any(frame.value.get("method") in STARTS for frame in frames if frame.kind == "notification")
    return begun and not running_threads(frames) and not _unanswered(frames, "client")


def is_quiet(frames: Sequence[WireFrame]) -> bool:
    """Return True if no turn runs or will begin.

    If the client submitted two prompts, a second turn begins directly after the first.
    """
    return not turn_is_open(frames) or (time.monotonic() - frames[-1].t > QUIET and are_joined(frames))


def stuck(frames: Sequence[WireFrame]) -> str:
    """Return the reason why the answer can end only if the proxy ends it: UNANSWERED or ENDED.

    Return "" if the app-server can still cause the end of the answer.
    """
    if _unanswered(frames, "server"):
        return UNANSWERED
    ended = any(frame.sender == "server" and ends_turn(frame.value) for frame in frames)
    return ENDED if ended and not _unanswered(frames, "client") and not running_threads(frames) else ""


class Watch:
    """Watch the messages of the app-server while the proxy answers a request.

    `hopeless` returns True if only the proxy can end the answer, and did not end it in time.

    `within` is the time limit for the end of the answer, in seconds after the end of a failed turn.
    """

    def __init__(self, wire: Wire, patience: Patience, within: float | None = None) -> None:
        self._wire, self._patience, self._within = wire, patience, within
        self._from = len(wire.frames)
        #: Why the answer can be given up; "" if it cannot.
        self.cause = ""
        self._earlier = ""  # a sentence, if it was given up before its limit

    def frames(self) -> list[WireFrame]:
        """Return the messages since the request, including those that another thread has read."""
        self._wire.update()
        return self._wire.frames[self._from :]

    def hopeless(self) -> bool:
        """Return True if the proxy has done nothing for too long; if the answer does not end afterwards, call `given_up`."""
        self.cause = ""
        frames = self.frames()
        cause = stuck(frames)
        if not cause:
            return False
        if cause == ENDED and self._within is not None:
            cause = FAILED
            limit = self._patience.part(self._within, cause, LEAST_REACTION)
        else:
            limit = self._patience.limit(REACTION, cause, LEAST_REACTION)
        if time.monotonic() - max(frame.t for frame in frames) < limit:
            return False
        if self._within is not None and limit < self._within:
            self._earlier = "Several earlier answers were late, so the suite waited less time for this answer. "
        self.cause = cause
        return True

    def given_up(self) -> None:
        """Count an answer that did not end: later cases then wait less time for the same cause."""
        if self.cause:
            self._patience.count(True, self.cause)

    @property
    def late(self) -> str:
        """Return a sentence if the answer to a failed turn did not end; otherwise return ""."""
        if self.cause != FAILED:
            return ""
        return (
            f"The answer must end within {self._within:g} s after the app-server had reported the failed turn: the proxy must "
            f"report the failure, and not wait for an idle timeout. {self._earlier}"
        )


def no_end(done: Exchange, *, attached: bool, gone: Collection[str] = ()) -> str:
    """Return the error text for an answer that did not end: the cause that the frames show, the problem of the client, and the
    length of the received part.

    `gone` are the app-server processes in `frames` that no longer run. `attached` is True for a proxy that was given as a
    URL: its frames cannot be seen, so the cause is unknown.
    """
    cause = "" if attached else _cause(done.frames, done.ended, gone, _framing(done)) + " "
    long = "" if attached else _long_line(done.frames)
    return f"{long}{cause}{done.method} {done.path}: {done.problem}. {_received(done)}"


def came(done: Exchange) -> str:
    """Return sentences on how much of an answer came, and on a missing header that shows where the body ends."""
    return _received(done) + _framing(done)


def _received(done: Exchange) -> str:
    if not done.status:
        return "The client had received no byte of the answer."
    return f"Status {done.status} and {plural(len(done.body), 'byte')} had come."


def _cause(frames: Sequence[WireFrame], at: float, gone: Collection[str], framing: str) -> str:
    """Return sentences about the reason why an answer did not end, from the frames of the app-server.

    `at` is the time when the client stopped waiting, in seconds of the monotonic clock.

    If the turn had ended, the text `framing` is added.
    """
    sent = [frame for frame in frames if frame.sender == "client"]
    if not sent:
        return "The proxy sent nothing to its app-server for this request."
    end = next((frame for frame in frames if frame.sender == "server" and ends_turn(frame.value)), None)
    child = sent[-1].child
    if child in gone and end is None:
        came = [frame for frame in frames if frame.sender == "server" and frame.child == child]
        words = f"its last message was {_ago(came[-1], at)}" if came else "it had sent nothing"
        return f"The app-server (process {child}) had ended; {words}. The proxy must then end the answer with an error."
    if waiting := _unanswered(frames, "server"):
        return f"The proxy did not answer the app-server's request {waiting}, so the turn cannot end."
    if end is not None:
        return f"The turn had ended ({_ago(end, at)}), but the proxy did not end the answer.{framing}"
    if refused := _refused(frames):
        words = "Some versions of Codex then never end the turn: answer with a result."
        return f"The proxy answered the app-server's request {refused} with an error. {words}"
    if waiting := _unanswered(frames, "client"):
        return f"The app-server had not answered {waiting}."
    if refusal := refused_submission(frames):
        return f"{refusal}The proxy must then end the answer with an error."
    if not any(frame.kind == "request" and frame.value["method"] in SUBMISSIONS for frame in sent):
        return (
            f"The proxy had not submitted the prompt ({', '.join(SUBMISSIONS)}). The last message of the proxy to the "
            f"app-server was {_ago(sent[-1], at)}."
        )
    last = next(frame for frame in reversed(frames) if frame.sender == "server")  # the submission was answered
    if '"thread/status/changed"' in last.raw and '"type":"idle"' in last.raw.replace(" ", ""):
        return (
            f"The turn had ended (the thread was idle: {_ago(last, at)}), but turn/completed did not come. Usually "
            "the optOutNotificationMethods of `initialize` name it: remove it there."
        )
    return f"The turn had not ended; the app-server's last message was {_ago(last, at)}."


def _long_line(frames: Sequence[WireFrame]) -> str:
    """Return a sentence if the app-server sent a line that is longer than the default limit of common line readers."""
    line = max((frame for frame in frames if frame.sender == "server"), key=lambda frame: len(frame.taken), default=None)
    if line is None or len(line.raw.encode()) < LONG_LINE:
        return ""
    return (
        f"The app-server sent a line of {len(line.raw.encode())} bytes ({label(line.value)}). A line has no limit, and "
        f"some readers stop at one of {LONG_LINE} bytes (in Python, asyncio's StreamReader without `limit`). "
    )


def refused_submission(frames: Sequence[WireFrame]) -> str:
    """Return a sentence if the app-server refused a call of the proxy, and therefore got no prompt."""
    calls = {(f.child, str(f.value["id"])): f for f in frames if f.sender == "client" and f.kind == "request"}
    submitted = [call for call in calls.values() if call.value["method"] in SUBMISSIONS]
    for frame in frames:
        call = calls.get((frame.child, str(frame.value["id"]))) if frame.sender == "server" and frame.kind == "error" else None
        if call is not None and submitted in ([], [call]):
            error = truncate(str((frame.value.get("error") or {}).get("message")), 100)
            return f"The app-server refused {label(call.value)} ({error}), so it got no prompt. "
    return ""


def _framing(done: Exchange) -> str:
    """Return a sentence if no header of the answer shows where its body ends; otherwise return ""."""
    chunked = "chunked" in (done.header("transfer-encoding") or "").lower()
    if not done.status or chunked or done.header("content-length") is not None:
        return ""
    return (
        " The answer has neither Content-Length nor Transfer-Encoding: chunked, so a client waits until the connection "
        "closes. Send Content-Length, send the answer in chunks, or close the connection after it."
    )


def _ago(frame: WireFrame, at: float) -> str:
    """Return the name of a message, and how long before the time `at` it was sent."""
    return f"{label(frame.value)}, {at - frame.t:.1f} s before"


def _refused(frames: Sequence[WireFrame]) -> str:
    """Return the method and id of the first server request that the client answered with an error; return "" if there is none."""
    errors = {(frame.child, str(frame.value["id"])) for frame in frames if frame.sender == "client" and frame.kind == "error"}
    for frame in frames:
        if frame.sender == "server" and frame.kind == "request" and (frame.child, str(frame.value["id"])) in errors:
            return f"{label(frame.value)} (id {frame.value['id']})"
    return ""


def _unanswered(frames: Sequence[WireFrame], sender: str) -> str:
    """Return the method and id of the first request of `sender` that the other side did not answer.

    A reply answers a request only if both ids have the same type. Return "" if every request is answered.
    """
    replied = {(f.child, repr(f.value["id"])): f.value["id"] for f in frames if f.sender != sender and is_reply(f.value)}
    for frame in frames:
        if frame.sender == sender and frame.kind == "request" and (frame.child, repr(frame.value["id"])) not in replied:
            number = frame.value["id"]
            near = [other for (child, _), other in replied.items() if child == frame.child and str(other) == str(number)]
            note = f"; the proxy sent a reply with the id {near[0]!r}, which the app-server ignores" if near else ""
            return f"{label(frame.value)} (id {number}{note if sender == 'server' else ''})"
    return ""
