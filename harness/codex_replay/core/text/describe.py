"""Describe any value of a user's code as text, even if the value's own methods raise errors."""

from __future__ import annotations

from collections.abc import Callable


def describe(value: object, how: Callable[[object], str] = repr) -> str:
    """Return the text of a value, or a description of the value if its own `__repr__` (or `__str__`) raises."""
    try:
        return how(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose {how.__name__} raises {type(error).__name__}>"
