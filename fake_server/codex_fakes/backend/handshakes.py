"""Decide how the backend answers a WebSocket handshake: as in the script, or as in the recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_fakes.backend.exchange import Headers
from codex_replay.core.value import Value
from codex_replay.protocol.script.script import Turn


class Handshake(Value):
    """The acceptance of a handshake: the additional headers of the 101 response, and whether compression is accepted."""

    headers: Headers
    compression: bool


class Handshakes:
    """The answers to handshakes that the key `websocket` of a script defines (see docs/websocket.md)."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        #: "off" (426), "on" or "only" (HTTP is refused).
        self.mode: str = given.get("mode", "on" if given else "off")
        self.compression: bool = given.get("compression", True)
        self.headers: list[tuple[str, str]] = list(given.get("headers", ()))
        self.prewarm: Turn | None = given.get("prewarm_turn")
        faults = given.get("handshakes", [])
        self._always = faults if isinstance(faults, str) else None
        self._faults = [] if isinstance(faults, str) else list(faults)

    def next_handshake(self) -> str | None:
        """Return the fault of the next handshake, or None if the next handshake is accepted."""
        if self._always is not None:
            return self._always
        fault = self._faults.pop(0) if self._faults else "ok"
        return None if fault == "ok" else fault
