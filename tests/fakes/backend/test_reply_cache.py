"""Replies that were written before: with another label they are those that would be written anew, however they are cut."""

from __future__ import annotations

import pytest

from codex_fakes.backend import cache
from codex_fakes.backend.cache import ReplyCache
from codex_fakes.backend.exchange import frame
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.steps import Send, event_bytes
from codex_replay.protocol.script.script import Turn

TURN = Turn(items=({"type": "text", "text": "abc" * 2000},), delta=5)
BODY = {"model": "m", "input": "x", "stream": True}


def anew(label: str) -> bytes:
    return frame(event_bytes(step.event) for step in reply(TURN, BODY, label) if isinstance(step, Send))


@pytest.mark.parametrize("piece", [1, 2, 7, 100, 4096, 1 << 20])
def test_a_cached_reply_is_the_one_that_would_be_written(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PIECE", piece)
    replies = ReplyCache()
    for label in ("1", "2", "1_2", "17_12345"):
        pieces = replies.framed(TURN, BODY, label)
        assert pieces is not None
        assert b"".join(pieces) == anew(label)


def test_two_requests_with_other_settings_share_no_reply() -> None:
    replies = ReplyCache()
    for body in (BODY, {**BODY, "instructions": "Be brief."}, {**BODY, "include": ["reasoning.encrypted_content"]}):
        for whole in (True, False):
            pieces = replies.framed(TURN, body, "1", whole)
            assert pieces is not None
            steps = reply(TURN, body, "1", whole)
            assert b"".join(pieces) == frame(event_bytes(step.event) for step in steps if isinstance(step, Send))


def test_a_slow_client_keeps_a_piece_of_it_and_no_more() -> None:
    pieces = ReplyCache().framed(TURN, BODY, "1")
    assert pieces is not None
    sizes = [len(piece) for piece in pieces]
    assert len(sizes) > 1
    assert max(sizes) <= cache.PIECE + 100


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(anew("1"))
    monkeypatch.setattr(ReplyCache, "SIZE", 3 * size)
    replies = ReplyCache()
    for number in range(20):
        assert replies.framed(TURN, {**BODY, "model": f"m{number:02}"}, "1") is not None
        assert sum(len(made or b"") for made in replies._framed.values()) <= 3 * size
