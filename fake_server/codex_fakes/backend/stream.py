"""Send the steps of a reply to the client, in chunks, with delays, gates and broken connections."""

from __future__ import annotations

from collections.abc import Iterable

from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.loop.waiting import Event, sleep
from codex_fakes.backend.sessions import Session
from codex_fakes.backend.turns import STEP
from codex_fakes.model.faults import Act, Cut, Idle, Message, Reset
from codex_replay.protocol.responses.steps import Gate, Raw, Send, Wait, event_bytes
from codex_replay.protocol.script.script import Turn

#: More than this is not gathered before it is written, so that memory stays flat and a slow client slows us down.
BATCH = 256 * 1024


async def stream(exchange: Exchange, session: Session, turn: Turn, acts: Iterable[Act]) -> str:
    """Send the events of a started answer, with its pauses, and end the answer.

    Return how the answer ended: "end", "cut" or "reset".
    """
    batch: list[bytes] = []
    size = made = 0
    for act in acts:
        if isinstance(act, Send | Raw):
            piece = event_bytes(act.event) if isinstance(act, Send) else act.data
            batch.append(piece)
            size += len(piece)
            made += len(piece)
            if turn.delay_ms or size > BATCH:
                await _flush(exchange, turn, batch)
                size = 0
                if turn.delay_ms:
                    await exchange.wait_for(sleep(turn.delay_ms / 1000))
            if turn.delay_ms or made > STEP:
                made = 0
                await exchange.connection.turn()
            continue
        await _flush(exchange, turn, batch)
        size = 0
        if isinstance(act, Wait | Gate):
            await pause(exchange, session, [act])
        elif isinstance(act, Idle):
            await exchange.wait_for(Event().wait())
        elif isinstance(act, Message):
            exchange.fail(act.name)
            if exchange.ended or act.name.startswith("close_"):
                return "end" if exchange.ended else "cut"
        elif isinstance(act, Cut):
            exchange.cut()
            return "cut"
        elif isinstance(act, Reset):
            await exchange.sent()
            exchange.reset()
            return "reset"
    await _flush(exchange, turn, batch)
    exchange.end()
    return "end"


async def pause(exchange: Exchange, session: Session, acts: Iterable[Wait | Gate]) -> None:
    """Wait for each of the given delays and gates, in order."""
    for act in acts:
        if isinstance(act, Gate):
            session.reach(act.name)
            await exchange.wait_for(session.gate(act.name).wait())
        else:
            await exchange.wait_for(sleep(act.ms / 1000))
        await exchange.connection.turn()  # a thousand answers may have waited for the same


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
