"""Find out why two values differ between two runs, and make a mask that ignores the difference: by key, by header or by text.

Strategy: a number that looks like a recent time always counts as a time. Other numbers and texts are masked by their key, unless
the key is an important word of the protocol (`STRUCTURE`). A text is masked only if it has the form of a value that changes: a
time, a path, or random digits. In a longer text, only the digits that differ are masked; the words before the digits become the
pattern of the mask.
"""

from __future__ import annotations

import re
from typing import Any

from codex_replay.core.text.numbers import whole_number
from codex_replay.protocol.learning.leaves import Leaf

#: Keys whose values carry the meaning of a frame: a mask for one of them would hide true differences.
STRUCTURE = frozenset(
    {
        *("id", "type", "method", "status", "text", "delta", "name", "role", "code", "message", "command", "decision", "kind"),
        *("phase", "model", "query", "input", "output", "content", "arguments", "success", "error", "result", "params"),
        *("usage", "total", "last", "inputTokens", "outputTokens", "totalTokens"),
        *("input_tokens", "output_tokens", "total_tokens"),
    }
)
#: Keys whose texts say which thing or what kind of thing it is: no part of them is masked.
IDENTITY = frozenset(
    {"id", "type", "method", "status", "name", "role", "kind", "call_id", "callId", "itemId", "item_id", "delta"}
)
_SECONDS = (1.5e9, 4e9)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d\S*")
_RANDOM = re.compile(r"(?=\D*\d)[0-9a-fA-F]{6,}|(?=.*\d)[0-9A-Za-z_+/=-]{16,}")
#: The parts of a text that may be volatile: digits with letters, or numbers.
_WORD = re.compile(r"\d+(?:\.\d+)?|[0-9a-f]*\d[0-9a-f]*")
#: The name of a member in a JSON text, right before its value.
_MEMBER = re.compile(r'"[A-Za-z_]\w*":"?$')
#: As many characters before a volatile part name it, and so many letters at least.
BEFORE, LETTERS = 32, 3


def by_key(leaf: Leaf) -> str | None:
    """Return the reason why the value of `leaf` changes from run to run, such as "time", for a mask by key.

    Return None if the key must not be masked.
    """
    left, right = leaf.left, leaf.right
    if type(left) in (int, float):
        if _is_time(left) and _is_time(right):
            return "time"
        if leaf.key in STRUCTURE or not leaf.key:
            return None
        return "duration" if _names_duration(leaf.key) else "number"
    if type(left) is not str or leaf.key in STRUCTURE or not leaf.key:
        return None
    if _ISO.fullmatch(left) and _ISO.fullmatch(right):
        return "time"
    if left.startswith("/") and right.startswith("/") and "\n" not in left:
        return "path"
    if left.isdigit() and right.isdigit():
        both = whole_number(left), whole_number(right)
        return "time" if all(each is not None and _is_time(each) for each in both) else "number"
    if _RANDOM.fullmatch(left) and _RANDOM.fullmatch(right):
        return "random"
    return None


def _names_duration(key: str) -> bool:
    small = key.lower()
    return any(word in small for word in ("duration", "elapsed", "seconds")) or small.endswith(("ms", "_ms"))


def _is_time(value: float) -> bool:
    return any(low <= value / unit <= high for low, high in (_SECONDS,) for unit in (1, 1e3, 1e6, 1e9))


def by_text(left: str, right: str) -> list[dict[str, Any]]:
    """Return the rows of the table "strings" that mask the differences of two texts.

    Return [] if the texts differ in more than digits.
    """
    one, other = _WORD.split(left), _WORD.split(right)
    if one != other:
        return []
    rows = []
    for a, b in zip(_WORD.finditer(left), _WORD.finditer(right), strict=True):
        if a[0] == b[0]:
            continue
        row = _row(left[: a.start()], a[0], b[0])
        if row is None:
            return []
        rows.append(row)
    return rows


def _row(before: str, one: str, other: str) -> dict[str, Any] | None:
    """Return the row that masks a part of a text after the words `before` it."""
    member = _MEMBER.search(before)
    words = member[0] if member else re.split(r"[\d\n]", before)[-1][-BEFORE:]
    if words.rfind("<") > words.rfind(">"):
        return None  # the number of a name that the normaliser gave
    words = words[words.rfind(">") + 1 :]
    if sum(c.isalpha() for c in words) < LETTERS:
        return None
    numbers = all(part.replace(".", "").isdigit() for part in (one, other))
    if not numbers and len(one) != len(other):
        return None
    form = r"\d+(?:\.\d+)?" if numbers else f"[0-9a-f]{{{len(one)}}}(?![0-9a-z])"
    time = numbers and _is_time(float(one)) and _is_time(float(other))
    what = "time" if time else "number" if numbers else "random"
    return {"has": [words], "pattern": f"(?<={re.escape(words)}){form}", "replace": f"<{what}>"}
