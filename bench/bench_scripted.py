"""A scripted turn beside the real binary's, and ten thousand turns in one process.

Both servers are driven by the same client through the same pipes, alternating; the real one has our backend on loopback as its
model, with the same script. A turn is timed from writing turn/start to reading turn/completed.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.bench_startup import once
from bench.common import FAKE, INITIALIZE, Row, real_codex
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess

STARTS = 15
TURNS = 60
MANY = 10_000
WARM = 1_000
PER_THREAD = 100
SCRIPT = [{"items": ["A reply of a few words, as a model would stream it."], "times": "always"}]


class Server:
    """An app-server and the turns that it is asked for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid, self._in, self._out = process.pid, process.stdin, process.stdout
        self._number = 1
        self._ask(INITIALIZE, b"userAgent")

    def _ask(self, line: bytes, until: bytes) -> bytes:
        self._in.write(line)
        self._in.flush()
        while until not in (said := self._out.readline()):
            assert said, "the server ended"
        return said

    def request(self, method: str, params: object, until: bytes) -> bytes:
        """Send a request and read up to a line that has `until`."""
        self._number += 1
        return self._ask(json.dumps({"id": self._number, "method": method, "params": params}).encode() + b"\n", until)

    def thread(self) -> str:
        """Open a thread; return its id."""
        opened = self.request("thread/start", {}, b'"result":{"thread"')
        self.name = str(json.loads(opened)["result"]["thread"]["id"])
        return self.name

    def turn(self) -> float:
        """Run a turn; return its seconds."""
        begin = time.perf_counter()
        text = [{"type": "text", "text": "Go."}]
        self.request("turn/start", {"threadId": self.name, "input": text}, b'"turn/completed"')
        return time.perf_counter() - begin

    def memory(self) -> int:
        """Return the resident memory in KiB."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) if found else 0


@contextmanager
def started(command: str, env: dict[str, str], cwd: Path) -> Iterator[Server]:
    """Start an app-server, and end it."""
    with subprocess.Popen(
        [command, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def rows() -> list[Row]:
    """Measure a start (at most 0.4 of the real one's), a turn (0.25), a turn in a burst (0.05), and memory.

    Memory after 10,000 turns is at most 1.1 of what it was early.
    """
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as root, BackendProcess() as backend:
        script = Path(root, "script.json")
        script.write_text(json.dumps(SCRIPT))
        real_home = HermeticHome(Path(root, "real"), backend.session("bench", SCRIPT).url)
        home = HermeticHome(Path(root, "fake"), "http://127.0.0.1:9")  # nothing listens: nothing is asked there
        env = {**home.env, "PATH": os.environ["PATH"], "FAKE_CODEX_SCRIPT": str(script)}
        burst = {**env, "FAKE_CODEX_PACE": "burst"}
        times: dict[str, list[float]] = {"real": [], "fake": [], "burst": []}
        with (
            started(real_codex(), real_home.env, real_home.work) as real,
            started(FAKE, env, home.work) as fake,
            started(FAKE, burst, home.work) as bursting,
        ):
            servers = {"real": real, "fake": fake, "burst": bursting}
            for server in servers.values():
                server.thread()
                server.turn()
            for _ in range(TURNS):
                for name, server in servers.items():
                    times[name].append(server.turn())
        with started(FAKE, burst, home.work) as fake:
            early, late, rate = _many(fake)
        commands = {"real": ([real_codex(), "app-server"], real_home.env), "fake": ([FAKE, "app-server"], env)}
        starts: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(STARTS):
            for name, (command, settings) in commands.items():
                starts[name].append(once(command, settings, home.work))
    real_turn, fake_turn, burst_turn = (statistics.median(times[name]) for name in ("real", "fake", "burst"))
    detail = (
        f"fake-codex {fake_turn * 1000:.2f} ms, at the pace burst {burst_turn * 1000:.2f} ms, "
        f"codex 0.92.0 {real_turn * 1000:.2f} ms, medians of {TURNS} alternating turns"
    )
    grown = (
        f"{early:,} KiB after {WARM:,} turns, {late:,} KiB after {MANY:,}, a new thread every {PER_THREAD}; {rate:,.0f} turns/s"
    )
    real_start, fake_start = (statistics.median(starts[name]) for name in ("real", "fake"))
    begun = (
        f"fake-codex {fake_start * 1000:.1f} ms, codex 0.92.0 {real_start * 1000:.1f} ms, medians of {STARTS} alternating runs"
    )
    return [
        Row("start-up with a script", fake_start / real_start, "of the real one", 0.4, True, begun),
        Row("a scripted turn", fake_turn / real_turn, "of the real one", 0.25, True, detail),
        Row("a scripted turn at the pace burst", burst_turn / real_turn, "of the real one", 0.05, True, detail),
        Row(f"memory of {MANY:,} turns", late / early, "of a tenth of them", 1.1, True, grown),
    ]


def _many(fake: Server) -> tuple[int, int, float]:
    """Run many turns, each thread put away when it has had its share; return the memory early and late, and the rate."""
    early = 0
    begin = time.perf_counter()
    thread = fake.thread()
    for number in range(1, MANY + 1):
        fake.turn()
        if number % PER_THREAD == 0:
            fake.request("thread/archive", {"threadId": thread}, b'"result":{}')
            thread = fake.thread()
        if number == WARM:
            early = fake.memory()
    return early, fake.memory(), MANY / (time.perf_counter() - begin)
