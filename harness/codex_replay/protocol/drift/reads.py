"""Remove changes from a drift: changes that the user names, and changes in parts that a client does not send or read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.drift.findings import COUNTED, Drift, DriftFinding, Place
from codex_replay.protocol.drift.rules import IDS
from codex_replay.protocol.schema.bundle import Bundle

#: The v1 events, and the request without which a client does not get them for itself.
V1_EVENTS, V1_LISTENS = "codex/event/", "addConversationListener"


class BadPattern(ValueError):
    """A pattern matches no rule and no method; the text of the exception is a sentence."""


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return True if one of the patterns matches the name; `*` matches any text, `?` one character."""
    return any(re.fullmatch("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in each), name) for each in patterns)


def without_ignored(drift: Drift, patterns: Sequence[str]) -> Drift:
    """Return the drift without the findings that the user ignores.

    A finding is ignored if a pattern matches its rule, or if patterns match all of its methods.

    Raises `BadPattern` for a pattern that matches nothing in the drift and is not the name of a rule.
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


def only_used(drift: Drift, sender: str, used: Sequence[str]) -> Drift:
    """Return the drift without the changes in messages of `sender` ("client" or "server") that the client does not use.

    The client uses its own messages by sending them, and the server's messages by reading them. The function does not
    remove changes in messages of the other side.

    A line of `used` is a method, or a method and paths of the fields that the client uses ("thread/start $.result.thread.id").
    A change matches a path if it concerns the field, a part of the field, or an object that contains the field.
    """
    lines = [(method, [_steps(path) for path in paths]) for method, *paths in map(str.split, used)]

    def wanted(place: Place) -> bool:
        at = _steps(place.shown)
        return any(
            matches(place.method, [method]) and (not paths or any(_on_one_line(at, path) for path in paths))
            for method, paths in lines
        )

    return _keep(drift, lambda finding: finding.rule.sender != sender or any(map(wanted, finding.places)))


def _steps(path: str) -> list[str]:
    """Return the steps of a readable path, without the names of union variants, because users omit these names."""
    return re.findall(r"\[\*\]|[^.\[\]]+", re.sub(r"\([^()]*\)", "", path))


def _on_one_line(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if one path begins with the other path. A step `*` matches any step."""
    return all(a == b or "*" in (a, b) for a, b in zip(one, other, strict=False))


def misspelt(used: Iterable[str], bundles: Iterable[Bundle]) -> list[str]:
    """Return each invalid path of `used`: it does not begin with $.params or $.result, or has a field that no bundle has."""
    names: set[str] = set()
    for bundle in bundles:
        _collect(bundle.primary, names)
    found = []
    for line in used:
        for path in line.split()[1:]:
            first, *rest = [*_steps(path), ""]
            known = all(step in names or step in ("", "*", "[*]") for step in rest[1:])
            if first != "$" or rest[0] not in ("params", "result") or not known:
                found.append(path)
    return found


def _collect(node: Any, names: set[str]) -> None:
    """Add the names of all properties in a schema to a set."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            names.update(node["properties"])
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            _collect(each, names)


def methods_of(bundles: Iterable[Bundle]) -> set[str]:
    """Return all methods in the bundles, of clients and of servers, and the v1 events as `codex/event/NAME`."""
    found: set[str] = set()
    for bundle in bundles:
        found.update(*(bundle.methods(direction) for direction in COUNTED), (V1_EVENTS + name for name in bundle.events()))
    return found


def near_misses(used: Iterable[str], methods: set[str]) -> list[tuple[str, str]]:
    """Return the patterns that match no method, each with the most similar method or an empty text."""
    missing = [name for name in (line.split()[0] for line in used) if not any(matches(method, [name]) for method in methods)]
    return [(name, next(iter(difflib.get_close_matches(name, sorted(methods), 1)), "")) for name in missing]


def used_in(messages: Iterable[tuple[str, Any]]) -> set[str]:
    """Return the methods that the client of a recording uses; the frames are given as (sender, message).

    The client uses the requests that it sends and their replies, all messages of the server, and its own replies to the
    server's requests. Events of v1 count as used only if the client requested them.
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
