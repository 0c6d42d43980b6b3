"""One pace for every option and setting."""

from __future__ import annotations

import pytest

from codex_replay.core.replay.pace import pace_of


@pytest.mark.parametrize(
    ("text", "pace"),
    [("fast", 0.0), ("recorded", 1.0), ("2x", 2.0), ("0.5x", 0.5), (".5x", 0.5), ("10.x", 10.0), ("999999x", 999999.0)],
)
def test_a_pace(text: str, pace: float) -> None:
    assert pace_of(text) == pace


@pytest.mark.parametrize(
    "text", ["", "x", ".x", "2", "0x", "-1x", "1e6x", "1000000x", "nanx", "infx", "1.2.3x", " 2x", "2xx", "race:1"]
)
def test_no_pace(text: str) -> None:
    assert pace_of(text) is None
