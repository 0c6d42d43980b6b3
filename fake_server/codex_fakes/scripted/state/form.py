"""The real server's errors for params of a wrong form, which it checks first.

Of which kind each member is is in forms.json. The words were found by sending each form to the real binary
(tests/data/refusals.ndjson); `codex_replay.protocol.refusals` has the errors of every method.
"""

from __future__ import annotations

from codex_fakes.scripted.state.ids import uuid_error
from codex_replay.protocol.refusals import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any


def malformed(request: Mapping[str, Any], methods: Mapping[str, str]) -> str | None:
    """Return the message that refuses a request for the form of its params; `methods` is `refusals.load_methods`."""
    params = request.get("params")
    if params is None:
        return None
    wanted = methods.get(request["method"])
    if wanted == "unit":
        return None if params == {} else f"Invalid request: invalid type: {type_name(params)}, expected unit"
    return _client(params) if request["method"] == "initialize" else None


def _client(params: Any) -> str | None:
    """Check the params of initialize: the member `clientInfo`."""
    if type(params) not in (dict, list):
        return None  # as for any other method
    if params == []:
        return "Invalid request: invalid length 0, expected struct InitializeParams with 1 element"
    if type(params) is dict and "clientInfo" not in params:
        return "Invalid request: missing field `clientInfo`"
    client = params["clientInfo"] if type(params) is dict else params[0]
    if type(client) is list:
        return f"Invalid request: invalid length {len(client)}, expected struct ClientInfo with 3 elements"
    if type(client) is not dict:
        return f"Invalid request: invalid type: {type_name(client)}, expected struct ClientInfo"
    for name in ("name", "title", "version"):
        if name in client and type(client[name]) is not str and not (name == "title" and client[name] is None):
            return f"Invalid request: invalid type: {type_name(client[name])}, expected a string"
    for name in ("name", "version"):
        if name not in client:
            return f"Invalid request: missing field `{name}`"
    return None


# -- the members, which are checked after the handshake ----------------------------------------------------------------------

_WORDS: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "path": (str, "path string"),
    "UUID": (str, "a UUID string"),
    "boolean": (bool, "a boolean"),
    "map": (dict, "a map"),
}
_NUMBERS = {"u32": 0xFFFFFFFF, "u64": 0xFFFFFFFFFFFFFFFF, "usize": 0xFFFFFFFFFFFFFFFF, "i64": 0x7FFFFFFFFFFFFFFF}


def misshapen(members: Mapping[str, Any], kinds: Mapping[str, str], forms: Mapping[str, Any]) -> str | None:
    """Return the real server's error for the first member of a wrong type; `forms` is forms.json.

    The real server reads the members in their order and ignores unknown ones. It checks for missing members afterwards.
    """
    for name, value in members.items():
        if name in kinds and (wrong := _wrong(value, kinds[name], forms)) is not None:
            return wrong
    return None


def _wrong(value: Any, kind: str, forms: Mapping[str, Any]) -> str | None:
    if kind[-1] == "?" and value is None:
        return None
    kind = kind.removesuffix("?")
    if kind[0] == "[":
        if type(value) is not list:
            return _unlike(value, "a sequence")
        return next((wrong for one in value if (wrong := _wrong(one, kind[1:-1], forms)) is not None), None)
    if kind in _WORDS:
        wanted, words = _WORDS[kind]
        if type(value) is not wanted:
            return _unlike(value, words)
        if kind == "UUID" and (error := uuid_error(str(value))) is not None:
            return f"UUID parsing failed: {error}"
        return None
    if kind in _NUMBERS:
        if type(value) is not int:
            return _unlike(value, kind)
        fits = (-_NUMBERS[kind] - 1 if kind[0] == "i" else 0) <= value <= _NUMBERS[kind]
        return None if fits else f"invalid value: {type_name(value)}, expected {kind}"
    if kind in forms["enums"]:
        return _no_word(value, forms["enums"][kind])
    name = kind.rstrip("2")
    if kind in forms["structs"]:
        if type(value) is not dict:
            return _no_list(value, forms["structs"][kind], name) if type(value) is list else _unlike(value, f"struct {name}")
        return misshapen(value, forms["structs"][kind], forms) or _missing(value, forms["structs"][kind])
    if kind in forms["tagged"]:
        return _tagged(value, name, forms["tagged"][kind], forms)
    return _item_v1(value, forms) if kind == "InputItem" else None


def misshapen_params(params: Any, method: str, forms: Mapping[str, Any]) -> str | None:
    """Return the real server's error for params that are not the object of the method; None if any object is valid."""
    kind = forms["params"].get(method)
    if kind is not None and kind.startswith("untagged enum "):
        return None if type(params) is dict else f"data did not match any variant of {kind}"
    return None if kind is None else _wrong(params, kind, forms)


