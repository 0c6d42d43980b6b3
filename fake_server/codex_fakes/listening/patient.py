"""A connection on which the frames of a client wait until its handshake is answered.

Without this class, the package `websockets` would process early frames at once: it would answer a ping before the 101
response, and fail with a traceback if the client has also closed its direction.
"""

from __future__ import annotations

from typing import Any

from websockets.asyncio.server import ServerConnection

#: Bytes that a client may leave unread before its connection is closed, pongs included.
UNREAD = 64 << 20
_END = b"\r\n\r\n"


class Patient(ServerConnection):
    """A server's connection whose client may send frames, and close its direction, before the handshake is answered."""

    _tail = b""  # of the head, until it is whole
    _early: bytes | None = None  # what came after the head, while it is not answered
    _ended = False  # whether the client has ended its direction meanwhile

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client. Bytes after the head of the handshake request wait until the handshake is answered."""
        if self._early is not None:
            self._early += data
            return
        if not self._is_asked():
            seen = self._tail + data
            size = seen.find(_END) + len(_END) - len(self._tail)
            self._tail = seen[1 - len(_END) :]
            if _END in seen and size < len(data):
                super().data_received(data[:size])
                data = data[size:]
                if self._is_asked():
                    self._early = data
                    return
        super().data_received(data)
        if self.transport.get_write_buffer_size() > UNREAD:
            self.transport.abort()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Record that the client has closed its direction.

        The end of the client's direction is processed only when the handshake is answered.
        """
        self._ended = self._is_asked() and self.response is None
        return self._ended or super().eof_received()

    def _is_asked(self) -> bool:
        return self.request is not None

    async def handshake(self, *hooks: Any, **options: Any) -> None:
        """Answer the handshake, and then process the bytes that came with it."""
        await super().handshake(*hooks, **options)
        early, self._early = self._early, None
        if early:
            self.data_received(early)
        if self._ended:
            super().eof_received()
            self.transport.close()
