"""Faults, delays and crowds: what a client meets on the wire, byte by byte."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_fakes.model.faults import FAILURES, NAMES, STATUSES, apply
from codex_replay.core.wire.sse import Block, Decoder
from codex_replay.protocol.responses.items import reply
from codex_replay.protocol.responses.steps import Raw, Send
from codex_replay.protocol.responses.stream import StreamChecker
from codex_replay.protocol.script.script import parse
from codex_replay.shell.http.backend_process import BackendError, BackendProcess, BackendSession

TEXT = "Hello é✓ there, all of you good people."


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    with BackendProcess() as process:
        yield process


class Wire:
    """What came over one connection: the head, the chunks as they were framed, and how it ended."""

    def __init__(self, session: BackendSession, body: dict[str, Any] | None = None) -> None:
        parts = urlsplit(session.url)
        sent = json.dumps(body or {"model": "m", "input": "hi", "stream": True}).encode()
        head = f"POST {parts.path}/v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(sent)}\r\n\r\n"
        received = b""
        self.end = "closed"
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
            sock.sendall(head.encode() + sent)
            try:
                while data := sock.recv(1 << 20):
                    received += data
                    if received.endswith(b"\r\n0\r\n\r\n"):
                        self.end = "end"
                        break
            except ConnectionResetError:
                self.end = "reset"
        self.head, _, rest = received.partition(b"\r\n\r\n")
        self.status = int(self.head.split(b" ")[1]) if self.head else None
        self.chunks: list[bytes] = []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            self.chunks.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        self.body = b"".join(self.chunks)

    @property
    def blocks(self) -> list[Block]:
        decoder = Decoder()
        return decoder.feed(self.body) + decoder.close()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(block.data or b"") for block in self.blocks if block.dispatched]

    @property
    def text(self) -> str:
        return "".join(event.get("delta", "") for event in self.events)


def with_fault(backend: BackendProcess, fault: Any, **turn: Any) -> tuple[Wire, dict[str, Any]]:
    session = backend.session(
        f"fault-{fault if isinstance(fault, str) else fault['name']}", [{"items": [TEXT], "fault": fault, **turn}]
    )
    wire = Wire(session)
    return wire, session.ledger(1)[0]


def clean(backend: BackendProcess) -> Wire:
    return Wire(backend.session("clean", [TEXT]))


def test_without_a_fault_each_event_is_a_chunk(backend: BackendProcess) -> None:
    wire = clean(backend)
    assert (wire.end, wire.text) == ("end", TEXT)
    assert [block.raw for block in wire.blocks] == [chunk for chunk in wire.chunks if chunk]


def test_missing_completed_ends_well_formed(backend: BackendProcess) -> None:
    wire, entry = with_fault(backend, "missing_completed")
    assert (wire.end, wire.text, wire.events[-1]["type"]) == ("end", TEXT, "response.output_item.done")
    assert entry["end"] == "end"


def test_cut_before_completed_ends_without_the_last_chunk(backend: BackendProcess) -> None:
    wire, entry = with_fault(backend, "cut_before_completed")
    assert (wire.end, wire.text, entry["end"]) == ("closed", TEXT, "cut")


def test_cut_in_event_leaves_half_an_event(backend: BackendProcess) -> None:
    wire, entry = with_fault(backend, {"name": "cut_in_event", "after": 5})
    assert (wire.end, len(wire.events), wire.blocks[-1].complete, entry["end"]) == ("closed", 5, False, "cut")


@pytest.mark.parametrize("after", [0, 1, 5])
def test_cut_strikes_where_it_is_told(backend: BackendProcess, after: int) -> None:
    wire, _ = with_fault(backend, {"name": "cut", "after": after})
    assert (wire.end, len(wire.events)) == ("closed", after)


def test_a_seed_chooses_the_place_and_is_repeatable(backend: BackendProcess) -> None:
    counts = [len(with_fault(backend, {"name": "cut", "seed": seed})[0].events) for seed in (1, 1, 2, 3, 4)]
    assert counts[0] == counts[1]
    assert len(set(counts)) > 1


def test_reset_resets(backend: BackendProcess) -> None:
    wire, entry = with_fault(backend, "reset")
    assert (wire.end, entry["end"]) == ("reset", "reset")


def test_refused_sends_no_byte(backend: BackendProcess) -> None:
    wire, entry = with_fault(backend, "refused")
    assert (wire.end, wire.head, entry["status"]) == ("reset", b"", None)


def test_idle_holds_until_the_client_leaves(backend: BackendProcess) -> None:
    session = backend.session("idle", [{"items": [TEXT], "fault": {"name": "idle", "after": 2}}])
    parts = urlsplit(session.url)
    body = b'{"model":"m","input":"hi","stream":true}'
    head = f"POST {parts.path}/v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(head + body)
        received = b""
        while b"response.in_progress" not in received:
            received += sock.recv(65536)
        assert session.ledger()[0]["end"] is None
    assert session.ledger(1)[0]["end"] == "gone"


def test_empty_is_a_200_with_nothing(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "empty")
    assert (wire.status, wire.end, wire.body) == (200, "end", b"")


def test_split_utf8_cuts_inside_characters(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "split_utf8")
    assert wire.text == TEXT
    assert any(chunk and chunk[0] & 0xC0 == 0x80 for chunk in wire.chunks)


def test_crlf_changes_the_framing_only(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "crlf")
    assert wire.events == clean(backend).events
    assert wire.body == clean(backend).body.replace(b"\n", b"\r\n")


def test_comments_stand_between_the_events(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "comments")
    assert wire.events == clean(backend).events
    assert sum(not block.dispatched for block in wire.blocks) == len(wire.events)


def test_malformed_event_is_not_json(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "malformed_event")
    bad = [block for block in wire.blocks if (block.data or b"").endswith(b'"delta":')]
    assert len(bad) == 1
    assert len(wire.blocks) == len(clean(backend).blocks) + 1


def test_unknown_event_is_one_more(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "unknown_event")
    assert [e for e in wire.events if e["type"] != "response.codex_replay.unknown"] == clean(backend).events


def test_delta_before_added_is_the_second_event(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "delta_before_added")
    assert [e["type"] for e in wire.events[:3]] == ["response.created", "response.output_text.delta", "response.in_progress"]
    assert len(wire.events) == len(clean(backend).events)


def test_missing_type_is_missing_once(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "missing_type")
    assert sum("type" not in event for event in wire.events) == 1


def test_duplicated_frames_come_twice(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, "duplicated_frames")
    assert wire.events[:-1:2] == clean(backend).events[:-1]


def test_huge_event_is_16_mb(backend: BackendProcess) -> None:
    wire, entry = with_fault(backend, "huge_event")
    assert (wire.end, wire.text, entry["end"]) == ("end", TEXT, "end")
    assert max(len(block.raw) for block in wire.blocks) > 16 * 1024 * 1024


def test_slow_drip_comes_in_small_chunks(backend: BackendProcess) -> None:
    wire, _ = with_fault(backend, {"name": "slow_drip", "bytes": 200, "ms": 0})
    assert wire.body == clean(backend).body
    assert max(len(chunk) for chunk in wire.chunks) == 200


@pytest.mark.parametrize(("status", "wait"), [*((status, "7") for status in STATUSES), (429, 7)])
def test_each_status_is_an_answer_at_once(backend: BackendProcess, status: int, wait: str | int) -> None:
    session = backend.session("status", [{"fault": {"name": f"http_{status}", "retry_after": wait}}])
    wire_status, head = _status(session)
    assert wire_status == status
    assert b"retry-after: 7" in head


def _status(session: BackendSession) -> tuple[int, bytes]:
    parts = urlsplit(session.url)
    body = b'{"model":"m","input":"hi","stream":true}'
    head = f"POST {parts.path}/v1/responses HTTP/1.1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    received = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(head + body)
        while data := sock.recv(65536):
            received += data
    assert b'"error":{"message":' in received
    return int(received.split(b" ")[1]), received


@pytest.mark.parametrize("code", FAILURES)
def test_each_failure_code_ends_the_stream(backend: BackendProcess, code: str) -> None:
    wire, _ = with_fault(backend, f"failed_{code}")
    assert (wire.events[-1]["type"], wire.events[-1]["response"]["error"]["code"]) == ("response.failed", code)


def test_every_fault_is_no_clean_stream() -> None:
    """A fault that left a whole, valid, plainly framed stream would test nothing."""
    turn = parse([TEXT]).turns[0]
    steps = reply(turn, {}, "1")
    for name in NAMES:
        if not name.startswith(("http_", "failed_")):
            assert apply({"name": name}, steps) != steps, name


@pytest.mark.parametrize("name", ["missing_completed", "delta_before_added", "duplicated_frames", "missing_type"])
def test_faults_in_the_events_are_what_the_stream_checker_names(name: str) -> None:
    steps = apply({"name": name}, reply(parse([TEXT]).turns[0], {}, "1"))
    checker = StreamChecker()
    problems = []
    for step in steps:
        if isinstance(step, Send):
            problems += checker.feed(step.event)
        elif isinstance(step, Raw):
            problems += checker.feed({})
    assert problems + checker.close()


@pytest.mark.parametrize(
    "fault",
    [
        "rest",
        {"name": "cut", "afer": 1},
        {"name": "cut", "after": -1},
        {"name": "cut", "seed": "x"},
        {"name": "reset", "retry_after": 1},
        {"name": "crlf", "after": 1},
        {"name": 3},
    ],
    ids=str,
)
def test_a_mistake_in_a_fault_is_a_sentence(backend: BackendProcess, fault: Any) -> None:
    with pytest.raises(BackendError, match=r"turns\[0\]\.fault.*\.$"):
        backend.session("bad", [{"fault": fault}])


@pytest.mark.parametrize(("write", "chunks"), [("whole", 1), (100, None), ("event", 10)])
def test_write_decides_the_chunks(backend: BackendProcess, write: Any, chunks: int | None) -> None:
    wire = Wire(backend.session("write", [{"items": ["Hello there, you"], "write": write}]))
    sizes = [len(chunk) for chunk in wire.chunks if chunk]
    assert wire.text == "Hello there, you"
    if write == 100:
        assert set(sizes[:-1]) == {100}
    else:
        assert len(sizes) == (chunks if write == "whole" else len(wire.events))


def test_a_repeated_turn_has_ids_of_its_own_each_time(backend: BackendProcess) -> None:
    session = backend.session("repeat", [{"items": [TEXT, {"type": "function_call", "name": "f"}], "times": "always"}])
    streams = [Wire(session).events for _ in range(12)]
    assert len({events[0]["response"]["id"] for events in streams}) == 12
    for events in streams:
        checker = StreamChecker()
        assert [problem for event in events for problem in checker.feed(event)] + checker.close() == []


def test_delays_and_waits_change_no_byte(backend: BackendProcess) -> None:
    slow = Wire(backend.session("slow", [{"items": [TEXT, {"type": "wait", "ms": 1}], "delay_ms": 1, "first_delay_ms": 1}]))
    assert slow.body == clean(backend).body


def test_a_thousand_open_streams_are_all_served_and_none_is_mixed_up(backend: BackendProcess) -> None:
    count = 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 2 * count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2 * count if hard == resource.RLIM_INFINITY else min(2 * count, hard), hard))
    turns = [{"match": f"<{i}>", "items": [{"type": "gate", "name": "all"}, f"reply {i}."]} for i in range(count)]
    session = backend.session("crowd", turns)
    parts = urlsplit(session.url)

    async def one(i: int) -> bytes:
        body = json.dumps({"model": "m", "input": f"<{i}>", "stream": True}).encode()
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(
            f"POST {parts.path}/v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        )
        begun = await reader.readuntil(b"response.in_progress")
        started.release()
        rest = await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        return begun + rest

    async def everyone() -> list[bytes]:
        tasks = [asyncio.create_task(one(i)) for i in range(count)]
        for _ in range(count):
            await started.acquire()
        await asyncio.to_thread(session.release, "all")
        return await asyncio.gather(*tasks)

    started = asyncio.Semaphore(0)
    replies = asyncio.run(everyone())
    assert [b'"text":"reply %d."' % i in data for i, data in enumerate(replies)] == [True] * count
    ledger = session.ledger(count)
    assert [entry["end"] for entry in ledger] == ["end"] * count
    assert session.unused_turns() == []
