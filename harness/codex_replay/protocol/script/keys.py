"""Define the keys of a script, its turns and its items: names, types, and the error for an invalid key.

The tables here define the whole format of scripts (docs/scripts.md).
"""

from __future__ import annotations

from codex_replay.protocol.script.hints import listed, named, near, ours, rewritten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Each table: key -> (what it must be, must it be there). "what" is a name of CHECKS, or a tuple of the allowed words.
SCRIPT_KEYS: dict[str, tuple[Any, bool]] = {
    "turns": ("list", False),
    "otherwise": (("miss", "default", "ask"), False),
    "defaults": ("object", False),
    "auth": ("auth", False),
    "models": ("list", False),
    "rate_limits": ("object", False),
    "rules_off": ("strings", False),
    "websocket": ("websocket", False),
    # What only a fake Codex needs, which has no machine under it (docs/fake-codex.md); the backend leaves these alone.
    "answers": ("answers", False),
    "account": ("account", False),
    "git": ("object", False),
    "about": ("string", False),
    "$schema": ("string", False),
}
WEBSOCKET_KEYS: dict[str, tuple[Any, bool]] = {
    "mode": (("off", "on", "only"), False),
    "handshakes": ("handshakes", False),
    "compression": ("boolean", False),
    "headers": ("object", False),
    "prewarm": ("object", False),
}
#: What may become of a handshake, besides an HTTP status: it is granted, closed unanswered, or reset.
HANDSHAKES = ("ok", "closed", "reset", *(f"http_{status}" for status in (400, 401, 403, 404, 426, 429, 500, 502, 503)))
TURN_KEYS: dict[str, tuple[Any, bool]] = {
    "items": ("list", False),
    "match": ("match", False),
    "expect": ("object", False),
    "times": ("times", False),
    "status": ("status", False),
    "headers": ("headers", False),
    "error": ("object", False),
    "body": ("any", False),
    "usage": ("usage", False),
    "delta": ("size", False),
    "write": ("write", False),
    "delay_ms": ("duration", False),
    "first_delay_ms": ("duration", False),
    "gate": ("string", False),
    "fault": ("fault", False),
    "response_id": ("string", False),
    "end": ("boolean", False),
    "about": ("string", False),
}
USAGE_KEYS: dict[str, tuple[Any, bool]] = {
    "input_tokens": ("count", False),
    "cached_tokens": ("count", False),
    "output_tokens": ("count", False),
    "reasoning_tokens": ("count", False),
    "total_tokens": ("count", False),
}
_ID: tuple[Any, bool] = ("string", False)
_FAILS = ("completed", "failed", "incomplete")
_CALL: dict[str, tuple[Any, bool]] = {"status": (("completed", "incomplete"), False), "call_id": _ID, "id": _ID}
ITEM_KEYS: dict[str, dict[str, tuple[Any, bool]]] = {
    "text": {
        "text": ("string", True),
        "deltas": ("strings", False),
        "annotations": ("objects", False),
        "phase": (("commentary", "final_answer"), False),
        "id": ("string", False),
    },
    "refusal": {"refusal": ("string", True), "deltas": ("strings", False), "id": ("string", False)},
    "function_call": {
        "name": ("string", True),
        "arguments": ("arguments", False),
        "result": ("object", False),
        "deltas": ("strings", False),
        "call_id": ("string", False),
        "id": ("string", False),
    },
    "custom_tool_call": {
        "name": ("string", True),
        "input": ("string", True),
        "result": ("object", False),
        "deltas": ("strings", False),
        "call_id": ("string", False),
        "id": ("string", False),
    },
    "web_search_call": {
        "query": ("string", False),
        "action": ("object", False),
        "status": (("completed", "failed", "incomplete"), False),
        "id": ("string", False),
    },
    "reasoning": {
        "summary": ("text or texts", False),
        "content": ("text or texts", False),
        "encrypted_content": ("string", False),
        "id": ("string", False),
    },
    # What the service runs itself (codex_replay.protocol.responses.hosted has the defaults).
    "file_search_call": {"queries": ("strings", False), "results": ("list", False), "status": (_FAILS, False), "id": _ID},
    "code_interpreter_call": {
        "code": ("string", False),
        "outputs": ("list", False),
        "container_id": ("string", False),
        "deltas": ("strings", False),
        "status": (_FAILS, False),
        "id": _ID,
    },
    "image_generation_call": {
        "result": ("string", False),
        "partial_images": ("strings", False),
        "revised_prompt": ("string", False),
        "size": ("string", False),
        "quality": ("string", False),
        "background": ("string", False),
        "output_format": ("string", False),
        "status": (("completed", "failed"), False),
        "id": _ID,
    },
    "mcp_list_tools": {"tools": ("objects", False), "server_label": ("string", False), "error": ("any", False), "id": _ID},
    "mcp_call": {
        "name": ("string", True),
        "arguments": ("arguments", False),
        "output": ("string", False),
        "error": ("any", False),
        "server_label": ("string", False),
        "approval_request_id": ("string", False),
        "deltas": ("strings", False),
        "status": (_FAILS, False),
        "id": _ID,
    },
    "mcp_approval_request": {
        "name": ("string", True),
        "arguments": ("arguments", False),
        "server_label": ("string", False),
        "id": _ID,
    },
    "computer_call": {
        "action": ("object", False),
        "actions": ("list", False),
        "pending_safety_checks": ("list", False),
        **_CALL,
    },
    "local_shell_call": {"action": ("object", True), **_CALL},
    "shell_call": {"action": ("object", True), "environment": ("object", False), **_CALL},
    "shell_call_output": {"output": ("objects", False), "max_output_length": ("size", False), **_CALL},
    "apply_patch_call": {"operation": ("object", True), "call_id": _ID, "id": _ID},
    "compaction": {"encrypted_content": ("string", False), "id": _ID},
    "item": {"item": ("object", True), "result": ("object", False)},
    "failed": {"code": ("string", True), "message": ("string", False)},
    "incomplete": {"reason": ("string", False)},
    "error": {"code": ("string", False), "message": ("string", False), "param": ("string", False)},
    "queued": {},
    "audio": {"data": ("string", False), "transcript": ("string", False), "deltas": ("strings", False)},
    "event": {"event": ("object", True)},
    "raw": {"data": ("string", True)},
    "comment": {"text": ("string", False)},
    "wait": {"ms": ("duration", True)},
    "gate": {"name": ("string", True)},
}
#: Items that end a reply: nothing may follow them, because no server sends anything after them.
FINAL_KINDS = ("failed", "incomplete", "error")
#: Items that stand in the `output` of a response; each has a place there, which its ids contain.
OUTPUT_KINDS = frozenset(ITEM_KEYS) - {*FINAL_KINDS, "queued", "audio", "event", "raw", "comment", "wait", "gate"}


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_answers(value: object) -> bool:
    """Return True if the value maps each method to an answer or a list of answers.

    Each answer must have either `result` or `error`.
    """
    if not isinstance(value, dict):
        return False
    for given in value.values():
        for one in given if isinstance(given, list) else [given]:
            if (
                not isinstance(one, dict)
                or not one.keys() <= {"params", "result", "error"}
                or ("result" in one) == ("error" in one)
            ):
                return False
    return True


