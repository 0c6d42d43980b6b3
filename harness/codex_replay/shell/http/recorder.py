"""A transparent recorder in front of a Responses backend.

The recorder passes on all bytes immediately, and a `Watch` records them. The code here opens and closes the listening
socket; a `Relay` handles each connection. The recorder changes only the base path and the Host header of a request (see
`Upstream`). Responses are passed on unchanged.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire.web_guard import WebGuard
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.bodies import MAX_DECODED
from codex_replay.shell.http.deferred import Deferred
from codex_replay.shell.http.relay import Relay
from codex_replay.shell.http.upstream import Upstream
from codex_replay.shell.http.watch import Watch

FILES = 65536  # that may be open at once
GRACE = 2.0  # seconds for open exchanges to end when the recording ends


class HttpRecorder:
    """Listen at `listen` ("host:port", port 0 for a free port), pass on all traffic to `upstream`, and record the traffic.

    The constructor opens the listening socket; `url` is its address. Call `start` and `stop` to serve in a separate thread,
    or `run` to serve until a signal. `log` must redact whole frames (`encoded_body.redacted`), because the recorder does
    not redact streamed bodies. The recording omits a body of more than `limit` decoded bytes. Raises OSError if the address is
    not available, and ValueError if `listen` or `upstream` is invalid.
    """

    def __init__(
        self,
        upstream: str,
        listen: str,
        log: Log,
        redactor: Redactor,
        write_out: Callable[[str], None],
        hosts: Iterable[str] = (),
        limit: int = MAX_DECODED,
    ) -> None:
        self._limit = limit
        self._upstream = Upstream(upstream)
        # Requests go on with the server's own Host: a web page that the server refuses must not get there through us.
        self._guard = WebGuard(urlsplit(f"//{listen}").hostname or "", hosts)
        self._log, self._redactor, self._write_out = Deferred(log), redactor, write_out
        self._said: set[str] = set()
        self._relays: set[Relay] = set()
        self._count = 0
        self._socket = _listening(listen)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._thread: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._context = self._upstream.context()

    def start(self) -> None:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), name="http-recorder")
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, let open connections end (for at most `GRACE` seconds), and end the thread."""
        self._loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not None:
            self._thread.join()
        self._log.drain()
        self._loop.close()

    def run(self) -> None:
        """Serve in the calling thread until the signal INT, TERM or HUP."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._loop.add_signal_handler(number, self._ended.set)
        self._loop.run_until_complete(self._serve(grace=0))
        self._log.drain()
        self._loop.close()

    def _say_once(self, sentence: str) -> None:
        """Report a warning only once, even if it applies to many connections."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._write_out(sentence)

    def _relay(self) -> Relay:
        self._count += 1
        # What the log writes to redacts a frame as a whole, and what was streamed in chunks when all are there.
        watch = Watch(
            *(self._count, self._log, self._redactor, self._upstream.rewrite, self._say_once),
            later=True,
            guard=self._guard,
            limit=self._limit,
        )
        relay = Relay(watch, self._upstream, self._context, self._say_once, self._relays.discard)
        self._relays.add(relay)
        return relay

    async def _serve(self, grace: float = GRACE) -> None:
        _allow_many_files()
        server = await self._loop.create_server(lambda: self._relay().client, sock=self._socket)
        await self._ended.wait()
        server.close()
        if self._relays and grace:
            await asyncio.wait([asyncio.ensure_future(relay.ended.wait()) for relay in self._relays], timeout=grace)
        for relay in list(self._relays):
            relay.abandon()
        await asyncio.gather(*(relay.ended.wait() for relay in list(self._relays)))
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were aborted close their sockets now


def _allow_many_files() -> None:
    """Raise this process's limit of open files as far as allowed, because each connection needs two.

    A program that was started earlier keeps its old limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listening(listen: str) -> socket.socket:
    parts = urlsplit(f"//{listen}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if not parts.hostname or port is None or parts.path:
        raise ValueError(f"{listen!r} is not an address to listen on; give one such as 127.0.0.1:0")
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
