"""The closed world: which keys a bundle knows, and the nearest known name for one that it does not.

Strategy: the bundle's objects are open (no ``additionalProperties: false``), so plain validation is vacuous about
unknown keys. `closed` gives a copy of a schema in which every object that does not say otherwise is closed; a value that
satisfies it is valid *and* known, which is the one check that a good frame needs. Open maps (``additionalProperties``
true or a schema, ``true`` schemas) stay open. A closed oneOf or anyOf is stricter than the open one only in its members;
where a value fits two open members at once, `harness.protocol.explain` has the last word.

This module also cuts a type and what it refers to out of its document, so that a validator is built of little, and
applies the corrections: the few places where the real binary departs from its own bundle.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.protocol import schema_files
from harness.protocol.bundle import branches, constant, lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_ONE = ("items", "additionalProperties")
_MANY = ("anyOf", "oneOf", "allOf")
_SILENT = frozenset({"title", "description", "default", "$schema", "writeOnly", "definitions", "format"})


def members(node: Any) -> list[tuple[str, Any]]:
    """Return the direct subschemas of `node` as (keyword, subschema)."""
    if not isinstance(node, dict):
        return []
    found = [(key, node[key]) for key in _ONE if isinstance(node.get(key), dict)]
    found += [("properties", each) for each in node.get("properties", {}).values()]
    found += [(key, each) for key in _MANY for each in node.get(key, ())]
    return found


def rebuild(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a copy of the schema `node` without its prose, each object in it passed through `change`, inner ones first."""
    if not isinstance(node, dict):
        return node
    copy: dict[str, Any] = {}
    for key, value in node.items():
        if key in _SILENT:
            continue
        if key == "properties":
            copy[key] = {name: rebuild(each, change) for name, each in value.items()}
        elif key in _ONE:
            copy[key] = rebuild(value, change)
        elif key in _MANY:
            copy[key] = [rebuild(each, change) for each in value]
        else:
            copy[key] = value
    return change(copy)


def takes_objects(node: Mapping[str, Any]) -> bool:
    """Tell whether the ``type`` of `node` names objects (alone or among others)."""
    named = node.get("type")
    return named == "object" or (isinstance(named, list) and "object" in named)


def _close(node: dict[str, Any]) -> dict[str, Any]:
    if takes_objects(node) and "additionalProperties" not in node:
        return {**node, "additionalProperties": False}
    return node


def extract(node: Any, document: Mapping[str, Any], version: str, *, close: bool) -> dict[str, Any]:
    """Return `node` as a schema of its own, with only the definitions that it reaches in `document`.

    Prose is dropped, the corrections of `version` are applied, and with `close` every object is closed unless it says
    otherwise.
    """
    change = _close if close else lambda each: each
    root = rebuild(node, change)
    result: dict[str, Any] = {"allOf": [root]} if "$ref" in root else dict(root)
    waiting = [node]
    seen: set[str] = set()
    while waiting:
        each = waiting.pop()
        waiting += [sub for _, sub in members(each)]
        reference = each.get("$ref") if isinstance(each, dict) else None
        if reference is not None and reference not in seen:
            seen.add(reference)
            found = _correct(reference.rsplit("/", 1)[-1], lookup(document, reference), version)
            _place(result, reference, rebuild(found, change))
            waiting.append(found)
    return result


def _place(result: dict[str, Any], reference: str, node: Any) -> None:
    """Put `node` where `reference` (``#/definitions/v2/X``) will look for it in `result`."""
    *folders, name = reference.split("/")[1:]
    for folder in folders:
        result = result.setdefault(folder, {})
    result[name] = node


@cache
def corrections(version: str) -> tuple[dict[str, Any], ...]:
    """Return the corrections of `version` (see ``data/0.92.0/corrections.json``); none for a version without a table."""
    path = schema_files.table(version, "corrections.json")
    if not os.path.exists(path):
        return ()
    with open(path, "rb") as file:
        return tuple(json.load(file)["corrections"])


def _correct(name: str, node: Any, version: str) -> Any:
    """Return the definition `name` with the corrections of `version` applied."""
    for rule in corrections(version):
        if rule["type"] == name:
            node = {**node, "oneOf": [_correct_branch(branch, rule) for branch in branches(node)]}
    return node


def _correct_branch(branch: dict[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    if constant(branch["properties"].get("type")) != rule["tag"]:
        return branch
    if "optional" in rule:
        return {**branch, "required": [name for name in branch["required"] if name != rule["optional"]]}
    return {**branch, "properties": {**branch["properties"], rule["property"]: rule["schema"]}}


def _plain(name: str) -> str:
    """Return `name` without the marks that tell snake_case, camelCase and kebab-case apart."""
    return name.replace("_", "").replace("-", "").lower()


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that `name` was most likely meant to be, or None when none is near."""
    listed = sorted(names)
    for each in listed:
        if _plain(each) == _plain(name) and each != name:
            return each
    import difflib  # only a fault pays for it

    close = difflib.get_close_matches(name, [each for each in listed if each != name], n=1, cutoff=0.7)
    return close[0] if close else None