def _is_headers(value: object) -> bool:
    """Return True if HTTP can send the headers in `value`: no name has a space or a colon, and no value has several lines."""
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        return False
    if not all(isinstance(each, str) for pair in pairs for each in pair):
        return False
    named = all(name and name.isascii() and name.isprintable() and not set(name) & set(' :"') for name, _ in pairs)
    return named and not any(set(text) & set("\r\n\0") for _, text in pairs)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


CHECKS: dict[str, tuple[str, Any]] = {
    "any": ("anything", lambda v: True),
    "string": ("a string", lambda v: isinstance(v, str)),
    "boolean": ("true or false", lambda v: isinstance(v, bool)),
    "object": ("an object", lambda v: isinstance(v, dict)),
    "list": ("a list", lambda v: isinstance(v, list)),
    "strings": ("a list of strings", _is_strings),
    "objects": ("a list of objects", lambda v: isinstance(v, list) and all(isinstance(one, dict) for one in v)),
    "text or texts": ("a string or a list of strings", lambda v: isinstance(v, str) or _is_strings(v)),
    "arguments": ("an object, or a string that is sent unchanged", lambda v: isinstance(v, dict | str)),
    "auth": ('"auto", "none", "api_key", "chatgpt" or an object', lambda v: isinstance(v, dict | str)),
    "websocket": ('"off", "on", "only" or an object', lambda v: v in ("off", "on", "only") or isinstance(v, dict)),
    "handshakes": (
        f"one of {', '.join(HANDSHAKES)}, or a list of these",
        lambda v: v in HANDSHAKES if isinstance(v, str) else isinstance(v, list) and all(one in HANDSHAKES for one in v),
    ),
    "answers": ('an object of method names, each with {"params", "result" or "error"} or a list of these', _is_answers),
    "account": ('"api_key", "chatgpt" or an object with "type"', lambda v: v in ("api_key", "chatgpt") or isinstance(v, dict)),
    "match": ("a marker (string) or an object", lambda v: isinstance(v, str | dict) and v != ""),
    "times": ('a whole number (1 or more), or "always"', lambda v: v == "always" or (_is_int(v) and v > 0)),
    "status": ("an HTTP status from 200 to 599", lambda v: _is_int(v) and 200 <= v <= 599),
    "headers": (
        "an object of strings, or a list of [name, value] pairs, each a valid HTTP header",
        _is_headers,
    ),
    "usage": ("null, or an object of whole numbers", lambda v: v is None or isinstance(v, dict)),
    "count": ("a whole number, 0 or more", lambda v: _is_int(v) and v >= 0),
    "size": ("a whole number, 1 or more", lambda v: _is_int(v) and v > 0),
    "write": ('"event", "whole" or a number of bytes', lambda v: v in ("event", "whole") or (_is_int(v) and v > 0)),
    "duration": ("a number of milliseconds, 0 or more", lambda v: _is_number(v) and v >= 0),
    "fault": (
        'the name of a fault, or an object with "name"',
        lambda v: isinstance(v, str) or (isinstance(v, dict) and "name" in v),
    ),
}


