"""Describe the progress of a conversation for a timeout message: the last message of the server, and the state of the turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codex_replay.core.wire.jsonrpc import label

_STARTS = ("turn/started", "codex/event/task_started")
_ENDS = ("turn/completed", "codex/event/task_complete", "codex/event/turn_aborted")


def turn_state(messages: Iterable[Any]) -> str:
    """Return "no turn had started", "the turn had ended" or "the turn had not ended", from the messages of the server."""
    state = "no turn had started"
    for message in messages:
        method = message.get("method") if isinstance(message, dict) else None
        if method in _STARTS:
            state = "the turn had not ended"
        elif method in _ENDS:
            state = "the turn had ended"
    return state


def progress(messages: list[Any]) -> str:
    """Return the last message of the server and the state of the turn, as the beginning of a sentence."""
    if not messages:
        return "The server sent no message"
    return f"The last message of the server was {label(messages[-1])}, and {turn_state(messages)}"


def timed_out(messages: list[Any], awaited: str, seconds: float) -> str:
    """Return the error message of a timeout: first the progress of the turn, then the `awaited` message and the time limit in
    seconds.
    """
    return f"{progress(messages)}: {awaited[:1].lower()}{awaited[1:]} did not come within {seconds:g} s"
