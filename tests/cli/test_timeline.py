"""What a line of `cassette show` keeps of an id."""

from __future__ import annotations

import pytest

from codex_replay.cli.io.timeline import short_id, summarise
from codex_replay.core.cassette.frames import Frame

ONE, OTHER = "01a200de-e178-77f2-b971-666c5f907048", "01a200de-e178-7ab3-8f04-1d2c3b4a5968"


@pytest.mark.parametrize(
    ("uuid", "shown"),
    [(ONE, "...5f907048"), (OTHER, "...3b4a5968"), ("6fa459ea-ee8a-4ca4-894e-db77e160355e", "6fa459ea")],
    ids=["version 7", "of the same millisecond", "version 4"],
)
def test_the_distinct_part_of_an_id(uuid: str, shown: str) -> None:
    assert short_id(uuid) == shown


def test_two_ids_of_one_minute_are_shown_apart() -> None:
    lines = {
        summarise(Frame(1, 0.0, "rpc", "client", "msg", b'{"method":"m","params":{"id":"%s"}}\n' % uuid.encode()), 80)
        for uuid in (ONE, OTHER)
    }
    assert lines == {'id="...5f907048"', 'id="...3b4a5968"'}
