"""Replies that were written before: with another label they are those that would be written anew, however they are cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from codex_fakes.backend import cache
from codex_fakes.backend.cache import ReplyCache
from codex_fakes.backend.exchange import chunks, frame
from codex_fakes.backend.websocket.exchange import messages
from codex_replay.protocol.responses.items import reply, steps_of
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
        framed = replies.framed(TURN, BODY, label, chunks)
        assert framed is not None
        assert b"".join(framed.chunks()) == anew(label)


def test_the_length_of_a_websocket_frame_may_contain_the_mark() -> None:
    """A reply whose frame header contains the byte of the mark is not cached, because the label would replace the byte."""
    kept = []
    for size in range(256):
        turn = Turn(items=({"type": "text", "text": "a" * size},), delta=1000)
        steps = reply(turn, BODY, "1")
        written = ReplyCache().framed(turn, BODY, "1", messages)
        kept.append(written is not None)
        if written is not None:
            assert b"".join(written.chunks()) == messages(step.event for step in steps if isinstance(step, Send)), size
    assert 200 < sum(kept) < 256


def test_two_requests_with_other_settings_share_no_reply() -> None:
    replies = ReplyCache()
    brief, encrypted = {**BODY, "instructions": "Be brief."}, {**BODY, "include": ["reasoning.encrypted_content"]}
    for whole in (True, False):
        for body in (BODY, brief, encrypted, encrypted, BODY):
            framed = replies.framed(TURN, body, "1", chunks, whole)
            assert framed is not None
            steps = reply(TURN, body, "1", whole)
            assert b"".join(framed.chunks()) == frame(event_bytes(step.event) for step in steps if isinstance(step, Send))


def test_a_slow_client_keeps_a_piece_of_it_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PIECE", 64 * 1024)
    framed = ReplyCache().framed(TURN, BODY, "1", chunks)
    assert framed is not None
    sizes = [len(piece) for piece in framed.chunks()]
    assert len(sizes) > 1
    assert max(sizes) <= cache.PIECE + 100


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(anew("1"))
    monkeypatch.setattr(ReplyCache, "SIZE", 3 * size)
    replies = ReplyCache()
    for number in range(20):
        assert replies.framed(TURN, {**BODY, "model": f"m{number:02}"}, "1", chunks) is not None
        kept = [part for made in replies._framed.values() for piece in made or () for part in piece]
        assert 0 < sum(map(len, kept)) <= 3 * size


@pytest.mark.parametrize("written", [[[b""]], [[b"a", b"b", b"c"]], [[b"a", b"b"], [b"c"], [b"d", b"e"]]])
def test_what_is_around_a_reply_is_in_its_first_and_last_piece(written: cache.Written) -> None:
    kept = [[*parts] for parts in written]
    pieces = list(cache.Framed(written, "-").chunks(b"head", b"tail"))
    assert len(pieces) == len(written)
    assert b"".join(pieces) == b"head" + b"".join(b"-".join(parts) for parts in written) + b"tail"
    assert written == kept


def test_a_reply_without_an_event_has_a_piece() -> None:
    assert cache._split(b"", b"\x7f") == [[b""]]


def test_a_reply_of_too_many_events_is_given_up_before_all_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other clients wait while a reply is made: one text of 3 MB has 187,500 deltas."""
    made = []

    def counted(*args: Any) -> Iterator[Any]:
        for step in steps_of(*args):
            made.append(step)
            yield step

    monkeypatch.setattr(cache, "steps_of", counted)
    long = "x" * 3_000_000
    for item, most in (({"type": "text", "text": long}, 0), ({"type": "reasoning", "summary": [long]}, 25_000)):
        assert ReplyCache().framed(Turn(items=(item,)), {"model": "m"}, "a1", chunks, True) is None
        assert len(made) <= most
