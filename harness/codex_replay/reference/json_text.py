"""The functions `loads` and `dumps` of the standard `json`, with a faster import.

The faster import is for programs that are started for a single prompt. The standard `json` imports `re`, which takes as
long as everything else that a program for one prompt does. The C part of `json` needs no `re`, and is called directly. If
the C part cannot read a text, the standard `json` is called, which raises the error.
"""

from __future__ import annotations

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WHITE_SPACE = " \t\n\r"
CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}


class Usual:
    """The default decoder of `json.loads`."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = CONSTANTS.__getitem__


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text; raises ValueError for an invalid text."""
    try:
        whole = (text if isinstance(text, str) else str(text, "utf-8")).strip(WHITE_SPACE)
        value, end = _scan(whole, 0)
        if end == len(whole):
            return value
    except (ValueError, StopIteration, SystemError):
        pass
    import json

    return json.loads(text)


def dumps(value: Any, *, ensure_ascii: bool = True) -> str:
    """Return a value as a JSON text of one line."""
    return "".join((_encode_ascii if ensure_ascii else _encode)(value, 0))


def _encoder(string: Any) -> Any:
    return _json.make_encoder(None, None, string, None, ": ", ", ", False, False, True)  # type: ignore[arg-type]


_scan = _json.make_scanner(Usual)  # type: ignore[arg-type]
_encode, _encode_ascii = _encoder(_json.encode_basestring), _encoder(_json.encode_basestring_ascii)
