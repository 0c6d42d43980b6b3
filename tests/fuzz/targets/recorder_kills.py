"""kill -9 of both recorders at any moment: every whole frame that a side received is in the cassette.

A case is a seam, how much is sent, and after how many received bytes and microseconds the recorder is killed.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.http.backend_process import BackendProcess
from tests.fuzz.frame import HANG

RECORDER = (sys.executable, "-c", "from codex_replay.cli.main import main; main()")
#: Writes what it received to a file before it answers it, with three lines.
SERVER = """
import os, sys
seen = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
left = b""
while data := os.read(0, 4096):
    *lines, left = (left + data).split(b"\\n")
    for line in lines:
        os.write(seen, line + b"\\n")
        os.write(1, b"".join(b'{"method":"back/%d","params":%b}\\n' % (n, line) for n in range(3)))
"""
_SIZE = re.compile(rb"([0-9a-f]+)\r\n")


class Target:
    """A recorder for each case; `recorder` is its command before `record`."""

    total, share = 200, 4

    def __init__(self, recorder: Sequence[str] = RECORDER) -> None:
        self._recorder = recorder

    def __enter__(self) -> Target:
        self._folder = tempfile.TemporaryDirectory(prefix="codex-replay-fuzz-")
        self._backend = BackendProcess(options=["--ledger-requests", "50"])
        self._case = 0
        return self

    def __exit__(self, *_: object) -> None:
        self._backend.close()
        self._folder.cleanup()

    def case(self, random: Random) -> bytes:
        """Return a case as JSON."""
        seam = random.choice(("rpc", "http"))
        made = {"seam": seam, "size": random.randint(1, 60), "bytes": random.randint(0, 6000), "wait": random.randint(0, 3000)}
        return json.dumps(made).encode()

    def run(self, data: bytes) -> str | None:
        """Record, kill and compare."""
        given = json.loads(data)
        self._case += 1
        out = Path(self._folder.name, f"{self._case}.ndjson")
        wrong = (self._rpc if given["seam"] == "rpc" else self._http)(out, given["size"], given["bytes"], given["wait"] / 1e6)
        out.unlink(missing_ok=True)
        return wrong

    def pids(self) -> list[int]:
        """Return the backend behind the HTTP recorder."""
        return [self._backend.pid]

    def wrong(self) -> str | None:
        """Every case reports for itself."""
        return None

    def _rpc(self, out: Path, size: int, least: int, wait: float) -> str | None:
        seen = out.with_suffix(".seen")
        argv = [*self._recorder, "record", "--out", str(out), "--", sys.executable, "-ISc", SERVER, str(seen)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write(b'{"id":0,"method":"first"}\n')
            received = process.stdout.read(1) or b""
            process.stdin.write(b"".join(b'{"id":%d,"method":"%b"}\n' % (n, b"x" * n) for n in range(1, size)))
            whole = sum(3 * (len(b'{"id":%d,"method":"%b"}' % (n, b"x" * n)) + 28) for n in range(1, size))
            while len(received) < min(least, whole):
                received += os.read(process.stdout.fileno(), 4096)
            time.sleep(wait)
            process.kill()
            process.stdin.close()
            while more := os.read(process.stdout.fileno(), 1 << 16):
                received += more
            process.wait(HANG)
        frames = _frames(out)
        sides = {side: b"".join(frame.raw for frame in frames if frame.sender == side) for side in ("client", "server")}
        taken = seen.read_bytes()
        seen.unlink()
        for side, got in (("client", taken), ("server", received)):
            got = got[: got.rfind(b"\n") + 1]
            if not sides[side].startswith(got):
                return f"of {got.count(10)} lines of the {side} that were received, {sides[side].count(10)} are in the cassette"
        return None

    def _http(self, out: Path, size: int, least: int, wait: float) -> str | None:
        name = f"kill{self._case}"
        self._backend.session(name, [{"items": ["word " * 4 * size], "delta": 10}])
        argv = [*self._recorder, "record", "--upstream", self._backend.url, "--out", str(out)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            parts = urlsplit(json.loads(process.stdout.readline())["url"])
            body = json.dumps({"model": "m", "input": name, "stream": True}).encode()
            received = b""
            with socket.create_connection((parts.hostname, parts.port), timeout=HANG) as sock:
                head = f"POST /s/{name}/v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
                sock.sendall(f"{head}connection: close\r\n\r\n".encode() + body)
                more = b"x"
                while more and len(received) < max(least, 1):
                    received += (more := sock.recv(512))
                time.sleep(wait)
                process.kill()
                try:
                    while more := sock.recv(1 << 16):
                        received += more
                except ConnectionError:
                    pass
            process.wait(HANG)
        frames = _frames(out)
        logged = [frame.payload.get("data") for frame in frames if frame.kind == "sse"]
        got = _events(received)
        if logged[: len(got)] != got:
            return f"of {len(got)} events that the client received, {len(logged)} are in the cassette"
        asked = [frame.payload.get("body") for frame in frames if frame.kind == "request"]
        if len(self._backend.ledger(name)) > len(asked):
            return "the backend has a request that is not in the cassette"
        return None


def _frames(path: Path) -> list[Frame]:
    with CassetteReader(path) as reader:
        return list(reader)


def _events(received: bytes) -> list[object]:
    """Return the payloads of the whole events in the beginning of a chunked answer."""
    _, _, rest = received.partition(b"\r\n\r\n")
    text = b""
    while (size := _SIZE.match(rest)) is not None and (length := int(size[1], 16)):
        text += rest[size.end() : size.end() + length]
        rest = rest[size.end() + length + 2 :]
    blocks = text.split(b"\n\n")[:-1]
    return [json.loads(line[6:]) for block in blocks for line in block.split(b"\n") if line.startswith(b"data: {")]
