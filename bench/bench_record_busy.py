"""What the recorder costs when there is much to do: a stream in bulk, and round trips on a busy machine.

The bulk figure is the processor time of `codex-replay record` for a frame of 150 bytes, its start left out; the deltas differ, as
a model's words do. The busy figure is the 99th percentile of a round trip through it minus the direct one, alternating in one
run, while two other processes use a processor each.
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.bench_record import Peer, commands, frame
from bench.common import Row

FRAMES = 40_000
ROUNDS = 2_000
BUSY = [sys.executable, "-I", "-S", "-c", "while True: pass"]


def stream() -> bytes:
    """The deltas of a long message, 150 bytes a frame."""
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(4000)]
    params = {"threadId": "019a1fa0-3daf-7c40-a0be-c9e3464a450e", "turnId": "0", "itemId": "msg_1"}
    deltas = (f"{chance.choice(words)} {chance.choice(words)}"[:10].ljust(10) for _ in range(FRAMES))
    return b"".join(frame("item/agentMessage/delta", {**params, "delta": delta}) for delta in deltas)


def processor_time(command: list[str]) -> float:
    """Return the seconds of processor time that a command and its children use."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bulk() -> float:
    """Return the microseconds of processor time for a frame: the least of five runs."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stream").write_bytes(stream())
        recorder = [
            str(Path(sys.executable).with_name("codex-replay")),
            "record",
            "--force",
            "--out",
            f"{folder}/out.ndjson",
            "--",
        ]
        start = min(processor_time([*recorder, "true"]) for _ in range(5))
        return (min(processor_time([*recorder, "cat", f"{folder}/stream"]) for _ in range(5)) - start) / FRAMES * 1e6


def busy() -> dict[str, float]:
    """Return the 99th percentile of a round trip in milliseconds, direct and recorded."""
    line = frame("item/agentMessage/delta", {"threadId": "019a", "itemId": "msg_1", "delta": "word " * 8})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        peers = {way: stack.enter_context(Peer(command)) for way, command in commands(Path(folder)).items()}
        loops = [subprocess.Popen(BUSY) for _ in range(2)]
        try:
            times: dict[str, list[float]] = {way: [] for way in peers}
            for _ in range(ROUNDS):
                for way, peer in peers.items():
                    times[way].append(peer.trip(line) * 1000)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
    return {way: statistics.quantiles(found, n=100)[98] for way, found in times.items()}


def rows() -> list[Row]:
    """Return a row for the stream and one for the busy machine."""
    ways = busy()
    detail = f"99th percentile of a round trip {ways['recorded']:.2f} ms against {ways['direct']:.2f} directly"
    return [
        Row("record, in bulk", bulk(), "us a frame of 150 B", 20.0, True, f"processor time, {FRAMES} frames"),
        Row("record, beside two busy loops", ways["recorded"] - ways["direct"], "ms added at p99", 1.0, True, detail),
    ]
