"""`drift --behaviour` on the real binaries, with a handful of cases: what is known to have changed is found, offline."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.cli.drift import behaviour

CASES = "test_dynamic_tools and (test_call or success or further-key) and not no-success"
EARLIER, LATER = "0.92.0", "0.116.0"


def drift(capsys: pytest.CaptureFixture[str], from_: str, to: str) -> tuple[int, dict[str, Any]]:
    status = behaviour.run(from_, to, True, chosen=CASES, jobs=1)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, found


def test_the_reply_that_is_no_longer_heard_and_the_end_of_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    """`{output, success}` in 0.92; later versions want `{contentItems, success}`, and tell the model that it was invalid.

    Source: REAL-122.
    """
    status, found = drift(capsys, EARLIER, LATER)
    assert status == 1
    assert (found["totals"]["cases"], found["totals"]["not_compared"]) == (3, 0)
    rows = {(each["rule"], each["method"], each.get("note", "")): each for each in [*found["findings"], *found["single"]]}
    unheard = rows["unheard", "item/tool/call", "the client replies {output, success}"]
    assert unheard["count"] == 2
    assert {each["after"] for each in unheard["examples"]} == {'"dynamic tool response was invalid"'}
    assert ("unheard", "item/tool/call", "the client replies {output, success, more}") in rows
    (family,) = [each for each in rows.values() if (each["rule"], each["method"]) == ("vanished", "codex/event/*")]
    assert family["count"] == 3


def test_a_version_against_itself_has_not_changed(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = drift(capsys, EARLIER, EARLIER)
    assert [*found["findings"], *found["single"]] == []
    assert status == 0
    assert found["totals"]["unchanged"] == 3
