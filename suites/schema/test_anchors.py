"""The schema fields that the hand-off document of the proxy names, and whether the 0.92 schemas have them.

Source: docs/contract/handoff.md, "Schema anchors (app-server 0.92)" and "Schema version mismatch". The document describes
an older protocol; the name of each case states the fact about the 0.92 schemas.
"""

from __future__ import annotations

import pytest

from codex_replay.plugin.schema.fixtures import BundleFiles

FILES = {
    "newConversation": "v1/NewConversationParams.json",
    "sendUserTurn": "v1/SendUserTurnParams.json",
    "sendUserMessage": "v1/SendUserMessageParams.json",
    "thread/start": "v2/ThreadStartParams.json",
    "turn/start": "v2/TurnStartParams.json",
}

IN_0_92 = [
    ("newConversation", "developerInstructions"),
    ("newConversation", "baseInstructions"),
    ("newConversation", "config"),
    ("sendUserTurn", "items"),
    ("sendUserMessage", "items"),
    ("thread/start", "dynamicTools"),
    ("thread/start", "developerInstructions"),
    ("thread/start", "baseInstructions"),
    ("sendUserTurn", "outputSchema"),
    ("turn/start", "outputSchema"),
]
ABSENT = [
    ("newConversation", "dynamicTools"),
    ("sendUserTurn", "responseFormat"),
    ("sendUserTurn", "finalOutputJsonSchema"),
    ("sendUserMessage", "responseFormat"),
    ("sendUserMessage", "finalOutputJsonSchema"),
    ("sendUserMessage", "outputSchema"),
]


def properties(bundle_files: BundleFiles, method: str) -> set[str]:
    """Return the property names of the params of `method`."""
    return set(bundle_files.json(FILES[method])["properties"])


@pytest.mark.parametrize(("method", "field"), IN_0_92)
def test_anchor_is_in_0_92(bundle_files: BundleFiles, method: str, field: str) -> None:
    """The field is a property of the method's params. (HAND-31)"""
    assert field in properties(bundle_files, method)


@pytest.mark.parametrize(("method", "field"), ABSENT)
def test_anchor_is_not_in_0_92(bundle_files: BundleFiles, method: str, field: str) -> None:
    """A field that the document seems to name for a method is not in the 0.92 schemas.

    Source: HAND-32, HAND-42.
    """
    assert field not in properties(bundle_files, method)
