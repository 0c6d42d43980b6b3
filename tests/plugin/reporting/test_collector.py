"""The message of a failed case is the sentence that its exception holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.plugin.reporting.collector import message_of
from codex_replay.shell.rpc.client import SubjectFailure


def crashed(error: BaseException) -> Any:
    """A report of an exception as pytest words it."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    crash = SimpleNamespace(message=f"{module}{kind.__qualname__}: {error}")
    return SimpleNamespace(outcome="failed", longrepr=SimpleNamespace(reprcrash=crash))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SubjectFailure("The server sent nothing."), "The server sent nothing."),
        (ValueError("The server sent nothing."), "ValueError: The server sent nothing."),
    ],
)
def test_the_message_of_a_failure_names_no_class_of_ours(error: BaseException, message: str) -> None:
    assert message_of(crashed(error)) == message
