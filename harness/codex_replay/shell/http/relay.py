"""One connection through the recorder: the bytes that one side sends are recorded (`Watch`) and sent to the other side.

Each client connection has its own upstream connection, so that the relay can repeat a half-close, a reset or a silence of
one side on the other connection. If one side reads slowly, the relay buffers the unread bytes, and stops reading from the
other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from codex_replay.shell.http.client_requests import TOO_LONG
from codex_replay.shell.http.deferred import Deferred
from codex_replay.shell.http.upstream import Upstream
from codex_replay.shell.http.watch import Watch

if TYPE_CHECKING:
    from codex_replay.core.wire.websocket import Steps

LIMIT = 262144  # bytes that may wait for the upstream connection to be made
#: A connection is read in pieces of at most these sizes (bytes): the first, the least and the most. A full piece makes the next
#: one twice as long. If it takes longer than `TURN` (seconds) to log, as many short events do, the next one is half as long, so
#: that other connections get their turn.
FIRST, LEAST, MOST, TURN = 4096, 1024, 65536, 0.01
#: The reasons not to read from one side: the upstream connection is being made, the other side is slow to read, many long frames
#: wait to be logged, messages wait to be decompressed.
CONNECTING, SLOW, FULL, PACKED = "connecting", "slow", "full", "packed"


@cache
def _steps(loop: asyncio.AbstractEventLoop) -> Steps:
    """Return the queue of the sides of all connections that have more to decompress."""
    from codex_replay.core.wire.websocket import Steps  # few recordings have a WebSocket

    return Steps(loop.call_soon)


class Relay:
    """One client connection and its upstream connection.

    `context` has the TLS settings of the upstream connection. The function `over` is called when both connections have
    ended.
    """

    def __init__(
        self, watch: Watch, upstream: Upstream, context: Any, write_out: Callable[[str], None], over: Callable[[Relay], None]
    ) -> None:
        self.watch = watch
        self._upstream, self._context, self._write_out, self._over = upstream, context, write_out, over
        self.client, self.server = Side(self, "client"), Side(self, "server")
        self.ended = asyncio.Event()
        self._waiting: list[bytes] = []
        self._size = 0
        self._unreachable = False
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Accept a client's connection, and connect to the server."""
        self._task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        upstream, context = self._upstream, self._context
        name = upstream.host if context else None
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: self.server, upstream.host, upstream.port, ssl=context, server_hostname=name)
        except OSError as error:
            self._write_out(f"{upstream.url} cannot be reached ({error.strerror or error}); check that it runs.")
            self._unreachable = True
            self._refuse()

    def reached(self) -> None:
        """Use the connection to the server, which is now open. The data that the client has already sent is passed on first."""
        for data in self._waiting:
            self.server.write(data)
        self._waiting.clear()
        if self.watch.client_ended:
            self.server.end()
        self.client.read_on(CONNECTING)

    def _refuse(self) -> None:
        """If the server cannot be reached, reset the client's connection after its first request, so that the recording has
        the request.
        """
        if self._unreachable and self.watch.asked:
            self._disconnected("server", "reset")
            self.client.close(reset=True)

    def data(self, side: Side, data: bytes) -> None:
        """Record the complete frames in the bytes that one side wrote, and pass on the bytes.

        If too many frames wait to be recorded, stop reading.
        """
        if side is self.server:
            self.watch.server(data)
        else:
            data = self.watch.client(data)
        if side.kept:
            side.kept += data
        elif self.watch.waiting(side.name):
            side.kept = data
            side.hold_on(PACKED)
            self._add_steps(side)
        else:
            self._pass_on(side, data)

    def _add_steps(self, side: Side) -> None:
        _steps(asyncio.get_running_loop()).add(lambda: self._step(side))

    def _step(self, side: Side) -> bool:
        """Record one piece of the messages of one side. Return True if there is more to record now.

        When all pieces are recorded, pass on the bytes, and read more.
        """
        if not side.kept:
            return False  # the connection has ended
        if self._when_full(lambda: self._add_steps(side)):
            return False
        self.watch.more(side.name)
        if self.watch.waiting(side.name):
            return True
        data, side.kept = side.kept, b""
        self._pass_on(side, data)
        side.read_on(PACKED)
        return False

    def _when_full(self, call: Callable[[], object]) -> bool:
        """If too many frames wait to be recorded, return True, and call the function `call` as soon as there is room."""
        log = self.watch.log
        if not isinstance(log, Deferred) or not log.full:
            return False
        loop = asyncio.get_running_loop()
        log.when_room(lambda: loop.call_soon_threadsafe(call))
        return True

    def _disconnected(self, sender: str, how: str) -> None:
        """Record that the connection of one side has ended. Pass on the bytes that are not recorded yet."""
        for side in (self.client, self.server):
            if side.kept:
                self.watch.stop_looking("it ended while a long WebSocket message was decompressed")
                data, side.kept = side.kept, b""
                self._pass_on(side, data)
        self.watch.disconnected(sender, how)

    def _pass_on(self, side: Side, data: bytes) -> None:
        if self._when_full(lambda: side.read_on(FULL)):
            side.hold_on(FULL)
        if side is self.server:
            self.client.write(data)
        elif self.watch.refused is not None:
            self._turn_away(self.watch.refused)
        elif self.server.connected:
            self.server.write(data)
        else:
            self._refuse()
            self._waiting.append(data)
            self._size += len(data)
            if self._size > LIMIT:
                self.client.hold_on(CONNECTING)

    def _turn_away(self, why: str) -> None:
        """Answer the client with a refusal, and do not pass on its request."""
        if why == TOO_LONG:
            self._write_out(f"Refused a request. {why}")
        else:
            self._write_out(
                "Refused a request that came from a web page or through an unknown host name; allow it with --allow-host NAME."
            )
        body = why.encode()
        status = "431 Request Header Fields Too Large" if why == TOO_LONG else "403 Forbidden"
        head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.client.write(head.encode() + body)
        self.client.close()

    def ended_by(self, side: Side) -> None:
        """Record that one side has closed its direction in the regular way."""
        if side is self.client:
            self.watch.client_ended = True
            if self.server.connected:
                self.server.end()
        else:
            self._disconnected("server", "end")
            self.client.close()

    def lost(self, side: Side, error: Exception | None) -> None:
        """Record that one connection has ended.

        Close the connection to the other side in the way in which the first connection has ended.
        """
        name = "client" if side is self.client else "server"
        other = self.server if side is self.client else self.client
        if error is None:
            self._disconnected(name, "end")
            other.close()
        else:
            self._disconnected(name, "cut" if name == "client" and self.watch.client_ended else "reset")
            other.close(reset=True)

    def finish(self, side: Side) -> None:
        """Record that one connection is completely closed."""
        side.closed = True
        if side is self.client and not self.server.connected and self._task is not None:
            self._task.cancel()
            self.server.closed = True
        self._settle()

    def _settle(self) -> None:
        if self.client.closed and self.server.closed:
            self._over(self)
            self.ended.set()

    def abandon(self) -> None:
        """End both connections now."""
        self._disconnected("client", "cut")
        for side in (self.client, self.server):
            side.abort()


