"""The folders of this machine that a report must not name."""

from __future__ import annotations

import getpass

import pytest

from codex_replay.plugin.reporting.report import machine_paths


def unnamed(error: Exception) -> str:
    raise error


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 4711"), OSError("No username set"), ImportError("pwd")])
def test_a_user_without_a_name_has_no_folder_of_that_name(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: unnamed(error))
    assert machine_paths() == {}


def test_another_error_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: unnamed(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        machine_paths()


def test_a_user_with_a_name_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "jo")
    assert [(key.rpartition("/")[2], value.rpartition("/")[2]) for key, value in machine_paths().items()] == [
        ("pytest-of-jo", "pytest")
    ]
