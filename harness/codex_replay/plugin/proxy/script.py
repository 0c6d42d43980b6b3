"""Build one script with the model's replies for all cases.

The prompt of each case contains a unique word, which selects the reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from codex_replay.plugin.proxy.process import PROFILES, profile_in

#: The tokens of a reply that does not count.
NOTHING = {"input_tokens": 0, "output_tokens": 0}


def marker_of(nodeid: str) -> str:
    """Return the unique word by which the scripted model recognises a case.

    The word consists of letters and digits, and is the same in every run.
    """
    return f"case-{hashlib.sha256(nodeid.encode()).hexdigest()[:12]};"


def profile_of(item: pytest.Item, chosen: str) -> str:
    """Return the profile that a case uses, in a run with the profile `chosen`."""
    mark = item.get_closest_marker("proxy_profile")
    if mark is None:
        return PROFILES[1]
    return chosen if profile_in(chosen, mark.args) else str(mark.args[0])


def script_of(items: list[pytest.Item], chosen: str) -> dict[str, Any]:
    """Return one script with the replies of the model for all cases.

    The unique word in the prompt of a case selects the replies that its `@pytest.mark.model` sets.

    If a case has only one reply, the model repeats it, because a proxy may call the model several times for one case. In the
    profile as-specified, one request causes up to two calls of the model (sendUserTurn and sendUserMessage), and only the first
    call gets the reply. After a reply with a tool call, the model sends only empty replies, because the client sends the output
    of the tool in its next request. If a reply has its own `match`, the prompt must also contain the text of `match`.
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
            turns.append({"match": marker, "items": [], "usage": NOTHING, "times": "always"})
    turns.append({"items": ["Hello."], "times": "always"})
    return {"turns": turns}


def _calls(turn: Mapping[str, Any]) -> bool:
    """Return True if the reply `turn` of the model calls a tool."""
    return any(isinstance(item, dict) and str(item.get("type", "")).endswith("_call") for item in turn.get("items", ()))


def for_proxies(script: Any, ms: float) -> dict[str, Any]:
    """Return the script with a default delay of `ms` milliseconds before each answer; a turn may have its own delay.

    `script` may also be a list of turns. The model answers the same message of a conversation only once; each further reply
    to the message is empty and costs no tokens. If a proxy submits a prompt twice, chance decides whether the app-server makes
    one or two model calls for the prompt, and the answer must not depend on chance.
    """
    whole = script if isinstance(script, dict) else {"turns": script}
    one_is_left = sum("match" not in turn for turn in whole.get("turns", ())) == 1  # a match would change the order of several
    turns = [_first_reply(turn) if "match" in turn or one_is_left else turn for turn in whole.get("turns", ())]
    turns.append({"items": [], "usage": NOTHING, "times": "always"})
    return {**whole, "turns": turns, "defaults": {"first_delay_ms": ms, **whole.get("defaults", {})}}


def _first_reply(turn: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a turn that repeats ("times": "always") for the first reply to a message only; return any other turn as it is."""
    if turn.get("times") != "always" or not turn.get("items"):
        return turn
    match = turn.get("match", {})
    return {**turn, "match": {"repeated": False, **({"prompt": match} if isinstance(match, str | list) else match)}}


def silence(node: pytest.Item) -> float:
    """Return the number of seconds in which the model of a case sends nothing, before its first word and between its items.

    The time limit for the proxy's answer is longer by the silence of the model.
    """
    marker = node.get_closest_marker("model")
    turns = marker.kwargs.get("turns", ()) if marker is not None else ()
    scripted = [turn for turn in turns if isinstance(turn, dict)]
    pauses = [float(item["ms"]) for turn in scripted for item in turn.get("items", ()) if "ms" in item]
    return (sum(float(turn.get("first_delay_ms", 0)) for turn in scripted) + sum(pauses)) / 1000
