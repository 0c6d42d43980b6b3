"""Listen for WebSocket connections, and let a server answer them. Each JSON-RPC message is one text frame.

Source: the real 0.169.0: any path is upgraded, without compression; `/healthz` and `/readyz` answer 200; a request with an Origin
is refused, because a web page has made it. The server outlives its connections. A signal ends it with status 0: after the
running turns, or immediately if it is the second signal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from weakref import WeakSet

from websockets.asyncio.server import Server, ServerConnection, serve, unix_serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from codex_fakes.listening import patient
from codex_fakes.listening.address import Address, claim, unusable
from codex_fakes.listening.servers import Connection, Driven, Replayed, Shared
from codex_fakes.stdio.loop import write_out
from codex_replay.core.text.error_text import error_text
from codex_replay.shell.cassettes.file import CassetteError

#: The most bytes of a client's message, and the messages of a client that may wait to be read.
MESSAGE, MESSAGES = 16 << 20, 16
#: Seconds that the clients have to read the last messages before the server ends.
LAST = 1.0
_HEALTH = ("/healthz", "/readyz")
_UNUSABLE = ("FAKE_CODEX_CAPTURE", "FAKE_CODEX_FAULT", "FAKE_CODEX_STATE")


def run(address: Address, environ: Mapping[str, str], overrides: list[tuple[str, str]]) -> int:
    """Serve until a signal arrives.

    Return the exit status. Raises `BadAddress` for an address that cannot be used, and `ValueError`, `OSError` or `CassetteError`
    for bad settings.
    """
    for name in _UNUSABLE:
        if environ.get(name):
            record = "To record the traffic, put `codex-replay record` in front of this server."
            raise ValueError(f"{name} has no effect with --listen; unset it. {record}")
    return asyncio.run(Listener(environ, overrides).serve(address))


class Listener:
    """Accept WebSocket connections.

    With a script, all connections share one server. With a cassette, each connection gets a separate replay.
    """

    def __init__(self, environ: Mapping[str, str], overrides: list[tuple[str, str]]) -> None:
        self._environ = environ
        self._shared = None if environ.get("FAKE_CODEX_CASSETTE") else Shared(environ, overrides)
        if self._shared is None:
            Replayed(environ, Connection(lambda _: None)).abandon()  # an unusable recording is reported at once
        self._ended = asyncio.Event()
        self._signalled = False
        self._news = asyncio.Event()  # there is a message for the shared server, or a client has read one
        self._status = 0
        self._inode = 0  # of the socket file
        self._open: WeakSet[ServerConnection] = WeakSet()  # also those whose handshake is not answered

    async def serve(self, address: Address) -> int:
        """Listen until a signal arrives or the server ends. Return the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._signal)
        async with await self._listen(address):
            driving = asyncio.create_task(self._drive(self._shared, self._news)) if self._shared else None
            await self._ended.wait()
            if driving is not None and not driving.cancel():
                driving.result()
            for websocket in self._open:
                if hasattr(websocket, "transport"):  # else asyncio has only just accepted it
                    websocket.transport.abort()  # as the real one: no close frame
        if address.path:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(address.path).st_ino == self._inode:  # no other server has taken its place
                    os.unlink(address.path)
        return self._shared.close() if self._shared else self._status

    def _signal(self) -> None:
        """At the first signal, end when the running turns have ended. At the second signal, end immediately."""
        if self._signalled or self._shared is None:
            self._ended.set()
        self._signalled = True
        self._news.set()

    async def _listen(self, address: Address) -> Server:
        options: dict[str, Any] = {
            "compression": None,
            "max_size": MESSAGE,
            "max_queue": MESSAGES,
            "ping_interval": None,
            "server_header": None,
            "process_request": _respond,
            "create_connection": self._connection,
            "close_timeout": 1,
        }
        try:
            if address.path:
                claim(address.path)
                server = await unix_serve(self._serve, address.path, **options)
                os.chmod(address.path, 0o600)
                self._inode = os.stat(address.path).st_ino
                return server
            server = await serve(self._serve, address.host, address.port, **options)
        except OSError as error:
            raise unusable(error) from None
        host = f"[{address.host}]" if ":" in address.host else address.host
        where = f"{host}:{server.sockets[0].getsockname()[1]}"
        write_out(
            f"codex app-server (WebSockets)\n  listening on: ws://{where}\n  readyz: http://{where}/readyz\n"
            f"  healthz: http://{where}/healthz\n  note: binds localhost only (use SSH port-forwarding for remote access)"
        )
        return server

    # -- one connection -----------------------------------------------------------------------------------------------

    def _connection(self, *given: Any, **options: Any) -> ServerConnection:
        connection = patient.Patient(*given, **options)
        self._open.add(connection)
        return connection

    async def _serve(self, websocket: ServerConnection) -> None:
        outgoing: asyncio.Queue[bytes] = asyncio.Queue()

        def send(message: bytes) -> None:
            connection.waiting += len(message)
            if connection.waiting > patient.UNREAD:
                websocket.transport.abort()
            else:
                outgoing.put_nowait(message)

        connection = Connection(send)
        news = self._news if self._shared else asyncio.Event()
        sending = asyncio.create_task(_send(websocket, connection, outgoing, news))
        try:
            if self._shared is not None:
                self._shared.connections.append(connection)
                await self._receive(self._shared, websocket, connection, news)
                self._shared.leave(connection)
                if self._shared.over:
                    self._ended.set()
            else:
                await self._replay(websocket, connection, news)
                await outgoing.join()
        finally:
            sending.cancel()

    async def _receive(self, server: Driven, websocket: ServerConnection, connection: Connection, news: asyncio.Event) -> None:
        """Pass the messages of a client to the server until the client disconnects or the server ends."""
        with contextlib.suppress(ConnectionClosed):
            async for message in websocket:
                if isinstance(message, str):  # the real server ignores a binary message
                    server.receive(connection, message.encode())
                    news.set()
                if server.over:
                    return

    async def _replay(self, websocket: ServerConnection, connection: Connection, news: asyncio.Event) -> None:
        try:
            server = Replayed(self._environ, connection)
        except (CassetteError, ValueError, OSError) as error:  # the recording has changed since the start
            write_out(f"fake-codex: {error_text(error)}")
            self._status = 2
            return
        driving = asyncio.create_task(self._drive(server, news))
        await self._receive(server, websocket, connection, news)
        driving.cancel()
        self._status = max(self._status, server.close())

    async def _sent(self, server: Shared) -> None:
        """Wait until the clients have read all their pending messages, for at most `LAST` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST):
                while any(connection.waiting for connection in server.connections):
                    self._news.clear()
                    await self._news.wait()

    async def _drive(self, server: Driven, news: asyncio.Event) -> None:
        """Let the server write its output, and wait for new input between two writes."""
        try:
            while not server.over:
                pause = server.pause()
                if self._signalled and server is self._shared and not server.busy:
                    await self._sent(server)
                    return
                if pause == 0.0:
                    server.go_on()
                    await asyncio.sleep(0)
                    continue
                news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await news.wait()
        finally:
            if server is self._shared:
                self._ended.set()


async def _send(websocket: ServerConnection, connection: Connection, outgoing: asyncio.Queue[bytes], news: asyncio.Event) -> None:
    """Send the messages for a client, in order."""
    while True:
        message = await outgoing.get()
        try:
            await websocket.send(message.rstrip(b"\n"), text=True)
        except ConnectionClosed:
            pass  # the reader ends, too
        finally:
            connection.waiting -= len(message)
            outgoing.task_done()
            news.set()


def _respond(websocket: ServerConnection, request: Request) -> Response | None:
    """Answer an HTTP request that is not a handshake of a WebSocket. For a handshake, return None."""
    headers = request.headers
    if "Origin" in headers:
        return _response(HTTPStatus.FORBIDDEN)
    if request.path.partition("?")[0] in _HEALTH:
        return _response(HTTPStatus.OK)
    if "upgrade" not in headers.get("Connection", "").lower():
        return _response(HTTPStatus.BAD_REQUEST, "Connection header did not include 'upgrade'")
    return None


def _response(status: HTTPStatus, text: str = "") -> Response:
    body = text.encode()
    headers = Headers([("content-length", str(len(body))), ("connection", "close")])
    if body:
        headers["content-type"] = "text/plain; charset=utf-8"
    return Response(status, status.phrase, headers, body)
