"""Which frames of the model's answers wait for a frame of the client."""

from __future__ import annotations

import pytest

from codex_replay.cli.replay.model import held_frames
from codex_replay.core.cassette.frames import Frame


def tape(*names: str) -> list[Frame]:
    """Make frames of names such as "client", "server", "ask 1", "event 1", "close 1", "left 1"; they are numbered from 1."""
    found = []
    for n, name in enumerate(names, 1):
        word, _, conn = name.partition(" ")
        kind = {"ask": "request", "event": "sse", "close": "close", "left": "close"}.get(word)
        if kind is None:
            found.append(Frame(n, 0.0, "rpc", word, raw=b"{}\n"))
        else:
            sender = "client" if word in ("ask", "left") else "server"
            found.append(Frame(n, 0.0, "http", sender, kind, payload="end", conn=int(conn)))
    return found


@pytest.mark.parametrize(
    ("names", "held"),
    [
        (("client", "ask 1", "event 1", "close 1", "server"), []),
        (("ask 1", "event 1", "client", "server", "event 1", "event 1", "close 1"), [5]),
        (("ask 1", "client", "event 1", "client", "client", "close 1"), [3, 6]),
        (("ask 1", "event 1", "server", "event 1", "close 1"), []),
        (("ask 1", "event 1", "client", "left 1", "ask 2", "event 2"), []),
        (("ask 1", "client", "ask 2", "event 2", "event 1"), [5]),
        (("ask 1", "close 1", "client", "ask 1", "event 1"), []),
    ],
)
def test_an_answer_waits_for_what_the_client_sent_in_its_middle(names: tuple[str, ...], held: list[int]) -> None:
    assert held_frames(tape(*names)) == held
