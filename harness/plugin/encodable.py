"""Makes reports such as can be sent: what a broken subject said may hold what has no form in UTF-8.

JSON may escape a lone surrogate, and a failure then tells of it. pytest-xdist cannot send such a text, and would end the whole
run over it; so in what it sends the surrogate stands as its escape.
"""

from __future__ import annotations

from typing import Any


def encodable(value: Any) -> Any:
    """Return a value of plain dictionaries, lists and texts with its lone surrogates escaped."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(encodable(inner) for inner in value)
    return value