def wrong_key(value: Mapping[str, Any], table: Mapping[str, tuple[Any, bool]], where: str, what: str) -> str | None:
    """Return the error for an unknown, invalid or missing key of an object, or None.

    `where` is the place of the object in the script, and `what` describes the object.
    """
    for key, given in value.items():
        if key not in table:
            return f'{where}: "{key}" is not a key of {what}{_meant(key, table)}. The allowed keys are {listed(table)}.'
        wanted = table[key][0]
        if isinstance(wanted, tuple):
            if given not in wanted:
                return f"{where}.{key} must be one of {listed(wanted)}, not {named(given)}."
            continue
        meaning, test = CHECKS[wanted]
        if not test(given):
            return f"{where}.{key} must be {meaning}, not {named(given)}.{rewritten(given, test)}"
    for key, (_, required) in table.items():
        if required and key not in value:
            return f'{where}: {what} needs "{key}".'
    return None


def _meant(key: str, table: Mapping[str, Any]) -> str:
    """Return a question that suggests the most similar key of the same or another kind of object.

    Return "" if no key is similar.
    """
    others = {"a script": SCRIPT_KEYS, "a turn": TURN_KEYS, **{f"the item {kind}": keys for kind, keys in ITEM_KEYS.items()}}
    there = next((f' (did you mean "{key}", a key of {what}?)' for what, keys in others.items() if key in keys), "")
    found = ours(key, table) or near(key, table, 0.8) or there or near(key, table)
    return found or next((f"{like[:-2]}, a key of {what}?)" for what, keys in others.items() if (like := near(key, keys))), "")
