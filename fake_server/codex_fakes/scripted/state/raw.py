"""Raw items: the input and output of the model, item by item, for a listener that requests them (`experimentalRawEvents`).

Raw items are the items of the history, with additional members that the real server omits in its requests to the model. The
texts at the beginning of a thread (permissions, instructions, environment) are in opening.json. opening.json is read only if a
new thread has, or may later get, a listener for raw items. The order and the texts of raw items are those of the real binary
(recordings, and "raw items" of the differential test).
"""

from __future__ import annotations

from posix import environ
from time import time

from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.state.settings import Settings

    Item = dict[str, Any]

#: The id of the turn of the opening items, which is not a turn of the client.
OPENING = "auto-compact-0"


def _texts(settings: Settings) -> dict[str, Any]:
    texts: dict[str, Any] = load("opening", settings.version)
    return texts


# -- the input of the model ---------------------------------------------------------------------------------------------


def opening(settings: Settings) -> list[Item]:
    """Return the model's input before a thread's first turn: the permissions, the developer's instructions, the user's
    instructions, the environment.

    The user's instructions contain only the skills that Codex installs in every home directory, because the fake reads no
    file.
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
    """Return the texts that report changed settings to the model.

    `told` are the settings that the model knows (see `Settings.model_view`).
    """
    cwd, *rights = told
    new_cwd, *new_rights = settings.model_view()
    items = [_environment(settings)] if cwd != new_cwd else []
    return items if rights == new_rights else [*items, _permissions(settings)]


def review_told(text: str, interrupted: bool, later: bool) -> Item:
    """Return the input that reports a review to the model of the reviewed thread. `text` is the result of the review.

    Versions after 0.92 have the texts of 0.92; that of a complete review has one line end less.
    """
    report = fill(load("opening")["reviews"]["interrupted" if interrupted else "done"], {"text": text})
    return _message("user", report[:-1] if later and not interrupted else report)


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


# -- an item in its raw form ------------------------------------------------------------------------------------------------


def raw(item: Item) -> Item:
    """Return the raw item for an item of the history."""
    if item["type"] == "reasoning":
        content = item.get("content")
        report = {"type": "reasoning", "summary": item["summary"], "content": content}
        if content is not None and all(part.get("type") != "reasoning_text" for part in content):
            del report["content"]
        return {**report, "encrypted_content": item.get("encrypted_content")}
    if item["type"] == "local_shell_call":
        given = item["action"]
        names = ("command", "timeout_ms", "working_directory", "env", "user")
        action = {"type": given["type"], **{name: given.get(name) for name in names}}
        return {"type": item["type"], "call_id": item.get("call_id"), "status": item.get("status"), "action": action}
    return item


#: What a later version puts before the uuid that it gives to an item.
_PREFIXES = {"message": "msg_", "function_call_output": "fco_", "custom_tool_call_output": "ctco_"}
_MADE = ("function_call_output", "custom_tool_call_output")
#: The order in which a later version writes the members of an item of the model.
_ORDER = {
    "message": ("type", "status", "id", "role", "content"),
    "reasoning": ("type", "id", "summary", "content", "encrypted_content"),
    "web_search_call": ("type", "id", "status", "action"),
    "function_call": ("type", "status", "id", "name", "arguments", "call_id"),
    "custom_tool_call": ("type", "id", "status", "call_id", "name", "input"),
}
_PASSED_ON = "internal_chat_message_metadata_passthrough"


#: How the note about an interrupt begins, which Codex itself writes in place of the user.
_ABORTED = "<turn_aborted>\n"


def later_raw(item: Item, turn: str, new_id: Callable[[], str]) -> Item:
    """Return the raw item for an item in Codex versions after 0.92.

    Each raw item has an id, its turn, and its author. The raw item of the user or of a tool also has the time.
    """
    if item["type"] in _MADE or item.get("role") == "user":
        passed: Item = {"turn_id": turn, "create_time": time()}
        if item["type"] == "message":
            parts = item["content"]
            passed["content_item_kinds"] = ["user.image" if part["type"] == "input_image" else "user.text" for part in parts]
            author: Item = {"type": "user"}
            if parts and parts[0].get("text", "").startswith(_ABORTED):
                passed["content_item_kinds"], author = ["generic.turn_aborted"], {"type": "harness", "hook": False}
            passed["content_item_metadata"] = [{"provenance": author} for _ in parts]
        return {"type": item["type"], "id": _PREFIXES[item["type"]] + new_id(), **item, _PASSED_ON: passed}
    passed = {"turn_id": turn}
    if item["type"] == "message":
        passed["content_item_kinds"] = ["unknown"] * len(item["content"])
    if item["type"] == "reasoning":
        item = {"content": None, "encrypted_content": None, **item}
    names = _ORDER.get(item["type"], ("type", "id"))
    return {**{name: item[name] for name in names if name in item}, **item, _PASSED_ON: passed}


def response_values(response: Item, usage: dict[str, int] | None, names: dict[str, str]) -> Item:
    """Return the values of the event "raw-response": the id of a response, its token usage in the form of Codex, and its token
    usage as received.
    """
    counted = None if usage is None else {name: usage.get(count, 0) for name, count in names.items()}
    given = response.get("usage")
    metadata = None if given is None else {"amount": None, "metadata": _sorted(given)}
    return {"responseId": response["id"], "usage": counted, "usageMetadata": metadata}


def _sorted(value: Any) -> Any:
    return {key: _sorted(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def structured(output: str, exit_code: int, milliseconds: int) -> str:
    """Return the output of a command in the JSON form that the real server stores.

    Only the tool shell_command has its output as plain text.
    """
    seconds = float(round(milliseconds / 1000, 1))
    return dumps({"output": output, "metadata": {"exit_code": exit_code, "duration_seconds": seconds}}).decode()
