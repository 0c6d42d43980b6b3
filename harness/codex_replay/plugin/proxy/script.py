"""Build the one script of all cases: the reply of the model to each case, by the marker in its prompt, and its latency."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from codex_replay.plugin.proxy.process import PROFILES, profile_in


def marker_of(nodeid: str) -> str:
    """Return the word by which the model recognises a case: letters and digits, the same in every run."""
    return f"case-{hashlib.sha256(nodeid.encode()).hexdigest()[:12]};"


def profile_of(item: pytest.Item, chosen: str) -> str:
    """Return the profile in which a case runs in a run with the profile `chosen`."""
    mark = item.get_closest_marker("proxy_profile")
    if mark is None:
        return PROFILES[1]
    return chosen if profile_in(chosen, mark.args) else str(mark.args[0])


def script_of(items: list[pytest.Item], chosen: str) -> dict[str, Any]:
    """Return one script for all cases: the items of `@pytest.mark.model`, by the marker of the case's prompt.

    The turn of a case with only one turn repeats, so that a proxy that makes two model calls for one request does not take the
    reply of the next request. The profile as-specified is an exception. There, one request leads to up to two model calls (its
    turn and its message), and the second call gets an empty reply. After a turn with a tool call, the model sends nothing more,
    because the next request of the client brings the output of the call. If a turn has its own `match`, the prompt must contain
    that text as well.
    """
    turns: list[dict[str, Any]] = []
    for item in items:
        mark = item.get_closest_marker("model")
        if mark is not None and "proxy" in getattr(item, "fixturenames", ()):
            marker = marker_of(item.nodeid)
            own = mark.kwargs.get("turns") or [{"items": list(mark.args)}]
            if len(own) == 1 and not _calls(own[0]) and profile_of(item, chosen) != PROFILES[0]:
                own = [{"times": "always", **own[0]}]
            turns += [{**turn, "match": {"prompt": [marker, turn["match"]]} if "match" in turn else marker} for turn in own]
            turns.append({"match": marker, "items": [], "times": "always"})
    turns.append({"items": ["Hello."], "times": "always"})
    return {"turns": turns}


def _calls(turn: Mapping[str, Any]) -> bool:
    """Return True if the model calls a tool in this turn."""
    return any(isinstance(item, dict) and str(item.get("type", "")).endswith("_call") for item in turn.get("items", ()))


def with_latency(script: Any, ms: float) -> dict[str, Any]:
    """Return a script whose answers begin after a delay in milliseconds, unless a turn has its own delay; `script` may be a list
    of turns.
    """
    whole = script if isinstance(script, dict) else {"turns": script}
    return {**whole, "defaults": {"first_delay_ms": ms, **whole.get("defaults", {})}}
