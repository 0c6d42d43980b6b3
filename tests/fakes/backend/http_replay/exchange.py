"""Requests to a backend, byte by byte, the programs that record and play them, and cassettes of them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter

BROKEN = Path(__file__).parents[3] / "miniatures" / "backends" / "broken_replays.py"
RECORD = [str(Path(sys.executable).with_name("codex-replay")), "record", "--codex", "0.92.0"]


REPLAY = [str(Path(sys.executable).with_name("codex-replay")), "replay"]


@dataclass
class Answer:
    """What one request got: the bytes of the wire, and whether the connection ended with a reset."""

    raw: bytes = b""
    end: str = "closed"
    error: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ")[1])


def wire(
    url: str,
    body: Any,
    *,
    path: str = "/v1/responses",
    headers: tuple[str, ...] = (),
    connection: socket.socket | None = None,
    patience: float = 10,
) -> Answer:
    """Send one request; read its answer to its end, or leave after `patience` seconds of silence."""
    parts = urlsplit(url)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {parts.path}{path} HTTP/1.1", "host: localhost", *headers, f"content-length: {len(data)}", "", ""]
    sock = connection or socket.create_connection((parts.hostname, parts.port))
    sock.settimeout(patience)
    answer = Answer()
    try:
        sock.sendall("\r\n".join(lines).encode() + data)
        while piece := sock.recv(1 << 20):
            answer.raw += piece
            head, _, rest = answer.raw.partition(b"\r\n\r\n")
            length = next((int(x[15:]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")), None)
            if len(rest) == length or answer.raw.endswith(b"\r\n0\r\n\r\n"):
                answer.end = "whole"
                break
    except ConnectionResetError:
        answer.end = "reset"
    except TimeoutError:
        answer.end = "left"
    finally:
        if connection is None:
            sock.close()
    if answer.end == "whole" and answer.status == 501:
        answer.error = json.loads(answer.raw.partition(b"\r\n\r\n")[2])["error"]
    return answer


def ask(name: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": f"<{name}>", "stream": True, "store": False, **more}


class Recorder:
    """`codex-replay record --upstream` as a program."""

    def __init__(self, upstream: str, out: Path) -> None:
        self.out = out
        self.process = subprocess.Popen([*RECORD, "--out", str(out), "--upstream", upstream], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=120)


def frames_of(path: Path) -> list[Frame]:
    with CassetteReader(path) as reader:
        frames = list(reader)
    assert reader.truncated is None
    return frames


def request(n: int, body: Any, conn: int = 1, path: str = "/v1/responses", **headers: str) -> Frame:
    pairs = [[name.replace("_", "-"), value] for name, value in headers.items()]
    length = len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
    payload = {"method": "POST", "path": path, "headers": [*pairs, ["content-length", str(length)]], "body": body}
    return Frame(n, n * 0.1, "http", "client", "request", payload=payload, conn=conn)


def answered(text: str, conn: int = 1, *, status: int = 200, t: float = 0.0) -> list[Frame]:
    raw = text.encode()
    head = {"status": status, "headers": [["content-type", "application/json"], ["content-length", str(len(raw))]]}
    return [
        Frame(0, t, "http", "server", "response", payload=head, conn=conn),
        Frame(0, t, "http", "server", "chunk", payload=http_frames.body_fields(raw), conn=conn),
        Frame(0, t, "http", "server", "close", payload="end", conn=conn),
    ]


def tape(path: Path, *frames: Frame | list[Frame], end: bool = True) -> Path:
    writer = CassetteWriter(path, Header("0.92.0", "none", path.stem, {"http.client": "recorded", "http.server": "recorded"}))
    for frame in frames:
        for one in frame if isinstance(frame, list) else [frame]:
            writer.write(one)
    if end:
        writer.close()
    else:
        writer.abandon()
    return path


def body_of(answer: Answer) -> str:
    return answer.raw.partition(b"\r\n\r\n")[2].decode()


def played(path: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Run `codex-replay replay`: its status, what it tells, its stderr."""
    done = subprocess.run([*REPLAY, str(path), *options, "--json"], capture_output=True, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr
