"""`codex_backend` in asynchronous tests: streams, requests side by side, a client that leaves in mid-stream."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from codex_replay import CodexBackend
from tests.support.async_client import ask, events

pytestmark = pytest.mark.asyncio


async def test_a_stream_comes_event_by_event(codex_backend: CodexBackend) -> None:
    codex_backend.script([{"items": ["Hello, world."], "delta": 7}, {"items": ["x"]}])
    seen = [event["type"] async for event in events(codex_backend.url + "/v1", "Hi")]
    assert seen[0] == "response.created"
    assert seen[-1] == "response.completed"
    assert seen.count("response.output_text.delta") == 2
    assert await ask(codex_backend.url + "/v1", "Hi") == "x"


async def test_a_gate_holds_one_answer_and_no_other(codex_backend: CodexBackend) -> None:
    codex_backend.script([{"match": "slow", "items": ["first"], "gate": "g"}, {"match": "fast", "items": ["second"]}])
    slow = asyncio.create_task(ask(codex_backend.url + "/v1", "slow"))
    assert await asyncio.to_thread(codex_backend.wait_at_gate, "g")
    assert await ask(codex_backend.url + "/v1", "fast") == "second"
    assert not slow.done()
    codex_backend.release("g")
    assert await slow == "first"


async def test_requests_side_by_side_get_their_own_answers(codex_backend: CodexBackend) -> None:
    codex_backend.script([{"match": f"<{n}>", "items": [f"answer {n}"]} for n in range(8)])
    answers = await asyncio.gather(*(ask(codex_backend.url + "/v1", f"<{n}>") for n in range(8)))
    assert answers == [f"answer {n}" for n in range(8)]
    assert len(codex_backend.requests) == 8
    assert codex_backend.unused_turns == []


async def test_a_client_that_is_cancelled_in_mid_stream_harms_no_other(codex_backend: CodexBackend) -> None:
    held = {"match": "left", "items": ["never", {"type": "gate", "name": "in the middle"}, "whole"]}
    codex_backend.script([held, {"match": "stays", "items": ["Still here."]}])
    begun = asyncio.Event()

    async def listen() -> None:
        async for _ in events(codex_backend.url + "/v1", "left"):
            begun.set()

    left = asyncio.create_task(listen())
    await begun.wait()
    assert await asyncio.to_thread(codex_backend.wait_at_gate, "in the middle")
    left.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await left
    assert left.cancelled()
    assert await ask(codex_backend.url + "/v1", "stays") == "Still here."
    codex_backend.release("in the middle")
    assert [request.status for request in await asyncio.to_thread(codex_backend.wait, 2)] == [200, 200]
    assert codex_backend.problems == []
