"""Tool-call dialects: forms of markup in which a model writes tool calls, and test vectors that are generated for each dialect.

A dialect is a table of data; docs/proxy.md describes it. Each test vector is built together with its expected result, so no
code here parses a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codex_replay.plugin.base.subjects import BadSubject

CONTENTS = ("json", "elements")
#: What stands in a call under the keys that `name` and `arguments` give.
_WHAT = {"name": "tool", "arguments": "arguments"}
_KEYS = ("open", "close", "content", "name", "arguments")


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of a tool call in a text: the markup `open`, the content, the markup `close`.

    `content` is "json" or "elements". "json" is an object with the tool under the key `name` and the arguments under the
    key `arguments`. "elements" is `<name>TOOL</name>`, followed by an element for each argument. If the content is
    "elements" and `arguments` is set, one element with the name in `arguments` contains all arguments as JSON.
    """

    id: str
    open: str
    close: str
    content: str = "json"
    name: str = "name"
    arguments: str = "arguments"

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the text of a tool call in the dialect."""
        if self.content == "json":
            return self.open + json.dumps({self.name: tool, self.arguments: arguments}, ensure_ascii=False) + self.close
        message = f"<{self.arguments}>{json.dumps(arguments, ensure_ascii=False)}</{self.arguments}>"
        if not self.arguments:
            message = "".join(f"<{key}>{value}</{key}>" for key, value in arguments.items())
        return f"{self.open}<{self.name}>{tool}</{self.name}>{message}{self.close}"

    def data(self) -> str:
        """Return the dialect as JSON, for a proxy that reads it from `PROXY_TOOL_CALLS`."""
        return json.dumps({key: getattr(self, key) for key in _KEYS})


#: Those that have a name. The first is that of the specification.
DIALECTS = {
    each.id: each
    for each in (
        Dialect("tool_call", "<tool_call>", "</tool_call>"),
        Dialect("use_tool", "<use_tool>", "</use_tool>", "elements", "name", ""),
        Dialect("fenced", "```tool_call\n", "\n```"),
    )
}


def parse(given: Any, where: str) -> tuple[Dialect, ...]:
    """Return the dialects of a proxy from its configuration.

    In the configuration, a dialect is the name of a known dialect, or a table that defines a new one. Raises `BadSubject` if a
    dialect is invalid.
    """
    rows = given if isinstance(given, list) else [given]
    return tuple(_one(row, f"{where} tool_calls", f"own-{number}") for number, row in enumerate(rows, 1))


def _one(row: Any, where: str, name: str) -> Dialect:
    if isinstance(row, str) and row in DIALECTS:
        return DIALECTS[row]
    if not isinstance(row, dict):
        raise BadSubject(f"{where} must be {', '.join(DIALECTS)}, or a table with open and close, not {row!r}.")
    if unknown := [key for key in row if key not in _KEYS]:
        raise BadSubject(f"{where} has no key {unknown[0]!r}; its keys are {', '.join(_KEYS)}.")
    if wrong := [key for key, value in row.items() if not isinstance(value, str)]:
        raise BadSubject(f"{where}: {wrong[0]} must be a text.")
    if empty := [key for key in ("open", "close") if not row.get(key, "").strip()]:
        raise BadSubject(f"{where}: {empty[0]} must be a text that is not empty.")
    if row.get("content", "json") not in CONTENTS:
        raise BadSubject(f"{where}: content must be {' or '.join(CONTENTS)}, not {row['content']!r}.")
    found = Dialect(name, **row)
    if not found.name or (found.content == "json" and not found.arguments):
        empty_key = "arguments" if found.name else "name"
        raise BadSubject(f"{where}: {empty_key} is empty; it must be the key under which a call has its {_WHAT[empty_key]}.")
    return found


#: One call of a vector: the tool and its arguments.
Part = str | tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class DialectVector:
    """A test vector: a text of the model in one dialect, and the calls and the remaining text that the client must get."""

    id: str
    why: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    output: str


ONE: Part = ("getFileTree", {"path": "a/b"})
NOTE: Part = ("saveNote", {"title": "x y"})


def vectors(dialect: Dialect) -> Iterator[DialectVector]:
    """Yield the test vectors for a dialect."""
    for name, (why, parts) in _ROWS.items():
        yield _vector(dialect, name, why, parts)
    if dialect.content == "json":
        yield _vector(
            dialect, "nested", "Values keep their types.", [("getFileTree", {"a": {"b": [1, 2.5, None, True]}, "c": ""})]
        )
        inside = f"x{dialect.close.strip()}y{dialect.open.strip()}z"
        yield _vector(
            dialect,
            "markup-in-a-string",
            "The markup of a call inside a JSON string is text.",
            ["A ", ("saveNote", {"title": inside}), " B"],
        )
    begun = dialect.call("getFileTree", {"path": "a/b"})[: -len(dialect.close) - 3]
    yield DialectVector(
        "cut-off",
        "An incomplete call at the end of the stream must be dropped: it is neither text nor a call.",
        f"Look. {begun}",
        (),
        "Look.",
    )


_ROWS: dict[str, tuple[str, list[Part]]] = {
    "one": ("One call and nothing else.", [ONE]),
    "text-around": ("The text on both sides stays, and has no trace of the call.", ["Before. ", ONE, " After."]),
    "two": ("Two calls, in order.", [ONE, "\n", NOTE]),
    "two-with-text": ("Text between two calls stays.", ["First ", ONE, " then ", NOTE, " done"]),
    "unicode": ("No character is changed.", ["\U0001f50d é ", ("saveNote", {"title": "é \U0001f600 \u2028"}), " ü"]),
    "plain": ("Text without markup is unchanged.", ["if a < b and `c` then {d} is [1] \u00ab\u00fc\u00bb"]),
}


def _vector(dialect: Dialect, name: str, why: str, parts: list[Part]) -> DialectVector:
    text = "".join(part if isinstance(part, str) else dialect.call(*part) for part in parts)
    calls = tuple(part for part in parts if not isinstance(part, str))
    return DialectVector(name, why, text, calls, "".join(part for part in parts if isinstance(part, str)))
