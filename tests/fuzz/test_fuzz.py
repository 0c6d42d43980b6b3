"""The gate's share of the fuzzer (`make fuzz` runs all of it), and the proof that its frame finds what it looks for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from types import TracebackType

import pytest

from tests.fuzz.frame import State, fuzz, load, save, targets
from tests.fuzz.targets import recorder_kills, recorder_websocket

SEED = 20260101


@pytest.mark.parametrize("name", targets())
def test_a_share_of_the_cases_finds_nothing(name: str) -> None:
    with targets()[name]() as target:
        state = fuzz(name, target, State(SEED), target.share)
    assert state.findings == []
    assert state.done == target.share


class Broken:
    """A target with one thing wrong, in a process of its own that answers `run` with a line."""

    total = share = 300

    def __init__(self, program: str) -> None:
        argv = [
            sys.executable,
            "-uc",
            f"import sys\nfiles, memory = [], []\nfor n, line in enumerate(sys.stdin):\n{program}\n print()",
        ]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Broken:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def case(self, random: Random) -> bytes:
        return b"%d\n" % random.randrange(1000)

    def run(self, data: bytes) -> str | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
            return None if self._process.stdout.readline() else "no answer"
        except BrokenPipeError:
            return "no answer"

    def pids(self) -> list[int]:
        return [self._process.pid]

    def wrong(self) -> str | None:
        return None


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (" pass", None),
        (" if n == 250: sys.exit(2)", "has ended"),
        (" files.append(open('/dev/null'))", "open files"),
        (" memory.append(b'x' * 2_000_000)", " MB, and had "),
        (" if n == 299: sys.exit(0)", "no answer"),
    ],
    ids=["nothing", "an end", "files", "memory", "the last case"],
)
def test_the_frame_finds_a_process_that_ends_or_grows(program: str, found: str | None) -> None:
    with Broken(program) as target:
        state = fuzz("broken", target, State(3), 300)
    texts = [str(finding["wrong"]) for finding in state.findings]
    assert any(found in text for text in texts) if found else texts == []


def test_a_run_goes_on_where_it_was_stopped_with_the_same_cases(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    seen: list[list[bytes]] = []
    for counts in ([40, 90], [90]):
        cases: list[bytes] = []
        state = State(5)
        for count in counts:
            with Broken(" pass") as target:
                run = target.run
                target.run = lambda data, run=run, cases=cases: cases.append(data) or run(data)  # type: ignore[method-assign,misc]
                save(path, fuzz("broken", target, state, count))
            state = load(path, 5)
            assert state.done == count
        seen.append(cases)
    assert seen[0] == seen[1]
    assert load(path, 6).done == 0


BROKEN_RECORDERS = Path(__file__).parents[1] / "shell" / "http" / "broken_recorders.py"


@pytest.mark.parametrize(
    ("variant", "seam", "lost"),
    [("logs-late", "rpc", "lines of the "), ("lags-behind", "http", "events that the client received")],
)
def test_a_recorder_that_logs_late_loses_frames_when_it_is_killed(variant: str, seam: str, lost: str) -> None:
    with recorder_kills.Target([sys.executable, str(BROKEN_RECORDERS), variant]) as target:
        given = {"seam": seam, "size": 40, "bytes": 2500, "wait": 500}
        assert lost in str(target.run(json.dumps(given).encode()))


def test_a_recorder_that_keeps_the_frames_of_a_server_is_found() -> None:
    with recorder_websocket.Target([sys.executable, str(BROKEN_RECORDERS), "buffers"]) as target:
        wrong = target.run(target.case(Random(1)))
    assert "it hangs: nothing moved" in str(wrong)
