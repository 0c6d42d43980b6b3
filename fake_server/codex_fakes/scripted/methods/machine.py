"""The methods whose answer lies in the machine that the real server runs on: commands, files, git, skills, MCP servers.

The fake runs no command and reads no file, so the script has their results (`answers`, `git`; docs/fake-codex.md). Without
an entry in the script each has one documented default, which is the real server's answer if there is nothing: a command
that prints nothing, a search that finds nothing, a directory that is not a repository.
"""

from __future__ import annotations

from codex_fakes.scripted.state.refused import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session

INTERNAL = -32603


def command(session: Session, request: Any, params: dict[str, Any]) -> None:
    """command/exec and execOneOffCommand: nothing runs; the command succeeds without output unless the script has another
    result."""
    if not params["command"]:
        raise Refused("command must not be empty")
    session.answer(request, {"exitCode": 0, "stdout": "", "stderr": ""})


def git_diff(session: Session, request: Any, params: dict[str, Any]) -> None:
    """gitDiffToRemote: the fake does not run git, so there is no repository unless the script has one."""
    from codex_replay.core.wire.json_text import dumps

    raise Refused(f"failed to compute git diff to remote for cwd: {dumps(params['cwd']).decode()}")


def skills_list(session: Session, request: Any, params: dict[str, Any]) -> None:
    """skills/list: an entry for each directory, without skills."""
    cwds = params.get("cwds") or [session.cwd]
    session.answer(request, {"data": [{"cwd": cwd, "skills": [], "errors": []} for cwd in cwds]})


def skills_write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """skills/config/write: keep the setting in memory."""
    session.skills[params["path"]] = params["enabled"]
    session.answer(request, {"effectiveEnabled": params["enabled"]})


def mcp_login(session: Session, request: Any, params: dict[str, Any]) -> None:
    """mcpServer/oauth/login: no server is started; servers that do not support it are refused as in the real one."""
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


METHODS: dict[str, Method] = {
    "command/exec": command,
    "execOneOffCommand": command,
    "gitDiffToRemote": git_diff,
    "skills/list": skills_list,
    "skills/config/write": skills_write,
    "mcpServer/oauth/login": mcp_login,
}
