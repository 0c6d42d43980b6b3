"""The script of a fake model: which request gets which reply.

A script is JSON: `{"turns": [{"items": ["Hello"]}]}`. A turn answers one request; it is chosen by order, or by a marker in the
prompt. docs/scripts.md is the page to learn it from; the tables below are the whole format. Nothing is read or sent here:
`parse` turns a decoded value into a `Script` or raises `BadScript`, whose text is a sentence that says where and what to do.
The item kinds are those a model sends (spec: codex-lite-protocol.md, "Response Streaming", and the types of the openai package).
"""

from __future__ import annotations

from harness.core.value import EMPTY, Value
from harness.protocol.expect import vocabulary_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class BadScript(ValueError):
    """The script cannot be used; the text is a sentence that says where it is wrong and what would be right."""


class Turn(Value):
    """One reply of the model and the request it is meant for; times are in milliseconds, sizes in characters or bytes.

    `match` and `expect` are in the vocabulary of `harness.protocol.expect`; `usage` is None for "leave it out" and an empty
    mapping for "count it"; `write` says how the reply is cut into HTTP chunks: "event", "whole" or a number of bytes.
    """

    items: tuple[Mapping[str, Any], ...] = ()
    match: Mapping[str, Any] = EMPTY
    expect: Mapping[str, Any] = EMPTY
    times: int | None = 1
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    error: Mapping[str, Any] | None = None
    body: Any = None
    usage: Mapping[str, int] | None = EMPTY
    delta: int = 16
    write: str | int = "event"
    delay_ms: float = 0
    first_delay_ms: float = 0
    gate: str | None = None
    fault: Mapping[str, Any] | None = None
    response_id: str | None = None
    end: bool = True


_AUTO = {"mode": "auto"}


class Script(Value):
    """All turns of one session; `otherwise` tells what a request gets that no turn is left for: "miss" (501) or "default"."""

    turns: tuple[Turn, ...] = ()
    otherwise: str = "miss"
    auth: Mapping[str, Any] = _AUTO
    models: tuple[Mapping[str, Any], ...] = ()
    rate_limits: Mapping[str, Any] | None = None
    rules_off: tuple[str, ...] = ()
    answers: Mapping[str, Any] = EMPTY
    account: Any = None
    git: Mapping[str, Any] = EMPTY


