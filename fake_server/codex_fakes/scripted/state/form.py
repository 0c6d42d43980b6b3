"""The real server's errors for params with a wrong form.

The server checks the form of the params before anything else. The file forms.json has the type of each member of the
params. The error messages are those of the real binary, which was tried with each form (tests/data/refusals.ndjson). Errors
that do not depend on the method are in `codex_replay.protocol.refusals`.
"""

from __future__ import annotations

from codex_fakes.scripted.state.ids import uuid_error
from codex_replay.protocol.refusals import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any


def malformed(request: Mapping[str, Any], methods: Mapping[str, str]) -> str | None:
    """Return the error message for a request whose params have a wrong form.

    `methods` is the result of `refusals.load_methods`.
    """
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
_NUMBERS = {
    "u8": 0xFF,
    "u16": 0xFFFF,
    "u32": 0xFFFFFFFF,
    "u64": 0xFFFFFFFFFFFFFFFF,
    "usize": 0xFFFFFFFFFFFFFFFF,
    "i64": 0x7FFFFFFFFFFFFFFF,
}


def misread(request: Mapping[str, Any], version: str) -> str | None:
    """Return the error message for a request with an invalid member in its params, or None."""
    from codex_replay.protocol.data_tables import load
    from codex_replay.protocol.refusals import load_methods

    method, forms, answers = request["method"], load("forms", version), load("answers", version)
    params = {} if request.get("params") is None else request["params"]
    elements = answers["elements"].get(method)
    wrong = misshapen_params(params, method, forms)
    if wrong is None and type(params) is list and elements is not None and len(params) < elements:
        form = load_methods(version)[method].removeprefix("option ")
        what = f"{form} with {elements} element{'s' if elements > 1 else ''}"
        wrong = f"invalid length {len(params)}, expected {what}"
    if wrong is None and type(params) is dict:
        wrong = misshapen(params, forms["methods"].get(method, {}), forms)
        missing = next((name for name in answers["required"].get(method, ()) if name not in params), None)
        wrong = wrong or (f"missing field `{missing}`" if missing is not None else None)
    return None if wrong is None else f"Invalid request: {wrong}"


def misshapen(members: Mapping[str, Any], kinds: Mapping[str, str], forms: Mapping[str, Any]) -> str | None:
    """Return the real server's error for the first member with a wrong type.

    `forms` is the content of forms.json. The real server reads the members in their order, ignores unknown members, and then
    checks for missing members.
    """
    for name, value in members.items():
        if name in kinds and (wrong := wrong_value(value, kinds[name], forms)) is not None:
            return wrong
    return None


def wrong_value(value: Any, kind: str, forms: Mapping[str, Any]) -> str | None:
    """Return the error for a value that does not have the type `kind`, or None for a value of that type."""
    if kind[-1] == "?" and value is None:
        return None
    kind = kind.removesuffix("?")
    if kind == "any":
        return None
    if kind[0] == "[":
        if type(value) is not list:
            return unlike(value, "a sequence")
        return next((wrong for one in value if (wrong := wrong_value(one, kind[1:-1], forms)) is not None), None)
    if kind[0] == "{":
        return wrong_value(value, "map", forms) or wrong_value(list(value.values()), f"[{kind[1:-1]}]", forms)
    if kind in _WORDS:
        wanted, words = _WORDS[kind]
        if type(value) is not wanted:
            return unlike(value, words)
        if kind == "UUID" and (error := uuid_error(str(value))) is not None:
            return f"UUID parsing failed: {error}"
        return None
    if kind in ("absolute", "rooted"):
        if type(value) is not str:
            return unlike(value, "path string")
        return (
            None
            if value.startswith(("/", "~") if kind == "absolute" else "/")
            else "AbsolutePathBuf deserialized without a base path"
        )
    if kind == "ThreadId":
        return uuid_error(value) if type(value) is str else unlike(value, "a string")
    if kind == "effort":
        wrong = unlike(value, "a string") if type(value) is not str else None
        return "reasoning_effort must not be empty" if value == "" else wrong
    if kind == "f64":
        return None if type(value) in (int, float) or getattr(value, "named", "map") != "map" else unlike(value, "f64")
    if kind in _NUMBERS:
        if type(value) is not int:
            return unlike(value, kind)
        fits = (-_NUMBERS[kind] - 1 if kind[0] == "i" else 0) <= value <= _NUMBERS[kind]
        return None if fits else f"invalid value: {type_name(value)}, expected {kind}"
    if kind in forms["enums"]:
        return _no_word(value, forms["enums"][kind])
    name = kind.rstrip("2")
    if kind in forms["structs"]:
        if type(value) is not dict:
            return _no_list(value, forms["structs"][kind], name) if type(value) is list else unlike(value, f"struct {name}")
        return misshapen(value, forms["structs"][kind], forms) or (
            None if kind in forms.get("defaulted", ()) else _missing(value, forms["structs"][kind])
        )
    if kind in forms.get("untagged", ()):
        fits = any(wrong_value(value, each, forms) is None for each in forms["untagged"][kind])
        return None if fits else f"data did not match any variant of untagged enum {kind}"
    if kind in forms["tagged"]:
        return _tagged(value, name, forms["tagged"][kind], forms)
    return _item_v1(value, forms) if kind == "InputItem" else None


