"""Find unknown keys: list the keys that a schema bundle has, and suggest the most similar name for an unknown key.

The schemas of a bundle allow additional keys (no ``additionalProperties: false``), so plain validation never reports an
unknown key. The function `extract` returns a copy of a schema in which objects forbid additional keys, unless they
explicitly allow them. A value that matches the copy from `extract` is valid *and* known, so one check is enough for a
correct frame. Maps stay open: objects whose ``additionalProperties`` is true or a schema, and schemas that are ``true``. If
a value matches two open members of a union at the same time, the copy can be too strict;
`codex_replay.protocol.schema.explain` then decides. Each member of a union also allows the keys of the schema around the
union (`codex_replay.protocol.schema.union_keys`).

To keep validators small, `extract` copies only a type and the types that it refers to. `extract` also applies corrections: at a
few places, the real binary differs from the schemas that it generates.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from codex_replay.protocol import data_tables
from codex_replay.protocol.schema.bundle import branches, constant, lookup
from codex_replay.protocol.schema.union_keys import ANY_KEY, NO_KEYS, UNIONS, groups, has_union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codex_replay.protocol.schema.union_keys import Find, Keys

_ONE = ("items", "additionalProperties")
_SILENT = frozenset({"title", "description", "default", "$schema", "writeOnly", "definitions", "format"})


def members(node: Any) -> list[tuple[str, Any]]:
    """Return the schemas directly inside `node`, as (keyword, schema)."""
    if not isinstance(node, dict):
        return []
    found = [(key, node[key]) for key in _ONE if isinstance(node.get(key), dict)]
    found += [("properties", each) for each in node.get("properties", {}).values()]
    found += [(key, each) for key in UNIONS for each in node.get(key, ())]
    return found


def plain(node: Any) -> Any:
    """Return a copy of the schema `node` without titles and descriptions."""
    if isinstance(node, list):
        return [plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    copy = {key: plain(value) for key, value in node.items() if key not in _SILENT and key != "properties"}
    if "properties" in node:  # their names may be words of JSON Schema
        copy["properties"] = {name: plain(each) for name, each in node["properties"].items()}
    return copy


def closed(node: Any, find: Find, around: Keys = NO_KEYS, above: tuple[str, ...] = ()) -> Any:
    """Return a copy of the schema `node` without titles and descriptions, in which objects forbid additional keys unless they
    explicitly allow them.

    For a member of a union, `around` has the keys that the member gets from the schema around the union. `above` has the
    references that lead from the union to `node`.
    """
    if not isinstance(node, dict):
        return node
    if "$ref" in node and around != NO_KEYS and node["$ref"] not in above:
        return closed(find(node["$ref"]), find, around, (*above, node["$ref"]))
    copy = {key: value for key, value in node.items() if key not in _SILENT and key not in UNIONS}
    if "properties" in node:
        copy["properties"] = {name: closed(each, find) for name, each in node["properties"].items()}
    for key in _ONE:
        if key in node:
            copy[key] = closed(node[key], find)
    for keyword, each, keys in groups(node, around, find):
        copy.setdefault(keyword, []).extend(closed(member, find, keys, above) for member in each)
    objects = takes_objects(node) or ("type" not in node and around != NO_KEYS and "$ref" not in node)
    if objects and around is not ANY_KEY and not has_union(node) and "additionalProperties" not in node:
        copy["properties"] = {**dict.fromkeys(sorted(around), True), **copy.get("properties", {})}
        copy["additionalProperties"] = False
    return copy


def takes_objects(node: Mapping[str, Any]) -> bool:
    """Return True if the ``type`` of `node` allows objects."""
    named = node.get("type")
    return named == "object" or (isinstance(named, list) and "object" in named)


def extract(node: Any, document: Mapping[str, Any], version: str, *, close: bool) -> dict[str, Any]:
    """Return `node` as an independent schema, with only the definitions of `document` that `node` refers to.

    With `close`, objects forbid additional keys unless they explicitly allow them.
    """

    def find(reference: str) -> Any:
        return _correct(reference.rsplit("/", 1)[-1], lookup(document, reference), version)

    def copied(each: Any) -> Any:
        return closed(each, find) if close else plain(each)

    root = copied(node)
    result: dict[str, Any] = {"allOf": [root]} if "$ref" in root else dict(root)
    waiting = [node]
    seen: set[str] = set()
    while waiting:
        each = waiting.pop()
        waiting += [sub for _, sub in members(each)]
        reference = each.get("$ref") if isinstance(each, dict) else None
        if reference is not None and reference not in seen:
            seen.add(reference)
            found = find(reference)
            _place(result, reference, copied(found))
            waiting.append(found)
    return result


def _place(result: dict[str, Any], reference: str, node: Any) -> None:
    """Put `node` into `result` at the place that `reference` (such as ``#/definitions/v2/X``) names."""
    *folders, name = reference.split("/")[1:]
    for folder in folders:
        result = result.setdefault(folder, {})
    result[name] = node


@cache
def corrections(version: str) -> tuple[dict[str, Any], ...]:
    """Return the corrections of a Codex version (``data/<version>/corrections.json``); a version without the file has none."""
    try:
        return tuple(data_tables.load("corrections", version)["corrections"])
    except data_tables.MissingTable:
        return ()


def _correct(name: str, node: Any, version: str) -> Any:
    """Return the definition `name` with the corrections of `version` applied."""
    for rule in corrections(version):
        if rule["type"] == name and "tag" not in rule:
            node = {**node, "properties": {**node["properties"], **rule["properties"]}}
        elif rule["type"] == name:
            node = {**node, "oneOf": [_correct_branch(branch, rule) for branch in branches(node)]}
    return node


def _correct_branch(branch: dict[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    if constant(branch["properties"].get("type")) != rule["tag"]:
        return branch
    if "spelled" in rule:
        spelled = rule["spelled"]
        renamed = {spelled.get(name, name): node for name, node in branch["properties"].items()}
        return {**branch, "properties": renamed, "required": [spelled.get(name, name) for name in branch.get("required", [])]}
    if "optional" in rule:
        return {**branch, "required": [name for name in branch["required"] if name != rule["optional"]]}
    return {**branch, "properties": {**branch["properties"], rule["property"]: rule["schema"]}}


def _plain(name: str) -> str:
    """Return `name` in a form that is equal for snake_case, camelCase and kebab-case."""
    return name.replace("_", "").replace("-", "").lower()


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if no name is similar."""
    listed = sorted(names)
    for each in listed:
        if _plain(each) == _plain(name) and each != name:
            return each
    import difflib  # only a fault pays for it

    close = difflib.get_close_matches(name, [each for each in listed if each != name], n=1, cutoff=0.7)
    return close[0] if close else None
