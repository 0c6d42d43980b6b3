"""The shell tool of each Codex version.

Scripts contain calls of the shell tool of Codex 0.92. The calls are converted for the version that gets the script.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codex_replay.protocol.data_tables import load
from codex_replay.protocol.versions import DEFAULT, is_version, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping


def shell_tool(version: str) -> Mapping[str, str]:
    """Return the `name` of the shell tool of `version`, the name of its argument for the command line (`command`), and `model` if
    the tool depends on the model.

    For a text that is not a version, return the shell tool of the default version (data/any/shell-tools.json).
    """
    at = numbers(version if is_version(version) else DEFAULT)
    rows: list[dict[str, str]] = load("shell-tools", "any")["rows"]
    return next(row for row in reversed(rows) if numbers(row["since"]) <= at)


def for_version(script: Any, version: str) -> Any:
    """Return a copy of a script (docs/scripts.md) in which each call of `shell_command`, the shell tool of 0.92, is a call of the
    shell tool of `version`.

    The rest of the script stays unchanged, including a call of the shell tool whose arguments contain no command line.
    """
    old, new = shell_tool(DEFAULT), shell_tool(version)
    return script if old == new else _translated(script, old, new)


def _translated(value: Any, old: Mapping[str, str], new: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_translated(one, old, new) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "function_call" and value.get("name") == old["name"]:
        given = value.get("arguments")
        try:
            arguments = json.loads(given) if isinstance(given, str) else given
        except ValueError:
            return value
        if not isinstance(arguments, dict) or not isinstance(arguments.get(old["command"]), str):
            return value
        renamed = {new["command"] if name == old["command"] else name: inner for name, inner in arguments.items()}
        return {**value, "name": new["name"], "arguments": json.dumps(renamed) if isinstance(given, str) else renamed}
    return {name: _translated(inner, old, new) for name, inner in value.items()}