def misshapen_params(params: Any, method: str, forms: Mapping[str, Any]) -> str | None:
    """Return the real server's error for params that are not the object that the method expects.

    Return None if the method accepts any object.
    """
    kind = forms["params"].get(method)
    if kind is not None and kind.startswith("untagged enum "):
        return None if type(params) is dict else f"data did not match any variant of {kind}"
    return None if kind is None else wrong_value(params, kind, forms)


def _missing(members: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    return next((f"missing field `{name}`" for name in kinds if name not in members and kinds[name][-1] not in "?]"), None)


def unlike(value: Any, expected: str) -> str:
    """Return the error for a value of the wrong type."""
    return f"invalid type: {type_name(value)}, expected {expected}"


def one_of(words: Collection[str]) -> str:
    """Return a list of words in the form for an error message."""
    quoted = [f"`{word}`" for word in words]
    return f"expected {' or '.join(quoted)}" if len(quoted) < 3 else "expected one of " + ", ".join(quoted)


def _no_word(value: Any, words: Collection[str]) -> str | None:
    """Check a value that must be one of a few words, or an object whose only key is one of the words."""
    if type(value) is dict:
        if len(value) != 1:
            return "invalid value: map, expected map with a single key"
        ((value, within),) = value.items()
        if value in words:
            return None if within is None else unlike(within, "unit variant")
    elif type(value) is not str:
        return unlike(value, "string or map")
    return None if value in words else f"unknown variant `{value}`, {one_of(words)}"


def _no_list(value: list[Any], members: Collection[str], name: str) -> str:
    """Refuse a list in place of an object.

    The real server accepts a list that is long enough, but no client sends a list.
    """
    return f"invalid length {len(value)}, expected struct {name} with {len(members)} elements"


def _tagged(value: Any, name: str, rows: Mapping[str, Any], forms: Mapping[str, Any]) -> str | None:
    """Check an object whose `type` names its kind."""
    if type(value) not in (dict, list):
        return unlike(value, f"internally tagged enum {name}")
    if not value or (type(value) is dict and "type" not in value):
        return "missing field `type`"
    kind = value["type"] if type(value) is dict else value[0]
    if type(kind) is int:
        return f"invalid value: {type_name(kind)}, expected variant index 0 <= i < {len(rows)}"
    if type(kind) is not str:
        return unlike(kind, "variant identifier")
    if kind not in rows:
        return None if "other" in rows else f"unknown variant `{kind}`, {one_of(rows)}"
    if type(value) is list:
        return _no_list(value, rows[kind], f"variant {name}::{kind}")
    if (wrong := misshapen(value, rows[kind], forms)) is not None:
        return wrong
    if name == "ResponseItem":
        return next((f"missing field `{each}`" for each in forms["needs"].get(kind, ()) if each not in value), None)
    return (
        _missing(value, rows[kind])
        if name in ("UserInput", "LoginAccountParams", "ThreadItemsListAnchor", "DynamicToolSpec")
        else None
    )


def _item_v1(value: Any, forms: Mapping[str, Any]) -> str | None:
    """Check an input item of the v1 API, which has separate members `type` and `data`."""
    if type(value) is list:
        return f"invalid length {len(value)}, expected adjacently tagged enum InputItem"
    if type(value) is not dict:
        return unlike(value, "adjacently tagged enum InputItem")
    kinds = {"text": {"text": "string"}, "image": {"image_url": "string"}, "localImage": {"path": "path"}}
    if "type" not in value:
        return "missing field `type`"
    if (wrong := _no_word(value["type"], kinds)) is not None:
        return wrong
    kind = value["type"] if type(value["type"]) is str else next(iter(value["type"]))
    if "data" not in value:
        return "missing field `data`"
    if type(value["data"]) is not dict:
        return unlike(value["data"], f"struct variant InputItem::{kind[0].upper()}{kind[1:]}")
    if (wrong := misshapen(value["data"], kinds[kind], forms)) is not None:
        return wrong
    return _missing(value["data"], kinds[kind])


_SIGNS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def base64_error(text: str) -> str | None:
    """Return the real server's error for a text that is not valid base64, or None."""
    data = text.encode("utf-8", "replace")
    rest = len(data) % 4
    if rest == 1 and data[-1] not in _SIGNS + b"=":
        return f"Invalid symbol {data[-1]}, offset {len(data) - 1}."
    start = max(0, len(data) - (rest or 4))  # of the last group, which may have padding
    for offset, sign in enumerate(data):
        pads = offset >= start + 2 and not data[offset:].strip(b"=")
        if sign not in _SIGNS and not pads:
            return f"Invalid symbol {sign}, offset {offset}."
    end = len(data.rstrip(b"="))
    if data and end - start < 2:
        return f"Invalid input length: {end}"
    if rest:
        return "Invalid padding"
    unused = (0, 0, 15, 3)[(end - start) % 4]
    return f"Invalid last symbol {data[end - 1]}, offset {end - 1}." if data and _SIGNS.index(data[end - 1]) & unused else None
