"""Leave changes out of a drift that a client does not read or ignores: by their names, or by recordings of the client."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.drift.findings import COUNTED, Drift, DriftFinding
from codex_replay.protocol.drift.rules import IDS
from codex_replay.protocol.schema.bundle import Bundle

#: The v1 events, and the request without which a client does not get them for itself.
V1_EVENTS, V1_LISTENS = "codex/event/", "addConversationListener"


class BadPattern(ValueError):
    """A pattern is neither the name of a rule nor a method with `*` and `?` in it; the text is a sentence."""


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return True if one of the patterns matches the name; `*` matches any text, `?` one character."""
    return any(re.fullmatch("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in each), name) for each in patterns)


def without_ignored(drift: Drift, patterns: Sequence[str]) -> Drift:
    """Return the drift without the findings whose rule, or each of whose methods, matches a pattern.

    Raises `BadPattern` for one that matches nothing that the drift has, unless it is the name of a rule.
    """
    names = {place.method for finding in drift.findings for place in finding.places}
    for pattern in patterns:
        if pattern not in IDS and not any(matches(name, [pattern]) for name in names):
            raise BadPattern(f"--ignore {pattern}: no change has this rule or is in this method. The rules are {', '.join(IDS)}.")
    return _keep(
        drift,
        lambda finding: (
            not (matches(finding.rule.id, patterns) or all(matches(place.method, patterns) for place in finding.places))
        ),
    )


def only_read(drift: Drift, read: Sequence[str]) -> Drift:
    """Return the drift without the server's messages whose method matches none of `read`; the client's messages stay."""
    return _keep(
        drift,
        lambda finding: finding.rule.sender == "client" or any(matches(place.method, read) for place in finding.places),
    )


def methods_of(bundles: Iterable[Bundle]) -> set[str]:
    """Return all methods of the bundles, in each direction, and their v1 events as `codex/event/NAME`."""
    found: set[str] = set()
    for bundle in bundles:
        found.update(*(bundle.methods(direction) for direction in COUNTED), (V1_EVENTS + name for name in bundle.events()))
    return found


def near_misses(read: Iterable[str], methods: set[str]) -> list[tuple[str, str]]:
    """Return the patterns that match no method, each with the method most like it, or an empty text."""
    missing = [name for name in read if not any(matches(method, [name]) for method in methods)]
    return [(name, next(iter(difflib.get_close_matches(name, sorted(methods), 1)), "")) for name in missing]


def read_in(messages: Iterable[tuple[str, Any]]) -> set[str]:
    """Return the methods that the client of a recording reads, by (sender, message).

    These are the requests that it sent (their replies), and all that the server sent; v1 events only if it asked for them.
    """
    sent: set[str] = set()
    got: set[str] = set()
    for sender, message in messages:
        if kind(message) in ("request", "notification") and isinstance(message["method"], str):
            (sent if sender == "client" else got).add(message["method"])
    listens = V1_LISTENS in sent
    return sent | {method for method in got if listens or not method.startswith(V1_EVENTS)}


def _keep(drift: Drift, wanted: Any) -> Drift:
    found: list[DriftFinding] = [finding for finding in drift.findings if wanted(finding)]
    return drift._replace(findings=tuple(found))
