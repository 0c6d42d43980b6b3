"""Record, replay, record again, and nothing differs; a backend that replays wrongly is seen."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codex_fakes.model.faults import NAMES, WEBSOCKET_FAULTS
from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.recordings.compare import compare
from codex_replay.protocol.script.keys import ITEM_KEYS
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from tests.fakes.backend.http_replay.exchange import BROKEN, Answer, Recorder, ask, frames_of, wire
from tests.fakes.backend.http_replay.turns import KINDS, TURNS
from tests.support.suite_run import forked_pytest


def comparable(frames: list[Frame]) -> list[tuple[Any, ...]]:
    """All of some frames but their times: who, what, every byte, the bounds of chunks."""
    return [
        (f.sender, f.kind, f.payload, [at for at, _ in f.extra.get("cuts", ())], f.extra.get("joined"), f.extra.get("truncated"))
        for f in frames
    ]


def by_name(frames: list[Frame]) -> dict[str, list[Frame]]:
    """The frames of each request, which has a connection of its own, by the marker in its prompt."""
    names = {f.conn: http_frames.body_value(f.payload)["input"][1:-1] for f in frames if f.kind == "request"}
    found: dict[str, list[Frame]] = {}
    for frame in frames:
        found.setdefault(names[frame.conn], []).append(frame)
    return found


@dataclass
class Rounds:
    """One scenario, recorded from a scripted backend, replayed, and recorded again from the replay."""

    first: dict[str, list[Frame]]
    second: dict[str, list[Frame]]
    answers: dict[str, Answer]
    replayed: dict[str, Answer]
    compared: Any
    session: BackendSession


@pytest.fixture(scope="module")
def rounds(backend: BackendProcess, tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    folder = tmp_path_factory.mktemp("rounds")
    chosen = os.environ.get("ROUND")  # see the test of the broken replays
    names = [chosen] if chosen else list(TURNS)
    turns = [{"match": f"<{name}>", **TURNS[name]} for name in names]
    scripted = backend.session("scripted", turns)
    scripted.release("open")

    def play(url: str, session: BackendSession) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for name in names:
            found[name] = wire(url, ask(name), patience=0.3 if name == "fault idle" else 10)
            session.ledger(len(found))  # where the client leaves, the recorder must know before it sees the next request
        return found

    with Recorder(scripted.url, folder / "first.ndjson") as recorder:
        answers = play(recorder.url, scripted)
    replaying = backend.session("replaying")
    assert replaying.cassette(folder / "first.ndjson") == []
    with Recorder(replaying.url, folder / "second.ndjson") as recorder:
        replayed = play(recorder.url, replaying)
    first, second = frames_of(folder / "first.ndjson"), frames_of(folder / "second.ndjson")
    return Rounds(by_name(first), by_name(second), answers, replayed, compare(first, second), replaying)


def test_every_kind_and_every_fault_is_among_them() -> None:
    assert set(KINDS) == set(ITEM_KEYS)
    assert {f"fault {name}" for name in NAMES} - {f"fault {name}" for name in WEBSOCKET_FAULTS} <= set(TURNS)


@pytest.mark.parametrize("name", TURNS)
def test_record_replay_record_gives_the_same(rounds: Rounds, name: str) -> None:
    assert rounds.replayed[name].raw == rounds.answers[name].raw
    assert rounds.replayed[name].end == rounds.answers[name].end
    assert comparable(rounds.second[name]) == comparable(rounds.first[name])
    bodies = [
        [raw for _, raw in http_frames.body_chunks(f for f in frames if f.kind in ("sse", "chunk"))]
        for frames in (rounds.first[name], rounds.second[name])
    ]
    assert bodies[0] == bodies[1]


def test_the_whole_of_it_is_equal_to_the_comparison_too(rounds: Rounds) -> None:
    assert [difference.sentence() for difference in rounds.compared.differences] == []
    assert rounds.compared.equal
    assert rounds.session.unused_frames() == []
    assert rounds.session.problems() == []
    assert {entry["answer"] for entry in rounds.session.ledger()} == {"cassette"}


#: a backend that replays wrongly -> a test that must see it
SEEN = {
    "joins-chunks": "gives_the_same[text]",
    "tidies-events": "gives_the_same[fault crlf]",
    "loses-the-last-piece": "gives_the_same[refusal]",
    "lower-case-headers": "gives_the_same[retry later]",
    "cuts-end-well": "gives_the_same[fault cut]",
    "resets-are-cuts": "gives_the_same[fault reset]",
    "first-come": "any_order_and_spelling",
    "nothing-is-consumed": "is_not_played_again",
    "masks-nothing": "volatile_values",
    "binds-nothing": "volatile_values",
    "knows-no-rules": "the_rules_hold",
    "takes-any-secret-for-none": "secrets_that_were_redacted",
    "misses-are-defaults": "a_miss_names",
    "holds-nothing": "before_a_held_frame",
    "mixes-conversations": "the_one_it_is_most_like",
    "forgets-terminals": "names_the_live_terminal",
}


@pytest.mark.parametrize("variant", SEEN)
def test_a_backend_that_replays_wrongly_is_seen(variant: str) -> None:
    name, _, round_ = SEEN[variant].rstrip("]").partition("[")
    if round_:
        chosen = [f"{__file__}::test_record_replay_record_{SEEN[variant]}"]
    else:
        chosen = ["-k", " and ".join(re.findall(r"\w+", name)), str(Path(__file__).with_name("test_http_replay.py"))]
    done = forked_pytest(["--tb=short", "-rfE", *chosen], BROKEN_REPLAY=variant, ROUND=round_)
    assert done.returncode == 1, done.stdout + done.stderr
    named = any(SEEN[variant] in line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert named, done.stdout + done.stderr


def test_there_is_a_test_for_every_wrong_replay() -> None:
    table = BROKEN.read_text().split("@variant\ndef ")[1:]
    assert {part.partition("(")[0].replace("_", "-") for part in table} == set(SEEN)
