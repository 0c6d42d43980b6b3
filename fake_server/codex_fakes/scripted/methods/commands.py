"""Commands of versions after 0.92, which can go on: those of the client (command/exec), and those of the model.

The fake runs no command. The script has the output of a command, how long the command goes on, and what it prints for each input.
"""

from __future__ import annotations

from codex_fakes.scripted.state.form import base64_error
from codex_fakes.scripted.state.refused import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session

_INVALID_PARAMS = -32602
_CAP, _LIMIT = 1 << 20, 10_000  # the default limits: bytes of each output, milliseconds
_TIMED_OUT, _KILLED, _KILLED_IN_TERMINAL = 124, 137, 1


class Process:
    """A command of command/exec that has not ended.

    `result` is the result in the script: `exitCode`, `stdout`, `stderr`, `duration_ms`, `hang`, and `inputs`, a list with what
    the command prints after each write of the client. An input with an `exitCode` ends the command.
    """

    def __init__(self, session: Session, request: Any, params: dict[str, Any], result: dict[str, Any]) -> None:
        self._session, self._request, self._params, self._result = session, request, params, result
        self.tty: bool = params.get("tty", False)
        self.takes_input: bool = self.tty or params.get("streamStdin", False)
        self.input_closed = self.ended = False
        self._sends: bool = self.tty or params.get("streamStdoutStderr", False)
        cap = params.get("outputBytesCap")
        self._cap: float = float("inf") if params.get("disableOutputCap") else _CAP if cap is None else cap
        self._inputs = list(result.get("inputs", ()))
        self._printed = {"stdout": b"", "stderr": b""}
        self._full: set[str] = set()

    def start(self) -> None:
        """Print the first output, and end the command at its time or at its time limit."""
        limit, ms = self._params.get("timeoutMs"), self._result.get("duration_ms", 0)
        limit = float("inf") if self._params.get("disableTimeout") else _LIMIT if limit is None else limit
        ms = float("inf") if self._result.get("hang") or self._inputs else ms
        code = _TIMED_OUT if ms >= limit else self._result.get("exitCode", 0)
        self._print(self._result)
        if min(ms, limit) == 0:
            self.end(code)
        elif min(ms, limit) != float("inf"):
            self._session.after(min(ms, limit) / 1000, lambda: self.end(code))

    def write(self, has_text: bool, close: bool) -> None:
        """Take input of the client: print what the script has for it."""
        counts = has_text or (close and not self.input_closed)
        self.input_closed = self.input_closed or close
        if counts and self._inputs:
            after = self._inputs.pop(0)
            self._print(after)
            if "exitCode" in after:
                self.end(after["exitCode"])

    def terminate(self) -> None:
        """End the command as a signal does."""
        self.end(_KILLED_IN_TERMINAL if self.tty else _KILLED)

    def end(self, code: int) -> None:
        """Answer the request, unless the command has ended before."""
        if self.ended:
            return
        self.ended = True
        self._session.processes = {name: one for name, one in self._session.processes.items() if one is not self}
        shown = {name: "" if self._sends else data.decode("utf-8", "replace") for name, data in self._printed.items()}
        self._session.answer(self._request, {"exitCode": code, **shown})

    def _print(self, result: dict[str, Any]) -> None:
        for name in ("stdout", "stderr"):
            stream = "stdout" if self.tty else name
            data = result.get(name, "").encode("utf-8", "replace")
            if not data or stream in self._full:
                continue
            before = len(self._printed[stream])
            self._printed[stream] += data[: int(min(len(data), self._cap - before))]
            if full := len(self._printed[stream]) >= self._cap:
                self._full.add(stream)
            if self._sends:
                from binascii import b2a_base64

                delta = b2a_base64(self._printed[stream][before:], newline=False).decode()
                shown = {"processId": self._params["processId"], "stream": stream, "deltaBase64": delta, "capReached": full}
                self._session.send({"method": "command/exec/outputDelta", "params": shown})


