"""A transparent recorder in front of a Responses backend: what comes in goes on at once, and a `Watch` logs it on the way.

Strategy: one upstream connection for each client connection, so that whatever one side does to its connection (a half-close,
a reset, silence) can be done to the other. Nothing is buffered but what a slow reader leaves, and then its writer is no longer
read. Of a request only the target's base path and the Host are changed; a response goes on as the bytes that came.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from harness.core.redact import Redactor
from harness.shell.http_watch import Pairs, Watch
from harness.shell.record_log import Log

LIMIT = 262144  # bytes that may wait for the upstream connection to be made
GRACE = 2.0  # seconds in which open exchanges may come to their end when the recording ends


class Upstream:
    """Where requests go: host, port, whether by TLS, and the path that stands before the client's own. Raises ValueError."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL; give one such as https://host/base")
        if parts.query or parts.fragment:
            raise ValueError(f"{url!r} has a query or a fragment; give the base URL only")
        self.url = url
        self.tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.tls else 80)
        self.netloc = parts.netloc.rpartition("@")[2]
        self.base = parts.path.rstrip("/")

    def rewrite(self, target: str, headers: Pairs) -> tuple[str, Pairs]:
        """Return the target and headers with which a request goes on."""
        named = [(name, self.netloc if name.lower() == "host" else value) for name, value in headers]
        return (self.base + target if target.startswith("/") else target), named

    def context(self) -> Any:
        """Return the TLS settings, None for plain HTTP; no protocol but HTTP/1.1 is offered."""
        if not self.tls:
            return None
        import ssl

        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context


class HttpRecorder:
    """Listens at `listen` ("host:port", port 0 for any), passes all on to `upstream`, logs it.

    It listens from the beginning; `url` is where. Serve with `start` and `stop` (a thread of its own) or with `run` (until a
    signal). What `log` writes to is to redact whole frames (`hidden.redacted`): they come with what may hold a piece of a
    secret as it was. Raises OSError when it cannot listen there, ValueError when `listen` or `upstream` is no such thing.
    """

    def __init__(self, upstream: str, listen: str, log: Log, redactor: Redactor, say: Callable[[str], None]) -> None:
        self.upstream = Upstream(upstream)
        self.log, self.redactor, self.say = log, redactor, say
        self._said: set[str] = set()
        self.relays: set[Relay] = set()
        self.count = 0
        self._socket = _listening(listen)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._thread: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self.context = self.upstream.context()

    def start(self) -> None:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), name="http-recorder")
        self._thread.start()

    def stop(self) -> None:
        """Listen no more, let what is open end (for `GRACE` seconds at most), and end the thread."""
        self._loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not None:
            self._thread.join()
        self._loop.close()

    def run(self) -> None:
        """Serve in this thread until INT, TERM or HUP."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._loop.add_signal_handler(number, self._ended.set)
        self._loop.run_until_complete(self._serve(grace=0))
        self._loop.close()

    def say_once(self, sentence: str) -> None:
        """Say what may be so of each connection, for the first."""
        if sentence not in self._said:
            self._said.add(sentence)
            self.say(sentence)

    async def _serve(self, grace: float = GRACE) -> None:
        server = await self._loop.create_server(lambda: Relay(self).client, sock=self._socket)
        await self._ended.wait()
        server.close()
        if self.relays and grace:
            await asyncio.wait([asyncio.ensure_future(relay.ended.wait()) for relay in self.relays], timeout=grace)
        for relay in list(self.relays):
            relay.abandon()
        await asyncio.gather(*(relay.ended.wait() for relay in list(self.relays)))
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were aborted close their sockets now


class Relay:
    """One client connection and the upstream connection that belongs to it."""

    def __init__(self, recorder: HttpRecorder) -> None:
        recorder.count += 1
        recorder.relays.add(self)
        self.recorder = recorder
        upstream = recorder.upstream
        # What the log writes to redacts a frame as a whole, and what was streamed in pieces when all are there.
        self.watch = Watch(recorder.count, recorder.log, recorder.redactor, upstream.rewrite, recorder.say_once, later=True)
        self.client, self.server = Side(self, "client"), Side(self, "server")
        self.ended = asyncio.Event()
        self._waiting: list[bytes] = []
        self._size = 0
        self._unreachable = False
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The client has connected: connect to the server."""
        self._task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        upstream, context = self.recorder.upstream, self.recorder.context
        name = upstream.host if context else None
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: self.server, upstream.host, upstream.port, ssl=context, server_hostname=name)
        except OSError as error:
            self.recorder.say(f"{upstream.url}: cannot be reached ({error.strerror or error}); check that it runs.")
            self._unreachable = True
            self._refuse()
            return
        for data in self._waiting:
            self.server.write(data)
        self._waiting.clear()
        if self.watch.client_ended:
            self.server.end()
        self.client.read_on()

    def _refuse(self) -> None:
        """There is no server: reset the client once it has asked for something, so that the recording tells what."""
        if self._unreachable and self.watch.asked:
            self.watch.gone("server", "reset")
            self.client.close(reset=True)

    def data(self, side: Side, data: bytes) -> None:
        """Log what one side wrote, as far as it is whole, and pass it on."""
        if side is self.server:
            self.watch.server(data)
            self.client.write(data)
            return
        data = self.watch.client(data)
        if self.server.connected:
            self.server.write(data)
        else:
            self._refuse()
            self._waiting.append(data)
            self._size += len(data)
            if self._size > LIMIT:
                self.client.hold_on()

    def ended_by(self, side: Side) -> None:
        """One side has ended its direction in good order."""
        if side is self.client:
            self.watch.client_ended = True
            if self.server.connected:
                self.server.end()
        else:
            self.watch.gone("server", "end")
            self.client.close()

    def lost(self, side: Side, error: Exception | None) -> None:
        """One side's connection is gone; so is the other's, in the same way."""
        name = "client" if side is self.client else "server"
        other = self.server if side is self.client else self.client
        if error is None:
            self.watch.gone(name, "end")
            other.close()
        else:
            self.watch.gone(name, "cut" if name == "client" and self.watch.client_ended else "reset")
            other.close(reset=True)

    def finish(self, side: Side) -> None:
        """Take note that one connection is over."""
        side.closed = True
        if side is self.client and not self.server.connected and self._task is not None:
            self._task.cancel()
            self.server.closed = True
        self._settle()

    def _settle(self) -> None:
        if self.client.closed and self.server.closed:
            self.recorder.relays.discard(self)
            self.ended.set()

    def abandon(self) -> None:
        """End both connections now."""
        self.watch.gone("client", "cut")
        for side in (self.client, self.server):
            side.abort()


