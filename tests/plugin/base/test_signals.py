"""Signals that end a run, in quick order: only the first one raises, so that pytest can finish what the first one began."""

from __future__ import annotations

from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

from codex_replay.plugin.base.signals import INTERRUPT, Interrupts


@pytest.mark.parametrize(
    ("numbers", "raised", "ended_by"),
    [
        ([SIGINT], ["KeyboardInterrupt"], 0),
        ([SIGINT, INTERRUPT], ["KeyboardInterrupt", ""], 0),  # one Ctrl-C
        ([SIGINT, SIGINT], ["KeyboardInterrupt", "KeyboardInterrupt"], 0),  # the second Ctrl-C ends a run that hangs
        ([SIGTERM, SIGHUP], ["Terminated", ""], SIGTERM),
        ([SIGINT, SIGTERM], ["KeyboardInterrupt", ""], SIGTERM),
        ([SIGTERM, SIGINT], ["Terminated", ""], SIGTERM),
        ([SIGHUP, INTERRUPT, SIGINT], ["Terminated", "", ""], SIGHUP),
        ([SIGTERM, SIGINT, SIGINT], ["Terminated", "", "KeyboardInterrupt"], SIGTERM),
    ],
)
def test_a_signal_of_another_kind_is_only_noted(numbers: list[Signals], raised: list[str], ended_by: int) -> None:
    interrupts = Interrupts()
    found = []
    for number in numbers:
        try:
            (interrupts.terminate if number in (SIGTERM, SIGHUP) else interrupts.interrupt)(number)
        except KeyboardInterrupt as error:
            found.append(type(error).__name__)
        else:
            found.append("")
    assert found == raised
    assert interrupts.ended_by == ended_by
