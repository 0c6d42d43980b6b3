"""What the recorder adds to a frame: round trips through it and directly to the same server, alternating in one run.

The figure is the median round trip through `codex-replay record` minus the direct one; a round trip is two frames. Logging,
redaction and the check for the canonical form are in it. The frames of a recorded turn have 130 to 520 bytes; the 30 KB row, far
larger, shows how the cost grows and has a limit of its own. The start is measured too: spawn to the first answer.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.common import Row

ECHO = """
import os
while data := os.read(0, 1 << 20):
    while data:
        data = data[os.write(1, data):]
"""
LARGE = "tools, 30 KB"
BY_SIZE = 5.0  # ms: the limit of the large row, for that its cost stays in proportion
TOKEN = "sk-proj-" + "a1B2" * 12


def payloads() -> dict[str, bytes]:
    """The frames that are sent: as small as a delta, as a turn, and as large as an upstream request; one with secrets."""
    turn = {"threadId": "019a", "turnId": "0", "item": {"type": "agentMessage", "id": "msg_1", "text": "word " * 80}}
    login = {"apiKey": TOKEN, "env": {"OPENAI_API_KEY": TOKEN}, "note": "mail somebody@example.org about it. " * 5}
    return {
        "delta, 130 B": frame("item/agentMessage/delta", {"threadId": "019a", "itemId": "msg_1", "delta": "word " * 8}),
        "item, 0.5 KB": frame("item/completed", turn),
        "secrets, 0.4 KB": frame("loginApiKey", login),
        LARGE: frame("thread/start", {"tools": [{"name": f"t{n}", "description": "what it does " * 40} for n in range(55)]}),
    }


def frame(method: str, params: object) -> bytes:
    return json.dumps({"method": method, "params": params}, separators=(",", ":")).encode() + b"\n"


class Peer:
    """A running echo server, direct or behind the recorder."""

    def __init__(self, command: list[str]) -> None:
        self.start = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.trip(b"\n")
        self.start = time.perf_counter() - self.start

    def trip(self, line: bytes) -> float:
        """Seconds from the writing of a line to the arrival of all of its echo."""
        assert self.process.stdin
        assert self.process.stdout
        out = self.process.stdout.fileno()
        begun = time.perf_counter()
        self.process.stdin.write(line)
        missing = len(line)
        while missing:
            missing -= len(os.read(out, 1 << 20))
        return time.perf_counter() - begun

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def commands(folder: Path) -> dict[str, list[str]]:
    server = [sys.executable, "-I", "-S", "-c", ECHO]
    recorder = [str(Path(sys.executable).with_name("codex-replay")), "record", "--out", str(folder / "{pid}.ndjson"), "--"]
    return {"direct": server, "recorded": recorder + server}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Medians in milliseconds: of each payload's round trip, and of ten starts, direct and recorded."""
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ways = commands(Path(folder))
        peers = {way: stack.enter_context(Peer(command)) for way, command in ways.items()}
        for name, line in payloads().items():
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, peer in peers.items():
                    times[way].append(peer.trip(line) * 1000)
            result[name] = {way: statistics.median(found) for way, found in times.items()}
        starts: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(10):
            for way, command in ways.items():
                with Peer(command) as peer:
                    starts[way].append(peer.start * 1000)
        result["start"] = {way: statistics.median(found) for way, found in starts.items()}
    return result


def rows() -> list[Row]:
    """Return a row for each size of frame; the start is told beside the smallest."""
    found = measure(400)
    start = found.pop("start")
    result = []
    for name, ways in found.items():
        detail = f"round trip {ways['recorded']:.3f} against {ways['direct']:.3f} directly"
        if not result:
            detail += f"; once, at the start: {start['recorded'] - start['direct']:.0f} ms"
        limit = BY_SIZE if name == LARGE else 1.0
        result.append(Row(f"record, {name}", (ways["recorded"] - ways["direct"]) / 2, "ms a frame", limit, True, detail))
    return result
