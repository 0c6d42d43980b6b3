"""Measure how much of the protocol a run covers.

An item (a method, an event or an enumerated value) is covered if a frame of a passed case contains it.

Strategy. The schema bundle of a Codex version lists the items to cover. Each Codex version has two tables for the coverage:
`coverage.json` and `unreachable.json`. `coverage.json` lists the paths at which frames contain enumerated values.
`unreachable.json` lists the items that no offline run can cover, with the reasons. The function `seen` reads the frames of
one connection and returns plain strings, which a worker process can send. The class `Coverage` collects the covered items
of all passed cases. Frames of failed cases do not count, so each covered item was sent or answered in a valid frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codex_replay.core.wire.jsonrpc import kind
from codex_replay.protocol import data_tables, versions
from codex_replay.protocol.schema import bundle

if TYPE_CHECKING:
    from codex_replay.core.cassette.frames import Frame

#: The kinds of coverage, in the order of the table. A client method that was always refused counts, with a mark.
KINDS = ("client method", "client notification", "server request", "server notification", "event")


#: The terminal names what was not seen, with the reasons, if it is not more: a run of part of the suite is not a finding.
NAMED = 40


@dataclass(frozen=True, slots=True)
class Sight:
    """One item of the protocol that a run can cover.

    `case` is the first case that covered the item ("" for none). `refused` is True if every case got an error instead of a
    result.
    """

    kind: str
    name: str
    case: str
    refused: bool
    reason: str


@dataclass(slots=True)
class Coverage:
    """The coverage of one Codex version so far."""

    version: str = versions.DEFAULT
    _first: dict[str, str] = field(default_factory=dict)

    def add(self, case: str, seen: Iterable[str]) -> None:
        """Add the methods, events and values that a passed case covers."""
        for each in seen:
            self._first.setdefault(each, case)

    def sights(self) -> list[Sight]:
        """Return all items in the bundle's order, each with the case that covers the item, or the reason why no case does."""
        reasons = data_tables.load("unreachable", self.version)["reasons"]
        found = []
        for sort, names in everything(self.version).items():
            for name in names:
                key = f"{sort}: {name}"
                case = self._first.get(key, "")
                refused = sort == "client method" and bool(case) and f"{key} answered" not in self._first
                if not refused and sort == "client method":
                    case = self._first.get(f"{key} answered", "")
                found.append(Sight(sort, name, case, refused, reasons.get(sort, {}).get(name, "")))
        return found

    def table(self) -> list[str]:
        """Return the coverage table for the terminal: one line for each kind, and the missing items with reasons."""
        rows: list[tuple[str, str, str, str]] = [("coverage", "seen", "of", "")]
        missing: list[str] = []
        for sort, sights in _by_kind(self.sights()).items():
            unseen = [sight for sight in sights if not sight.case]
            refused = [sight.name for sight in sights if sight.refused]
            note = f"only refused: {', '.join(refused)}" if refused else ""
            rows.append((sort, str(len(sights) - len(unseen)), str(len(sights)), note))
            missing += [f"  {sort} {sight.name}: {sight.reason or 'NO REASON GIVEN'}" for sight in unseen]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {c.rjust(widths[2])}  {d}".rstrip() for a, b, c, d in rows]
        if len(missing) > NAMED:
            missing = [f"  {len(missing)} in total; report.json lists them"]
        return [*lines, *(["not seen:", *missing] if missing else [])]

    def report(self) -> dict[str, Any]:
        """Return the coverage for report.json, by kind and name.

        Each value has the keys "case", "refused" (only if True) and "reason" (why the item is not covered).
        """
        found: dict[str, Any] = {}
        for sight in self.sights():
            message: dict[str, Any] = {"case": sight.case or None}
            if sight.refused:
                message["refused"] = True
            if not sight.case or sight.refused:
                message["reason"] = sight.reason
            found.setdefault(sight.kind, {})[sight.name] = message
        return found

    def markdown(self) -> str:
        """Return the Markdown page with the whole table: each item with its case, or with the reason why no case covers it."""
        lines = []
        for sort, sights in _by_kind(self.sights()).items():
            count = sum(bool(sight.case) for sight in sights)
            lines += [f"## {sort[0].upper()}{sort[1:]}: {count} of {len(sights)}", ""]
            lines += ["| name | first case that shows it, or why none does |", "|---|---|"]
            for sight in sights:
                what = f"`{sight.case.removeprefix('app_server/')}`" if sight.case else f"not seen: {sight.reason}"
                what += f"; only refused: {sight.reason}" if sight.refused else ""
                lines.append(f"| `{sight.name}` | {what} |")
            lines.append("")
        return "\n".join(lines)


