"""The methods whose answers depend on the computer of the real server: commands of 0.92, git, skills, MCP servers.

The fake runs no command. The script therefore contains the results of commands, searches and git (`answers`, `git`; see
docs/fake-codex.md). If the script has no result, each method has one documented default: the real server's answer on an empty
computer. Examples of defaults are a command without output, a search without results, and a directory that is not a
repository.
"""

from __future__ import annotations

from codex_fakes.scripted.methods.both import place
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import Settings, sandbox_v2
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
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


METHODS: dict[str, Method] = {
    "config/mcpServer/reload": mcp_reload,
    "mcpServerStatus/list": mcp_status,
    "command/exec": command,
    "execOneOffCommand": command,
    "gitDiffToRemote": git_diff,
    "skills/list": skills_list,
    "skills/config/write": skills_write,
    "mcpServer/oauth/login": mcp_login,
}
