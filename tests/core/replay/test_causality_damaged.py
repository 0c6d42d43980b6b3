"""A damaged recording may have any value where a method is expected."""

from __future__ import annotations

import pytest

from codex_replay.core.replay import causality


@pytest.mark.parametrize("method", [{}, [], None, 5, {"a": []}])
def test_a_method_that_is_no_text_is_in_no_row(method: object) -> None:
    rows = next(value for value in vars(causality).values() if isinstance(value, type) and hasattr(value, "does"))
    made = rows.__new__(rows)
    made._load = lambda: {"opens_turn": {"m"}}
    made._table = {"opens_turn": {"m"}}
    assert made.does("opens_turn", method) is False
    assert made.does("opens_turn", "m") is True
