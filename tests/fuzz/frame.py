"""A fuzzer's frame: seeded cases for a target, that can be stopped and taken up again, and what counts as a finding.

Case number I of a target is made by a random source of its own, seeded with the run's seed, the target's name and I. So a run
goes on where it was stopped, and a finding is repeated alone. A target is one small module in `tests/fuzz/targets` with a class
`Target`; its processes must neither end nor grow.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import pkgutil
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

#: Seconds until something that does not answer counts as hanging.
HANG = 5.0
#: What may be added to the files and to the memory (MB) of a process after the first cases.
FILES, MEMORY = 16, 100.0
_WARM = 200  # cases
_CHECKED = 100  # cases between two looks at the processes
_MOST = 20  # findings of one run


class Target(Protocol):
    """What is fuzzed; a context manager, so that its processes end."""

    #: Of how many cases a whole run consists, and the run in the gate.
    total: int
    share: int

    def case(self, random: Random) -> bytes:
        """Make one case."""

    def run(self, data: bytes) -> str | None:
        """Run one case; return what is wrong, None if nothing is."""

    def pids(self) -> Sequence[int]:
        """Return the processes that stay from the first case to the last."""

    def wrong(self) -> str | None:
        """Return what is wrong with the processes after some cases, as their stderr has it; None if nothing is."""


@dataclass
class State:
    """How far a run of one target is."""

    seed: int
    done: int = 0
    findings: list[dict[str, object]] = field(default_factory=list)


def targets() -> dict[str, Callable[[], AbstractContextManager[Target]]]:
    """Return every target by the name of its module."""
    folder = str(Path(__file__).parent / "targets")
    names = sorted(module.name for module in pkgutil.iter_modules([folder]))
    return {name: importlib.import_module(f"tests.fuzz.targets.{name}").Target for name in names}


def fuzz(name: str, target: Target, state: State, count: int, saved: Callable[[State], None] = lambda state: None) -> State:
    """Run the cases of a target up to number `count`, and note what is found."""
    sizes: dict[int, tuple[int, float]] = {}
    begun = state.done
    while state.done < count and len(state.findings) < _MOST:
        data = target.case(Random(f"{state.seed}:{name}:{state.done}"))
        found = target.run(data)
        state.done += 1
        if found is not None:
            state.findings.append({"case": state.done - 1, "wrong": found, "data": base64.b64encode(data[:4096]).decode()})
        if state.done % _CHECKED == 0 or found is not None or state.done == count:
            # A process that is about to end takes a moment to do so.
            for wrong in _checked(target, sizes, state.done - begun >= _WARM, 0.5 if found is not None else 0.0):
                state.findings.append({"case": state.done - 1, "wrong": wrong, "data": ""})
            saved(state)
            if not all(map(alive, target.pids())):
                break
    return state


def _checked(target: Target, sizes: dict[int, tuple[int, float]], warm: bool, patience: float) -> Iterator[str]:
    if (wrong := target.wrong()) is not None:
        yield wrong
    for pid in target.pids():
        if not alive(pid, patience):
            yield f"process {pid} has ended"
            continue
        files, memory = size(pid)
        if not warm:
            continue
        first = sizes.setdefault(pid, (files, memory))
        if files > first[0] + FILES:
            yield f"process {pid} has {files} open files, and had {first[0]}"
        if memory > first[1] + MEMORY:
            yield f"process {pid} has {memory:.0f} MB, and had {first[1]:.0f} MB"


def alive(pid: int, patience: float = 0.0) -> bool:
    """Return True if a process does not end within `patience` seconds; one that has ended and nobody has waited for has ended."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        return not select.select([fd], [], [], patience)[0]
    finally:
        os.close(fd)


def size(pid: int) -> tuple[int, float]:
    """Return how many files a process has open, and its resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return len(os.listdir(f"/proc/{pid}/fd")), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def load(path: Path, seed: int) -> State:
    """Return the state that a run was stopped in, or a new one."""
    if path.exists():
        state = State(**json.loads(path.read_text()))
        if state.seed == seed:
            return state
    return State(seed)


def save(path: Path, state: State) -> None:
    """Keep the state of a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(state), indent=1))
    draft.replace(path)
