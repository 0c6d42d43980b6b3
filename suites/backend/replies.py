"""The replies that the cases about the stream ask for."""

from __future__ import annotations

from typing import Any

from codex_replay.plugin.backend.conversation import Answer, Backend
from suites.backend.expected import CALL_ADD, SEARCH, body, completed, user
from suites.lite_protocol import FUNCTION_TOOL, WEB_SEARCH_TOOL

#: Replies that do not come to a good end.
BROKEN: dict[str, list[Any]] = {
    "failed": ["half", {"type": "failed", "code": "server_error"}],
    "incomplete": ["half", {"type": "incomplete", "reason": "max_output_tokens"}],
}
#: One reply of each kind, for cases that need a fake with a script.
KINDS: dict[str, list[Any]] = {
    "text": ["Hello é✓ there, all of you."],
    "empty text": [""],
    "refusal": [{"type": "refusal", "refusal": "I will not."}],
    "function call": [{"type": "function_call", "name": "add", "arguments": {"a": 2, "b": 3}}],
    "parallel calls": [{"type": "function_call", "name": "add", "arguments": {"a": i}} for i in range(3)],
    "custom tool call": [{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch\n"}],
    "web search": [{"type": "web_search_call", "query": "cats"}, "Found."],
    "reasoning": [{"type": "reasoning", "summary": ["One", "Two"], "content": "raw", "encrypted_content": "x"}, "ok"],
    "nothing": [],
}


def greeted(backend: Backend) -> Answer:
    """Request a greeting and return the response."""
    return completed(backend.ask(body()))


def called(backend: Backend) -> Answer:
    """Request a call of `add` and return the response."""
    return completed(backend.ask(body(user(CALL_ADD), tools=[FUNCTION_TOOL])))


def searched(backend: Backend) -> Answer:
    """Request a web search and return the response."""
    return completed(backend.ask(body(user(SEARCH), tools=[WEB_SEARCH_TOOL])))


def kinds(answer: Answer) -> list[str]:
    """Return the types of all events, in order."""
    return [str(event.get("type")) for event in answer.events]
