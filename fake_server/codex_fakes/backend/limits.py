"""The limits that the backend sets for clients: no client can stop the backend, fill its memory, or block other clients."""

from __future__ import annotations

from typing import Protocol

from codex_fakes.backend.turns import Turns
from codex_replay.core.value import Value

MB = 1024 * 1024


class Limits(Value):
    """The limits of one backend process; sizes are in bytes."""

    #: The maximum size of a body, sent and decoded: beyond it the answer is 413. The largest known of a client is 10 MB.
    body: int = 64 * MB
    #: All bodies that are on their way at once: beyond it the answer is 503.
    buffered: int = 256 * MB
    headers: int = 256 * 1024
    target: int = 64 * 1024
    #: What the ledger of a session keeps: the oldest requests are dropped, and counted.
    ledger_requests: int = 10_000
    ledger_bytes: int = 64 * MB
    #: Seconds until a request that has begun must be whole, and after which a connection ends on which nothing moves.
    idle: float = 120.0


class Open(Protocol):
    """A connection."""

    def sweep(self, now: float) -> None:
        """End the connection if it was idle for too long."""

    def close(self) -> None:
        """Close the connection after the pending bytes are written."""


class Traffic:
    """The open connections of one process, the order in which they may send, and the bytes of all request bodies in memory."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.turns = Turns()
        self.connections: set[Open] = set()
        self.buffered = 0

    def sweep(self, now: float) -> None:
        """Close the connections that were idle for too long."""
        for connection in list(self.connections):
            connection.sweep(now)
