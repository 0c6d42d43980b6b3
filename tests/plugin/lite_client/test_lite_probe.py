"""What one run shows of a lite client."""

from __future__ import annotations

from codex_replay.plugin.lite_client.probe import ANSWER, judge

ASKED = ("POST /backend-api/codex/responses 200",)


def test_a_client_that_prints_the_answer_can_be_judged() -> None:
    assert judge(ANSWER, ASKED, 0.5).wrong == ""


def test_one_that_prints_something_else_is_told_so() -> None:
    assert judge("42", ASKED, 0.5).wrong.startswith(f"The model said {ANSWER!r}, and the client printed '42' on stdout.")
