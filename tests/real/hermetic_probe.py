"""Run one whole turn of a Codex binary against a backend on loopback, and print what happened as JSON.

A program, so that it can be started inside a network namespace and the binary under strace:
    hermetic_probe.py BINARY VERSION ROOT [--lo] [--strace FILE] [--without VARIABLE] [--auth KIND]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.server
import json
import os
import queue
import signal
import socket
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

from codex_replay.shell.codex.home import ApiKey, ChatGpt, HermeticHome

SECONDS = 60.0
SIOCSIFFLAGS, IFF_UP_RUNNING = 0x8914, 0x41
ANSWER = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
AUTH = {"none": None, "api-key": ApiKey(), "chatgpt": ChatGpt()}
EVENTS = (
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.output_item.done", "output_index": 0, "item": ANSWER},
    {"type": "response.completed", "response": {"id": "resp_1"}},
)


class Backend(http.server.BaseHTTPRequestHandler):
    """Answers every POST with one turn and every GET with an empty models list."""

    protocol_version = "HTTP/1.1"
    # One list each for all connections, on purpose.
    seen: list[str] = []  # noqa: RUF012
    credentials: list[list[str | None]] = []  # noqa: RUF012

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer("application/json", b'{"models":[]}')

    def do_POST(self) -> None:
        self.credentials.append([self.headers.get("authorization"), self.headers.get("chatgpt-account-id")])
        self.rfile.read(int(self.headers.get("content-length", 0)))
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS]
        self.answer("text/event-stream", "".join(lines).encode())

    def answer(self, kind: str, body: bytes) -> None:
        self.seen.append(f"{self.command} {self.path.partition('?')[0]}")
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def bring_up_loopback() -> None:
    with socket.socket() as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_RUNNING))


class Server:
    """The binary as `app-server`, its frames in a queue."""

    def __init__(self, command: list[str], home: HermeticHome, stderr: Path) -> None:
        self.frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with stderr.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=home.env,
                cwd=home.work,
                start_new_session=True,
            )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.frames.put(json.loads(line))
        self.frames.put(None)

    def send(self, **frame: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, key: str, value: object) -> dict[str, Any]:
        while True:
            frame = self.frames.get(timeout=SECONDS)
            if frame is None:
                raise SystemExit(f"the server ended before {key} {value}")
            if frame.get(key) == value:
                return frame

    def close(self) -> None:
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


def turn(server: Server, cwd: Path) -> str:
    client = {"name": "hermetic-probe", "version": "1"}
    server.send(id=1, method="initialize", params={"clientInfo": client})
    server.until("id", 1)
    server.send(method="initialized")
    server.send(id=2, method="thread/start", params={"cwd": str(cwd)})
    thread = server.until("id", 2)["result"]["thread"]["id"]
    server.send(id=3, method="turn/start", params={"threadId": thread, "input": [{"type": "text", "text": "Say hello."}]})
    done = server.until("method", "turn/completed")
    return str(done["params"]["turn"]["status"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("version")
    parser.add_argument("root", type=Path)
    parser.add_argument("--lo", action="store_true")
    parser.add_argument("--strace")
    parser.add_argument("--without")
    parser.add_argument("--auth", choices=AUTH, default="none")
    options = parser.parse_args()
    if options.lo:
        bring_up_loopback()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend) as backend:
        threading.Thread(target=backend.serve_forever, daemon=True).start()
        home = HermeticHome(
            options.root,
            f"http://127.0.0.1:{backend.server_port}",
            version=options.version,
            auth=AUTH[options.auth],
            requires_openai_auth=options.auth != "none",
        )
        home.env.pop(options.without, None)
        trace = ["strace", "-f", "-qq", "-e", "trace=%network", "-o", options.strace] if options.strace else []
        server = Server([*trace, options.binary, "app-server"], home, options.root / "stderr")
        try:
            status = turn(server, home.work)
        finally:
            server.close()
            backend.shutdown()
    interfaces = [name for _, name in socket.if_nameindex()]
    report = {"turn": status, "seen": Backend.seen, "interfaces": interfaces, "port": backend.server_port}
    print(json.dumps({**report, "credentials": Backend.credentials}))


if __name__ == "__main__":
    main()
