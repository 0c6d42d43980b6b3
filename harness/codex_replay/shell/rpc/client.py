"""Drive an app-server over stdio with synchronous calls, and keep a timeline of all frames.

A thread splits the server's stdout into lines, and puts each line on the timeline under a lock. Callers wait on the same
lock for a frame that matches their condition. A wait takes the first matching frame that no earlier wait has taken, so that
two equal notifications count as two. If the server exits, a wait ends immediately. The message of a failure contains the
exit status, the last lines of stderr and the last frames. A server that writes too much to its stdout is stopped. A line of
the client is put on the timeline before it is written, so that no answer comes before its request.
"""

from __future__ import annotations

import threading
import time
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.text.escape import escape
from codex_replay.core.text.last_words import last_words
from codex_replay.core.text.truncate import truncate
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply, kind, label
from codex_replay.core.wire.ndjson import LineSplitter
from codex_replay.shell.process.subject import Disconnected, Process
from codex_replay.shell.rpc.progress import timed_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ABSENT: Any = object()
LONG = 200  # characters of a line
#: A server that writes more is out of control, and is ended before it fills the memory: lines that are not a JSON object (the
#: real one writes none), lines in all (the real one writes some hundred a turn), bytes in all, bytes of one line (a body of
#: 64 MB has 86 MB in base64).
MOST_GARBAGE, MOST_LINES, MOST_BYTES, LONGEST_LINE = 1_000, 1_000_000, 1 << 29, 1 << 27


class SubjectFailure(AssertionError):
    """The server did not send the awaited message. The message of the exception has the cause and the last messages."""


class ErrorReply(SubjectFailure):
    """The server answered a request with an error. `error` is the error object in the reply."""

    def __init__(self, text: str, error: Any) -> None:
        super().__init__(text)
        self.error = error


