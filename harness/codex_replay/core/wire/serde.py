"""Read a client's line as serde_json reads it, the JSON reader of the real server.

This module handles the JSON texts that Python's reader reads differently from serde_json.

The server refuses a line if it contains a lone surrogate, or more than 127 nested values at any place. The server refuses a
message that has the same member twice. The server accepts a request in the form of a list that contains the request's
members in order. The reading of numbers depends on the version of Codex (see `read`). Sources: the real 0.92.0
(tests/data/bad_lines.ndjson), the real 0.169.0 (tests/data/numbers.ndjson). The program fake-codex loads this module at
start-up. To save time, `read` examines a line in detail only if the line contains certain substrings.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, dumps, finite, loads, members, scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH = 127  # of nested lists and objects, the message's own included
#: The members that the types of a message have; any other may be there twice.
_MEMBERS = ("id", "method", "params", "result", "error")
_QUOTED = tuple(f'"{name}"'.encode() for name in _MEMBERS)
_INTEGERS = range(-(2**63), 2**64)  # i64 and u64
_WIDE_INTEGERS = range(-(2**127), 2**128)  # i128 and u128
_DIGITS = 39  # of the longest integer of _WIDE_INTEGERS
#: The key of the map that serde_json puts in the place of a number that it keeps as a text.
_NUMBER = "$serde_json::private::Number"


class Named(float):
    """A float of a client; `named` is the text for the float in the real server's error messages."""

    named = "map"


def float_text(value: float, plus: str = "") -> str:
    """Return the text of a float in the form that serde_json writes.

    With `plus`, write `e+16` in place of `e16`, as newer versions of serde_json do.
    """
    text = repr(value)
    mantissa, found, exponent = text.partition("e")
    if not found:
        return text
    power = int(exponent)
    if power == -5:
        return _without_exponent(mantissa, power)
    return f"{mantissa}e{plus if power > 0 else ''}{power}"


def _without_exponent(mantissa: str, power: int) -> str:
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = whole + fraction
    return sign + (f"0.{'0' * (-power - 1)}{digits}" if power < 0 else digits.ljust(power + 1, "0"))


def _integer(text: str) -> int | float:
    """Read an integer of a client. The integer `-0`, or one that does not fit into 64 bits, becomes a double."""
    if len(text) < 21 and text != "-0" and (value := int(text)) in _INTEGERS:
        return value
    return finite(text)


def _number(text: str) -> Any:
    """Read a number of a client without a change of its text.

    If a float has exactly the text of the number, return this float; otherwise return a map with the text, as serde_json
    does.
    """
    value = float(text)
    mantissa, found, exponent = text.lower().partition("e")
    if value - value:
        return {_NUMBER: text}
    if found and exponent[0] not in "+-":
        exponent = "+" + exponent
    named = float_text(value, "+")
    short, scientific, power = named.partition("e")
    if mantissa + found + exponent not in (named, _without_exponent(short, int(power)) if scientific else named):
        return Named(value)
    if "+" not in named:
        return value
    value = Named(value)
    value.named = f"floating point `{named}`"
    return value


def _wide_integer(text: str) -> Any:
    """Read an integer of a client. An integer that does not fit into 128 bits is kept as a text."""
    if len(text) <= _DIGITS + 1 and (value := int(text)) in _WIDE_INTEGERS:
        return value
    return _number(text)


_scan_doubles, _scan_texts = scanner(finite, _integer), scanner(_number, _wide_integer)


def read(line: bytes, texts: bool = False) -> Any:
    """Return the message that the real server reads from a client's line.

    Return None if the server reads no message from the line and sends no answer. A number that does not fit into an integer
    of 64 bits becomes a double; if it is out of the range of a double, the line is refused. With `texts` (newer versions of
    Codex), the text of a number that does not fit is kept, and no number is out of range. A number whose text is kept
    becomes a map, which the server refuses where it expects a number.
    """
    try:
        value = loads(line, _scan_texts if texts else _scan_doubles)
    except NotJson:
        return None
    if type(value) is list:
        value = dict(zip(_MEMBERS, value, strict=False)) if 2 <= len(value) <= 3 else None  # a list of a request's members
    if type(value) is not dict or not _is_readable(line, value):
        return None
    doubled = any(line.count(name) > 1 for name in _QUOTED)
    if (doubled or b"\\u" in line) and line.lstrip()[:1] == b"{" and not _is_plain(line, value):
        return None
    if type(value.get("params")) is Named and value["params"].named == "map":
        value["params"] = {_NUMBER: dumps(value["params"]).decode()}
    return value


def wide_integer(value: Any) -> str | None:
    """Return the error for the first integer of more than 64 bits in the params of a request, or None."""
    todo = [value]
    while todo:
        one = todo.pop()
        if type(one) is int and one not in _INTEGERS:
            return f"invalid type: integer `{one}` as {'u' if one > 0 else 'i'}128, expected any value"
        if type(one) in (list, dict):
            todo += reversed(one.values() if type(one) is dict else one)
    return None


def _is_readable(line: bytes, value: Any) -> bool:
    try:
        dumps(value)
    except ValueError:
        return False  # a lone surrogate
    return not (line.count(b"[") + line.count(b"{") > DEPTH and _depth(value) > DEPTH)


def _depth(value: Any) -> int:
    """Return the nesting depth of lists and objects."""
    deep, level = 0, [value]
    while level := [one for one in level if type(one) in (list, dict)]:
        deep += 1
        level = [inner for one in level for inner in (one.values() if type(one) is dict else one)]
    return deep


def _is_plain(line: bytes, value: dict[str, Any]) -> bool:
    """Return True if no member of a JSON-RPC message occurs twice in the line."""
    names = [name for name, _, _ in members(str(line, "utf-8"))]
    counted = ["id", "method", "params"] if "method" in value else ["id", "result" if "result" in value else "error"]
    return all(names.count(name) < 2 for name in counted)
