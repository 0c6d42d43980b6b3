"""Make pytest's reports encodable as UTF-8: the output of a broken program may contain text that UTF-8 cannot encode.

For example, a JSON text can contain a lone surrogate in escaped form (`\\ud800`), and a failure message quotes the decoded
text. The plugin pytest-xdist cannot send a text with a lone surrogate, and would end the whole run. Before a report is
sent, each lone surrogate is replaced by its escape sequence.

A report of pytest has about a hundred small values, and pytest-xdist encodes each value in Python, which is slow.
Therefore, pytest-xdist gets only one value: the report as bytes, written by Python's `marshal`. `marshal` keeps all types,
tuples included, and is fast because it is written in C.
"""

from __future__ import annotations

import marshal
from typing import Any

#: Under which key a packed report is.
PACKED = "codex-replay-packed"
#: Of marshal's format; every Python reads it, and it has no references between values.
_VERSION = 2


def encodable(value: Any) -> Any:
    """Return a value of dictionaries, lists and texts with every lone surrogate escaped."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(encodable(inner) for inner in value)
    return value


def packed(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report that pytest-xdist can send as one value.

    If `marshal` cannot write the report, only replace the lone surrogates in its texts.
    """
    try:
        data = marshal.dumps(report, _VERSION)
    except ValueError:
        return encodable(report)  # type: ignore[no-any-return]
    # marshal writes a lone surrogate as three bytes, of which the first is this one; so do other characters begin, of course.
    if b"\xed" in data:
        data = marshal.dumps(encodable(report), _VERSION)
    return {PACKED: data}


def unpack(report: dict[str, Any]) -> None:
    """Unpack a report that the function `packed` has packed; other reports stay unchanged."""
    data = report.pop(PACKED, None)
    if isinstance(data, bytes):
        report.update(marshal.loads(data))