# Each table: key -> (what it must be, must it be there). "what" is a name of CHECKS, or a tuple of the allowed words.
SCRIPT_KEYS: dict[str, tuple[Any, bool]] = {
    "turns": ("list", False),
    "otherwise": (("miss", "default"), False),
    "defaults": ("object", False),
    "auth": ("auth", False),
    "models": ("list", False),
    "rate_limits": ("object", False),
    "rules_off": ("strings", False),
    # What only a fake Codex needs, which has no machine under it (docs/fake-codex.md); the backend leaves these alone.
    "answers": ("answers", False),
    "account": ("account", False),
    "git": ("object", False),
    "about": ("string", False),
}
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
ITEM_KEYS: dict[str, dict[str, tuple[Any, bool]]] = {
    "text": {
        "text": ("string", True),
        "deltas": ("strings", False),
        "annotations": ("list", False),
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
    "item": {"item": ("object", True), "result": ("object", False)},
    "failed": {"code": ("string", True), "message": ("string", False)},
    "incomplete": {"reason": ("string", False)},
    "error": {"code": ("string", False), "message": ("string", False), "param": ("string", False)},
    "event": {"event": ("object", True)},
    "raw": {"data": ("string", True)},
    "comment": {"text": ("string", False)},
    "wait": {"ms": ("duration", True)},
    "gate": {"name": ("string", True)},
}
#: Items that end a reply: nothing may follow them, because no server sends anything after them.
FINAL_KINDS = ("failed", "incomplete", "error")


def parse(value: object) -> Script:
    """Read a decoded script; raises `BadScript` (a sentence) when it is not one.

    A bare list is taken for the list of turns, and a string in place of an item for a text item.
    """
    if isinstance(value, list):
        value = {"turns": value}
    if not isinstance(value, dict):
        raise BadScript(f'A script is a JSON object with a list "turns", but this is {_name(value)}.')
    _check_keys(value, SCRIPT_KEYS, "the script", "a script")
    defaults = value.get("defaults", {})
    _check_keys(defaults, {k: v for k, v in TURN_KEYS.items() if k not in ("items", "match")}, "defaults", "the defaults")
    turns = tuple(_turn(turn, defaults, f"turns[{i}]") for i, turn in enumerate(value.get("turns", [])))
    models = value.get("models", [])
    for i, model in enumerate(models):
        _expect_object(model, f"models[{i}]")
    auth = value.get("auth", "auto")
    return Script(
        turns,
        value.get("otherwise", "miss"),
        {"mode": auth} if isinstance(auth, str) else {"mode": "chatgpt", **auth},
        tuple(models),
        value.get("rate_limits"),
        tuple(value.get("rules_off", ())),
        value.get("answers", {}),
        value.get("account"),
        value.get("git", {}),
    )


def _turn(value: object, defaults: Mapping[str, Any], where: str) -> Turn:
    if isinstance(value, str):
        value = {"items": [value]}
    turn = _expect_object(value, where)
    _check_keys(turn, TURN_KEYS, where, "a turn")
    turn = {**defaults, **turn}
    items = tuple(_item(item, f"{where}.items[{i}]") for i, item in enumerate(turn.get("items", [])))
    for i, item in enumerate(items[:-1]):
        if item["type"] in FINAL_KINDS:
            raise BadScript(
                f'{where}.items[{i}] is "{item["type"]}", which ends a reply, but more items follow: make it the last item.'
            )
    if turn.get("status", 200) == 200 and (turn.get("error") is not None or turn.get("body") is not None):
        raise BadScript(f'{where} has an "error" or a "body" but no "status": give the HTTP status, for instance 500.')
    if items and turn.get("status", 200) != 200:
        raise BadScript(f'{where} has "items" and status {turn["status"]}: an error answer carries no items, leave one out.')
    fields: dict[str, Any] = {k: v for k, v in turn.items() if k not in ("about", "items", "match", "headers", "fault")}
    fields["items"] = items
    fields["headers"] = _headers(turn.get("headers", {}))
    match = turn.get("match", {})
    fields["match"] = {"prompt": match} if isinstance(match, str) else match
    for key in ("match", "expect"):
        if wrong := vocabulary_error(fields.get(key, {})):
            raise BadScript(f"{where}.{key}: {wrong}")
    fault = turn.get("fault")
    fields["fault"] = {"name": fault} if isinstance(fault, str) else fault
    if fields.get("times") == "always":
        fields["times"] = None
    return Turn(**fields)


def _item(value: object, where: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        return {"type": "text", "text": value}
    item = _expect_object(value, where)
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in ITEM_KEYS:
        near = _near(str(kind), ITEM_KEYS)
        raise BadScript(f'{where}: "{kind}" is no kind of item{near}. The kinds are {_list(ITEM_KEYS)}.')
    rest = {key: given for key, given in item.items() if key != "type"}
    _check_keys(rest, ITEM_KEYS[kind], where, f"a {kind} item")
    whole = {"text": "text", "refusal": "refusal", "function_call": "arguments", "custom_tool_call": "input"}.get(kind)
    if whole and "deltas" in item and isinstance(item.get(whole), str) and "".join(item["deltas"]) != item[whole]:
        raise BadScript(f'{where}: the "deltas" do not join to the "{whole}": a client would see two different texts.')
    return item


def _check_keys(value: object, table: Mapping[str, tuple[Any, bool]], where: str, what: str) -> None:
    for key, given in _expect_object(value, where).items():
        if key not in table:
            raise BadScript(f'{where}: "{key}" is not a key of {what}{_near(key, table)}. Its keys are {_list(table)}.')
        wanted = table[key][0]
        if isinstance(wanted, tuple):
            if given not in wanted:
                raise BadScript(f"{where}.{key} must be one of {_list(wanted)}, not {_name(given)}.")
            continue
        meaning, test = CHECKS[wanted]
        if not test(given):
            raise BadScript(f"{where}.{key} must be {meaning}, not {_name(given)}.")
    for key, (_, required) in table.items():
        if required and key not in value:  # type: ignore[operator]
            raise BadScript(f'{where}: {what} needs "{key}".')


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_answers(value: object) -> bool:
    """Tell whether this is method -> an answer or a list of them, each with exactly one of `result` and `error`."""
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


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


CHECKS: dict[str, tuple[str, Any]] = {
    "any": ("anything", lambda v: True),
    "string": ("a string", lambda v: isinstance(v, str)),
    "boolean": ("true or false", lambda v: isinstance(v, bool)),
    "object": ("an object", lambda v: isinstance(v, dict)),
    "list": ("a list", lambda v: isinstance(v, list)),
    "strings": ("a list of strings", _is_strings),
    "text or texts": ("a string or a list of strings", lambda v: isinstance(v, str) or _is_strings(v)),
    "arguments": ("an object, or a string that is sent as it stands", lambda v: isinstance(v, dict | str)),
    "auth": ('"auto", "none", "api_key", "chatgpt" or an object', lambda v: isinstance(v, dict | str)),
    "answers": ('an object of method names, each with {"params", "result" or "error"} or a list of these', _is_answers),
    "account": ('"api_key", "chatgpt" or an object with "type"', lambda v: v in ("api_key", "chatgpt") or isinstance(v, dict)),
    "match": ("a marker (string) or an object", lambda v: isinstance(v, str | dict) and v != ""),
    "times": ('a whole number from 1, or "always"', lambda v: v == "always" or (_is_int(v) and v > 0)),
    "status": ("an HTTP status from 200 to 599", lambda v: _is_int(v) and 200 <= v <= 599),
    "headers": (
        "an object of strings, or a list of [name, value] pairs",
        lambda v: (
            (isinstance(v, dict) and all(isinstance(x, str) for x in v.values()))
            or (isinstance(v, list) and all(_is_strings(pair) and len(pair) == 2 for pair in v))
        ),
    ),
    "usage": (
        "null, or an object of whole numbers",
        lambda v: v is None or (isinstance(v, dict) and all(_is_int(x) for x in v.values())),
    ),
    "size": ("a whole number from 1", lambda v: _is_int(v) and v > 0),
    "write": ('"event", "whole" or a number of bytes', lambda v: v in ("event", "whole") or (_is_int(v) and v > 0)),
    "duration": ("a number of milliseconds from 0", lambda v: _is_number(v) and v >= 0),
    "fault": (
        'the name of a fault, or an object with "name"',
        lambda v: isinstance(v, str) or (isinstance(v, dict) and "name" in v),
    ),
}


def _headers(value: Mapping[str, str] | list[list[str]]) -> tuple[tuple[str, str], ...]:
    pairs = value if isinstance(value, list) else value.items()
    return tuple((name, text) for name, text in pairs)


def _expect_object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadScript(f"{where} must be an object, not {_name(value)}.")
    return value


def _near(word: str, words: Mapping[str, Any]) -> str:
    import difflib  # only for a mistake: it would cost every start

    near = difflib.get_close_matches(word, list(words), 1)
    return f' (did you mean "{near[0]}"?)' if near else ""


def _list(words: Any) -> str:
    return ", ".join(words)


def _name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    shown = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) < 60 else shown[:57] + "..."
