"""Parse TOML faster than the standard module `tomllib`.

The parser understands a small part of TOML, which is enough for most configurations; for any other text, it calls
`tomllib`. `tomllib` imports `re`, `typing` and `datetime`, which takes longer than the rest of fake-codex's start-up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t"
_MOST_NAMES = 80  # of a key or of a table's head; the real server reads no file with more


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML document. Raises `ValueError` (`tomllib.TOMLDecodeError`) if the text is not TOML."""
    found = plain(text)
    if found is None:
        import tomllib

        found = tomllib.loads(text)
    return found


def is_too_deep(text: str) -> bool:
    """Return True if a key, or the head of a table, has more names than the real server reads.

    `tomllib` takes a time that grows with the square of the names.
    """
    for line in text.split("\n"):
        if line.count(".") >= _MOST_NAMES:
            head = line.strip(_SPACE)
            table = head[:1] == "["
            names = (head[1:-1] if table else line.partition("=")[0]).split(".")
            if len(names) > _MOST_NAMES and (table or "=" in line) and all(_is_bare(name.strip(_SPACE)) for name in names):
                return True
    return False


def plain(text: str) -> dict[str, Any] | None:
    """Parse a TOML document that has only `[tables]` and bare keys, each with a string, a whole number or a boolean.

    Return None for a document with other TOML, such as arrays or dates.
    """
    document: dict[str, Any] = {}
    table, heads = document, set()
    for line in text.split("\n"):
        line = line.strip(_SPACE)
        if not line.isprintable():
            return None
        if line[:1] == "[" and line[-1:] == "]":
            head = line[1:-1]
            opened = _open(document, head.split("."))
            if opened is None or head in heads:
                return None
            table = opened
            heads.add(head)
        elif line and line[0] != "#":
            key, _, written = line.partition("=")
            key, value = key.strip(_SPACE), _value(written.strip(_SPACE))
            if not _is_bare(key) or key in table or value is None:
                return None
            table[key] = value
    return document


def _open(table: dict[str, Any], names: list[str]) -> dict[str, Any] | None:
    for name in names:
        inner = table.setdefault(name, {}) if _is_bare(name) else None
        if type(inner) is not dict:
            return None
        table = inner
    return table


def _is_bare(key: str) -> bool:
    return key.isascii() and key.replace("-", "a").replace("_", "a").isalnum()


def _value(text: str) -> str | int | bool | None:
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
        inner = text[1:-1]
        return None if '"' in inner or "\\" in inner else inner
    if text in ("true", "false"):
        return text == "true"
    if text.isascii() and text.isdecimal() and len(text) < 20 and (text == "0" or text[0] != "0"):
        return int(text)
    return None
