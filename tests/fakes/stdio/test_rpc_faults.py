"""Each fault does what its sentence says, at the same place for the same seed, whether the server improvises or replays."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codex_fakes.stdio.faults import FAULTS, HUGE, Chance, fault_of, snake
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import NotJson, dumps, loads
from codex_replay.shell.cassettes.file import CassetteReader

FAKE = str(Path(sys.executable).with_name("fake-codex"))
OPENED = b'"thread":{"id":"'
CASSETTE = Path(__file__).parents[3] / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"


def client_lines() -> list[bytes]:
    """What the recorded client sent, which any server understands once the thread's id is put in."""
    with CassetteReader(CASSETTE) as reader:
        return [f.raw for f in reader if isinstance(f, Frame) and f.seam == "rpc" and f.sender == "client"]


class Run:
    """One run of the recorded client: what came on stdout until its end, and how it ended."""

    def __init__(self, fault: str, replay: bool = False) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "TZ": "UTC", "FAKE_CODEX_FAULT": fault}
        if replay:
            env["FAKE_CODEX_CASSETTE"] = str(CASSETTE)
        *opening, turn = client_lines()
        recorded = json.loads(turn)["params"]["threadId"].encode()
        with subprocess.Popen(
            [FAKE, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, bufsize=0
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            self.out = b""
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"".join(opening))
                while OPENED not in self.out[:-40] and (data := process.stdout.read(1 << 16)):
                    self.out += data
                thread = self.out.partition(OPENED)[2].partition(b'"')[0]
                process.stdin.write(turn.replace(recorded, thread))
            process.stdin.close()  # what the turn causes still goes out
            self.out += process.stdout.read()
            self.stderr = process.stderr.read()
            self.status = process.wait(20)

    @property
    def messages(self) -> list[Any]:
        found = []
        for line in self.out.split(b"\n"):
            try:
                found.append(loads(line))
            except NotJson:
                found.append(line)
        return found[:-1] if found and found[-1] == b"" else found


def methods(run: Run) -> list[str]:
    return [m["method"] for m in run.messages if isinstance(m, dict) and "method" in m]


def responses(run: Run) -> list[Any]:
    return [m["id"] for m in run.messages if isinstance(m, dict) and "method" not in m and "id" in m]


@pytest.fixture(scope="module")
def calm() -> Run:
    return Run("")


Check = Callable[[Run, Run], bool]
#: fault -> what is then seen: (the run with the fault, the run without)
SEEN: dict[str, Check] = {
    "exit-at-handshake": lambda run, calm: (run.status, run.out) == (1, b""),
    "error-at-handshake": lambda run, calm: "error" in run.messages[0],
    "slow-start": lambda run, calm: methods(run) == methods(calm),
    "dies-in-turn": lambda run, calm: run.status == 1 and "turn/completed" not in methods(run),
    "killed-in-turn": lambda run, calm: run.status == -signal.SIGKILL and "turn/completed" not in methods(run),
    "dies-in-line": lambda run, calm: run.status == 1 and not run.out.endswith(b"\n"),
    "hangs-in-turn": lambda run, calm: run.status == 0 and "turn/completed" not in methods(run),
    "split-bytes": lambda run, calm: methods(run) == methods(calm),
    "garbage-line": lambda run, calm: sum(isinstance(m, bytes) for m in run.messages) == 1 and methods(run) == methods(calm),
    "half-line": lambda run, calm: sum(isinstance(m, bytes) for m in run.messages) == 1 and methods(run) == methods(calm),
    "blank-lines": lambda run, calm: run.out.startswith(b"\n") and run.messages.count(b"") == len(calm.messages),
    "crlf": lambda run, calm: run.out.count(b"\r\n") == run.out.count(b"\n") == calm.out.count(b"\n"),
    "huge-line": lambda run, calm: len(run.out) > HUGE and "fake/huge" in methods(run),
    "stray-ready": lambda run, calm: run.messages[0] == {"event": "ready"} and run.messages.count({"event": "ready"}) == 2,
    "unknown-notification": lambda run, calm: methods(run).count("fake/unknown") == 1,
    "unknown-request": lambda run, calm: [m["id"] for m in run.messages if m.get("method") == "fake/unknownRequest"] == [9999],
    "wrong-id": lambda run, calm: responses(run) == [0, 1001, 1002],
    "id-of-other-type": lambda run, calm: responses(run) == [0, "1", "2"],
    "no-response": lambda run, calm: responses(run) == [0],
    "doubled-response": lambda run, calm: responses(run) == [0, 1, 1, 2, 2],
    "doubled-event": lambda run, calm: len(run.messages) == len(calm.messages) + 1,
    "missing-turn-started": lambda run, calm: "turn/started" in methods(calm) and "turn/started" not in methods(run),
    "missing-turn-completed": lambda run, calm: "turn/completed" not in methods(run) and "item/completed" in methods(run),
    "early-turn-completed": lambda run, calm: methods(run).count("turn/completed") == 2 and methods(run)[-1] == "turn/completed",
    "missing-item-completed": lambda run, calm: "item/completed" not in methods(run),
    "missing-deltas": lambda run, calm: not any("elta" in method for method in methods(run)),
    "snake-case": lambda run, calm: b'"threadId"' not in run.out and b'"thread_id"' in run.out,
    "jsonrpc-member": lambda run, calm: all(next(iter(message)) == "jsonrpc" for message in run.messages),
}


def test_every_fault_is_looked_at() -> None:
    assert set(SEEN) == set(FAULTS)


@pytest.mark.parametrize("name", SEEN)
def test_a_fault_does_what_it_says(name: str, calm: Run) -> None:
    assert SEEN[name](Run(name), calm)
    assert not SEEN[name](calm, calm) or name in ("slow-start", "split-bytes")  # which change no message


@pytest.mark.parametrize("name", [name for name in SEEN if name not in ("slow-start", "huge-line", "killed-in-turn")])
def test_a_replay_is_as_wrong(name: str) -> None:
    assert SEEN[name](Run(name, replay=True), Run("", replay=True))


def test_the_place_follows_from_the_seed() -> None:
    def place(seed: int) -> int:
        return next(
            i for i, message in enumerate(Run(f"unknown-notification:{seed}").messages) if message.get("method") == "fake/unknown"
        )

    assert place(3) == place(3)
    assert len({place(seed) for seed in range(6)}) > 1


def test_chance_is_that_of_the_standard_library() -> None:
    """So that a seed that somebody has noted strikes at the same place for ever."""
    for seed in (0, 1, 2, 12345, 2**70):
        ours, theirs = Chance(seed), Random(seed)
        for high in (*range(1, 70), 2**40):
            assert ours.randint(1, high) == theirs.randint(1, high)


def test_chance_refuses_an_empty_range() -> None:
    for low, high in ((1, 0), (1, -1), (5, 1)):
        with pytest.raises(ValueError, match="empty range"):
            Chance(0).randint(low, high)


@pytest.mark.parametrize("name", ["half-line", "dies-in-line"])
@pytest.mark.parametrize("short", [b"1\n", b"\n"])
def test_a_line_too_short_to_be_cut_is_left_to_the_next(name: str, short: bytes) -> None:
    fault = fault_of(name)
    begun, whole = b'{"method":"turn/started"}\n', b'{"method":"a"}\n'
    assert fault.chunks(begun) == [begun]
    assert [fault.chunks(short) for _ in range(20)] == [[short]] * 20
    cut = fault.chunks(whole)[0]
    assert cut != whole
    assert whole.startswith(cut.removesuffix(b"\n"))


def test_pieces_are_cut_within_characters() -> None:
    fault = fault_of("split-bytes:5")
    raw = dumps({"text": "é☂😀" * 50}) + b"\n"
    pieces = fault.chunks(raw)
    assert b"".join(pieces) == raw
    assert any(piece and piece[0] & 0xC0 == 0x80 for piece in pieces)


def test_the_table_is_printed() -> None:
    env = {"PATH": os.environ["PATH"], "FAKE_CODEX_FAULT": "list"}
    done = subprocess.run([FAKE, "app-server"], capture_output=True, env=env, input=b"", timeout=120)
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, len(lines)) == (0, len(FAULTS))
    assert all(line.split()[0] in FAULTS and line.endswith(".") for line in lines)


@pytest.mark.parametrize("text", ["nonesuch", "crlf:x", ":1"])
def test_a_fault_that_is_none_is_a_sentence(text: str) -> None:
    env = {"PATH": os.environ["PATH"], "FAKE_CODEX_FAULT": text}
    done = subprocess.run([FAKE, "app-server"], capture_output=True, env=env, input=b"", timeout=120)
    assert (done.returncode, b"FAKE_CODEX_FAULT" in done.stderr, b"Traceback" in done.stderr) == (2, True, False)


def test_snake_case() -> None:
    assert snake({"threadId": [{"itemId": "aB"}], "x": 1}) == {"thread_id": [{"item_id": "aB"}], "x": 1}


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "fake-codex.md").read_text(encoding="utf-8")
    assert [
        line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 3 and line.split("`")[1] in FAULTS
    ] == [f"| `{name}` | {sentence} |" for name, (sentence, _, _) in FAULTS.items()]
