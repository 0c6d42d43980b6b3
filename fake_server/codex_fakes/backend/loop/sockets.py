"""The sockets of the event loop: a port that accepts connections, and the transport of a connection."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from codex_fakes.backend.loop.tasks import running_loop

#: A protocol must pause writing when more unsent bytes than `HIGH` are kept, and may resume at `LOW`.
HIGH, LOW = 64 * 1024, 16 * 1024
#: Connections that wait in the system, and the most that are accepted in one round of the loop.
BACKLOG, ACCEPTED = 4096, 256
#: Without free file descriptors, the next connection is accepted after so many seconds.
PAUSE = 1.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: All connections read into this memory, one after the other: it is parsed before the next read, and nothing of it is kept.
#: A buffer of their own for each read cost a system call or two and its page faults.
_READ = memoryview(bytearray(1 << 18))


class CannotAccept(Exception):
    """The system has no file descriptor or memory for another connection. The message is a sentence."""


class Connected(Protocol):
    """The interface of a protocol, which handles the events of its transport."""

    def data_received(self, data: memoryview) -> None:
        """Handle received bytes. The memory is valid only during the call."""

    def eof_received(self) -> bool:
        """Handle the end of the received bytes. Return True if the transport must stay open."""

    def pause_writing(self) -> None:
        """Handle a full buffer: too many bytes are unsent."""

    def resume_writing(self) -> None:
        """Handle a buffer with free space again: most bytes are sent."""

    def connection_lost(self) -> None:
        """Handle the end of the connection; nothing is called after it."""


class Transport:
    """A TCP connection. `start` begins to read; the methods do not block."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        with suppress(OSError):  # the client has left already
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._loop = running_loop()
        self._protocol: Connected | None = None
        self._unsent = bytearray()
        self._wanted = True  # False while reading is paused
        self._eof = self._closing = self._lost = self._full = self._ends = False

    def start(self, protocol: Connected) -> None:
        """Pass all events to a protocol."""
        self._protocol = protocol
        self._watch()

    def _watch(self) -> None:
        reads = self._wanted and not (self._eof or self._closing)
        self._loop.watch(self._sock.fileno(), self._read if reads else None, self._send if self._unsent else None)

    def is_closing(self) -> bool:
        """Return True if the connection is closed, or will be closed when all bytes are sent."""
        return self._closing

    def pause_reading(self) -> None:
        """Do not read until `resume_reading`."""
        self._reading(False)

    def resume_reading(self) -> None:
        """Read again."""
        self._reading(True)

    def _reading(self, wanted: bool) -> None:
        if wanted != self._wanted and not self._lost:
            self._wanted = wanted
            self._watch()

    def get_write_buffer_size(self) -> int:
        """Return the number of unsent bytes."""
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        """Send bytes, and keep those that the system does not take now."""
        if self._lost:
            return
        if not self._unsent:
            try:
                sent = self._sock.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                self.abort()
                return
            if sent == len(data):
                return
            self._unsent += memoryview(data)[sent:]
            self._watch()
        else:
            self._unsent += data
        if len(self._unsent) > HIGH and not self._full and self._protocol is not None:
            self._full = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        """Close the sending direction after the unsent bytes. Reading continues."""
        self._ends = True
        if not self._unsent:
            self._shut()

    def _shut(self) -> None:
        with suppress(OSError):  # the client has left already
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Stop reading, and close the connection when all bytes are sent."""
        if not self._closing:
            self._closing = True
            if self._unsent:
                self._watch()
            else:
                self.abort()

    def reset(self) -> None:
        """Close the connection with RST, and drop the unsent bytes."""
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def abort(self) -> None:
        """Close the connection, and drop the unsent bytes."""
        if not self._lost:
            self._closing = self._lost = True
            self._unsent.clear()
            self._watch()
            self._loop.call_soon(self._end)

    def _end(self) -> None:
        protocol, self._protocol = self._protocol, None
        try:
            if protocol is not None:
                protocol.connection_lost()
        finally:
            self._sock.close()

    def _read(self) -> None:
        protocol = self._protocol
        if protocol is None or self._closing or self._eof or not self._wanted:
            return  # it changed earlier in this round
        try:
            size = self._sock.recv_into(_READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        try:
            if size:
                protocol.data_received(_READ[:size])
                return
            self._eof = True
            keeps_open = protocol.eof_received()
        except Exception:
            self.abort()
            raise
        if keeps_open:
            self._watch()
        else:
            self.close()

    def _send(self) -> None:
        if self._lost or not self._unsent:
            return
        try:
            sent = self._sock.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        del self._unsent[:sent]
        if self._full and len(self._unsent) <= LOW and self._protocol is not None:
            self._full = False
            self._protocol.resume_writing()
        if not self._unsent and not self._lost:
            if self._closing:
                self.abort()
            else:
                self._watch()
                if self._ends:
                    self._shut()


class Port:
    """A listening port. For each connection, `connect` gets the transport and returns the protocol."""

    def __init__(self, host: str, port: int, connect: Callable[[Transport], Connected]) -> None:
        """Listen on the first address of `host`.

        Raises `OSError`, `OverflowError` or `UnicodeError` if the address cannot be used.
        """
        self._loop = running_loop()
        self._connect = connect
        family, address = _address(host)
        self._sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._sock.bind((address[0], port, *address[2:]))
            self._sock.listen(BACKLOG)
        except BaseException:
            self._sock.close()
            raise
        self._sock.setblocking(False)
        #: The address as (host, port, ...).
        self.address: tuple[str, int] = self._sock.getsockname()[:2]
        self._watch()

    def _watch(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.watch(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED):
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._loop.watch(self._sock.fileno(), None)
                self._loop.call_later(PAUSE, self._watch)
                self._loop.report(CannotAccept(f"No further connection can be accepted at the moment: {error.strerror}."))
                return
            transport = Transport(sock)
            transport.start(self._connect(transport))

    def close(self) -> None:
        """Stop listening. The accepted connections stay open."""
        self._loop.watch(self._sock.fileno(), None)
        self._sock.close()


def _address(host: str) -> tuple[int, tuple[Any, ...]]:
    """Return the family and the address (host, port, ...) to listen on."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):  # it is a name, or an address of the other family
            socket.inet_pton(family, host)
            return family, (host, 0)
    # Not for an address of numbers: `getaddrinfo` imports the codec `idna`, which takes as long as the rest of this package.
    family, _, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return family, address
