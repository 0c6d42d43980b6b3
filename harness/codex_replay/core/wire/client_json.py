"""Decode the JSON that a client sent, within limits.

All servers of this project decode the JSON of clients with this module. A JSON text is refused (`NotJson`) if reading or writing
it could end or block the process. A text is refused if it is nested too deeply for a recursive reader. A text is refused if it
has too many tokens or escapes. A text is refused if a number has too many digits, or is out of the range of a float. A text is
refused if it contains half a surrogate pair, which has no UTF-8 form. Sources: `MAX_DEPTH` is the limit of serde_json, which
Codex reads with; this project chose the other limits.

A long text is read with the package jiter, in less than half the time of Python's reader. If jiter refuses a text, Python's
reader reads the text again, so the limits and the refusals do not depend on jiter.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from codex_replay.core.wire.json_text import NotJson, OutOfBounds, OutOfRange, dumps, loads, scan_finite

#: How many arrays and objects may be in each other.
MAX_DEPTH = 128
#: The maximum number of tokens of a text: strings, commas and opening brackets. So many take about 0.2 s to decode and check.
MAX_TOKENS = 500_000
#: The maximum number of escapes in the strings of a text: so many take about 0.2 s and 200 MB to decode, and other threads wait.
MAX_ESCAPES = 2_000_000
#: A text of so many bytes is read with jiter; a shorter one takes Python's reader a few microseconds.
_LONG = 2048
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[,\[{]', re.DOTALL)
_CHECKED = frozenset((dict, list, float))
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


def read(data: bytes) -> Any:
    """Return the value of one JSON text.

    Raises `NotJson` for a refused text; the message is the reason, as part of a sentence.
    """
    if len(data) > MAX_ESCAPES and data.count(b"\\") - data.count(b"\\\\") > MAX_ESCAPES:
        raise OutOfBounds(f"it has more than {MAX_ESCAPES:,} escapes")
    if len(data) > MAX_TOKENS and _tokens(data) > MAX_TOKENS:
        raise OutOfBounds(f"it has more than {MAX_TOKENS:,} tokens")
    if len(data) >= _LONG and (value := _fast(data)) is not None:
        check_size(value)
        return value
    shallow = data.count(b"[") + data.count(b"{") <= MAX_DEPTH
    try:
        value = loads(data, scan_finite)
    except OutOfRange:  # it counts only if no later value has the same key
        value, shallow = loads(data), False
    if not shallow:
        check_size(value)
    if b"\\u" in data and _HALF_PAIR.search(data) is not None:
        try:
            dumps(value)
        except UnicodeEncodeError:
            raise NotJson("it has an unpaired surrogate, which is not a character") from None
    return value


def _fast(data: bytes) -> Any:
    """Return the value of a JSON text, or None if jiter refuses the text. jiter must also refuse an unpaired surrogate."""
    from jiter import from_json  # most programs read no long text: it would slow every start

    try:
        return from_json(data, allow_inf_nan=False, cache_mode="none")
    except ValueError:
        return None


def out_of_bounds(data: bytes) -> str | None:
    """Return the reason why a text is nested too deeply or is too large, or None. The text need not be valid JSON."""
    try:
        read(data)
    except OutOfBounds as error:
        return str(error)
    except NotJson:
        return None
    return None


def check_size(value: Any) -> None:
    """Raise `NotJson` for a decoded value that is nested too deeply, is too large, or has a number out of range.

    The value of a YAML alias counts once for each use of the alias.
    """
    level: list[Any] = [[value]]
    depth, total = -1, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise OutOfBounds(f"it is nested deeper than {MAX_DEPTH} levels")
        total += sum(map(len, level))
        if total > MAX_TOKENS:
            raise OutOfBounds(f"it has more than {MAX_TOKENS:,} values")
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _CHECKED and (type(inner) is not float or _is_out_of_range(inner))
        ]


def _is_out_of_range(number: float) -> bool:
    if number - number != 0:
        raise NotJson("a number in it is too large")
    return False


def _tokens(data: bytes) -> int:
    """Return the number of JSON tokens (brackets, strings, numbers, ...) in a text.

    If the number of tokens is surely below the limit, return only an estimate, because counting is slow.
    """
    most = data.count(b'"') // 2 + data.count(b",") + data.count(b"[") + data.count(b"{")
    if most <= MAX_TOKENS:
        return most
    return sum(1 for _ in islice(_TOKEN.finditer(data), MAX_TOKENS + 1))
