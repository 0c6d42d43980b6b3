"""Format an error as a text for people, and any value of a user's code, even if the value's own methods raise errors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def error_text(error: BaseException) -> str:
    """Return the message of an error.

    For an `OSError`, return the message of the operating system and the file name, without Python's `[Errno N]`.
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    name = error.filename
    if name is None:
        return error.strerror
    return f"{name.decode('utf-8', 'backslashreplace') if isinstance(name, bytes) else name}: {error.strerror}"


def describe(value: object, how: Callable[[object], str] = repr) -> str:
    """Return the text of a value, or a description of the value if its own `__repr__` (or `__str__`) raises."""
    try:
        return how(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose {how.__name__} raises {type(error).__name__}>"
