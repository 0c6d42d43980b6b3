"""The fake backend over WebSocket: CPU per streamed reply beside its own SSE and npm aimock's WebSocket; 1,000 connections."""

from __future__ import annotations

import json
import socket
import tempfile
import time
from base64 import b64encode
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode

from bench.bench_backend import ask, both, cpu, request, resident, running
from bench.common import NotReady, Row

ROUNDS, REPLIES, OPEN = 6, 120, 1000


def rows() -> list[Row]:
    """Measure; Linux only, because CPU and memory are read from /proc."""
    if not Path("/proc/self/stat").exists():
        raise NotReady("This system has no /proc to read CPU time and memory from.")
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as root:
        one, other = both(Path(root), websocket="on")
        return [*_replies(one, other), _connections(one)]


def _open(url: str) -> socket.socket:
    """Return a connection after its upgrade."""
    parts = urlsplit(url)
    lines = [
        "GET /v1/responses HTTP/1.1",
        f"host: {parts.netloc}",
        "authorization: Bearer k",
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        f"sec-websocket-key: {b64encode(bytes(16)).decode()}",
        "",
        "",
    ]
    sock = socket.create_connection((parts.hostname, parts.port), timeout=30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall("\r\n".join(lines).encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += sock.recv(1) or _closed(answer)
    if not answer.startswith(b"HTTP/1.1 101 "):
        raise NotReady(f"A server refused the upgrade: {answer[:200]!r}")
    return sock


def _closed(received: bytes) -> bytes:
    raise NotReady(f"A server closed in mid-reply: {received[-200:]!r}")


def _create(size: int) -> bytes:
    """Return a request as a masked text frame."""
    message = json.dumps({"type": "response.create", **json.loads(request(size))}, separators=(",", ":"))
    return Frame(Opcode.TEXT, message.encode()).serialize(mask=True)


def _ask(sock: socket.socket, frame: bytes, count: int) -> int:
    """Send a message so many times over one connection, each after the whole reply; return the bytes of a reply.

    As `ask`: a client on a plain socket, which needs so little time that both servers wait alike.
    """
    length = 0
    for _ in range(count):
        sock.sendall(frame)
        received = b""
        while not _whole(received):
            received += sock.recv(1 << 18) or _closed(received)
        length = len(received)
    return length


def _whole(received: bytes) -> bool:
    """Return True if the frames end with that of the last event."""
    begin = received.rfind(b'{"type":"response.completed"')
    if begin < 0:
        return False
    long = 2 if received[begin - 4 : begin - 2] == b"\x81\x7e" else 8
    return len(received) >= begin + int.from_bytes(received[begin - long : begin], "big")


def _replies(one: tuple[list[str], bytes], other: tuple[list[str], bytes]) -> list[Row]:
    """Compare the server's CPU time of a streamed reply: over WebSocket, over SSE, and the peer's over WebSocket."""
    found = []
    with running(*one) as (mine, ready, _), running(*other) as (peer, listening, _), ExitStack() as stack:
        url = json.loads(ready)["url"]
        here, there = (stack.enter_context(_open(each)) for each in (url, listening.split()[-1].decode()))
        for name, size in (("small request", 100), ("58 KB request", 58_000)):
            body, message = request(size), _create(size)
            runs = (
                (mine, partial(_ask, here, message, REPLIES)),
                (mine, partial(ask, url, body, REPLIES)),
                (peer, partial(_ask, there, message, REPLIES)),
            )
            used = [0.0] * len(runs)
            for round_ in range(ROUNDS + 1):
                for k, (pid, run) in enumerate(runs):
                    before = cpu(pid)
                    run()
                    used[k] += cpu(pid) - before if round_ else 0  # the first round warms up
            each = [seconds / ROUNDS / REPLIES * 1000 for seconds in used]
            detail = f"{each[0]:.2f} ms, SSE {each[1]:.2f} ms, aimock's WebSocket {each[2]:.2f} ms"
            found += [
                Row(f"websocket: CPU per streamed reply, {name}", used[0] / used[1], "of our own SSE", 1.2, True, detail),
                Row(f"websocket: CPU per streamed reply, {name}", used[0] / used[2], "of aimock's", 1.0, True, detail),
            ]
    return found


def _connections(one: tuple[list[str], bytes]) -> Row:
    """Open many connections, and get a reply on each of the last hundred."""
    with running(*one) as (mine, ready, _), ExitStack() as stack:
        url = json.loads(ready)["url"]
        stack.enter_context(_open(url))
        before, begin = resident(mine), time.perf_counter()
        opened = [stack.enter_context(_open(url)) for _ in range(OPEN)]
        took = time.perf_counter() - begin
        for websocket in opened[-100:]:
            _ask(websocket, _create(100), 1)
        each = (resident(mine) - before) / OPEN * 1000
        detail = f"{OPEN} open connections, opened in {took:.1f} s; the last 100 got a reply"
        return Row("websocket: memory of an open connection", each, "KB", 100, True, detail)