def _by_kind(sights: list[Sight]) -> dict[str, list[Sight]]:
    found: dict[str, list[Sight]] = {}
    for sight in sights:
        found.setdefault(sight.kind, []).append(sight)
    return found


# -- what there is -------------------------------------------------------------------------------------------------------------


def everything(version: str) -> dict[str, tuple[str, ...]]:
    """Return the names of all items of a Codex version, by kind: methods, events, and each enumerated type in the table."""
    known = bundle.load(version)
    found = {
        "client method": known.methods("client-request"),
        "client notification": known.methods("client-notification"),
        "server request": known.methods("server-request"),
        "server notification": known.methods("server-notification"),
        "event": known.events(),
    }
    for row in data_tables.load("coverage", version)["enums"]:
        names = values_of(known, row["type"], row.get("tag", "type"))
        found[row["name"]] = tuple(snake(name) for name in names) if row.get("snake") else names
    return found


def values_of(known: bundle.Bundle, name: str, tag: str = "type") -> tuple[str, ...]:
    """Return the values of an enumerated type, or the tags of a union type, in the order of the bundle.

    Raises `BundleError` if the bundle has no type of this name, or if the type has no enumerated values.
    """
    definitions = known.primary["definitions"]
    node = definitions.get("v2", {}).get(name) or definitions.get(name)
    if node is None:
        raise bundle.BundleError(f"Bundle {known.version} has no type {name}; correct the table coverage.json.")
    found: list[str] = list(node.get("enum", ()))
    for branch in bundle.branches(node):
        tagged = branch.get("properties", {}).get(tag, {})
        found += branch.get("enum", ()) or tagged.get("enum", ()) or branch.get("required", ())[:1]
    if not found:
        raise bundle.BundleError(
            f"The type {name} of bundle {known.version} has no enumerated values; correct the table coverage.json."
        )
    return tuple(dict.fromkeys(found))


def snake(name: str) -> str:
    """Return a camelCase name in snake_case."""
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


# -- what was seen -------------------------------------------------------------------------------------------------------------


def seen(frames: Iterable[Frame], version: str = versions.DEFAULT) -> set[str]:
    """Return the items that the JSON-RPC frames of one connection cover, as `kind: name`.

    A client method with a result gives two items: the method, and the method with ` answered` at the end.
    """
    rows = data_tables.load("coverage", version)["enums"]
    places: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows:
        for method, path in row["at"]:
            places.setdefault(method, []).append((row["name"], path, row.get("tag", "type")))
    found: set[str] = set()
    asked: dict[tuple[str, str], str] = {}
    for frame in frames:
        if frame.seam != "rpc" or not isinstance(frame.value, dict):
            continue
        sort, value = kind(frame.value), frame.value
        if sort in ("request", "notification"):
            method = value["method"]
            if type(method) is not str:
                continue
            found.add(f"{'server' if frame.sender == 'server' else 'client'} {sort}: {method}")
            if sort == "request":
                asked[(frame.sender, repr(value["id"]))] = method
        elif sort in ("response", "error"):
            other = "server" if frame.sender == "client" else "client"
            method = asked.get((other, repr(value["id"])), "")
            if sort == "response" and other == "client":
                found.add(f"client method: {method} answered")
            method = f"reply to {method}"
        else:
            continue
        for name, path, tag in places.get(method, ()):
            found |= {f"{name}: {each}" for place in at(value, path.split(".")) for each in _names(place, tag)}
    return {_as_counted(each) for each in found}


def _as_counted(sight: str) -> str:
    """Return the coverage kind of a message: requests count as client methods, and events have their own kind."""
    if sight.startswith("client request: "):
        return "client method: " + sight.removeprefix("client request: ")
    if sight.startswith("server notification: codex/event/"):
        return "event: " + sight.removeprefix("server notification: codex/event/")
    return sight


def _names(value: Any, tag: str) -> list[str]:
    """Return the names that a value covers: an enumerated value itself, or the tags of a union member."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict) and isinstance(value.get(tag), str):
        return [value[tag]]
    return list(value)[:1] if isinstance(value, dict) and len(value) == 1 else []


_STEP = re.compile(r"(?P<key>[^\[\]]*)(?:\[(?P<member>\w+)=(?P<wanted>\w+)\])?")


def at(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield the values at a path; the member `about` of the table describes the form of paths."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if step == "[]":
        inner = value if isinstance(value, list) else []
    elif step == "{}":
        inner = list(value.values()) if isinstance(value, dict) else []
    else:
        found = _STEP.fullmatch(step)
        assert found is not None, f"the table coverage.json has the path step {step}"
        here = value.get(found["key"]) if isinstance(value, dict) else None
        wanted = found["member"] is None or (isinstance(here, dict) and here.get(found["member"]) == found["wanted"])
        inner = [here] if here is not None and wanted else []
    for each in inner:
        yield from at(each, rest)
