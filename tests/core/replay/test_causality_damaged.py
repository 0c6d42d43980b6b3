"""A damaged recording may have any value where a method is expected."""

from __future__ import annotations

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay import causality


@pytest.mark.parametrize("method", [{}, [], None, 5, {"a": []}])
def test_a_method_that_is_no_text_is_in_no_row(method: object) -> None:
    rows = next(value for value in vars(causality).values() if isinstance(value, type) and hasattr(value, "does"))
    made = rows.__new__(rows)
    made._load = lambda: {"opens_turn": {"m"}}
    made._table = {"opens_turn": {"m"}}
    assert made.does("opens_turn", method) is False
    assert made.does("opens_turn", "m") is True


@pytest.mark.parametrize("method", [{}, [], {"a": []}])
@pytest.mark.parametrize("asked", [False, True])
def test_a_frame_of_a_thread_may_have_such_a_method(method: object, asked: bool) -> None:
    found = causality.Causality(causality.Methods(lambda: {"opens_turn": ["m"]}))
    named = {"params": {"threadId": "t"}}
    if asked:
        found.client(Frame(1, 0.0, "rpc", "client", value={"id": 1, "method": "thread/read", **named}))
    lanes = [found.server(Frame(n, 0.0, "rpc", "server", value={"method": method, **named}))[0] for n in (2, 3)]
    assert lanes == [("thread", "t")] * 2
