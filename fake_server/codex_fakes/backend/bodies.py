"""Decode the body of a request within the limits, without delaying other clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from codex_fakes.backend.exchange import Exchange
from codex_fakes.backend.limits import Limits
from codex_replay.core.wire.content_encoding import IDENTITY, TooLarge, decode

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

#: Bodies up to these sizes are decoded at once, which takes a few milliseconds at most; others in a thread, one after another.
SENT, DECODED = 64 * 1024, 1024 * 1024

_thread: ThreadPoolExecutor | None = None


async def decoded(exchange: Exchange, limits: Limits) -> bytes:
    """Return the decoded body of a request. Raises `BadEncoding`, or `TooLarge` for a body over the limit."""
    request = exchange.request
    encoding = request.header("content-encoding")
    if encoding is None or encoding.strip().lower() in IDENTITY:
        return request.body
    plain = None
    if len(request.body) <= SENT:
        try:
            plain = decode(request.body, encoding, min(DECODED, limits.body))
        except TooLarge:
            if limits.body <= DECODED:
                raise
    if plain is None:
        loop = asyncio.get_running_loop()
        plain = await loop.run_in_executor(_decoder(), decode, request.body, encoding, limits.body)
    if not exchange.take(len(plain)):
        raise TooLarge("The request bodies of all clients together are too long at the moment: retry later.")
    return plain


def _decoder() -> ThreadPoolExecutor:
    global _thread
    if _thread is None:
        from concurrent.futures import ThreadPoolExecutor  # only for long bodies: it would slow every start

        _thread = ThreadPoolExecutor(1, "decoder")
    return _thread
