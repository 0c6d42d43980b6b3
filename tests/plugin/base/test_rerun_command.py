"""The rerun command: the home is $HOME where it stands whole, and nowhere else."""

from __future__ import annotations

import pytest

from codex_replay.plugin.base.rerun_command import shell_line


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("/home/me/x", '"$HOME/x"'),
        ("--dir=/home/me", '"--dir=$HOME"'),
        ("/home/me2/x", "/home/me2/x"),
        ("/mnt/home/me/x", "/mnt/home/me/x"),
    ],
)
def test_the_home_is_replaced_as_a_whole(word: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert shell_line([word], list) == expected
