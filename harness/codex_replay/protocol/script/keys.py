"""Define the keys of a script, its turns and its items: names, types, and the error for an invalid key.

The tables here define the whole format of scripts (docs/scripts.md).
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import compact
from codex_replay.protocol.script.hints import listed, named, near, ours, rewritten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    #: key -> (what it must be, whether it must be there). The first is a name of CHECKS, or a tuple of the allowed words.
    Keys = Mapping[str, tuple[Any, bool]]


def _keys(required: str = "", **allowed: str | tuple[str, ...]) -> Keys:
    """Return the table of these keys; `required` has the names of those that must be there, separated by spaces."""
    return {key: (what, key in required.split()) for key, what in allowed.items()}


SCRIPT_KEYS = {
    **_keys(turns="list", otherwise=("miss", "default", "ask"), defaults="object", auth="auth", models="list"),
    **_keys(rate_limits="object", rules_off="strings", websocket="websocket"),
    # What only a fake Codex needs, which has no machine under it (docs/fake-codex.md); the backend leaves these alone.
    **_keys(answers="answers", account="account", git="object", about="string"),
    "$schema": ("string", False),
}
WEBSOCKET_KEYS = _keys(
    mode=("off", "on", "only"), handshakes="handshakes", compression="boolean", headers="headers", prewarm="object"
)
#: What may become of a handshake, besides an HTTP status: it is granted, closed unanswered, or reset.
HANDSHAKES = ("ok", "closed", "reset", *(f"http_{status}" for status in (400, 401, 403, 404, 426, 429, 500, 502, 503)))
TURN_KEYS = {
    **_keys(items="list", match="match", expect="object", times="times"),
    **_keys(status="status", headers="headers", error="object", body="any", usage="usage"),
    **_keys(delta="size", write="write", delay_ms="duration", first_delay_ms="duration", gate="string", fault="fault"),
    **_keys(response_id="string", end="boolean", about="string"),
}
USAGE_KEYS = _keys(
    input_tokens="count", cached_tokens="count", output_tokens="count", reasoning_tokens="count", total_tokens="count"
)
#: The result of a call, which only fake-codex needs: it runs no tools (docs/fake-codex.md, "The script").
_OUTPUT = _keys(
    stdout="string", output="string", stderr="string", aggregated="string", exit_code="exit code", duration_ms="whole duration"
)
RESULT_KEYS = {
    **_OUTPUT,
    **_keys(actions="actions", approval="boolean", reason="string or null", amendment="strings or null", error="string"),
    **_keys(denied="denied", hang="boolean", timed_out="boolean", later="string", success="boolean", changes="changes"),
}
#: An answer of fake-codex that a script gives to a method (docs/fake-codex.md).
ANSWER_KEYS = _keys(params="any", result="any", error="any")
DENIED_KEYS = {**_OUTPUT, **_keys(timed_out="boolean", final="boolean")}
ACTION_KEYS = _keys(
    "type cmd",
    type=("read", "list_files", "search", "unknown"),
    cmd="string",
    name="string",
    path="string or null",
    query="string or null",
)
CHANGE_KEYS = {
    "add": _keys("content", content="string", old="string"),
    "delete": _keys("content", content="string"),
    "update": _keys("unified_diff", unified_diff="string", move_path="string or null", old="string", new="string"),
}
_FAILS = ("completed", "failed", "incomplete")
_CALL = _keys(status=("completed", "incomplete"), call_id="string", id="string")
ITEM_KEYS: dict[str, Keys] = {
    "text": _keys(
        "text", text="string", deltas="strings", annotations="objects", phase=("commentary", "final_answer"), id="string"
    ),
    "refusal": _keys("refusal", refusal="string", deltas="strings", id="string"),
    "function_call": _keys(
        "name", name="string", arguments="arguments", result="result", deltas="strings", call_id="string", id="string"
    ),
    "custom_tool_call": _keys(
        "name input", name="string", input="string", result="result", deltas="strings", call_id="string", id="string"
    ),
    "web_search_call": _keys(query="string", action="object", status=_FAILS, id="string"),
    "reasoning": _keys(summary="text or texts", content="text or texts", encrypted_content="string", id="string"),
    # What the service runs itself (codex_replay.protocol.responses.hosted has the defaults).
    "file_search_call": _keys(queries="strings", results="list", status=_FAILS, id="string"),
    "code_interpreter_call": _keys(
        code="string", outputs="list", container_id="string", deltas="strings", status=_FAILS, id="string"
    ),
    "image_generation_call": {
        **_keys(result="string", partial_images="strings", revised_prompt="string", size="string", quality="string"),
        **_keys(background="string", output_format="string", status=("completed", "failed"), id="string"),
    },
    "mcp_list_tools": _keys(tools="objects", server_label="string", error="any", id="string"),
    "mcp_call": {
        **_keys("name", name="string", arguments="arguments", output="string", error="any", server_label="string"),
        **_keys(approval_request_id="string", deltas="strings", status=_FAILS, id="string"),
    },
    "mcp_approval_request": _keys("name", name="string", arguments="arguments", server_label="string", id="string"),
    "computer_call": {**_keys(action="object", actions="list", pending_safety_checks="list"), **_CALL},
    "local_shell_call": {**_keys("action", action="object"), **_CALL},
    "shell_call": {**_keys("action", action="object", environment="object"), **_CALL},
    "shell_call_output": {**_keys(output="objects", max_output_length="size"), **_CALL},
    "apply_patch_call": _keys("operation", operation="object", call_id="string", id="string"),
    "compaction": _keys(encrypted_content="string", id="string"),
    "item": _keys("item", item="object", result="result"),
    "failed": _keys("code", code="string", message="string"),
    "incomplete": _keys(reason="string"),
    "error": _keys(code="string", message="string", param="string"),
    "queued": {},
    "audio": _keys(data="string", transcript="string", deltas="strings"),
    "event": _keys("event", event="object"),
    "raw": _keys("data", data="string"),
    "comment": _keys(text="string"),
    "wait": _keys("ms", ms="duration"),
    "gate": _keys("name", name="string"),
}
#: Items that end a reply: nothing may follow them, because no server sends anything after them.
FINAL_KINDS = ("failed", "incomplete", "error")
#: Items that stand in the `output` of a response; each has a place there, which its ids contain.
OUTPUT_KINDS = frozenset(ITEM_KEYS) - {*FINAL_KINDS, "queued", "audio", "event", "raw", "comment", "wait", "gate"}


#: The longest time in a script, in milliseconds: one day. The clocks of the fakes overflow at much longer times.
DAY = 86_400_000
#: The largest event of a fault, in bytes (256 MB): much more than a client reads, and less than the memory of a computer.
MOST = 1 << 28


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
        lambda v: v in HANDSHAKES if isinstance(v, str) else isinstance(v, list),
    ),
    "answers": (
        'an object of method names, each with {"params", "result" or "error"} or a list of these',
        lambda v: isinstance(v, dict),
    ),
    "account": ('"api_key", "chatgpt" or an object with "type"', lambda v: v in ("api_key", "chatgpt") or isinstance(v, dict)),
    "match": ("a marker (string) or an object", lambda v: isinstance(v, str | dict) and v != ""),
    "times": ('a whole number (1 or more), or "always"', lambda v: v == "always" or (_is_int(v) and v > 0)),
    "status": ("an HTTP status from 200 to 599", lambda v: _is_int(v) and 200 <= v <= 599),
    "headers": (
        "an object of strings, or a list of [name, value] pairs, each a valid HTTP header",
        lambda v: isinstance(v, dict | list),
    ),
    "usage": ("null, or an object of whole numbers", lambda v: v is None or isinstance(v, dict)),
    "count": ("a whole number, 0 or more", lambda v: _is_int(v) and v >= 0),
    "size": ("a whole number, 1 or more", lambda v: _is_int(v) and v > 0),
    "write": ('"event", "whole" or a number of bytes', lambda v: v in ("event", "whole") or (_is_int(v) and v > 0)),
    "duration": (f"a number of milliseconds, from 0 to {DAY}", lambda v: _is_number(v) and 0 <= v <= DAY),
    "string or null": ("a string or null", lambda v: v is None or isinstance(v, str)),
    "strings or null": ("a list of strings, or null", lambda v: v is None or _is_strings(v)),
    "exit code": ("a whole number of at most 32 bits", lambda v: _is_int(v) and -(2**31) <= v < 2**31),
    "whole duration": (f"a whole number of milliseconds, from 0 to {DAY}", lambda v: _is_int(v) and 0 <= v <= DAY),
    "result": ("an object", lambda v: isinstance(v, dict)),
    "denied": ("an object", lambda v: isinstance(v, dict)),
    "actions": ("a list of objects", lambda v: isinstance(v, list)),
    "changes": ("an object of file paths", lambda v: isinstance(v, dict)),
    "bytes": (f"a number of bytes, from 0 to {MOST}", lambda v: _is_int(v) and 0 <= v <= MOST),
    "retry": ("a string, or a number of seconds, 0 or more", lambda v: isinstance(v, str) or (_is_number(v) and v >= 0)),
    "fault": (
        'the name of a fault, or an object with "name"',
        lambda v: isinstance(v, str) or (isinstance(v, dict) and "name" in v),
    ),
}


def wrong_key(value: Mapping[str, Any], table: Keys, where: str, what: str) -> str | None:
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
        if wanted in _NESTED and (wrong := _NESTED[wanted](given, f"{where}.{key}")):
            return wrong
    for key, (_, required) in table.items():
        if required and key not in value:
            return f'{where}: {what} needs "{key}".'
    return None


def _wrong_actions(actions: list[Any], where: str) -> str | None:
    for i, action in enumerate(actions):
        if wrong := _wrong_object(action, ACTION_KEYS, f"{where}[{i}]", "an action"):
            return wrong
    return None


def _wrong_changes(changes: dict[str, Any], where: str) -> str | None:
    for path, change in changes.items():
        place = f"{where}[{compact(path)}]"
        kind = change.get("type") if isinstance(change, dict) else change
        if not isinstance(change, dict) or not isinstance(kind, str) or kind not in CHANGE_KEYS:
            return f'{place} must be an object whose "type" is one of {listed(CHANGE_KEYS)}, not {named(kind)}.'
        table = {**_keys("type", type=(kind,)), **CHANGE_KEYS[kind]}
        if wrong := wrong_key(change, table, place, f"a change of the type {kind}"):
            return wrong
    return None


def _wrong_object(value: Any, table: Keys, where: str, what: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where} must be an object, not {named(value)}."
    return wrong_key(value, table, where, what)


def _wrong_handshakes(given: str | list[Any], where: str) -> str | None:
    for i, one in enumerate(given if isinstance(given, list) else ()):
        if one not in HANDSHAKES:
            return f"{where}[{i}] must be one of {listed(HANDSHAKES)}, not {named(one)}."
    return None


def _wrong_headers(headers: Mapping[Any, Any] | list[Any], where: str) -> str | None:
    """Return the error for a header that HTTP cannot send: the name has a space or a colon, or the value has several lines."""
    for i, pair in enumerate(headers if isinstance(headers, list) else headers.items()):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return f"{where}[{i}] must be a pair [name, value], not {named(pair)}."
        name, text = pair
        if not isinstance(name, str) or not (name and name.isascii() and name.isprintable()) or set(name) & set(' :"'):
            return f"{where}: {named(name)} cannot be the name of an HTTP header."
        if not isinstance(text, str) or set(text) & set("\r\n\0"):
            place = f"[{i}][1]" if isinstance(headers, list) else f"[{compact(name)}]"
            return f"{where}{place} must be a string of one line, not {named(text)}."
    return None


def _wrong_answers(answers: dict[str, Any], where: str) -> str | None:
    for method, given in answers.items():
        place = f"{where}[{compact(method)}]"
        for i, one in enumerate(given if isinstance(given, list) else [given]):
            here = f"{place}[{i}]" if isinstance(given, list) else place
            if wrong := _wrong_object(one, ANSWER_KEYS, here, "an answer"):
                return wrong
            if ("result" in one) == ("error" in one):
                return f'{here} must have either "result" or "error".'
    return None


#: The kinds of values that have parts -> a function that returns the error in a value at a place of the script, or None.
_NESTED: dict[str, Callable[[Any, str], str | None]] = {
    "result": lambda value, where: wrong_key(value, RESULT_KEYS, where, "the result of a call"),
    "denied": lambda value, where: wrong_key(value, DENIED_KEYS, where, "the output in the sandbox"),
    "actions": _wrong_actions,
    "changes": _wrong_changes,
    "handshakes": _wrong_handshakes,
    "headers": _wrong_headers,
    "answers": _wrong_answers,
}


def _meant(key: str, table: Mapping[str, Any]) -> str:
    """Return a question that suggests the most similar key of the same or another kind of object.

    Return "" if no key is similar.
    """
    others = {"a script": SCRIPT_KEYS, "a turn": TURN_KEYS, **{f"the item {kind}": keys for kind, keys in ITEM_KEYS.items()}}
    there = next((f' (did you mean "{key}", a key of {what}?)' for what, keys in others.items() if key in keys), "")
    found = ours(key, table) or near(key, table, 0.8) or there or near(key, table)
    return found or next((f"{like[:-2]}, a key of {what}?)" for what, keys in others.items() if (like := near(key, keys))), "")
