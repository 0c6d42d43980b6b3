"""JSON examples of docs/contract/lite.md (LITE-05, LITE-31 to LITE-47) for the suites backend and lite_client."""

from __future__ import annotations

from typing import Any

#: The exact example of "Tool Specs".
FUNCTION_TOOL: dict[str, Any] = {
    "type": "function",
    "name": "add",
    "description": "Add two numbers",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}
WEB_SEARCH_TOOL: dict[str, Any] = {"type": "web_search", "external_web_access": True}
CUSTOM_TOOL: dict[str, Any] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "...",
    "format": {"type": "text", "syntax": "diff", "definition": "..."},
}

#: "Request Body": the fields that have a fixed value.
FIXED: dict[str, Any] = {
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
}
