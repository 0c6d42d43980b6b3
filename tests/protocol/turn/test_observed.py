"""What the real 0.92.0 made of arguments and of commands: each line of the data was sent to it, and what it answered is there.

`tests/data/arguments.ndjson` has the arguments of calls and the error that the model got (null: the call ran),
`tests/data/actions.ndjson` shell scripts and the actions that the client was shown; in some rows, `asked` is whether the policy
`untrusted` asked for an approval.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.actions import actions_of
from codex_replay.protocol.turn.tools import BadArguments, ShellCall, arguments_of

DATA = Path(__file__).parents[2] / "data"
FORMS = load("forms", "0.92.0")["arguments"]
SETTINGS = load("turn", "0.92.0")["settings"]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def error_of(tool: str, text: str) -> str | None:
    try:
        arguments_of({"name": tool, "arguments": text}, (), FORMS)
    except BadArguments as error:
        return str(error)
    return None


#: An absent or empty list of arguments is no arguments at all for the tools of MCP.
MCP_NOTHING = [("list_mcp_resources", "[]"), ("read_mcp_resource", "null"), ("read_mcp_resource", " null ")]


def test_arguments_are_refused_in_the_words_of_the_real_binary() -> None:
    found = rows("arguments.ndjson")
    assert len(found) > 100
    assert {row["error"] is None for row in found} == {True, False}
    wrong = [
        (row, error_of(row["tool"], row["arguments"]))
        for row in found
        if (row["tool"], row["arguments"]) not in MCP_NOTHING and error_of(row["tool"], row["arguments"]) != row["error"]
    ]
    assert wrong == []


def test_the_first_error_in_the_text_is_the_one_reported() -> None:
    assert error_of("shell_command", '{"command":5,') == "invalid type: integer `5`, expected a string at line 1 column 12"
    assert error_of("shell_command", '{"zz":,"command":5}') == "expected value at line 1 column 7"
    deep = '{"zz":' + "[" * 200
    assert error_of("shell_command", deep) == "recursion limit exceeded at line 1 column 133"


@pytest.mark.parametrize("row", rows("actions.ndjson"), ids=lambda row: row["script"] or "empty")
def test_a_command_shows_what_the_real_binary_shows(row: dict[str, Any]) -> None:
    assert actions_of(["/bin/bash", "-lc", row["script"]]) == row["actions"]


@pytest.mark.parametrize("row", [row for row in rows("actions.ndjson") if "asked" in row], ids=lambda row: row["script"])
def test_a_command_is_asked_about_as_by_the_real_binary(row: dict[str, Any]) -> None:
    shell = ShellCall({"call": "shell", "arguments": json.dumps({"command": row["script"]})}, "/w")
    assert shell.asks("untrusted", "dangerFullAccess", SETTINGS) is row["asked"]


def test_a_command_that_is_no_script_shows_its_words() -> None:
    assert actions_of(["cat", "a b"]) == [{"type": "read", "cmd": "cat 'a b'", "name": "a b", "path": "a b"}]
    assert actions_of([]) == [{"type": "unknown", "cmd": ""}]
