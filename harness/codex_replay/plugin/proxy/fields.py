"""Judge every field that a proxy sends: is the field in the specification, is it valid, and does the Codex version know it?

A field is *as specified* if a statement of the specification (PAY-... or HAND-...) names it. A field is *valid* if the JSON
schema of the Codex version accepts it. A field is *known* if the JSON schemas of the Codex version contain its name. Codex
accepts a field with an unknown name, and silently ignores it (REAL-45). The report also shows whether a proxy sends a
value, sends null, or omits the field. The report makes this distinction, because the specification says "values are omitted when
undefined", but its examples contain nulls.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codex_replay.plugin.base.checking import all_of
from codex_replay.protocol.versions import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codex_replay.plugin.proxy.http import Exchange

#: The names of the three payloads, as the documents give them.
SPECIFIED: dict[str, tuple[str, ...]] = {
    "newConversation": (
        *("model", "cwd", "approvalPolicy", "sandbox", "developerInstructions", "baseInstructions", "compactPrompt", "config"),
        *("includeApplyPatchTool", "dynamicTools"),
    ),
    "sendUserTurn": (
        *("conversationId", "items", "cwd", "approvalPolicy", "sandboxPolicy", "model", "summary", "effort", "choiceCount"),
        *("choice_count", "tools", "outputSchema", "output_schema", "developerInstructions"),
    ),
    "sendUserMessage": (
        *("conversationId", "items", "includeUsage", "include_usage", "stream", "temperature", "topP", "top_p"),
        *("maxOutputTokens", "max_output_tokens", "tools", "responseFormat", "response_format", "reasoning"),
        *("finalOutputJsonSchema", "final_output_json_schema"),
    ),
}
#: The call that opens a connection: its fields are in the table, and it is no call of a profile.
HANDSHAKE = "initialize"
_IDS, _SOME_ID = ("conversationId", "threadId"), "01a200de-e178-77f2-b971-666c5f907048"
_MARKER = re.compile(r"case-[0-9a-f]{12};")


def fields(exchanges: Iterable[Exchange], version: str = DEFAULT) -> list[list[Any]]:
    """Return `[method, field, what, specified, valid, known]` for each field of each call; `what` is value or null.

    A row without a field describes the call itself. The result also contains calls that are not in the specification,
    because a proxy may use them in the profile works-on-0.92.
    """
    rows: list[list[Any]] = []
    for call in (call for one in exchanges for call in one.calls()):
        method, params = call["method"], call.get("params")
        if isinstance(params, dict):
            rows += _rows(version, method, _shape(params))
    return rows


def unknown_members(call: Mapping[str, Any], version: str = DEFAULT) -> list[str]:
    """Return the paths of a call's members that the JSON schemas of a Codex version do not have (REAL-45), each path once.

    If codex-replay has no schemas of the version, use the schemas of the default version.
    """
    schema = all_of(version).frame_schema("client", call["method"])
    if schema is None:
        return [call["method"]]
    faults = schema.faults({"id": 1, "method": call["method"], "params": call.get("params")})
    return list(dict.fromkeys(fault.path for fault in faults if fault.verdict == "known"))


def _shape(params: dict[str, Any]) -> str:
    """Return the params without the members that differ between cases but do not change a verdict, such as ids."""
    kept = {name: _SOME_ID if name in _IDS and isinstance(value, str) else value for name, value in params.items()}
    return _MARKER.sub("case", json.dumps(kept))


@lru_cache(maxsize=4096)
def _rows(version: str, method: str, shape: str) -> list[list[Any]]:
    params = json.loads(shape)
    schema = all_of(version).frame_schema("client", method)
    faults = schema.faults({"id": 1, "method": method, "params": params}) if schema is not None else []
    rows: list[list[Any]] = [[method, "", "call", method in SPECIFIED, schema is not None, schema is not None]]
    for name, value in params.items():
        at = f"{method}.params.{name}"
        own = {f.verdict for f in faults if f.path == at or f.path.startswith((at + ".", at + "["))}
        known = schema is not None and "known" not in own
        valid = schema is not None and "valid" not in own
        what = "null" if value is None else "value"
        rows.append([method, name, what, name in SPECIFIED.get(method, ()), valid, known])
    return rows


def summary(rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return one row for each field that the proxy can send.

    A row has the method, the field, whether the field is specified, valid and known (None if it could not be judged), and
    how often the proxy sent a value, sent null, or omitted the field.

    If the proxy made a specified call, its rows include the specified fields that the proxy never sent; `calls` is the number of
    calls.
    """
    of: dict[str, dict[str, list[Sequence[Any]]]] = {method: {} for method in SPECIFIED}
    calls: Counter[str] = Counter()
    for row in rows:
        if row[1]:
            of.setdefault(row[0], {}).setdefault(row[1], []).append(row)
        else:
            calls[row[0]] += 1
    found = []
    for method, mine in of.items():
        names = SPECIFIED.get(method, ())
        if method not in SPECIFIED or any(calls[each] for each in SPECIFIED):
            found += [
                _summed(method, name, mine.get(name, []), calls[method]) for name in (*names, *sorted(set(mine) - set(names)))
            ]
    return found


def _summed(method: str, name: str, rows: Sequence[Sequence[Any]], calls: int) -> dict[str, Any]:
    how = Counter(row[2] for row in rows)
    return {
        "method": method,
        "field": name,
        "specified": name in SPECIFIED[method] if method in SPECIFIED else None,
        "valid": all(row[4] for row in rows) if rows else None,
        "known": all(row[5] for row in rows) if rows else None,
        "value": how["value"],
        "null": how["null"],
        "omitted": calls - len(rows),
        "calls": calls,
    }


def table(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the table of all fields of a run as text, one line per field."""
    lines = [f"{'field':46} {'specified':>9} {'valid':>6} {'known':>6}   sent as"]
    for each in summary(rows):
        message = ", ".join(f"{word} {each[word]}x" for word in ("value", "null", "omitted") if each[word])
        name = f"{each['method']}.{each['field']}"
        lines.append(f"{name:46} {_word(each['specified']):>9} {_word(each['valid']):>6} {_word(each['known']):>6}   {message}")
    return lines


def as_data(rows: Mapping[str, Sequence[Sequence[Any]]], subject: str) -> dict[str, Any]:
    """Return the fields of each profile, in the form that `proxy-fields.json` and the report use."""
    return {"proxy-fields": 1, "proxy": subject, "profiles": {profile: summary(rows[profile]) for profile in sorted(rows)}}


def write(found: Mapping[str, Any], folder: Path) -> Path:
    """Write `proxy-fields.json`. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "proxy-fields.json"
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _word(holds: bool | None) -> str:
    return "-" if holds is None else "yes" if holds else "no"
