"""Guest: what the installed wheel adds to a run of one empty test, beside the most used pytest plugins.

A round is three runs: with the wheel, without it, and once more without it as a control. Each variant stands in each place of a
round equally often, since the runs of a round differ by their place. "Without" means that the wheel's dist-info folder, by which
pytest finds its plugin and its list of files, has another name. The figure is the median of the rounds' differences; that of the
control shows the noise of the machine.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common import Row
from tests.wheel.environment import Installed, build_wheel, install_beside_guests

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 18  # three times the six orders of a round
LIMIT = 10.0  # ms


@contextmanager
def uninstalled(installed: Installed) -> Iterator[None]:
    """Hide the distribution from Python's list of installed ones."""
    (metadata,) = installed.package.glob("codex_replay-*.dist-info")
    hidden = metadata.with_name("hidden")
    metadata.rename(hidden)
    try:
        yield
    finally:
        hidden.rename(metadata)


def once(installed: Installed, folder: Path) -> tuple[float, float]:
    """Return the milliseconds of one run of pytest in a folder: on the clock, and of the processor."""
    # Users let pytest keep what it has compiled; a developer's shell may not.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    command = [installed.venv / "bin" / "pytest", "-q", "-p", "no:cacheprovider"]
    used, begin = processor(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**env, "COLUMNS": "80"})
    took, used = time.perf_counter() - begin, processor() - used
    assert done.returncode == 0, done.stdout + done.stderr
    return took * 1000, used * 1000


def processor() -> float:
    """Return the seconds of the processor that ended children have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def rows() -> list[Row]:
    """Measure; the wheel may add at most 10 ms."""
    times: dict[str, list[tuple[float, float]]] = {"with": [], "without": [], "control": []}
    with tempfile.TemporaryDirectory(prefix="codex-replay-bench-") as name:
        root = Path(name)
        (root / "project").mkdir()
        (root / "project" / "test_empty.py").write_text("def test_empty():\n    pass\n")
        installed = install_beside_guests(build_wheel(root), root)
        once(installed, root / "project")  # compiles what is not compiled yet
        for order in islice(cycle(permutations(times)), ROUNDS):
            for variant in order:
                if variant == "with":
                    times[variant].append(once(installed, root / "project"))
                else:
                    with uninstalled(installed):
                        times[variant].append(once(installed, root / "project"))
    added, cpu = (difference(times["with"], times["without"], index) for index in (0, 1))
    noise = difference(times["control"], times["without"], 0)
    before = statistics.median(took for took, _ in times["without"])
    detail = f"of {before:.0f} ms; of the processor {cpu:+.1f} ms; a control run without it {noise:+.1f} ms; {ROUNDS} rounds"
    return [Row("an empty pytest run with the wheel installed", added, "ms more", LIMIT, True, detail)]


def difference(one: list[tuple[float, float]], other: list[tuple[float, float]], index: int) -> float:
    """Return the median of what a run of the one took longer than its neighbour of the other."""
    return statistics.median(left[index] - right[index] for left, right in zip(one, other, strict=True))
