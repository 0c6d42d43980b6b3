"""What a frame costs: valid and known, in one check, over the recorded traffic; and what loading costs.

    python bench/bench_validate.py [--cassettes DIR] [--rounds N] [--json]

Each round follows every cassette's connection anew with one validator, as a run does; the first, in which the schemas are
compiled, is told apart. Plain jsonschema over the same frames stands beside it: the ratio is the figure that
carries over to another machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.common import Row

ROOT = Path(__file__).parent.parent
LIMIT_US, LIMIT_LOAD_MS = 10.0, 150.0
LOAD = """
import time
start = time.perf_counter()
from codex_replay.protocol.schema.bundle import load
from codex_replay.protocol.schema.validate import RpcChecker, Validator
checker = RpcChecker(load(), Validator(load()))
checker.check("client", {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "n", "version": "1"}}})
print((time.perf_counter() - start) * 1e3)
"""


def traffic(folder: Path) -> list[list[tuple[str, Any]]]:
    """Return the rpc frames of each cassette under `folder`, decoded: (sender, value)."""
    from codex_replay.shell.cassettes.file import CassetteReader

    found = []
    for path in sorted(folder.rglob("*.ndjson")):
        with CassetteReader(path) as reader:
            found.append([(frame.sender, frame.value) for frame in reader if frame.seam == "rpc" and frame.kind == "msg"])
    return found


def one_round(validator: Any, connections: list[list[tuple[str, Any]]]) -> list[float]:
    """Return the microseconds that each frame took, connection after connection."""
    from codex_replay.protocol.schema.validate import RpcChecker

    clock = time.perf_counter_ns
    took = []
    for frames in connections:
        check = RpcChecker(validator.bundle, validator).check
        for sender, value in frames:
            start = clock()
            check(sender, value)
            took.append((clock() - start) / 1e3)
    return took


def second_opinion(validator: Any, connections: list[list[tuple[str, Any]]]) -> float:
    """Return the median microseconds of plain jsonschema over the notifications and requests, one pass."""
    import jsonschema

    made: dict[tuple[str, str], Any] = {}
    took = []
    for frames in connections:
        for sender, value in frames:
            method = value.get("method") if isinstance(value, dict) else None
            schema = validator.frame_schema(sender, method) if isinstance(method, str) else None
            if schema is None:
                continue
            if (sender, method) not in made:
                made[sender, method] = jsonschema.Draft7Validator(schema.closed)
            start = time.perf_counter_ns()
            made[sender, method].is_valid(value)
            took.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(took)


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Return the figures, times in microseconds unless the key says ms."""
    from codex_replay.protocol.schema.bundle import load
    from codex_replay.protocol.schema.validate import Validator

    connections = traffic(folder)
    validator = Validator(load())
    first = one_round(validator, connections)
    later = [took for _ in range(rounds) for took in one_round(validator, connections)]
    loads = [float(subprocess.run([sys.executable, "-c", LOAD], check=True, capture_output=True).stdout) for _ in range(5)]
    median = statistics.median(later)
    plain = second_opinion(validator, connections)
    return {
        "cassettes": len(connections),
        "frames": len(first),
        "median_us": round(median, 2),
        "p95_us": round(statistics.quantiles(later, n=20)[18], 2),
        "mean_us": round(statistics.mean(later), 2),
        "first_round_ms": round(sum(first) / 1e3, 1),
        "schemas": sum(len(built) for built in validator.built.values()),
        "load_ms": round(min(loads), 1),
        "jsonschema_median_us": round(plain, 1),
        "ratio": round(plain / median, 1),
    }


def rows() -> list[Row]:
    """Return the figures for `python -m bench`."""
    from bench.common import NotReady, Row

    folder = ROOT / "cassettes"
    if not any(folder.rglob("*.ndjson")):
        raise NotReady("There is no cassette to take frames from; record the suites first.")
    found = measure(folder, 10)
    of = f"{found['frames']} frames of {found['cassettes']} cassettes"
    return [
        Row("validate, valid and known", found["median_us"], "us a frame (median)", LIMIT_US, True, of),
        Row("validate, load", found["load_ms"], "ms", LIMIT_LOAD_MS, True, "from import to the first verdict, best of 5"),
        Row("validate, jsonschema takes", found["ratio"], "times as long", 5, False, "the same frames, closed schemas"),
    ]


def main() -> None:
    """Print the figures; ends with status 1 when one misses its limit."""
    options = argparse.ArgumentParser(description="Validation and the closed-world check, per frame.")
    options.add_argument("--cassettes", type=Path, default=ROOT / "cassettes")
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if not any(given.cassettes.rglob("*.ndjson")):
        sys.exit(f"There is no cassette under {given.cassettes}; name a folder with --cassettes.")
    found = measure(given.cassettes, given.rounds)
    if given.json:
        print(json.dumps(found))
    else:
        print(f"{found['frames']} frames of {found['cassettes']} cassettes, {given.rounds} rounds")
        print(f"valid and known   median {found['median_us']} us a frame (limit {LIMIT_US:g}), 95 % {found['p95_us']} us")
        print(f"jsonschema        median {found['jsonschema_median_us']} us a frame: {found['ratio']} times as long")
        print(f"loading           {found['load_ms']} ms from import to the first verdict, best of 5 (limit {LIMIT_LOAD_MS:g})")
        print(f"first round       {found['first_round_ms']} ms in all, {found['schemas']} schemas compiled on the way")
    if found["median_us"] > LIMIT_US or found["load_ms"] > LIMIT_LOAD_MS:
        sys.exit("A limit is missed.")


if __name__ == "__main__":
    main()
