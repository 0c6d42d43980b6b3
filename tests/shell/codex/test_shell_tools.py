"""The shell tool of each version, and scripts that are played with it."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.shell.codex.shell_tools import for_version, shell_tool


@pytest.mark.parametrize(
    ("version", "name", "argument"),
    [
        ("0.92.0", "shell_command", "command"),
        ("0.116.0", "exec_command", "cmd"),
        ("0.140.0-alpha.1", "exec_command", "cmd"),
        ("0.169.0", "exec_command", "cmd"),
        ("unknown", "shell_command", "command"),
    ],
)
def test_the_tool_of_a_version(version: str, name: str, argument: str) -> None:
    assert shell_tool(version) == {**shell_tool(version), "name": name, "command": argument}


def call(arguments: Any, name: str = "shell_command") -> dict[str, Any]:
    return {"type": "function_call", "name": name, "call_id": "c", "arguments": arguments}


def test_a_call_is_made_with_the_tool_of_the_version() -> None:
    given = {"command": "ls", "workdir": "/tmp"}
    script = {"turns": [{"items": ["Hi.", call(given), call('{"command": "pwd"}'), call({"x": 1}, "mine")]}], "times": 2}
    assert for_version(script, "0.92.0") is script
    items = for_version(script, "0.169.0")["turns"][0]["items"]
    assert items == [
        "Hi.",
        call({"cmd": "ls", "workdir": "/tmp"}, "exec_command"),
        call('{"cmd": "pwd"}', "exec_command"),
        call({"x": 1}, "mine"),
    ]
    assert script["turns"][0]["items"][1] == call(given)  # type: ignore[index]


@pytest.mark.parametrize("arguments", ["{bad", {}, {"command": ["ls"]}, "5", None])
def test_arguments_without_a_command_line_stay(arguments: Any) -> None:
    assert for_version([call(arguments)], "0.169.0") == [call(arguments)]
