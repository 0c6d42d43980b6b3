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
