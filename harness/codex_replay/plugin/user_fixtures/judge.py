"""Fail a test at its end for what its client did against the script or the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from codex_replay.plugin.user_fixtures.codex_backend import CodexBackend
    from codex_replay.plugin.user_fixtures.fake_codex import FakeCodex


def fail_on_problems(fake: FakeCodex | CodexBackend, name: str) -> None:
    """Fail if the model was asked what the script does not have; `name` is the fixture's."""
    __tracebackhide__ = True
    if not fake.lenient and (problems := fake.problems):
        told = "\n    ".join(problems[:5])
        what = f"The script of {name} has no turn for a request"
        pytest.fail(f"{what} (to allow it, set {name}.lenient = True):\n    {told}", pytrace=False)


def fail_on_unplayed(fake: FakeCodex) -> None:
    """Fail if the client left out recorded messages, or sent others."""
    __tracebackhide__ = True
    if not fake.lenient and (found := fake.unplayed):
        told = "\n    ".join([*found[:5], *([f"... and {len(found) - 5} more"] if len(found) > 5 else [])])
        meant = "to allow missing messages, use cassette(path, partial=True); to allow any difference, fake_codex.lenient = True"
        pytest.fail(f"The client differs from the recording ({meant}):\n    {told}", pytrace=False)
