"""How the client handles web searches, which the backend runs itself. Source: docs/contract/lite.md, "Web search events"."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.lite_client.fixture import LiteClient
from suites.lite_client.expected import call, outputs
from suites.lite_protocol import FUNCTION_TOOL, WEB_SEARCH_TOOL

SEARCH: dict[str, Any] = {"type": "web_search_call", "query": "weather in Oslo"}
TOOLS: dict[str, Any] = {"tools": [WEB_SEARCH_TOOL, FUNCTION_TOOL], "results": [{"name": "add", "output": "5"}]}
ACTIONS: list[dict[str, Any]] = [
    {"type": "search", "query": "weather in Oslo"},
    {"type": "open_page", "url": "https://example.com/"},
    {"type": "find_in_page", "url": "https://example.com/", "pattern": "rain"},
]


@pytest.mark.parametrize("action", ACTIONS, ids=[str(action["type"]) for action in ACTIONS])
@pytest.mark.spec("search-events", "LITE-61", "LITE-62")
def test_a_search_and_a_text(lite_client: LiteClient, action: dict[str, Any]) -> None:
    """After a web search, the client prints the model's text and sends no output for the search."""
    run = lite_client(script=[{"items": [{"type": "web_search_call", "action": action}, "It rains."]}], tools=TOOLS)
    assert run.text() == "It rains."
    assert len(run.requests) == 1


@pytest.mark.spec("search-no-output", "LITE-60")
def test_a_search_is_not_a_call_of_ours(lite_client: LiteClient) -> None:
    """If a response has a search and a function call, the client sends an output for the function call only."""
    run = lite_client(script=[{"items": [SEARCH, call()]}, {"items": [SEARCH, "It rains 5 mm."]}], tools=TOOLS)
    assert run.text() == "It rains 5 mm."
    assert outputs(run.turns[1]) == {"call_1": "5"}
    kinds = [item.get("type") for item in run.turns[1].body["input"]]
    assert [kind for kind in kinds if str(kind).endswith("_output")] == ["function_call_output"]


@pytest.mark.spec("search-failed", "LITE-62")
def test_a_search_that_fails_is_no_failure(lite_client: LiteClient) -> None:
    """After a failed web search, the client still prints the model's text."""
    run = lite_client(script=[{"items": [{**SEARCH, "status": "failed"}, "I do not know."]}], tools=TOOLS)
    assert run.text() == "I do not know."
