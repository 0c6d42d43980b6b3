"""A request to the model: its body, as the real binary would send it, from a thread and the user's input."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread


def body_of(thread: Thread, settings: Settings, schema: Any, kind: str) -> dict[str, Any]:
    """Return the body of the real binary's next request, as far as it can be derived; `kind` is "turn" or "review".

    Left out: the base instructions of the binary itself, its permission and skill texts, and the schemas of its tools.
    """
    known = settings.window() is not None
    summary = None if settings.summary == "none" else settings.summary or "auto"
    tools = _TOOLS if kind == "turn" else [tool for tool in _TOOLS if tool["type"] != "web_search"]
    body: dict[str, Any] = {
        "model": settings.model,
        "instructions": settings.base_instructions,
        "input": answered(thread.history),
        "tools": [*tools, *map(_dynamic, thread.dynamic_tools)],
        "tool_choice": "auto",
        "parallel_tool_calls": known,
        "reasoning": {"effort": settings.effort or "medium", "summary": summary} if known else None,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"] if known else [],
        "prompt_cache_key": thread.id,
    }
    text: dict[str, Any] = {"verbosity": "low"} if settings.model == "gpt-5.2" else {}
    if schema is not None:
        text["format"] = {"type": "json_schema", "strict": True, "schema": schema, "name": "codex_output_schema"}
    return {**body, "text": text} if text else body


def answered(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the history in which a call without an output, such as one of a reply that failed, has the output "aborted"."""
    outputs = {item.get("call_id") for item in history if str(item.get("type")).endswith("_output")}
    whole: list[dict[str, Any]] = []
    for item in history:
        whole.append(item)
        if item.get("type") in _CALLS and item.get("call_id") not in outputs:
            whole.append({"type": _CALLS[item["type"]], "call_id": item.get("call_id"), "output": "aborted"})
    return whole


_CALLS = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "shell_command"},
    {"type": "function", "name": "list_mcp_resources"},
    {"type": "function", "name": "list_mcp_resource_templates"},
    {"type": "function", "name": "read_mcp_resource"},
    {"type": "function", "name": "update_plan"},
    {"type": "custom", "name": "apply_patch"},
    {"type": "web_search", "external_web_access": False},
    {"type": "function", "name": "view_image"},
]


def _dynamic(tool: dict[str, Any]) -> dict[str, Any]:
    name, about, schema = tool.get("name"), tool.get("description"), tool.get("inputSchema")
    return {"type": "function", "name": name, "description": about, "strict": False, "parameters": schema}


def message(role: str, kind: str, text: str) -> dict[str, Any]:
    """Return a message of the model's input."""
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


_NO_PROMPTS = ("<environment_context>", "<turn_aborted>", "# AGENTS.md instructions")


def is_prompt(item: dict[str, Any]) -> bool:
    """Return True if an item of the history is the user's input, which begins what a rollback takes back."""
    content = item.get("content")
    first = content[0] if item.get("role") == "user" and type(content) is list and content else {}
    return item.get("role") == "user" and not str(first.get("text", "")).startswith(_NO_PROMPTS)
