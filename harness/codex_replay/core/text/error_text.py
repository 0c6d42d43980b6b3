"""Format an error as a text for people."""

from __future__ import annotations


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
