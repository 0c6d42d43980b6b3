"""Web search, which the backend does itself. Source: codex-lite-protocol.md, "Web search events"."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.lite_client import LiteClient
from suites.lite_client.expected import FUNCTION_TOOL, SPEC, WEB_SEARCH_TOOL, call, outputs

EVENTS = f"{SPEC}, Web search events"
SEARCH: dict[str, Any] = {"type": "web_search_call", "query": "weather in Oslo"}
TOOLS: dict[str, Any] = {"tools": [WEB_SEARCH_TOOL, FUNCTION_TOOL], "results": [{"name": "add", "output": "5"}]}
ACTIONS: list[dict[str, Any]] = [
    {"type": "search", "query": "weather in Oslo"},
    {"type": "open_page", "url": "https://example.com/"},
    {"type": "find_in_page", "url": "https://example.com/", "pattern": "rain"},
]


@pytest.mark.parametrize("action", ACTIONS, ids=[str(action["type"]) for action in ACTIONS])
@pytest.mark.spec(
    "search-events", EVENTS, "`response.web_search_call.in_progress/searching/completed`, `response.output_item.done` with action"
)
def test_a_search_and_a_text(lite_client: LiteClient, action: dict[str, Any]) -> None:
    """The search goes by, and the text behind it is the answer; nothing is sent back for it."""
    run = lite_client(script=[{"items": [{"type": "web_search_call", "action": action}, "It rains."]}], tools=TOOLS)
    assert run.text() == "It rains."
    assert len(run.requests) == 1


@pytest.mark.spec("search-no-output", EVENTS, "`response.output_item.added` with `type: web_search_call`")
def test_a_search_is_not_a_call_of_ours(lite_client: LiteClient) -> None:
    """Beside a function call, only the function call is answered."""
    run = lite_client(script=[{"items": [SEARCH, call()]}, {"items": [SEARCH, "It rains 5 mm."]}], tools=TOOLS)
    assert run.text() == "It rains 5 mm."
    assert outputs(run.turns[1]) == {"call_1": "5"}
    kinds = [item.get("type") for item in run.turns[1].body["input"]]
    assert [kind for kind in kinds if str(kind).endswith("_output")] == ["function_call_output"]


@pytest.mark.spec("search-failed", EVENTS, "`response.output_item.done` with action")
def test_a_search_that_fails_is_no_failure(lite_client: LiteClient) -> None:
    """The model goes on without it, and so does the client."""
    run = lite_client(script=[{"items": [{**SEARCH, "status": "failed"}, "I do not know."]}], tools=TOOLS)
    assert run.text() == "I do not know."