class Client:
    """One conversation with one app-server.

    `timeline` has every frame of both sides in the order of arrival. The time `t` of a frame is in seconds since the start
    of the conversation. `timeout` is the default time limit of a wait, in seconds. `started` is the value of
    `time.monotonic` at the start.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        timeout: float = 10.0,
    ) -> None:
        self.timeline: list[Frame] = []
        self.timeout = timeout
        self._taken: set[int] = set()
        self._changed = threading.Condition()
        self._splitter = LineSplitter()
        self._sent = LineSplitter()
        self._ended = False
        self._garbage = self._bytes = self._line = 0  # bytes of the line that has not ended
        self._flood = ""  # why the server was ended, if it was
        self._next_id = 0
        self.started = time.monotonic()
        with self._changed:  # the pump may have something before there is a process to ask
            self.process = Process(argv, env=env, cwd=cwd, on_stdout=self._on_stdout)

    def _on_stdout(self, data: bytes) -> None:
        with self._changed:
            if self._flood:
                return
            if data:
                self._bytes += len(data)
                end = data.rfind(b"\n") + 1
                self._line = len(data) - end + (0 if end else self._line)
                for line in self._splitter.feed(data):
                    self._add("server", line)
                    self._garbage += not line.lstrip().startswith(b"{")
                self._stem_flood()
            else:
                tail = self._splitter.close()
                if tail:
                    self._add("server", tail)
                self._ended = True
            self._changed.notify_all()

    def _stem_flood(self) -> None:
        if self._garbage > MOST_GARBAGE:
            self._flood = f"The server was stopped because {self._garbage} of its lines are not JSON objects."
        elif len(self.timeline) > MOST_LINES:
            self._flood = f"The server was stopped after {MOST_LINES} frames."
        elif self._line > LONGEST_LINE:
            self._flood = f"The server was stopped after {self._line >> 20} MB without the end of a line."
        elif self._bytes > MOST_BYTES:
            self._flood = f"The server was stopped after it had written {self._bytes >> 20} MB."
        if self._flood:
            self._ended = True
            self.process.kill()

    def _add(self, sender: str, raw: bytes) -> None:
        self.timeline.append(Frame(len(self.timeline) + 1, time.monotonic() - self.started, "rpc", sender, "msg", raw))

    # -- sending ---------------------------------------------------------------------------------------------------------

    def send(self, message: Any) -> None:
        """Send a message, or raw `bytes` (several lines, half a line, invalid JSON)."""
        __tracebackhide__ = True
        data = message if isinstance(message, bytes) else dumps(message) + b"\n"
        with self._changed:
            for line in self._sent.feed(data):
                self._add("client", line)
        try:
            self.process.write(data, self.timeout)
        except Disconnected as gone:
            raise SubjectFailure(self._early_end(f"{_short(data)} could not be sent to the server: {gone}")) from None

    def notify(self, method: str, params: Any = _ABSENT) -> None:
        """Send a notification to the server. Without the argument `params`, the notification has no member `params`."""
        __tracebackhide__ = True
        self.send({"method": method} if params is _ABSENT else {"method": method, "params": params})

    def post(self, method: str, params: Any = _ABSENT, *, id: Any = None) -> Any:  # noqa: A002 - the protocol's name
        """Send a request to the server without waiting for the reply. Return the id of the request: `id`, or the next integer."""
        __tracebackhide__ = True
        used = id
        if used is None:
            used, self._next_id = self._next_id, self._next_id + 1
        message = {"id": used, "method": method}
        if params is not _ABSENT:
            message["params"] = params
        self.send(message)
        return used

    def call(self, method: str, params: Any = _ABSENT, *, id: Any = None) -> Any:  # noqa: A002
        """Send a request and return the whole reply, result or error."""
        __tracebackhide__ = True
        return self.reply_to(self.post(method, params, id=id))

    def request(self, method: str, params: Any = _ABSENT, *, id: Any = None) -> Any:  # noqa: A002
        """Send a request to the server and return its result. Raises `ErrorReply` if the server answers with an error."""
        __tracebackhide__ = True
        reply = self.call(method, params, id=id)
        if kind(reply) == "error":
            raise ErrorReply(
                self.report_on(f"The server answered {method} with the error {_short(reply['error'])}"), reply["error"]
            )
        return reply["result"]

    def request_error(self, method: str, params: Any = _ABSENT, *, id: Any = None) -> Any:  # noqa: A002
        """Send a request that the server must refuse, and return the error object."""
        __tracebackhide__ = True
        reply = self.call(method, params, id=id)
        if kind(reply) != "error":
            raise SubjectFailure(self.report_on(f"The server accepted {method}, which it must refuse: {_short(reply)}"))
        return reply["error"]

    def reply(self, request: Mapping[str, Any], result: Any) -> None:
        """Answer a request of the server with a result."""
        __tracebackhide__ = True
        self.send({"id": request["id"], "result": result})

    # -- waiting ---------------------------------------------------------------------------------------------------------

    def wait(self, what: str, matches: Callable[[Any], bool], timeout: float | None = None) -> Any:
        """Remove and return the first server message for which `matches` returns True.

        In an error message, the text `what` names the awaited message.

        Raises `SubjectFailure` if the server ends without sending the awaited message, or after `timeout` seconds.
        """
        __tracebackhide__ = True
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        at = 0
        with self._changed:
            while True:
                while at < len(self.timeline):
                    frame = self.timeline[at]
                    at += 1
                    if frame.sender == "server" and frame.n not in self._taken and matches(frame.value):
                        self._taken.add(frame.n)
                        return deepcopy(frame.value)  # the timeline's own must stay as it was seen
                if self._ended:
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            ended = self._ended
        if ended:
            raise SubjectFailure(self._early_end(f"{what} never came"))
        raise SubjectFailure(self.report_on(timed_out(self.messages(), what, limit)))

    def _early_end(self, what: str) -> str:
        """Return the error text for a server that has ended early: its exit status, its last line on stderr, and the text of
        `report_on`.
        """
        status = self.process.wait(2.0)  # worth the wait: the status and stderr are the cause
        if status is None:
            return self.report_on(what)
        how = f"exited with status {status}" if status >= 0 else f"was ended by signal {-status}"
        return f"The server {how} too early{last_words(self.process.stderr_tail(60))}\n{self.report_on(what)}"

    def reply_to(self, id: Any, timeout: float | None = None) -> Any:  # noqa: A002
        """Remove and return the reply to the client's request `id` (1, 1.0 and true are different ids)."""
        __tracebackhide__ = True
        return self.wait(f"The reply to request {id!r}", lambda m: is_reply(m) and _same(m["id"], id), timeout)

    def notification(self, method: str, timeout: float | None = None, **params: Any) -> Any:
        """Wait for the next notification `method` whose params contain all members of `params`.

        Return the params of the notification, and do not return it again.
        """
        __tracebackhide__ = True

        def matches(message: Any) -> bool:
            if kind(message) != "notification" or message["method"] != method:
                return False
            given = message.get("params")
            return not params or (isinstance(given, dict) and all(given.get(k, _ABSENT) == v for k, v in params.items()))

        named = "".join(f" with {key}={value!r}" for key, value in params.items())
        return self.wait(f"The notification {method}{named}", matches, timeout).get("params")

    def server_request(self, method: str, timeout: float | None = None) -> Any:
        """Wait for the server's next request `method`, and return it only once.

        The caller must answer the request with `reply`.
        """
        __tracebackhide__ = True
        return self.wait(f"The server's request {method}", lambda m: kind(m) == "request" and m["method"] == method, timeout)

    # -- looking back ----------------------------------------------------------------------------------------------------

    def messages(self, sender: str = "server") -> list[Any]:
        """Return the decoded messages of one side so far, in order. A line that is not JSON is None in the list."""
        with self._changed:
            return [frame.value for frame in self.timeline if frame.sender == sender]

    def raw(self, sender: str = "server") -> list[bytes]:
        """Return the raw lines of one side so far, in order, each with its line end."""
        with self._changed:
            return [frame.raw for frame in self.timeline if frame.sender == sender]

    # -- ending ----------------------------------------------------------------------------------------------------------

    def end_input(self) -> None:
        """Close the server's stdin, without waiting for the server's exit. An incomplete last line counts as sent."""
        with self._changed:
            tail = self._sent.close()
            if tail:
                self._add("client", tail)
        self.process.close_stdin()

    def close(self, timeout: float | None = None) -> int:
        """Close the server's stdin, read the rest of its output, and return its exit status.

        Raises `SubjectFailure` if the server has not exited after `timeout` seconds.
        """
        __tracebackhide__ = True
        self.end_input()
        limit = self.timeout if timeout is None else timeout
        status = self.process.wait(limit)
        if status is None:
            raise SubjectFailure(self.report_on(f"The server was still running {limit:g} s after its stdin ended"))
        self.process.output_ended.wait(limit)
        return status

    def stop(self) -> None:
        """Stop the server and all processes that it started, immediately."""
        self.process.stop()

    def report_on(self, what: str) -> str:
        """Return the sentence `what`, followed by the server's state, the end of its stderr and the last frames."""
        status = self.process.status
        if status is None:
            state = "The server is still running" + (", but has closed its stdout." if self._ended else ".")
        else:
            state = "The server " + ("exited with status" if status >= 0 else "was ended by signal") + f" {abs(status)}."
        state = f"{state} {self._flood}".rstrip()
        tail = self.process.stderr_tail(6)
        message = (
            "Its stderr is empty."
            if not tail
            else "Its stderr ends:\n" + "\n".join("    " + truncate(line, LONG) for line in tail)
        )
        with self._changed:
            last = self.timeline[-8:]
        seen = "\n".join(f"    {frame.n:>4} {frame.t:8.3f} {frame.sender:6} {_short(frame.raw)}" for frame in last)
        return (
            f"{what}. {state} {message}\nThe last frames:\n{seen}" if last else f"{what}. {state} {message}\nNo frame was seen."
        )


def describe(frame: Frame) -> str:
    """Return one line that describes a frame: its number, time, sender and label."""
    return f"{frame.n:>4} {frame.t:8.3f} {'->' if frame.sender == 'client' else '<-'} {label(frame.value)}"


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _short(value: Any) -> str:
    if isinstance(value, bytes):
        text = value[:400].decode("utf-8", "backslashreplace").rstrip("\n")
        return truncate(escape(text), LONG)
    return truncate(escape(dumps(value).decode()), LONG)