def wrong_setting(config: Mapping[str, Any], kinds: Mapping[str, Any]) -> str | None:
    """Return the real server's error for the first key of a configuration with a value of a wrong kind.

    It reads the keys in their alphabetical order.
    """
    for key in sorted(config.keys() & kinds.keys()):
        value, kind = config[key], kinds[key]
        if value is None:
            continue
        if type(kind) is list:
            wrong = _no_setting(value, kind)
        elif kind.startswith("struct "):
            wrong = None if type(value) in (dict, list) else _unlike(value, kind)
        elif kind[0] == "{":
            for name, inner in value.items() if type(value) is dict else ():
                if type(inner) is not dict:
                    return f"{_unlike(inner, f'struct {kind[1:-1]}')}\nin `{key}.{name}`\n"
            wrong = None if type(value) is dict else _unlike(value, "a map")
        else:
            wrong = _wrong(value, kind, {})
        if wrong is not None:
            return f"{wrong}\nin `{key}`\n"
    return None


def _no_setting(value: Any, words: Collection[str]) -> str | None:
    """Check a setting with few values, which TOML may also write as a table of one key."""
    if type(value) is dict and len(value) == 1:
        (value,) = value
        return _unlike(None, "unit") if value in words else f"unknown variant `{value}`, {_one_of(words)}"
    if type(value) is not str:
        return "invalid type: unit variant, expected string only"
    return None if value in words else f"unknown variant `{value}`, {_one_of(words)}"


def _missing(members: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    return next((f"missing field `{name}`" for name in kinds if name not in members and kinds[name][-1] not in "?]"), None)


def _unlike(value: Any, expected: str) -> str:
    return f"invalid type: {type_name(value)}, expected {expected}"


def _one_of(words: Collection[str]) -> str:
    quoted = [f"`{word}`" for word in words]
    return f"expected {' or '.join(quoted)}" if len(quoted) < 3 else "expected one of " + ", ".join(quoted)


def _no_word(value: Any, words: Collection[str]) -> str | None:
    """Judge one of a few words, which may also be the one key of an object."""
    if type(value) is dict:
        if len(value) != 1:
            return "invalid value: map, expected map with a single key"
        ((value, within),) = value.items()
        if value in words:
            return None if within is None else _unlike(within, "unit variant")
    elif type(value) is not str:
        return _unlike(value, "string or map")
    return None if value in words else f"unknown variant `{value}`, {_one_of(words)}"


def _no_list(value: list[Any], members: Collection[str], name: str) -> str:
    """Refuse a list in place of an object (the real server takes one that is long enough, which no client sends)."""
    return f"invalid length {len(value)}, expected struct {name} with {len(members)} elements"


def _tagged(value: Any, name: str, rows: Mapping[str, Any], forms: Mapping[str, Any]) -> str | None:
    """Check an object whose `type` names its kind."""
    if type(value) not in (dict, list):
        return _unlike(value, f"internally tagged enum {name}")
    if not value or (type(value) is dict and "type" not in value):
        return "missing field `type`"
    kind = value["type"] if type(value) is dict else value[0]
    if type(kind) is int:
        return f"invalid value: {type_name(kind)}, expected variant index 0 <= i < {len(rows)}"
    if type(kind) is not str:
        return _unlike(kind, "variant identifier")
    if kind not in rows:
        return None if "other" in rows else f"unknown variant `{kind}`, {_one_of(rows)}"
    if type(value) is list:
        return _no_list(value, rows[kind], f"variant {name}::{kind}")
    if (wrong := misshapen(value, rows[kind], forms)) is not None:
        return wrong
    return _missing(value, rows[kind]) if name in ("UserInput", "LoginAccountParams") else None


def _item_v1(value: Any, forms: Mapping[str, Any]) -> str | None:
    """Judge an item of v1's input, whose `data` is apart from its `type`."""
    if type(value) is list:
        return f"invalid length {len(value)}, expected adjacently tagged enum InputItem"
    if type(value) is not dict:
        return _unlike(value, "adjacently tagged enum InputItem")
    kinds = {"text": {"text": "string"}, "image": {"image_url": "string"}, "localImage": {"path": "path"}}
    if "type" not in value:
        return "missing field `type`"
    if (wrong := _no_word(value["type"], kinds)) is not None:
        return wrong
    kind = value["type"] if type(value["type"]) is str else next(iter(value["type"]))
    if "data" not in value:
        return "missing field `data`"
    if type(value["data"]) is not dict:
        return _unlike(value["data"], f"struct variant InputItem::{kind[0].upper()}{kind[1:]}")
    if (wrong := misshapen(value["data"], kinds[kind], forms)) is not None:
        return wrong
    return _missing(value["data"], kinds[kind])
