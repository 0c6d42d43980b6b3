"""Find out which recorded conversations each breaking change affects.

Each finding names the method and the sender of its frames, and a path in these frames. A case is affected if one of its
frames is no longer valid: the frame has a removed property or a value that is no longer accepted, or it lacks a new
required part. If the server may now send null or another type at a path, all clients that read the path are affected. If
only clients with (or without) a capability notice a change, only the conversations of such clients are affected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol.drift.experimental import asks
from codex_replay.protocol.drift.findings import Drift, DriftFinding, Place
from codex_replay.protocol.drift.rules import Sender
from codex_replay.protocol.drift.shapes.change import Change, Path
from codex_replay.protocol.drift.shapes.model import kind_of, text_of

#: One message and its sender.
Message = tuple[Sender, Any]
_OTHER: dict[str, Sender] = {"client": "server", "server": "client"}
_ENVELOPES = {
    "JSONRPCRequest": "request",
    "JSONRPCNotification": "notification",
    "JSONRPCResponse": "response",
    "JSONRPCError": "error",
}


def values(value: Any, path: Path) -> Iterator[Any]:
    """Yield each value at `path` in `value`."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        if step[0] == "key" and step[1] in value:
            yield from values(value[step[1]], rest)
        elif step[0] == "rest":
            for each in value.values():
                yield from values(each, rest)
        elif step[0] == "is" and _is(value, step[1]):
            yield from values(value, rest)
    elif isinstance(value, list) and step[0] == "items":
        for each in value:
            yield from values(each, rest)


def _is(value: dict[str, Any], tags: Iterable[tuple[str, str]]) -> bool:
    return all(name in value and text_of(value[name]) == text for name, text in tags)


def _there(change: Change, value: Any, path: Path) -> bool:
    return any(True for _ in values(value, path))


def _not_null(change: Change, value: Any, path: Path) -> bool:
    return any(found is not None for found in values(value, path))


def _missing(change: Change, value: Any, path: Path) -> bool:
    return any(isinstance(found, dict) and path[-1][1] not in found for found in values(value, path[:-1]))


def _equal(change: Change, value: Any, path: Path) -> bool:
    return any(text_of(found) == change.what for found in values(value, path))


def _variant(change: Change, value: Any, path: Path) -> bool:
    sort, signs = change.detail
    found = [each for each in values(value, path) if isinstance(each, dict)]
    return any(_is(each, signs) if sort == "is" else set(signs) <= each.keys() for each in found)


def _unlisted(change: Change, value: Any, path: Path) -> bool:
    sort, *listed = change.detail
    found = [text_of(each) for each in values(value, path) if each is not None]
    return any(kind_of(text) == sort and text not in listed for text in found)


def _other_type(change: Change, value: Any, path: Path) -> bool:
    admitted = set(change.after.split(" or "))
    return "anything" not in admitted and any(not (_types(each) & admitted) for each in values(value, path) if each is not None)


def _types(value: Any) -> set[str]:
    return {kind_of(text_of(value))} | ({"integer"} if type(value) is int else set())


def _null(change: Change, value: Any, path: Path) -> bool:
    return any(found is None for found in values(value, path))


def _out_of_bounds(change: Change, value: Any, path: Path) -> bool:
    key, *bounds = change.detail
    return any(_beyond(key, bounds, found) for found in values(value, path) if found is not None)


def _beyond(key: str, bounds: list[Any], value: Any) -> bool:
    if key == "number":
        return isinstance(value, int | float) and not bounds[0] <= value <= bounds[1]
    if key[:3] in ("min", "max"):
        limit = json.loads(bounds[0])
        return hasattr(value, "__len__") and (len(value) < limit if key.startswith("min") else len(value) > limit)
    return True  # a pattern or a format: this comparison does not check it


def _free_keys(change: Change, value: Any, path: Path) -> bool:
    return any(isinstance(found, dict) and found.keys() - set(change.detail) for found in values(value, path))


Test = Callable[[Change, Any, Path], bool]
#: The check of each rule: whether a frame has what the change removes.
TESTS: dict[str, Test] = {
    "method-gone": _there,
    "property-gone": _there,
    "property-new-required": _missing,
    "property-required": _missing,
    "property-optional": _there,
    "value-gone": _equal,
    "variant-gone": _variant,
    "enum-closed": _unlisted,
    "enum-opened": _there,
    "type-changed": _other_type,
    "type-narrowed": _other_type,
    "type-widened": _there,
    "null-gone": _null,
    "null-new": _not_null,
    "limits-narrowed": _out_of_bounds,
    "limits-widened": _there,
    "keys-closed": _free_keys,
    "map-gone": _free_keys,
    "keyword-changed": _there,
}


class Usage:
    """Finds the breaking findings that affect a case; to be fast, it sorts the findings by the frames that may show them."""

    def __init__(self, drift: Drift) -> None:
        self._by_frame: dict[tuple[Sender, str, str], list[tuple[int, DriftFinding, Place]]] = {}
        for number, finding in enumerate(drift.findings):
            if finding.breaking:
                for place in finding.places:
                    self._by_frame.setdefault(_frames_of(finding, place), []).append((number, finding, place))

    def hits(self, messages: Iterable[Message]) -> list[int]:
        """Return the numbers (in ``drift.findings``) of the findings that affect one conversation, in order."""
        found: set[int] = set()
        asked: dict[tuple[Sender, str], str] = {}
        spared = "with"  # the findings that a client without the capability does not notice
        for sender, value in messages:
            if sender == "client" and asks(value):
                spared = "without"
            for key in _keys(sender, value, asked):
                for number, finding, place in self._by_frame.get(key, ()):
                    if number in found or finding.clients == spared:
                        continue
                    if TESTS[finding.rule.id](finding.change, value, place.path):
                        found.add(number)
        return sorted(found)


def _frames_of(finding: DriftFinding, place: Place) -> tuple[Sender, str, str]:
    """Return the frames in which a finding can occur at a place, as (sender, kind of frame, method)."""
    sender = finding.rule.sender
    if place.kind == "envelope":
        return sender, _ENVELOPES[place.method], ""
    if place.path[:1] == (("key", "result"),):
        return sender, "response", place.method
    return sender, "request" if place.kind.endswith("request") else "notification", place.method


def _keys(sender: Sender, value: Any, asked: dict[tuple[Sender, str], str]) -> list[tuple[Sender, str, str]]:
    """Return the keys (sender, kind of frame, method) under which the findings about a message are stored.

    `asked` has the open requests, by sender and id.
    """
    sort = kind(value)
    if not isinstance(value, dict):
        return []
    if sort == "error":
        asked.pop((_OTHER[sender], text_of(value.get("id"))), None)
        return [(sender, "error", "")]
    if sort == "response":
        return [(sender, sort, asked.pop((_OTHER[sender], text_of(value.get("id"))), "")), (sender, sort, "")]
    method = str(value.get("method"))
    if sort == "request":
        asked[sender, text_of(value.get("id"))] = method
    return [(sender, str(sort), method), (sender, str(sort), "")]
