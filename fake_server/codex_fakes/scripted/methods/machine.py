"""The methods whose answers depend on the computer of the real server: commands, files, git, skills, MCP servers.

The fake runs no command. The fake reads and writes only the files that a client names in the methods fs/*. The script
therefore contains the results of commands, searches and git (`answers`, `git`; see docs/fake-codex.md). If the script has no
result, each method has one documented default: the real server's answer on an empty computer. Examples of defaults are a
command without output, a search without results, and a directory that is not a repository.
"""

from __future__ import annotations

import os
import shutil
from base64 import b64decode, b64encode
from errno import EBUSY, ELOOP, ENAMETOOLONG
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG

from codex_fakes.scripted.methods.both import place
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import Settings, absolute, sandbox_v2
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session

INTERNAL = -32603


def command(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle command/exec and execOneOffCommand without running anything.

    A command without a sandbox succeeds without output. A command with a sandbox is refused, because the real 0.92.0 found
    no program for its sandbox on the computer of the recording.
    """
    if not params["command"]:
        raise Refused("command must not be empty")
    if params.get("sandboxPolicy") is not None:
        sandbox = sandbox_v2(params["sandboxPolicy"])
    else:
        sandbox = Settings(session.config, session.cwd, session.home, session.table["settings"], session.version).sandbox
    if sandbox["type"] in ("readOnly", "workspaceWrite"):
        raise Refused("exec failed: codex-linux-sandbox was required but not provided", INTERNAL)
    session.answer(request, {"exitCode": 0, "stdout": "", "stderr": ""})


def git_diff(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle gitDiffToRemote: answer with the repository in the script.

    If the script has no repository, answer that the directory has none, because the fake does not run git.
    """
    from codex_replay.core.wire.json_text import dumps

    raise Refused(f"failed to compute git diff to remote for cwd: {dumps(params['cwd']).decode()}")


def skills_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """skills/list: return an entry for each directory, with the skills that Codex installs in every home directory."""
    cwds = params.get("cwds") or [session.cwd]
    skills = fill(session.answers["skills"], {"home": session.home})
    if session.file.refusal is not None:
        errors = [{"path": cwd, "message": session.file.refusal} for cwd in cwds]
        entries = [{"cwd": error["path"], "skills": [], "errors": [error]} for error in errors]
        session.answer(request, {"data": entries})
        return
    shown = [{**skill, "enabled": session.skills.get(skill["path"], True)} for skill in skills]
    session.answer(request, {"data": [{"cwd": cwd, "skills": shown, "errors": []} for cwd in cwds]})


def skills_write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """skills/config/write: store the setting of a skill in memory."""
    if session.file.edit_error is not None:
        raise Refused(f"failed to update skill settings: {session.file.edit_error}", INTERNAL)
    session.skills[params["path"]] = params["enabled"]
    session.answer(request, {"effectiveEnabled": params["enabled"]})


def mcp_status(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle mcpServerStatus/list: list the configured servers.

    The listed servers have no tools, because the fake starts no server.
    """
    _reload(session)
    names = sorted(session.config.get("mcp_servers") or {})
    cursor, limit = params.get("cursor"), params.get("limit")
    start = place(cursor, len(names), "MCP servers")
    end = min(start + max(limit, 1), len(names)) if limit is not None else len(names)
    offers: dict[str, Any] = {"tools": {}, "resources": [], "resourceTemplates": [], "authStatus": "unsupported"}
    data = [{"name": name, **offers} for name in names[start:end]]
    session.answer(request, {"data": data, "nextCursor": str(end) if end < len(names) else None})


def mcp_login(session: Session, request: Any, params: dict[str, Any]) -> None:
    """Handle mcpServer/oauth/login without starting a server.

    A login to a server without logins is refused, as in the real Codex.
    """
    _reload(session)
    name = params["name"]
    servers = session.config.get("mcp_servers")
    server = servers.get(name) if isinstance(servers, dict) else None
    if not isinstance(server, dict):
        raise Refused(f"No MCP server named '{name}' found.")
    if "url" not in server:
        raise Refused("OAuth login is only supported for streamable HTTP servers.")
    raise Refused(
        f"failed to login to MCP server '{name}': fake-codex opens no connection; add the answer to the script.", INTERNAL
    )


def mcp_reload(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/mcpServer/reload: answer, and change nothing, because no MCP server runs."""
    _reload(session)
    session.answer(request, {})


def _reload(session: Session) -> None:
    """If the configuration is invalid, refuse a request that reads the configuration a second time."""
    if session.file.refusal is not None:
        raise Refused(f"failed to reload config: {session.file.refusal}", INTERNAL)


# -- files: the methods fs/* of versions after 0.92 --------------------------------------------------------------------------

#: The errors that the C library of the real binary (musl) describes in other words than that of Python.
_OTHER_WORDS = {ELOOP: "Symbolic link loop", ENAMETOOLONG: "Filename too long", EBUSY: "Resource busy"}
_SYMBOLS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _on_files(does: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Method:
    """Return the function of a method fs/*. `does` gets the params with normalised paths, and returns the result."""

    def handle(session: Session, request: Any, params: dict[str, Any]) -> None:
        try:
            given = {name: absolute(value, "/") if name.lower().endswith("path") else value for name, value in params.items()}
            session.answer(request, does(given) or {})
        except OSError as error:
            words = _OTHER_WORDS.get(error.errno or 0) or os.strerror(error.errno or 0)
            raise Refused(f"{words} (os error {error.errno})", INTERNAL) from None
        except ValueError:
            raise Refused("file name contained an unexpected NUL byte") from None

    return handle


def _read_file(params: dict[str, Any]) -> dict[str, Any]:
    path = params["path"]
    if not S_ISREG(os.stat(path).st_mode):
        raise Refused(f"path `{path}` is not a file")
    with open(path, "rb") as file:
        return {"dataBase64": b64encode(file.read()).decode()}


def _write_file(params: dict[str, Any]) -> None:
    data = params["dataBase64"].encode("utf-8", "surrogatepass")
    if (wrong := _no_base64(data)) is not None:
        raise Refused(f"fs/writeFile requires valid base64 dataBase64: {wrong}")
    with open(params["path"], "wb") as file:
        file.write(b64decode(data))


def _no_base64(data: bytes) -> str | None:
    """Return the real server's error for a text that is not base64, or None. The last four symbols are checked in another way."""
    begin = max(0, len(data) - (len(data) % 4 or 4))
    first = next((place for place, sign in enumerate(data) if sign not in _SYMBOLS), len(data))
    if len(data) % 4 == 1 and data[-1] not in _SYMBOLS + b"=":
        first = len(data) - 1
    padded = first - begin >= 2 and data[first:].strip(b"=") == b""
    if first < len(data) and not padded:
        return f"Invalid symbol {data[first]}, offset {first}."
    if data and first - begin < 2:
        return f"Invalid input length: {first}"
    if len(data) % 4:
        return "Invalid padding"
    if b64encode(b64decode(data)) != data:
        return f"Invalid last symbol {data[first - 1]}, offset {first - 1}."
    return None


def _create_directory(params: dict[str, Any]) -> None:
    if params.get("recursive") is False:
        os.mkdir(params["path"])
    else:
        os.makedirs(params["path"], exist_ok=True)


def _metadata(params: dict[str, Any]) -> dict[str, Any]:
    path = params["path"]
    found = os.stat(path)
    kinds = {"isDirectory": S_ISDIR(found.st_mode), "isFile": S_ISREG(found.st_mode), "isSymlink": os.path.islink(path)}
    return {**kinds, "createdAtMs": 0, "modifiedAtMs": found.st_mtime_ns // 1_000_000}


def _read_directory(params: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a directory, without links that lead nowhere."""
    entries = []
    for name in os.listdir(params["path"]):
        path = f"{params['path']}/{name}"
        if os.path.exists(path):
            entries.append({"fileName": name, "isDirectory": os.path.isdir(path), "isFile": os.path.isfile(path)})
    return {"entries": entries}


def _remove(params: dict[str, Any]) -> None:
    path = params["path"]
    try:
        is_folder = S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        if params.get("force") is False:
            raise
        return
    if not is_folder:
        os.unlink(path)
    elif params.get("recursive") is False:
        os.rmdir(path)
    else:
        shutil.rmtree(path)


def _copy(params: dict[str, Any]) -> None:
    source, target = params["sourcePath"], params["destinationPath"]
    if S_ISDIR(os.lstat(source).st_mode):
        if not params.get("recursive"):
            raise Refused("fs/copy requires recursive: true when sourcePath is a directory")
        if f"{os.path.realpath(target)}/".startswith(f"{os.path.realpath(source)}/"):
            raise Refused("fs/copy cannot copy a directory to itself or one of its descendants")
    _copy_one(source, target)


def _copy_one(source: str, target: str, inside: bool = False) -> None:
    """Copy a file with its mode, a symbolic link as a link, or a directory with its entries into the directory `target`."""
    mode = os.lstat(source).st_mode
    if S_ISDIR(mode):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(source):
            _copy_one(f"{source}/{name}", f"{target}/{name}", inside=True)
    elif S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
    elif S_ISREG(mode):
        with open(source, "rb") as old, open(target, "wb") as new:
            shutil.copyfileobj(old, new)
            os.fchmod(new.fileno(), S_IMODE(mode))
    elif not inside:
        raise Refused("fs/copy only supports regular files, directories, and symlinks")


METHODS: dict[str, Method] = {
    "fs/readFile": _on_files(_read_file),
    "fs/writeFile": _on_files(_write_file),
    "fs/createDirectory": _on_files(_create_directory),
    "fs/getMetadata": _on_files(_metadata),
    "fs/readDirectory": _on_files(_read_directory),
    "fs/remove": _on_files(_remove),
    "fs/copy": _on_files(_copy),
    "config/mcpServer/reload": mcp_reload,
    "mcpServerStatus/list": mcp_status,
    "command/exec": command,
    "execOneOffCommand": command,
    "gitDiffToRemote": git_diff,
    "skills/list": skills_list,
    "skills/config/write": skills_write,
    "mcpServer/oauth/login": mcp_login,
}


# -- versions after 0.92, in which a command can run on: it gets input, and its output is sent at once -----------------------

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


def later_command(session: Session, request: Any, params: dict[str, Any]) -> None:
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


_SIGNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def base64_error(text: str) -> str | None:
    """Return the real server's error for a text that is not valid base64, or None."""
    data = text.encode("utf-8", "replace")
    rest = len(data) % 4
    if rest == 1 and data[-1] not in _SIGNS + b"=":
        return f"Invalid symbol {data[-1]}, offset {len(data) - 1}."
    start = max(0, len(data) - (rest or 4))  # of the last group, which may have padding
    for offset, sign in enumerate(data):
        pads = offset >= start + 2 and not data[offset:].strip(b"=")
        if sign not in _SIGNS and not pads:
            return f"Invalid symbol {sign}, offset {offset}."
    end = len(data.rstrip(b"="))
    if data and end - start < 2:
        return f"Invalid input length: {end}"
    if rest:
        return "Invalid padding"
    unused = (0, 0, 15, 3)[(end - start) % 4]
    return f"Invalid last symbol {data[end - 1]}, offset {end - 1}." if data and _SIGNS.index(data[end - 1]) & unused else None


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


LATER: dict[str, Method] = {
    "thread/backgroundTerminals/list": terminals,
    "thread/backgroundTerminals/clean": clean,
    "thread/backgroundTerminals/terminate": end_terminal,
    "command/exec": later_command,
    "command/exec/write": write,
    "command/exec/resize": resize,
    "command/exec/terminate": terminate,
}
