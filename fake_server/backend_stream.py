"""Move the steps of a reply to the client: cut into chunks, delayed, held at gates."""

from __future__ import annotations

import asyncio
import json

from fake_server.backend_http import Exchange
from fake_server.backend_sessions import Session
from harness.core.sse import encode
from harness.protocol.responses import Gate, Raw, Send, Step, Wait
from harness.protocol.script import Turn

#: More than this is not gathered before it is written, so that memory stays flat and a slow client slows us down.
BATCH = 256 * 1024


def event_bytes(event: object, *, newline: bytes = b"\n") -> bytes:
    """Write one event as the service does: its type as the name, its data in compact JSON with non-ASCII kept."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    name = event.get("type") if isinstance(event, dict) else None
    return encode(data, name.encode() if isinstance(name, str) else b"", newline=newline)


async def stream(exchange: Exchange, session: Session, turn: Turn, steps: list[Step]) -> None:
    """Send the steps; the answer is begun already, and its end is left to the caller."""
    batch: list[bytes] = []
    size = 0
    for step in steps:
        if isinstance(step, Send | Raw):
            piece = event_bytes(step.event) if isinstance(step, Send) else step.data
            batch.append(piece)
            size += len(piece)
            if turn.delay_ms or size > BATCH:
                await _flush(exchange, turn, batch)
                size = 0
                if turn.delay_ms:
                    await exchange.hold(asyncio.sleep(turn.delay_ms / 1000))
            continue
        await _flush(exchange, turn, batch)
        size = 0
        if isinstance(step, Wait):
            await exchange.hold(asyncio.sleep(step.ms / 1000))
        elif isinstance(step, Gate):
            await pass_gate(exchange, session, step.name)
    await _flush(exchange, turn, batch)


async def pass_gate(exchange: Exchange, session: Session, name: str) -> None:
    """Stand at a gate until it is released."""
    session.reach(name)
    await exchange.hold(session.gate(name).wait())


async def _flush(exchange: Exchange, turn: Turn, batch: list[bytes]) -> None:
    if not batch:
        return
    if turn.write == "event":
        exchange.write(batch)
    else:
        whole = b"".join(batch)
        size = len(whole) if turn.write == "whole" else int(turn.write)
        exchange.write(whole[i : i + size] for i in range(0, len(whole), size))
    batch.clear()
    await exchange.drain()
