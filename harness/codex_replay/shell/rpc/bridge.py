"""Make an app-server that speaks WebSocket usable as a program on stdio.

Each line on stdin is sent as a text message, and each message of the server is written as a line on stdout. Every tool that
starts an app-server (the recorder, the suites, `replay`) can therefore use a server that listens on a socket. The bridge
has two threads. One thread writes the messages that arrive from the server. A second thread reads stdin to its end, and
then waits for the answers to the sent requests. The real server does not answer a close frame, so the bridge waits only a
short time for an answer to its close frame.

Source: the real 0.169.0 (`codex app-server --listen ws://IP:PORT`): one JSON-RPC message per text frame, no compression.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING, Any

from codex_replay.core.text.error_text import error_text
from codex_replay.core.wire.ndjson import LineSplitter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from websockets.sync.client import ClientConnection

#: Seconds until a server that was started must listen, and between two looks.
START, PAUSE = 30.0, 0.05
#: Seconds that a server has to end after SIGTERM, and that a close frame may wait for its answer.
END, CLOSE = 5.0, 0.3
#: Seconds that the answers to the last requests may take after the end of stdin.
LAST_ANSWERS = 5.0
PIECE = 1 << 16
SCHEMES = ("ws://", "wss://", "unix://")


class CannotConnect(Exception):
    """No server listens at the address, or the server did not start; the message of the exception is a sentence."""


def connected(url: str) -> ClientConnection:
    """Open a WebSocket to `ws://HOST:PORT`, `wss://HOST` or `unix://PATH`. Raises `CannotConnect` if no server answers."""
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect, unix_connect

    options: dict[str, Any] = {"compression": None, "max_size": None, "close_timeout": CLOSE}
    path = url.removeprefix("unix://")
    try:
        opening = unix_connect(path, "ws://localhost/", **options) if path != url else connect(url, proxy=None, **options)
        # websockets deprecates a connection that no `with` opens; `bridge` closes this one.
        connection: ClientConnection = opening.__enter__()
        return connection
    except (OSError, ValueError, WebSocketException) as error:
        raise CannotConnect(f"No app-server answers at {url} ({error_text(error)}); check that it runs.") from None


class Unanswered:
    """The ids of the requests that the server has not answered yet."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = threading.Condition()

    def sent(self, line: bytes) -> None:
        """Record a request of the client that awaits an answer."""
        message = _object(line)
        if "method" in message and "id" in message:
            with self._changed:
                self._ids.add(repr(message["id"]))

    def came(self, line: bytes) -> None:
        """Record an answer of the server."""
        message = _object(line)
        if "method" not in message:
            with self._changed:
                self._ids.discard(repr(message.get("id")))
                self._changed.notify_all()

    def forget(self) -> None:
        """Forget all open requests, because the connection has ended and no answer can come."""
        with self._changed:
            self._ids.clear()
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until every request is answered, or the time limit is over."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ids, seconds)


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:  # the server judges it
        return {}
    return value if isinstance(value, dict) else {}


def bridge(connection: ClientConnection, stdin: int, stdout: IO[bytes]) -> bool:
    """Pass messages in both directions between stdin and stdout and the server.

    Return True when stdin (a file descriptor) ends, and False when the server closes the connection.
    """
    from websockets.exceptions import ConnectionClosed

    unanswered = Unanswered()
    departure, gone = os.pipe()  # readable once the server has left

    def receive() -> None:
        try:
            while True:
                line = connection.recv(decode=False).replace(b"\n", b" ")
                stdout.write(line + b"\n")
                stdout.flush()
                unanswered.came(line)
        except (ConnectionClosed, OSError, ValueError):  # the server left, or nobody reads stdout
            unanswered.forget()
            os.close(gone)

    threading.Thread(target=receive, daemon=True).start()
    splitter = LineSplitter()
    ended = False
    try:
        while not ended and departure not in (ready := select.select([stdin, departure], [], [])[0]):
            data = os.read(stdin, PIECE) if stdin in ready else b""
            ended = not data
            for line in splitter.feed(data) if data else filter(None, [splitter.close()]):
                if line.strip():
                    unanswered.sent(line)
                    connection.send(line.rstrip(b"\r\n"), text=True)
        if ended:
            unanswered.wait(LAST_ANSWERS)
    except (ConnectionClosed, OSError):
        ended = False
    connection.close()
    return ended


class Started:
    """A context manager that starts a server for one client.

    `url` is the address of the server. Raises `CannotConnect` if the server does not start or does not listen.
    """

    def __init__(self, command: Sequence[str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}"
        argv = [*command, "--listen", self.url]
        try:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        except OSError as error:
            raise CannotConnect(f"{command[0]} cannot be started ({error_text(error)}).") from None
        limit = time.monotonic() + START
        while not self._listens(port):
            if self._process.poll() is not None:
                raise CannotConnect(
                    f"{command[0]} ended with status {self._process.returncode} before it listened at {self.url}."
                )
            if time.monotonic() > limit:
                self.close()
                raise CannotConnect(f"{command[0]} did not listen at {self.url} within {START:g} s.")
            time.sleep(PAUSE)

    @staticmethod
    def _listens(port: int) -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> int:
        """End the server with SIGTERM, and after some seconds with SIGKILL. Return its exit status."""
        self._process.terminate()
        try:
            return self._process.wait(END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
