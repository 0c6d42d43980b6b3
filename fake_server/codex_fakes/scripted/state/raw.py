"""Raw items: what the model is given and what it says, item by item, for a listener that asks for them (`experimentalRawEvents`).

The items are those of the history, with the members that the real server writes here and not in its requests. What the model is
told of its surroundings is text, and stands as data in opening.json; it is read when the first thread begins whose raw items
somebody hears, or may yet hear. Order and words come from the real binary (recordings; the differential test's "raw items").
"""

from __future__ import annotations

from posix import environ

from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.state.settings import Settings

    Item = dict[str, Any]

#: The id of the turn that the opening items are told in: no turn of the client's.
OPENING = "auto-compact-0"


def _texts(settings: Settings) -> dict[str, Any]:
    texts: dict[str, Any] = load("opening", settings.version)
    return texts


# -- what the model is told ---------------------------------------------------------------------------------------------


def opening(settings: Settings) -> list[Item]:
    """Return what the model is told before a thread's first turn: permissions, the developer's and the user's words, the place.

    Of the user's words the fake knows but the skills that Codex itself puts into every home: it reads no file.
    """
    developer = settings.developer_instructions
    words = [_message("developer", developer)] if developer else []
    values = {"cwd": settings.cwd, "home": settings.home}
    return [
        _permissions(settings),
        *words,
        _message("user", fill(_texts(settings)["instructions"], values)),
        _environment(settings),
    ]


def changes(told: Any, settings: Settings) -> list[Item]:
    """Return what the model is told of settings that are others than those it was told of (`Settings.told`)."""
    cwd, *rights = told
    new_cwd, *new_rights = settings.told()
    items = [_environment(settings)] if cwd != new_cwd else []
    return items if rights == new_rights else [*items, _permissions(settings)]


def review_told(settings: Settings, text: str, interrupted: bool) -> Item:
    """Return what the model of a reviewed thread is told of the review, of which `text` is the outcome."""
    return _message("user", fill(_texts(settings)["reviews"]["interrupted" if interrupted else "done"], {"text": text}))


def _environment(settings: Settings) -> Item:
    return _message("user", fill(_texts(settings)["environment"], {"cwd": settings.cwd}))


def _permissions(settings: Settings) -> Item:
    texts, sandbox = _texts(settings), settings.sandbox
    sort, network = sandbox["type"], sandbox.get("networkAccess")
    enabled = sort == "dangerFullAccess" or network in (True, "enabled")
    roots = ""
    if sort == "workspaceWrite":
        paths = _roots(settings)
        roots = fill(texts["root" if len(paths) == 1 else "roots"], {"roots": ", ".join(f"`{path}`" for path in paths)})
    values = {
        "sandbox": texts["sandboxes"].get(sort, ""),
        "network": "enabled" if enabled else "restricted",
        "policy": texts["policies"].get(settings.policy, ""),
        "roots": roots,
    }
    return _message("developer", fill(texts["permissions"], values))


def _roots(settings: Settings) -> list[str]:
    sandbox = settings.sandbox
    paths = [*sandbox["writableRoots"], settings.cwd, *(() if sandbox["excludeSlashTmp"] else ("/tmp",))]
    temporary = environ.get(b"TMPDIR", b"").decode("utf-8", "replace")
    if temporary and not sandbox["excludeTmpdirEnvVar"]:
        paths.append(temporary)
    return paths


def _message(role: str, text: str) -> Item:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


# -- an item as it is told ------------------------------------------------------------------------------------------------


def raw(item: Item) -> Item:
    """Return an item of the history as a raw item."""
    if item["type"] == "reasoning":
        content = item.get("content")
        told = {"type": "reasoning", "summary": item["summary"], "content": content}
        if content is not None and all(part.get("type") != "reasoning_text" for part in content):
            del told["content"]
        return {**told, "encrypted_content": item.get("encrypted_content")}
    if item["type"] == "local_shell_call":
        given = item["action"]
        names = ("command", "timeout_ms", "working_directory", "env", "user")
        action = {"type": given["type"], **{name: given.get(name) for name in names}}
        return {"type": item["type"], "call_id": item.get("call_id"), "status": item.get("status"), "action": action}
    return item


def structured(output: str, exit_code: int, milliseconds: int) -> str:
    """Return what a command printed as the real server keeps it for all calls but shell_command's, whose output is plain text."""
    seconds = float(round(milliseconds / 1000, 1))
    return dumps({"output": output, "metadata": {"exit_code": exit_code, "duration_seconds": seconds}}).decode()
