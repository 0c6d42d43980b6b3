"""The script of a fake model: it decides which reply each request gets.

A script is JSON: `{"turns": [{"items": ["Hello"]}]}`. Each turn answers one request. The order of the turns, or a marker in
the prompt, selects the turn. The page docs/scripts.md explains scripts; the tables in the module `keys` define the whole
format. The function `parse` converts a decoded JSON value to a `Script`, or raises `BadScript`. The message of `BadScript`
names the place of the error and the next step. The kinds of items are those that a model sends (LITE-48 to LITE-62, and the
types of the openai package).
"""

from __future__ import annotations

from codex_replay.core.value import EMPTY, Value
from codex_replay.core.wire.json_text import compact
from codex_replay.protocol.script.expect import pattern_of, vocabulary_error
from codex_replay.protocol.script.hints import listed, named, near, ours, rewritten
from codex_replay.protocol.script.keys import (
    FINAL_KINDS,
    ITEM_KEYS,
    SCRIPT_KEYS,
    TURN_KEYS,
    USAGE_KEYS,
    WEBSOCKET_KEYS,
    wrong_key,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class BadScript(ValueError):
    """The script is invalid; the text is a sentence with the place of the error and the correct form."""


class Turn(Value):
    """One reply of the model, and the conditions for the request that it answers.

    Times are in milliseconds, sizes in characters or bytes.

    If `usage` is None, the reply has no usage; if it is an empty mapping, the fake counts the tokens itself. `write`
    determines how the reply is cut into HTTP chunks: "event", "whole" or a number of bytes.
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
    """All turns of one session. `otherwise` is the answer to requests after the last turn: "miss" (status 501) or "default"."""

    turns: tuple[Turn, ...] = ()
    otherwise: str = "miss"
    auth: Mapping[str, Any] = _AUTO
    models: tuple[Mapping[str, Any], ...] = ()
    rate_limits: Mapping[str, Any] | None = None
    rules_off: tuple[str, ...] = ()
    answers: Mapping[str, Any] = EMPTY
    account: Any = None
    git: Mapping[str, Any] = EMPTY
    websocket: Mapping[str, Any] = EMPTY


def parse(value: object) -> Script:
    """Read a decoded script; raises `BadScript` with a sentence if it is invalid.

    A list stands for the list of turns, and a string in place of an item stands for a text item.
    """
    if isinstance(value, list):
        value = {"turns": value}
    if not isinstance(value, dict):
        raise BadScript(f'A script is a JSON object with a list "turns", but this is {named(value)}.')
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
        _websocket(value["websocket"], defaults) if "websocket" in value else EMPTY,
    )


def _websocket(given: str | Mapping[str, Any], defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of WebSockets as an object.

    `prewarm_turn` is the turn that answers a prewarm (a request that asks for no output).
    """
    if isinstance(given, str):
        return {"mode": given}
    _check_keys(given, WEBSOCKET_KEYS, "websocket", "websocket")
    turn = _turn(given["prewarm"], defaults, "websocket.prewarm") if "prewarm" in given else None
    return {"mode": "on", **given, "headers": _headers(given.get("headers", {})), "prewarm_turn": turn}


def _turn(value: object, defaults: Mapping[str, Any], where: str) -> Turn:
    if isinstance(value, str):
        value = {"items": [value]}
    turn = _object_or_text(value, where)
    _check_keys(turn, TURN_KEYS, where, "a turn")
    turn = {**defaults, **turn}
    if turn.get("usage") is not None:
        _check_keys(turn["usage"], USAGE_KEYS, f"{where}.usage", "the usage")
    items = tuple(_item(item, f"{where}.items[{i}]") for i, item in enumerate(turn.get("items", [])))
    for i, item in enumerate(items[:-1]):
        if item["type"] in FINAL_KINDS:
            raise BadScript(
                f'{where}.items[{i}] is "{item["type"]}", which ends a reply, but more items follow: make it the last item.'
            )
    if any(item["type"] == "queued" for item in items[1:]):
        raise BadScript(f'{where}: a "queued" item must be the first item, because a response is queued before it begins.')
    if turn.get("status", 200) == 200 and (turn.get("error") is not None or turn.get("body") is not None):
        raise BadScript(f'{where} has an "error" or a "body" but no "status". Add the HTTP status, for example 500.')
    if items and turn.get("status", 200) != 200:
        raise BadScript(
            f'{where} has "items" and status {turn["status"]}: an error response has no items. Remove "items" or "status".'
        )
    fields: dict[str, Any] = {k: v for k, v in turn.items() if k not in ("about", "items", "match", "headers", "fault")}
    fields["items"] = items
    fields["headers"] = _headers(turn.get("headers", {}))
    match = turn.get("match", {})
    fields["match"] = {"prompt": match} if isinstance(match, str) else match
    for key in ("match", "expect"):
        if wrong := vocabulary_error(fields.get(key, {})):
            raise BadScript(f"{where}.{key}: {wrong}")
    if (pattern := pattern_of(fields["match"])) is not None:
        _check_groups(pattern, items, where)
    fault = turn.get("fault")
    fields["fault"] = {"name": fault} if isinstance(fault, str) else fault
    if fault is not None and (status := turn.get("status", 200)) != 200:
        name = fields["fault"]["name"]
        raise BadScript(
            f'{where} has status {status} and the fault "{name}": an error response has no fault. Remove the fault or "status".'
        )
    if fields.get("times") == "always":
        fields["times"] = None
    return Turn(**fields)


def _check_groups(pattern: str, items: tuple[Mapping[str, Any], ...], where: str) -> None:
    """Raise `BadScript` if an item uses a group (such as `${2}`) that the pattern does not define."""
    import re  # only for a pattern: it would cost every start of a script

    compiled = re.compile(pattern)
    for name in re.findall(r"\$\{(\w+)\}", compact(list(items))):
        if name.isdecimal() and int(name) > compiled.groups:
            groups = f"{compiled.groups} group{'' if compiled.groups == 1 else 's'}"
            raise BadScript(f"{where}.items has ${{{name}}}, but the pattern has {groups}. Write ${{0}} for the whole match.")
        if name not in compiled.groupindex and (meant := near(name, compiled.groupindex)):
            raise BadScript(f"{where}.items has ${{{name}}}, which is not a group of the pattern{meant}.")


#: Item with deltas -> the key of the text that they join to.
_STREAMED = {
    "text": "text",
    "refusal": "refusal",
    "function_call": "arguments",
    "custom_tool_call": "input",
    "code_interpreter_call": "code",
    "mcp_call": "arguments",
    "audio": "transcript",
}


def _item(value: object, where: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        return {"type": "text", "text": value}
    item = _object_or_text(value, where)
    kind = item.get("type")
    if kind is None:
        raise BadScript(f'{where} has no "type". The types are {listed(ITEM_KEYS)}.')
    if not isinstance(kind, str) or kind not in ITEM_KEYS:
        raise BadScript(
            f'{where}: "{kind}" is not a kind of item{ours(str(kind), ITEM_KEYS) or near(str(kind), ITEM_KEYS)}. '
            f"The kinds are {listed(ITEM_KEYS)}."
        )
    rest = {key: given for key, given in item.items() if key != "type"}
    _check_keys(rest, ITEM_KEYS[kind], where, f"a {kind} item")
    whole = _STREAMED.get(kind)
    if whole and "deltas" in item and whole in item and "".join(item["deltas"]) != _as_text(item[whole]):
        raise BadScript(f'{where}: the joined "deltas" differ from the "{whole}": a client would see two different texts.')
    return item


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


def _check_keys(value: object, table: Mapping[str, tuple[Any, bool]], where: str, what: str) -> None:
    wrong = wrong_key(_expect_object(value, where), table, where, what)
    if wrong is not None:
        raise BadScript(wrong)


def _headers(value: Mapping[str, str] | list[list[str]]) -> tuple[tuple[str, str], ...]:
    pairs = value if isinstance(value, list) else value.items()
    return tuple((name, text) for name, text in pairs)


def _object_or_text(value: object, where: str) -> dict[str, Any]:
    """Return a turn or an item if it is an object, otherwise raise `BadScript`; the caller has already handled texts."""
    if not isinstance(value, dict):
        quoted = rewritten(value, lambda each: isinstance(each, str))
        raise BadScript(f"{where} must be a string or an object, not {named(value)}.{quoted}")
    return value


def _expect_object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadScript(f"{where} must be an object, not {named(value)}.")
    return value
