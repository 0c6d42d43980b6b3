"""What the recorder adds to a server-sent event: from its writing upstream to its arrival, through it and directly.

Both streams are open at once and take turns, event by event; the figure is the median arrival through
`codex-replay record --upstream` minus the direct one. Logging and redaction are in it.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.common import Row

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(size: int) -> bytes:
    value = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "word " * (size // 5)}
    data = json.dumps(value, separators=(",", ":")).encode()
    piece = b"event: response.output_text.delta\ndata: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def receive(sock: socket.socket, size: int) -> None:
    while size:
        size -= len(sock.recv(size))


def stream(listener: socket.socket, address: tuple[str, int]) -> tuple[socket.socket, socket.socket]:
    """Open a stream to `address`; return the backend's and the client's end."""
    client = socket.create_connection(address)
    client.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\ncontent-length: 2\r\n\r\n{}")
    backend, _ = listener.accept()
    backend.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    while not data.endswith(b"{}"):
        data += backend.recv(65536)
    backend.sendall(HEAD)
    receive(client, len(HEAD))
    return backend, client


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of an event's way, by its size, direct and recorded."""
    result: dict[str, dict[str, float]] = {}
    program = str(Path(sys.executable).with_name("codex-replay"))
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [program, "record", "--out", f"{folder}/run.ndjson", "--upstream", f"http://127.0.0.1:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as recorder:
            assert recorder.stdout
            recorded = int(json.loads(recorder.stdout.readline())["url"].rpartition(":")[2])
            ways = {"direct": stream(listener, ("127.0.0.1", port)), "recorded": stream(listener, ("127.0.0.1", recorded))}
            for size in (40, 400, 4000):
                data = event(size)
                times: dict[str, list[float]] = {way: [] for way in ways}
                for _ in range(rounds):
                    for way, (backend, client) in ways.items():
                        begun = time.perf_counter()
                        backend.sendall(data)
                        receive(client, len(data))
                        times[way].append((time.perf_counter() - begun) * 1000)
                result[f"{len(data)} B"] = {way: statistics.median(found) for way, found in times.items()}
            for ends in ways.values():
                for end in ends:
                    end.close()
            recorder.terminate()
    return result


def rows() -> list[Row]:
    """Return a row for each size of event."""
    return [
        Row(
            f"record http, {name}",
            ways["recorded"] - ways["direct"],
            "ms an event",
            2.0,
            True,
            f"{ways['recorded']:.3f} against {ways['direct']:.3f} directly",
        )
        for name, ways in measure(500).items()
    ]
