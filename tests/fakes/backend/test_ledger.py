"""The ledger in memory: which bodies it keeps compressed, and that nobody can see it."""

from __future__ import annotations

import json
import os
import tracemalloc

import pytest

from codex_fakes.backend import ledger as module
from codex_fakes.backend.exchange import Request
from codex_fakes.backend.ledger import Entry, Ledger
from codex_fakes.backend.limits import Limits
from codex_replay.core.redact.redactor import Redactor


def ended(ledger: Ledger, body: bytes | None) -> Entry:
    """Add a request that has been answered."""
    entry = ledger.enter(Request(1), 0.0)
    entry.body = body
    entry.close("end")
    return entry


def text(number: int, length: int = 5000) -> bytes:
    return json.dumps({"model": f"m{number}", "input": "a b " * (length // 4)}).encode()


def test_the_older_bodies_are_compressed_and_read_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN", 12_000)
    plain, packing = Ledger(Limits(), lambda: None), Ledger(Limits(), lambda: None)
    bodies = [text(0), b"not JSON " * 1000, text(2), b"short", os.urandom(6000), text(5, 600_000), None, text(7), text(8)]
    entries = [ended(packing, body) for body in bodies]
    assert [entry.packed is not None for entry in entries] == [True, True, True, False, True, False, False, False, False]
    monkeypatch.setattr(module, "PLAIN", 1 << 40)
    for entry, other in zip(entries, [ended(plain, body) for body in bodies], strict=True):
        assert other.packed is None
        assert entry.size == other.size
        for redactor in (None, Redactor()):
            assert entry.written(redactor) == other.written(redactor)
            assert entry.written(redactor) == other.written(redactor), "it can be read twice"


def test_a_body_in_parts_is_read_as_it_was_and_only_its_own_bytes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN", 12_000)
    ledger = Ledger(Limits(), lambda: None)
    head, tail = b'{"model":"m","input":["' + b"a" * 20_000, b'"],"tools":[]}'
    entries = []
    for number in range(8):
        new = b"%d" % number * (5000 if number % 2 else 500)
        entry = ledger.enter(Request(1), 0.0)
        entry.body, entry.parts, entry.unshared = head + new + tail, (head, new, tail), len(new)
        before = entry.written(None)
        entry.close("end")
        assert entry.body is None
        assert before.partition(b'"body":')[2] == entry.written(None).partition(b'"body":')[2]
        assert entry.size == 1000 + len(head + new + tail)
        entries.append((entry, entry.written(Redactor())))
    assert [entry.packed is not None for entry, _ in entries] == [False, True, False, True, False, False, False, False]
    assert [entry.written(Redactor()) for entry, _ in entries] == [text for _, text in entries]
    assert ledger._unpacked_size == 10_000
    assert all(entry.parts[0] is head for entry, _ in entries if entry.packed is None), "it is kept once"


def test_a_body_in_parts_that_is_too_long_is_left_out() -> None:
    ledger = Ledger(Limits(ledger_bytes=5000), lambda: None)
    entry = ledger.enter(Request(1), 0.0)
    entry.body, entry.parts, entry.unshared = text(0), (text(0)[:9], text(0)[9:]), 1
    entry.close("end")
    assert (entry.body, entry.parts, entry.left_out) == (None, (), len(text(0)))


@pytest.mark.parametrize("limits", [{"ledger_requests": 7}, {"ledger_bytes": 60_000}])
def test_a_dropped_entry_is_no_longer_counted(limits: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN", 20_000)
    ledger = Ledger(Limits(**limits), lambda: None)
    for number in range(40):
        ended(ledger, text(number))
        still = [entry for entry in ledger.entries if entry.packed is None]
        assert list(ledger._unpacked.values()) == still
        assert ledger._unpacked_size == sum(len(entry.body or b"") for entry in still) <= 20_000
        assert ledger._size == sum(entry.size for entry in ledger.entries)
    assert any(entry.packed for entry in ledger.entries)


def test_a_ledger_of_requests_that_repeat_much_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is measured, because a bytes object may keep more of it than its length."""
    monkeypatch.setattr(module, "PLAIN", 200_000)
    ledger = Ledger(Limits(), lambda: None)
    tracemalloc.start()
    try:
        for number in range(200):
            ended(ledger, text(number, 50_000))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(ledger.entries) == 200
    assert kept < 200_000 + 200 * 3000