class Side(asyncio.Protocol):
    """One end of a relay; `name` is who is at it."""

    def __init__(self, relay: Relay, name: str) -> None:
        self.name = name
        self.connected = self.closed = False
        self._relay = relay
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; small writes leave at once."""
        self._transport = cast(asyncio.Transport, transport)
        self.connected = True
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.name == "client":
            self._relay.begin()

    def data_received(self, data: bytes) -> None:
        """Log and pass on."""
        self._relay.data(self, data)

    def eof_received(self) -> bool:
        """Pass on the end of one direction; our own stays open where that is possible."""
        self._relay.ended_by(self)
        return self._transport is not None and self._transport.can_write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on the end of the connection."""
        self._relay.lost(self, exc)
        self._relay.finish(self)

    def pause_writing(self) -> None:
        """This side is slow: read no more from the other."""
        self._other().hold_on()

    def resume_writing(self) -> None:
        """This side has caught up."""
        self._other().read_on()

    def _other(self) -> Side:
        return self._relay.server if self is self._relay.client else self._relay.client

    def hold_on(self) -> None:
        """Stop reading."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def read_on(self) -> None:
        """Read again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Write, unless the connection is going."""
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def end(self) -> None:
        """End our direction; all of the connection where halves cannot be ended (TLS)."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def close(self, reset: bool = False) -> None:
        """Close after what was written; with `reset` so that the other end sees a reset."""
        if self._transport is None or self._transport.is_closing():
            return
        if reset:
            self._linger()
        self._transport.close()

    def abort(self) -> None:
        """Reset now, whatever is left to be written."""
        if self._transport is not None:
            self._linger()
            self._transport.abort()

    def _linger(self) -> None:
        assert self._transport is not None
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _listening(listen: str) -> socket.socket:
    parts = urlsplit(f"//{listen}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if not parts.hostname or port is None or parts.path:
        raise ValueError(f"{listen!r} is no address to listen at; give one such as 127.0.0.1:0")
    try:
        family, kind, _, _, address = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise OSError(errno.EADDRNOTAVAIL, error.strerror) from None
    sock = socket.socket(family, kind)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(128)
    except BaseException:
        sock.close()
        raise
    return sock
