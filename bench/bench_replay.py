"""Replay: delta frames through a pipe, and the memory that a long recording takes.

The peer is `cat` of the same bytes over the same kind of pipe: how near the replay comes to merely moving them.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench.common import CASSETTE, FAKE, Row
from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.file import CassetteReader

DELTAS = 200_000
FEW = 2_000
ROUNDS = 5


def stretched(path: Path, deltas: int) -> bytes:
    """Write the recorded text turn with its delta frames repeated up to `deltas`; return what the client sends."""
    lines = CASSETTE.read_bytes().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if b'"item/agentMessage/delta"' in line) - 1
    run = lines[first : first + 3]  # each delta comes as content_delta, item/agentMessage/delta and message_delta
    rest = lines[first + 3 :]
    count = first - 1
    with path.open("wb") as file:
        file.writelines(lines[:first])
        for line in [*(run * (deltas // 3)), *rest[:-1]]:
            count += 1
            file.write(re.sub(rb'^\{"n":\d+', b'{"n":%d' % count, line))
        file.write(b'{"end":true,"frames":%d}\n' % count)
    with CassetteReader(CASSETTE) as reader:
        return b"".join(frame.raw for frame in reader if isinstance(frame, Frame) and frame.sender == "client")


def replay(path: Path, sent: bytes) -> tuple[float, int, int]:
    """Return seconds, frames and peak memory in KiB of one replay, from the first frame sent to the end of the turn."""
    env = {"PATH": os.environ["PATH"], "FAKE_CODEX_CASSETTE": str(path)}
    with subprocess.Popen([FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        begin = time.perf_counter()
        process.stdin.write(sent)
        frames = 0
        while True:
            data = os.read(process.stdout.fileno(), 1 << 20)
            frames += data.count(b"\n")
            if b'"turn/completed"' in data or not data:
                break
        took = time.perf_counter() - begin
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0, f"fake-codex exited with {process.returncode}"
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return took, frames, int(found[1]) if found else 0


def copy(path: Path) -> float:
    """Return the seconds that `cat` takes to move the same bytes through a pipe."""
    begin = time.perf_counter()
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), 1 << 20):
            pass
    return time.perf_counter() - begin


def rows() -> list[Row]:
    """Measure; at least 300,000 frames/s, and no more memory for 200,000 frames than for 2,000."""
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as root:
        many, few = Path(root, "many.ndjson"), Path(root, "few.ndjson")
        sent = stretched(many, DELTAS)
        stretched(few, FEW)
        runs, copies = [], []
        for _ in range(ROUNDS):
            runs.append(replay(many, sent))
            copies.append(copy(many))
        small = replay(few, sent)[2]
    rate = statistics.median(frames / took for took, frames, _ in runs)
    peak = statistics.median(memory for *_, memory in runs)
    cat = statistics.median(runs[i][0] / copies[i] for i in range(ROUNDS))
    detail = f"{runs[0][1]:,} frames, median of {ROUNDS} runs, start-up included; {cat:.1f} times what cat takes for the file"
    grown = f"{small:,} KiB for {FEW:,} frames, {peak:,.0f} KiB for {DELTAS:,}"
    return [
        Row("replay of delta frames", rate, "frames/s", 300_000, False, detail),
        Row("memory of a long replay", peak / small if small else 1.0, "of a short one's", 1.1, True, grown),
    ]
