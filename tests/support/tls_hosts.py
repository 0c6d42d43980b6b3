"""The hosts chatgpt.com and auth.openai.com, played on loopback with certificates of our own (tests/data/tls).

Only a program that is given the CA (`SSL_CERT_FILE`) trusts them, and only one that is sent here meets them: through the
proxy of `HTTPS_PROXY`, or by a connection that a test redirects. Nothing leaves the machine.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TLS = Path(__file__).resolve().parents[1] / "data" / "tls"
CA = TLS / "ca.pem"


class Asked(NamedTuple):
    """A request: the host by the TLS handshake, `method path`, its headers by lower-case name, its body."""

    host: str
    line: str
    headers: dict[str, str]
    body: bytes


#: Makes of a request (status line, content type, body).
Answers = Callable[[Asked], tuple[str, str, bytes]]


class Hosts:
    """Serve in threads until the block ends; `asked` lists the requests, `connected` the targets of CONNECT."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.asked: list[Asked] = []
        self.connected: list[str] = []
        self._open: list[socket.socket] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(TLS / "server.pem", TLS / "server.key")

    def __enter__(self) -> Hosts:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for each in [self._server, *self._open]:
            with contextlib.suppress(OSError):
                each.close()

    def environment(self) -> dict[str, str]:
        """The variables that send a program here, by proxy."""
        proxy = f"http://127.0.0.1:{self.port}"
        return {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": "", "SSL_CERT_FILE": str(CA)}

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            if connection.recv(8, socket.MSG_PEEK).startswith(b"CONNECT"):
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += connection.recv(1)
                self.connected.append(head.split()[1].decode())
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            names: list[str] = []
            self._context.sni_callback = lambda _, name, __: names.append(name or "")
            with self._context.wrap_socket(connection, server_side=True) as secure:
                while (asked := _request(secure, names[0])) is not None:
                    self.asked.append(asked)
                    status, kind, body = self._answers(asked)
                    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                    secure.sendall(head + body)


def _request(connection: ssl.SSLSocket, host: str) -> Asked | None:
    file = connection.makefile("rb")
    first = file.readline().decode()
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := file.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Asked(host, first.rpartition(" ")[0], headers, file.read(int(headers.get("content-length", 0))))
