"""Build the exact error responses with which the real app-server refuses requests.

This module covers requests that are refused before their params are used: a request before `initialize`, a second `initialize`,
an unknown method, missing params, and params of a wrong type. Source: REAL-81 to REAL-91, and the binary itself
(`data/<version>/methods.json`). The program fake-codex loads this module when a client makes an error, so it imports only the
core.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.serde import Named, float_text, wide_integer
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.versions import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INVALID_REQUEST = -32600
_INT64 = range(-(2**63), 2**63)


def load_methods(version: str = DEFAULT) -> dict[str, str]:
    """Return for each method the form that its `params` must have; the methods are in the order of the server's error messages.

    The form is "struct X", "option struct X" if params may be omitted, or "unit" if the method has no params.
    """
    methods: dict[str, str] = load("methods", version)
    return methods


def is_message(value: Any) -> bool:
    """Return True if the real server reads the value as a JSON-RPC message; the server does not answer other values."""
    if type(value) is not dict:
        return False
    if "id" in value and not (type(value["id"]) is str or (type(value["id"]) is int and value["id"] in _INT64)):
        return False
    if "method" in value:
        return type(value["method"]) is str
    if "error" in value and "result" not in value:
        error = value["error"]
        return "id" in value and type(error) is dict and type(error.get("code")) is int and type(error.get("message")) is str
    return "id" in value and "result" in value


def refusal(request: dict[str, Any], initialized: bool, methods: dict[str, str]) -> str | None:
    """Return the error message with which the server refuses a request (code -32600), or None if the server accepts its form."""
    method, params = request["method"], request.get("params")
    if method not in methods:
        names = ", ".join(f"`{name}`" for name in methods)
        return f"Invalid request: unknown variant `{method}`, expected one of {names}"
    if (wrong := wide_integer(params)) is not None:
        return f"Invalid request: {wrong}"
    wanted = methods[method]
    if params is None and wanted.startswith("option "):
        params = {}
    wanted = wanted.removeprefix("option ")
    if params is None and wanted != "unit":
        return "Invalid request: missing field `params`"
    if wanted.startswith("struct ") and type(params) not in (dict, list):
        return f"Invalid request: invalid type: {type_name(params)}, expected {wanted}"
    if method == "initialize":
        return "Already initialized" if initialized else None
    return None if initialized else "Not initialized"


def type_name(value: Any) -> str:
    """Return the name of a value's type, as in the error messages of Codex's JSON reader."""
    if value is None:
        return "null"
    if type(value) in (dict, list):
        return "map" if type(value) is dict else "sequence"
    if type(value) is bool:
        return f"boolean `{dumps(value).decode()}`"
    if type(value) is str:
        return "string " + dumps(value).decode()
    if type(value) is int:
        return f"integer `{value}`"
    return value.named if type(value) is Named else f"floating point `{float_text(value)}`"
