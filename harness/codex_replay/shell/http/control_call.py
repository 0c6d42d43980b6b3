"""Send one request to the control API of a backend, and read its answer.

The module uses a bare socket, because `http.client` imports `ssl` and `email`, which takes as long as the start of the backend.
The request has HTTP/1.0, so that the answer ends with the connection and has no chunks, whatever program the backend is.
"""

from __future__ import annotations

import socket
from typing import Any


class BadAnswer(Exception):
    """The answer is not HTTP, or was cut short. The message is the end of a sentence."""


def call(host: str, port: int, method: str, path: str, token: str, body: bytes, seconds: float) -> tuple[int, bytes]:
    """Return the status and the body of the answer.

    Raises `BadAnswer` for an answer that is not HTTP, and `OSError` if no byte comes for `seconds` seconds.
    """
    shown = f"[{host}]" if ":" in host else host
    lines = [
        f"{method} {path} HTTP/1.0",
        f"host: {shown}:{port}",
        f"x-codex-replay-token: {token}",
        f"content-length: {len(body)}",
    ]
    # As bytes, because Python imports the codec `idna` for a text.
    name: Any = host.encode() if host.isascii() else host
    received = []
    with socket.create_connection((name, port), seconds) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        while data := connection.recv(1 << 16):
            received.append(data)
    return _parsed(b"".join(received))


def _parsed(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    if not answer:
        raise BadAnswer("it closed the connection without an answer")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise BadAnswer("its answer is not HTTP")
    if headers.get("content-length", str(len(body))) != str(len(body)):
        raise BadAnswer("its answer was cut short")
    return int(rest[:3]), body
