"""`codex-replay replay` of a recording to another Codex version: what that version cannot send, and nulls that it adds."""

from __future__ import annotations

from collections import Counter

import pytest

from codex_replay.cli.replay.other_version import absent_methods, absent_text, nulls_apart
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.recordings.compare import Difference


def sent(*methods: str, sender: str = "server") -> list[Frame]:
    return [Frame(n, 0.0, "rpc", sender, raw=dumps({"method": each, "params": {}}) + b"\n") for n, each in enumerate(methods, 1)]


FRAMES = sent(
    "turn/started", "codex/event/task_started", "codex/event/task_started", "codex/event/agent_message", "turn/completed"
)


def test_the_methods_that_the_other_version_does_not_have() -> None:
    absent = absent_methods(FRAMES, "0.92.0", "0.169.0")
    assert absent == {"codex/event/task_started": 2, "codex/event/agent_message": 1}
    assert absent_text(absent, "0.169.0") == (
        "Codex 0.169.0 does not have codex/event/* (3 frames of the recording): not awaited, and not listed below."
    )


@pytest.mark.parametrize(
    ("recorded", "live"), [("0.92.0", "0.92.0"), ("0.169.0", "0.92.0"), ("0.92.0", "unknown"), ("0.92.0", "0.11.0")]
)
def test_no_method_is_absent_from_a_version_that_has_it_or_is_not_known(recorded: str, live: str) -> None:
    assert absent_methods(FRAMES, recorded, live) == Counter()


def test_what_the_client_sent_is_not_absent() -> None:
    assert absent_methods(sent("codex/event/task_started", sender="client"), "0.92.0", "0.169.0") == Counter()


def null(path: str, only: str = "b") -> Difference:
    return Difference("changed", "rpc< result of model/list", 3, 4, path, None, None, only)


def test_nulls_are_one_line_behind_the_others() -> None:
    other = Difference("changed", "rpc< turn/started", 5, 6, "$.a", 1, None, "a")
    differs = Difference("changed", "rpc< turn/started", 5, 6, "$.b", None, 1)
    many = [null("$.a"), null("$.b"), other, null("$.c", "a"), null("$.d"), differs]
    assert nulls_apart(many) == (
        [other, differs],
        "4 members are null in one run and missing in the other: $.a of rpc< result of model/list, "
        "$.b of rpc< result of model/list, $.c of rpc< result of model/list and 1 more.",
    )
    assert nulls_apart([null("$.a"), other]) == ([other, null("$.a")], "")
