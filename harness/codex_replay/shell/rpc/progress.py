"""How far a conversation came, for the message of a wait in vain: the last message of the server, and the state of the turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codex_replay.core.wire.jsonrpc import label

_STARTS = ("turn/started", "codex/event/task_started")
_ENDS = ("turn/completed", "codex/event/task_complete", "codex/event/turn_aborted")


def turn_state(messages: Iterable[Any]) -> str:
    """Return "no turn had started", "the turn had ended" or "the turn had not ended", by the messages of the server."""
    state = "no turn had started"
    for message in messages:
        method = message.get("method") if isinstance(message, dict) else None
        if method in _STARTS:
            state = "the turn had not ended"
        elif method in _ENDS:
            state = "the turn had ended"
    return state


def progress(messages: list[Any]) -> str:
    """Return the last message of the server and the state of the turn, as the end of a sentence."""
    if not messages:
        return "the server had sent nothing"
    return f"the last message of the server was {label(messages[-1])}, and {turn_state(messages)}"
