"""Five tests of one agent, written with `codex_backend`, respx, vcrpy and aimock: lines, and CPU and time of a run, alternating.

The packages go into an environment in the cache, made once. vcrpy records its cassettes again, from our backend. The client is
openai 2, because respx 0.23.1 does not see the requests of openai 3, which uses httpx2.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.bench_backend import aimock, ours, running
from bench.common import NotReady, Row

PACKAGES = ("openai==2.54.0", "pytest==9.2.0", "respx==0.23.1", "vcrpy==9.4.2", "pytest-recording==0.14.1")
NAMES = ("codex_backend", "respx", "vcrpy", "aimock")
ROUNDS = 5
ROOT = Path(__file__).resolve().parents[1]


def python() -> str:
    """Return the Python of the environment with the peers and this checkout; raises `NotReady` where it cannot be made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "codex-replay" / f"peers-{sys.version_info.major}.{sys.version_info.minor}"
    program = folder / "bin" / "python"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    argv = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES, str(ROOT)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise NotReady(f"pip could not install the peers: {done.stderr[-300:]}")
    return str(program)


def run(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Run the tests of one file; return the seconds of CPU, of all its processes, and of the clock."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    took, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or "5 passed" not in done.stdout:
        raise NotReady(f"{argv[-1]}: {(done.stdout or done.stderr)[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def rows() -> list[Row]:
    """Measure; the smaller the ratio, the better."""
    program = python()
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as root:
        folder = Path(root, "peers")
        shutil.copytree(Path(__file__).with_name("peers"), folder, ignore=shutil.ignore_patterns("__pycache__"))
        argv = [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", root]
        env = {**os.environ, "AIMOCK": str(aimock())}
        with running(*ours(folder / "vcrpy.json")) as (_, ready, _):
            env["MODEL_URL"] = json.loads(ready)["url"] + "/v1"
            run([*argv, "--record-mode=once", str(folder / "test_vcrpy.py")], env)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
        for _ in range(ROUNDS):
            for name in NAMES:
                found[name].append(run([*argv, str(folder / f"test_{name}.py")], env))
        lines = {name: len((folder / f"test_{name}.py").read_text().splitlines()) for name in NAMES}
    cpu, clock = ({name: statistics.median(each[i] for each in runs) for name, runs in found.items()} for i in (0, 1))
    return [
        Row(
            f"peers: CPU of five tests, beside {name}",
            cpu["codex_backend"] / cpu[name],
            f"of {name}'s",
            limit,
            True,
            f"{cpu['codex_backend']:.2f} s against {cpu[name]:.2f} s, {clock['codex_backend']:.2f} s against {clock[name]:.2f} s "
            f"by the clock, {lines['codex_backend']} lines against {lines[name]}; medians of {ROUNDS} alternating runs",
        )
        for name, limit in (("respx", 1.3), ("vcrpy", 1.3), ("aimock", 1.0))
    ]
