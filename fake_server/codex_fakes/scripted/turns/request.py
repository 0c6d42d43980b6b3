"""Build the body of a request to the model, in the form of the real binary, from a thread and the user's input."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread


def body_of(thread: Thread, settings: Settings, schema: Any, kind: str) -> dict[str, Any]:
    """Return the body of the real binary's next request, as far as the fake knows it.

    `kind` is "turn" or "review". The body lacks the real binary's base instructions, its texts about permissions and
    skills, and the schemas of its tools.
    """
    able, config = settings.abilities(), settings.config
    forced = config.get("model_supports_reasoning_summaries")
    reasons = forced if type(forced) is bool else able.get("reasons")
    reasoning = {
        "effort": settings.effort or _effort(settings, able),
        "summary": None if settings.summary == "none" else settings.summary or "auto",
    }
    body: dict[str, Any] = {
        "model": settings.model,
        "instructions": settings.base_instructions,
        "input": answered(thread.history),
        "tools": [*_tools(settings, kind), *map(_dynamic, thread.dynamic_tools)],
        "tool_choice": "auto",
        "parallel_tool_calls": bool(able.get("parallel")),
        "reasoning": {name: value for name, value in reasoning.items() if value} if reasons else None,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"] if reasons else [],
        "prompt_cache_key": thread.id,
    }
    verbosity = "verbosity" in able and (config.get("model_verbosity") or able["verbosity"])
    text: dict[str, Any] = {"verbosity": verbosity} if verbosity else {}
    if schema is not None:
        text["format"] = {"type": "json_schema", "strict": True, "schema": schema, "name": "codex_output_schema"}
    if (tier := settings.service_tier()) not in (None, "default"):
        body["service_tier"] = tier
    return {**body, "text": text} if text else body


def _effort(settings: Settings, able: dict[str, Any]) -> str | None:
    """Return the default reasoning effort of a model, for a thread without a chosen effort.

    Some models have a default reasoning effort of their own in the server's list of models.
    """
    features = settings.config.get("features")
    unread = able.get("listed") and isinstance(features, dict) and features.get("remote_models") is False
    return None if unread else able.get("effort")


def answered(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the history in which every call has an output and every output has a call.

    A call without an output (for example, in a reply that failed) gets the output "aborted". An output without a call is
    omitted.
    """
    calls = {(_CALLS[item["type"]], item.get("call_id")) for item in history if item["type"] in _CALLS}
    outputs = {item.get("call_id") for item in history if str(item.get("type")).endswith("_output")}
    whole: list[dict[str, Any]] = []
    for item in history:
        if item["type"] == "unsent" or (item["type"] in _OUTPUTS and (item["type"], item.get("call_id")) not in calls):
            continue
        whole.append(item)
        if item.get("type") in _CALLS and item.get("call_id") not in outputs:
            whole.append({"type": _CALLS[item["type"]], "call_id": item.get("call_id"), "output": "aborted"})
    return whole


def given(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history in a client's request in the form of the model's input. Items that the model never gets are omitted."""
    from codex_replay.protocol.turn.stream import HISTORY, history_item

    kept: list[dict[str, Any]] = []
    for item in items:
        if item["type"] in HISTORY and item["type"] != "message":
            kept.append(history_item(item))
        elif item["type"] in _GIVEN:
            kept.append({name: item[name] for name in ("type", *_GIVEN[item["type"]]) if name in item})
    return kept


#: The members of the other items that the model gets.
_GIVEN = {
    "message": ("role", "content"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call_output": ("call_id", "output"),
    "compaction": ("encrypted_content",),
}
_CALLS = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_OUTPUTS = frozenset(_CALLS.values())


def _tools(settings: Settings, kind: str) -> list[dict[str, Any]]:
    """Return the tools of the model in the order of the real binary, with their names and without their schemas."""
    able, config = settings.abilities(), settings.config
    shell = able.get("shell", "shell_command")
    features = config.get("features")
    shells = [{"type": "local_shell"}] if shell == "local_shell" else [{"type": "function", "name": shell}]
    if settings.feature("unified_exec"):
        shells = [{"type": "function", "name": name} for name in ("exec_command", "write_stdin")]
    if isinstance(features, dict) and features.get("shell_tool") is False:
        shells = []
    names = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource", "update_plan"]
    names += ["request_user_input"] if settings.feature("collaboration_modes") else []
    tools: list[dict[str, Any]] = [*shells, *({"type": "function", "name": name} for name in names)]
    if settings.has_patches():
        tools.append({"type": "custom", "name": "apply_patch"})
    if kind == "turn" and config.get("web_search") != "disabled":
        tools.append({"type": "web_search", "external_web_access": _live(settings)})
    tools.append({"type": "function", "name": "view_image"})
    agents = ("spawn_agent", "send_input", "wait", "close_agent") if settings.feature("collab") else ()
    return tools + [{"type": "function", "name": name} for name in agents]


def _live(settings: Settings) -> bool:
    tools = settings.config.get("tools")
    asked = isinstance(tools, dict) and tools.get("web_search") is True
    mode = settings.config.get("web_search")  # if it is given, the others do not count
    return bool(asked or settings.feature("web_search_request")) if mode is None else mode == "live"


def _dynamic(tool: dict[str, Any]) -> dict[str, Any]:
    name, about, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    return {"type": "function", "name": name, "description": about, "strict": False, "parameters": schema}


def message(role: str, kind: str, text: str) -> dict[str, Any]:
    """Return a message item of the model's input."""
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


#: Codex itself writes these texts as if the user had: at the beginning of any text, or of a message's only text; case is ignored.
_ANYWHERE = ("<environment_context>", "<turn_aborted>", "<user_shell_command>")
_ALONE = ("# AGENTS.md instructions for ", "<user_instructions>", "<skill")


def is_own(content: list[dict[str, Any]]) -> bool:
    """Return True if a message with the role user looks like a text of Codex itself.

    A text of Codex itself is not a prompt, and gives a thread no name.
    """
    texts = [part.get("text", "") for part in content]
    return any(text.lstrip().lower().startswith(_ANYWHERE) for text in texts) or (len(texts) == 1 and texts[0].startswith(_ALONE))


def is_prompt(item: dict[str, Any]) -> bool:
    """Return True if an item of the history is the user's input.

    A rollback removes an item of the user and all items after it.
    """
    content = item.get("content")
    return item.get("role") == "user" and not (type(content) is list and is_own(content))