class Side(asyncio.BufferedProtocol):
    """One end of a relay; `name` is "client" or "server"."""

    def __init__(self, relay: Relay, name: str) -> None:
        self.name = name
        self.connected = self.closed = False
        self._buffer = memoryview(bytearray(MOST))
        self._piece = FIRST
        self.kept = b""  # the bytes that are not passed on, because they are not recorded yet
        self._holds: set[str] = set()  # the reasons not to read
        self._relay = relay
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; send small writes without delay."""
        self._transport = cast(asyncio.Transport, transport)
        self.connected = True
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.name == "client":
            self._relay.begin()
        else:
            self._relay.reached()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._buffer[: self._piece]

    def buffer_updated(self, nbytes: int) -> None:
        """Log and pass on."""
        began = time.monotonic()
        self._relay.data(self, bytes(self._buffer[:nbytes]))
        if time.monotonic() - began > TURN:
            self._piece = max(LEAST, self._piece // 2)
        elif nbytes == self._piece:
            self._piece = min(MOST, self._piece * 2)

    def eof_received(self) -> bool:
        """Take the end of the data that one side sends, and end this direction of the other connection, too. If possible, keep
        the connection open for data of the other side.
        """
        self._relay.ended_by(self)
        return self._transport is not None and self._transport.can_write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the end of the connection to the other side."""
        self._relay.lost(self, exc)
        self._relay.finish(self)

    def pause_writing(self) -> None:
        """Stop reading from the other side, because this side reads slowly."""
        self._other().hold_on(SLOW)

    def resume_writing(self) -> None:
        """Read from the other side again, because this side has read enough."""
        self._other().read_on(SLOW)

    def _other(self) -> Side:
        return self._relay.server if self is self._relay.client else self._relay.client

    def hold_on(self, why: str) -> None:
        """Stop reading, for one of the reasons `CONNECTING`, `SLOW` and `FULL`."""
        self._holds.add(why)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def read_on(self, why: str) -> None:
        """Resume reading, unless another reason to stop is left."""
        self._holds.discard(why)
        if not self._holds and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Write to the connection, unless it is closing."""
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def end(self) -> None:
        """Close the outgoing direction of the connection.

        A TLS connection cannot close one direction alone, so it is closed completely.
        """
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            with contextlib.suppress(OSError):  # the other end has reset it: `connection_lost` comes next
                self._transport.write_eof()
        else:
            self._transport.close()

    def close(self, reset: bool = False) -> None:
        """Close the connection after the pending data is written. With `reset`, the peer sees a reset."""
        if self._transport is None or self._transport.is_closing():
            return
        if reset:
            self._linger()
        self._transport.close()

    def abort(self) -> None:
        """Reset the connection now, and drop the data that is not written yet."""
        if self._transport is not None:
            self._linger()
            self._transport.abort()

    def _linger(self) -> None:
        assert self._transport is not None
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
