"""Record the messages and control frames of a WebSocket connection, each as soon as it is complete.

The bytes of the connection are passed on unchanged. For each direction, a decoder reads a copy of the bytes. The recorder
therefore does not influence pings, close frames and compression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from codex_replay.core.cassette import ws_frames
from codex_replay.shell.http import bodies
from codex_replay.shell.http.bodies import AT_ONCE, PAUSE

if TYPE_CHECKING:
    from codex_replay.core.wire.websocket import Decoder, Headers, Message


class Watch(bodies.Watch, Protocol):
    """The interface of `watch.Watch` that `Messages` uses."""

    def value(self, value: Any) -> Any:
        """Return a JSON value without its secrets."""

    def lost(self, size: int, why: str) -> None:
        """Report a WebSocket message that is not in the cassette."""

    def stop_looking(self, why: str) -> None:
        """Pass the rest of the connection on without recording it."""


class Messages:
    """A WebSocket connection that is recorded in both directions.

    `headers` are the headers of the 101 response that opened the WebSocket. Raises ValueError if the headers contain an
    unknown extension.
    """

    def __init__(self, watch: Watch, headers: Headers) -> None:
        from codex_replay.core.wire.websocket import Decoder, compression  # few recordings have a WebSocket

        mine, theirs = compression(headers)
        self._watch = watch
        self._decoders: dict[str, Decoder] = {
            "client": Decoder(True, mine, watch.limit, burst=AT_ONCE),
            "server": Decoder(False, theirs, watch.limit, burst=AT_ONCE),
        }
        self._began: dict[str, float] = {}
        self.count = 0
        #: Who sent a close frame first, None while nobody has.
        self.closed_by: str | None = None

    def feed(self, sender: str, data: bytes) -> None:
        """Take bytes that one side wrote, and log the messages that are now complete.

        If the bytes take long to decompress, `waiting` is then True, and the next call continues.
        """
        watch, decoder = self._watch, self._decoders[sender]
        now = watch.log.now()
        began = self._began.pop(sender, now)
        for message in decoder.feed(data):
            self._log(sender, message, round(began, 6) if now - began > PAUSE else None)
            began = now
        if decoder.pending:
            self._began[sender] = began
        if decoder.broken is not None:
            watch.stop_looking(f"the {sender} breaks the WebSocket protocol ({decoder.broken})")

    def waiting(self, sender: str) -> bool:
        """Return True if bytes of one side are not decompressed yet."""
        return self._decoders[sender].held

    def _log(self, sender: str, message: Message, began: float | None) -> None:
        self.count += 1
        if message.kind == "close" and self.closed_by is None:
            self.closed_by = sender
        marks: dict[str, Any] = {"compressed": message.compressed, "fragments": list(message.fragments), "began": began}
        size = len(message.data)
        self._watch.emit(sender, "ws", _payload(self._watch, message), size=size, long=size > AT_ONCE, **marks)


def _payload(watch: Watch, message: Message) -> Callable[[], Any]:
    def build() -> Any:
        if message.kind == "lost":
            watch.lost(message.size, message.why)
        payload = ws_frames.payload(message.kind, message.data, message.size, message.why)
        return payload if watch.later else watch.value(payload)

    return build