def command(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle command/exec without running anything: the script has the output, and says how long the command runs."""
    if (wrong := _unfit(session, params)) is not None:
        raise Refused(*wrong)
    name = params.get("processId")
    answer = session.model.answer("command/exec", params) or {"result": {}}
    if "error" in answer:
        error = answer["error"] if isinstance(answer["error"], dict) else {"message": answer["error"]}
        raise Refused(error.get("message", ""), error.get("code", -32600), error.get("data"))
    process = Process(session, request, params, answer["result"])
    if name is not None:
        session.processes[name] = process
    process.start()


def _unfit(session: Session, params: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the message and the code of the first error in the params of command/exec, in the order of the real server."""
    tty, size, profile = params.get("tty"), params.get("size"), params.get("permissionProfile")
    timeout, name = params.get("timeoutMs"), params.get("processId")
    if not params["command"]:
        return ("command must not be empty",)
    if profile is not None and params.get("sandboxPolicy") is not None:
        return ("`permissionProfile` cannot be combined with `sandboxPolicy`",)
    if size is not None and not tty:
        return "command/exec size requires tty: true", _INVALID_PARAMS
    if params.get("outputBytesCap") is not None and params.get("disableOutputCap"):
        return "command/exec cannot set both outputBytesCap and disableOutputCap", _INVALID_PARAMS
    if timeout is not None and params.get("disableTimeout"):
        return "command/exec cannot set both timeoutMs and disableTimeout", _INVALID_PARAMS
    if timeout is not None and timeout < 0:
        return f"command/exec timeoutMs must be non-negative, got {timeout}", _INVALID_PARAMS
    if profile is not None and (wrong := _no_profile(session, profile)) is not None:
        return (f"invalid permission profile: {wrong}",)
    if size is not None and not (size["rows"] and size["cols"]):
        return _NO_SIZE
    if name is None and (tty or params.get("streamStdin") or params.get("streamStdoutStderr")):
        return ("command/exec tty or streaming requires a client-supplied processId",)
    return (f"duplicate active command/exec process id: {_quoted(name)}",) if name in session.processes else None


_NO_SIZE = ("command/exec size rows and cols must be greater than 0", _INVALID_PARAMS)


def _no_profile(session: Session, name: str) -> str | None:
    """Return the error for a permission profile that neither Codex nor config.toml has."""
    own = session.config.get("permissions")
    known = {one["id"] for one in session.answers["results"]["permissionProfile/list"]["result"]["data"]}
    if name in known or (isinstance(own, dict) and name in own):
        return None
    if name.startswith(":"):
        return f"default_permissions refers to unknown built-in profile `{name}`"
    if not own:
        return "default_permissions requires a `[permissions]` table"
    return f"default_permissions refers to undefined profile `{name}`"


def write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle command/exec/write: give a running command input, or close its input."""
    delta, close = params.get("deltaBase64"), params.get("closeStdin", False)
    if delta is None and not close:
        raise Refused("command/exec/write requires deltaBase64 or closeStdin", _INVALID_PARAMS)
    if (wrong := base64_error(delta or "")) is not None:
        raise Refused(f"invalid deltaBase64: {wrong}", _INVALID_PARAMS)
    process = _running(session, params)
    if not process.takes_input:
        raise Refused("stdin streaming is not enabled for this command/exec")
    if delta and process.input_closed:
        raise Refused("stdin is already closed")
    session.answer(request, {})
    process.write(bool(delta), close)


def resize(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle command/exec/resize, which changes nothing that the fake shows."""
    if not (params["size"]["rows"] and params["size"]["cols"]):
        raise Refused(*_NO_SIZE)
    if not _running(session, params).tty:
        raise Refused("failed to resize PTY: process is not attached to a PTY")
    session.answer(request, {})


def terminate(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle command/exec/terminate: end a running command."""
    process = _running(session, params)
    session.answer(request, {})
    process.terminate()


def _running(session: Session, params: dict[str, Any]) -> Process:
    process: Process | None = session.processes.get(params["processId"])
    if process is None:
        raise Refused(f"no active command/exec for process id {_quoted(params['processId'])}")
    return process


def _quoted(text: Any) -> str:
    from codex_replay.core.wire.json_text import dumps

    return dumps(text).decode()


# -- commands of the model that go on after their call -----------------------------------------------------------------------


def terminals(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/backgroundTerminals/list: the commands of a thread that go on, page by page, by number."""
    thread, cursor, limit = session.thread(params["threadId"]), params.get("cursor"), params.get("limit")
    after = -1 if cursor is None else _number(cursor, "cursor")
    left = [terminal for terminal in thread.running() if terminal.number > after]
    size = len(left) if limit is None else max(limit, 1)
    data = [
        {
            "itemId": terminal.values["call"],
            "processId": str(terminal.number),
            "command": terminal.line,
            "cwd": terminal.values["cwd"],
            **dict.fromkeys(("osPid", "cpuPercent", "rssKb")),
        }
        for terminal in left[:size]
    ]
    session.answer(request, {"data": data, "nextCursor": data[-1]["processId"] if len(left) > size else None})


def clean(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/backgroundTerminals/clean: end all commands of a thread that go on."""
    thread = session.thread(params["threadId"])
    session.answer(request, {})
    thread.kill()


def end_terminal(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle thread/backgroundTerminals/terminate: end a command of a thread."""
    thread = session.thread(params["threadId"])
    number = _number(params["processId"], "background terminal process id")
    session.answer(request, {"terminated": any(terminal.number == number for terminal in thread.running())})
    thread.kill(number)


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Refused(f"invalid {what}: invalid digit found in string")
    return int(text)


METHODS: dict[str, Method] = {
    "thread/backgroundTerminals/list": terminals,
    "thread/backgroundTerminals/clean": clean,
    "thread/backgroundTerminals/terminate": end_terminal,
    "command/exec": command,
    "command/exec/write": write,
    "command/exec/resize": resize,
    "command/exec/terminate": terminate,
}
