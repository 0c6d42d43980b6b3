"""Generate the JSON Schema of scripts from the tables of their keys, for editors that complete and check JSON and YAML.

python -m tests.tools.script_schema > docs/schema/script.schema.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codex_fakes.model.faults import NAMES, PARAMETERS, parameters
from codex_replay.protocol.script.keys import (
    ACTION_KEYS,
    ANSWER_KEYS,
    CHANGE_KEYS,
    DAY,
    DENIED_KEYS,
    HANDSHAKES,
    ITEM_KEYS,
    MOST,
    RESULT_KEYS,
    SCRIPT_KEYS,
    TURN_KEYS,
    USAGE_KEYS,
    WEBSOCKET_KEYS,
)

TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number", "minimum": 0}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
OBJECT: dict[str, Any] = {"type": "object"}
#: The keys of `match` and `expect`.
REQUEST: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "prompt": {"anyOf": [STRING, TEXTS]},
        "model": STRING,
        "body": OBJECT,
        "absent": {"type": "array"},
        "headers": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "outputs": OBJECT,
        "user": STRING,
        "pattern": {"type": "string", "format": "regex"},
        "tool_pattern": {"type": "string", "format": "regex"},
        "tool": STRING,
        "instructions": STRING,
        "turn": COUNT,
        "repeated": {"type": "boolean"},
    },
}
_HEADER_NAME = {"type": "string", "pattern": r"^[^\s:\"\x00-\x20\x7f-\uffff]+$"}
_HEADER_TEXT = {"type": "string", "not": {"pattern": r"[\r\n\x00]"}}


def _faults() -> dict[str, Any]:
    """Return the schema of a fault: its name, or an object with its name and its own parameters."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in NAMES:
        groups.setdefault(parameters(name), []).append(name)
    objects = [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {"name": {"enum": names}, **{key: KINDS[PARAMETERS[key]] for key in keys}},
        }
        for keys, names in groups.items()
    ]
    return {"anyOf": [{"enum": list(NAMES)}, *objects]}


#: What stands in the tables of the keys -> its schema.
KINDS: dict[str, Any] = {
    "any": {},
    "string": STRING,
    "boolean": {"type": "boolean"},
    "object": OBJECT,
    "list": {"type": "array"},
    "strings": TEXTS,
    "objects": {"type": "array", "items": OBJECT},
    "text or texts": {"anyOf": [STRING, TEXTS]},
    "arguments": {"type": ["object", "string"]},
    "auth": {"anyOf": [{"enum": ["auto", "none", "api_key", "chatgpt"]}, OBJECT]},
    "account": {"anyOf": [{"enum": ["api_key", "chatgpt"]}, {"type": "object", "required": ["type"]}]},
    "match": {"anyOf": [{"type": "string", "minLength": 1}, REQUEST]},
    "times": {"anyOf": [COUNT, {"const": "always"}]},
    "status": {"type": "integer", "minimum": 200, "maximum": 599},
    "headers": {
        "anyOf": [
            {"type": "object", "propertyNames": _HEADER_NAME, "additionalProperties": _HEADER_TEXT},
            {
                "type": "array",
                "items": {"type": "array", "prefixItems": [_HEADER_NAME, _HEADER_TEXT], "items": False, "minItems": 2},
            },
        ]
    },
    "count": {"type": "integer", "minimum": 0},
    "size": COUNT,
    "write": {"anyOf": [{"enum": ["event", "whole"]}, COUNT]},
    "duration": {**NUMBER, "maximum": DAY},
    "whole duration": {"type": "integer", "minimum": 0, "maximum": DAY},
    "exit code": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "string or null": {"type": ["string", "null"]},
    "strings or null": {"anyOf": [TEXTS, {"type": "null"}]},
    "bytes": {"type": "integer", "minimum": 0, "maximum": MOST},
    "retry": {"anyOf": [STRING, NUMBER]},
    "result": {"$ref": "#/$defs/result"},
    "fault": {"$ref": "#/$defs/fault"},
    "websocket": {"anyOf": [{"enum": ["off", "on", "only"]}, OBJECT]},
    "handshakes": {"anyOf": [{"enum": list(HANDSHAKES)}, {"type": "array", "items": {"enum": list(HANDSHAKES)}}]},
}


def _object(table: Mapping[str, tuple[Any, bool]], **fixed: Any) -> dict[str, Any]:
    keys = {name: {"enum": list(kind)} if isinstance(kind, tuple) else KINDS[kind] for name, (kind, _) in table.items()}
    required = [*(["type"] if "type" in fixed else []), *(name for name, (_, needed) in table.items() if needed)]
    found = {"type": "object", "additionalProperties": False, "properties": {**fixed, **keys}}
    return {**found, "required": required} if required else found


KINDS["actions"] = {"type": "array", "items": _object(ACTION_KEYS)}
_CHANGES = [_object(table, type={"const": kind}) for kind, table in CHANGE_KEYS.items()]
KINDS["changes"] = {"type": "object", "additionalProperties": {"anyOf": _CHANGES}}
_ANSWER = {**_object(ANSWER_KEYS), "oneOf": [{"required": ["result"]}, {"required": ["error"]}]}
KINDS["answers"] = {"type": "object", "additionalProperties": {"anyOf": [_ANSWER, {"type": "array", "items": _ANSWER}]}}
KINDS["denied"] = _object(DENIED_KEYS)
KINDS["usage"] = {"anyOf": [{"type": "null"}, _object(USAGE_KEYS)]}


def schema() -> dict[str, Any]:
    """Return the schema of a script file."""
    turn = _object(TURN_KEYS)
    turn["properties"] |= {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}, "expect": REQUEST}
    script = _object(SCRIPT_KEYS)
    websocket = _object(WEBSOCKET_KEYS)
    websocket["properties"] |= {"prewarm": turn}
    defaults = {**turn, "properties": {name: kind for name, kind in turn["properties"].items() if name not in ("items", "match")}}
    script["properties"] |= {
        "turns": {"$ref": "#/$defs/turns"},
        "defaults": defaults,
        "models": {"type": "array", "items": OBJECT},
        "websocket": {"anyOf": [{"enum": ["off", "on", "only"]}, websocket]},
    }
    kinds = [_object(table, type={"const": kind}) for kind, table in ITEM_KEYS.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A script of codex-replay (docs/scripts.md)",
        "anyOf": [script, {"$ref": "#/$defs/turns"}],
        "$defs": {
            "turns": {"type": "array", "items": {"anyOf": [STRING, turn]}},
            "item": {"anyOf": [STRING, *kinds]},
            "fault": _faults(),
            "result": _object(RESULT_KEYS),
        },
    }


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
