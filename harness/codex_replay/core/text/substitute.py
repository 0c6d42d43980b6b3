"""Replace paths and ids inside a text in one pass.

If two paths or ids begin at one place, the longer path or id is replaced. Only whole segments of a path are replaced.

For example, the path `/tmp` is replaced in `cat /tmp/x`, in `--dir=/tmp` and in `file:///tmp`, but not in `/var/tmp/x`,
`/tmpfile` or `/tmp.old`. The inserted text is not searched again. The searched text may be a string or bytes, plain or
inside JSON at any depth (`\\n/tmp`). This module does not import `re`, because fake-codex loads this module at start-up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import AnyStr

_WINDOW = 24  # characters on either side of a path that decide whether it is one: an escape at some depth, and a little more


def substitute(data: AnyStr, new: Callable[[AnyStr], AnyStr], paths: Iterable[AnyStr], ids: Iterable[AnyStr] = ()) -> AnyStr:
    """Return `data` with each old path and id replaced by `new(old)`. If nothing is replaced, return the same object.

    No path may have a trailing slash; the root directory `/` is allowed only as a new path. An id must end at a word
    boundary: `redacted-1` does not match in `redacted-12`.
    """
    found = [(at, -len(old), old) for old in paths for at in _find(data, old) if _is_path(data, at, at + len(old))]
    found += [(at, -len(old), old) for old in ids for at in _find(data, old) if not _goes_on(_after(data, at + len(old)))]
    if not found:
        return data
    done = 0
    parts: list[AnyStr] = []
    for at, _, old in sorted(found):
        if at >= done:  # else it is a part of a longer one
            put, end = new(old), at + len(old)
            is_root = _text(put[-1:]) == "/" == _text(data[end : end + 1])
            parts.append(data[done:at])
            parts.append(put[:-1] if is_root else put)
            done = end
    parts.append(data[done:])
    return data[:0].join(parts)


def _find(data: AnyStr, old: AnyStr) -> Iterator[int]:
    at = data.find(old)
    while at >= 0:
        yield at
        at = data.find(old, at + 1)


def _is_path(data: AnyStr, start: int, end: int) -> bool:
    """Return True if `start` is the beginning of a path, and `end` is the end of one of the path's segments."""
    after = _after(data, end)
    if _in_segment(after) or (after[:1] == "." and _is_word(after[1:])):
        return False
    before = _text(data[max(0, start - _WINDOW) : start])
    if before.endswith("/"):
        return before.endswith(("://", "=//")) or (_is_border(before[:-2]) and before[-2:] in ("a/", "b/"))  # file:///x, a//x
    return _is_border(before)


def _is_border(before: str) -> bool:
    """Return True if a path can begin after the text `before`.

    A path can begin after an escape or a flag (`-I/x`), but not inside a path segment or after a dot.
    """
    last = _unescaped(before[-6:]) or before[-1:]
    if not _in_segment(last) and last not in (".", "/"):
        return True
    flag = before[-2:-1] == "-" and last.isupper() and not _in_segment(before[-3:-2])
    return flag or (before[-2:-1] == "\\" and last in "nrtbf")


def _after(data: AnyStr, end: int) -> str:
    """Return the character at an offset, and a few more characters.

    If the character is escaped, decode it, at any depth of nesting.
    """
    after = _text(data[end : end + _WINDOW])
    if after[:2] == "\\\\":
        after = "\\" + after.lstrip("\\")
    return _unescaped(after[:6]) + after[6:] if _unescaped(after[:6]) else after


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "ignore")


def _unescaped(text: str) -> str:
    """Return the character that a JSON escape of six characters encodes; "" for any other text."""
    if len(text) != 6 or text[:2] != "\\u":
        return ""
    try:
        return chr(int(text[2:], 16))
    except ValueError:
        return ""


def _in_segment(text: str) -> bool:
    return _goes_on(text) or text[:1] == "~"


def _goes_on(text: str) -> bool:
    return _is_word(text) or text[:1] == "-"


def _is_word(text: str) -> bool:
    return text[:1].isalnum() or text[:1] == "_"
