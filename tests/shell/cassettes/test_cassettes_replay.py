"""Every recording of the repository, replayed to two clients that could not be less alike, and through the recorder again.

The hurried client sends each frame as soon as it has what the frame is made of. The patient one waits, before each frame, for
the end of every turn that it has begun. Neither may hang, and both must get all that was recorded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.core.normalise.normaliser import UUID
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire.jsonrpc import is_reply, kind
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.rpc.client import Client, SubjectFailure

ROOT = Path(__file__).resolve().parents[3]
FAKE = str(Path(sys.executable).with_name("fake-codex"))
RECORDER = str(Path(sys.executable).with_name("codex-replay"))
RECORDINGS = sorted((ROOT / "cassettes" / "app_server").rglob("*.ndjson"))
OPENS = ("turn/start", "sendUserTurn", "sendUserMessage", "review/start")
ACTS_IN_A_TURN = ("turn/interrupt", "interruptConversation", "thread/rollback")


def read(path: Path) -> list[Frame]:
    with CassetteReader(path) as reader:
        frames = [frame for frame in reader if frame.seam == "rpc"]
    assert reader.footer is not None, f"{path} is cut short"
    return frames


def environment(path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nowhere", "FAKE_CODEX_CASSETTE": str(path), "FAKE_CODEX_MATCH": "exact"}


def thread_of(value: Any) -> str | None:
    params = value.get("params") if isinstance(value, dict) else None
    return (params.get("threadId") or params.get("conversationId")) if isinstance(params, dict) else None


def ids(frame: Frame) -> set[str]:
    return set(UUID.findall(frame.raw.decode(errors="replace")))


def steering(frames: list[Frame]) -> set[int]:
    """Return the requests (by index) that were answered with a turn of their own which never ends: they steered another."""
    asked = {repr(f.value["id"]): n for n, f in enumerate(frames) if f.sender == "client" and kind(f.value) == "request"}
    begun, ended = {}, set()
    for frame in frames:
        value = frame.value if frame.sender == "server" and isinstance(frame.value, dict) else {}
        result = value.get("result")
        if isinstance(result, dict) and isinstance(result.get("turn"), dict) and repr(value["id"]) in asked:
            n = asked[repr(value["id"])]
            begun[n] = (thread_of(frames[n].value), result["turn"]["id"])
        if value.get("method") == "turn/completed":
            ended.add((thread_of(value), value["params"]["turn"]["id"]))
    return {n for n, turn in begun.items() if turn not in ended}


def replacing(frames: list[Frame]) -> set[int]:
    """Return the requests (by index) whose turn took the place of a running one, which ended only for that."""
    found, last = set(), {}
    for n, frame in enumerate(frames):
        value = frame.value if isinstance(frame.value, dict) else {}
        if frame.sender == "client" and value.get("method") in OPENS:
            last[thread_of(value)] = n
        if value.get("method") == "codex/event/turn_aborted" and value["params"]["msg"]["reason"] == "replaced":
            found.add(last[thread_of(value)])
    return found


class Driver:
    """One of the two clients, playing one recording to fake-codex (or to `command` in its place)."""

    def __init__(self, path: Path, command: tuple[str, ...] = (FAKE,), timeout: float = 10) -> None:
        self.frames = read(path)
        self.client = Client([*command, "app-server"], env=environment(path), cwd=str(ROOT), timeout=timeout)
        self.steering = steering(self.frames)
        self.acts_in_a_turn = self.steering | replacing(self.frames)
        self.answered: set[Any] = set()
        self.ended: Counter[str | None] = Counter()

    def until_answered(self, n: int) -> None:
        if n not in self.answered:
            self.answered.add(n)
            value = self.frames[n].value
            self.client.wait(f"the response that is frame {n + 1}", lambda it: is_reply(it) and it["id"] == value["id"])

    def until_asked(self, reply: Any) -> None:
        self.client.wait(f"server request {reply['id']}", lambda it: kind(it) == "request" and it["id"] == reply["id"])

    def until_turns_end(self, upto: int) -> None:
        """Wait for the end of each turn that was begun before frame `upto`, if it ends by itself."""
        begun: Counter[str | None] = Counter()
        ends: Counter[str | None] = Counter()
        acts: set[str | None] = set()
        for n, frame in enumerate(self.frames):
            method = frame.value.get("method") if isinstance(frame.value, dict) else None
            if n < upto and frame.sender == "client" and method in OPENS and n not in self.steering:
                begun[thread_of(frame.value)] += 1
            acts_in_a_turn = is_reply(frame.value) or method in ACTS_IN_A_TURN or n in self.acts_in_a_turn
            if n >= upto and frame.sender == "client" and acts_in_a_turn:
                acts.add(thread_of(frame.value) if method else None)
            ends[thread_of(frame.value)] += frame.sender == "server" and method == "turn/completed"
        for thread, count in begun.items():
            # What still needs a reply or an interrupt of ours will not end before we have sent it.
            waits = min(count, ends[thread]) if not acts else 0
            while self.ended[thread] < waits:
                self.ended[thread] += 1
                self.client.wait(
                    "the end of a turn", lambda it, t=thread: it.get("method") == "turn/completed" and thread_of(it) == t
                )

    def play(self, patient: bool) -> None:
        for n, frame in enumerate(self.frames):
            if frame.sender != "client":
                continue
            if is_reply(frame.value):
                asked = any(
                    kind(f.value) == "request" and f.value["id"] == frame.value["id"]
                    for f in self.frames[:n]
                    if f.sender == "server"
                )
                if asked:
                    self.until_asked(frame.value)
            elif patient:
                for i, earlier in enumerate(self.frames[:n]):
                    if earlier.sender == "server" and is_reply(earlier.value):
                        self.until_answered(i)
                self.until_turns_end(n)
            for i, earlier in enumerate(self.frames[:n]):
                if earlier.sender == "server" and is_reply(earlier.value) and ids(earlier) & ids(frame):
                    self.until_answered(i)
            self.client.send(frame.raw)
        if patient:
            self.until_turns_end(len(self.frames))

    def finish(self) -> None:
        status = self.client.close()
        tail = "\n".join(self.client.process.stderr_tail(20))
        assert status == 0, tail
        expected = Counter(frame.raw for frame in self.frames if frame.sender == "server")
        assert Counter(self.client.raw("server")) == expected


@pytest.mark.parametrize("patient", [False, True], ids=["hurried", "patient"])
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: str(path.relative_to(ROOT / "cassettes").with_suffix("")))
def test_no_recording_hangs_a_client_and_all_of_it_arrives(path: Path, patient: bool) -> None:
    driver = Driver(path)
    try:
        driver.play(patient)
        driver.finish()
    finally:
        driver.client.stop()


def test_a_replay_in_log_order_hangs_the_patient_client(tmp_path: Path) -> None:
    """The check above can fail: the same conversation, logged from a client that asked early, replayed in the log's order."""
    frames = read(ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson")
    turn = next(n for n, f in enumerate(frames) if f.sender == "server" and f.value.get("method") == "item/agentMessage/delta")
    early = Frame(0, frames[turn].t, "rpc", "client", raw=b'{"id":99,"method":"getUserAgent"}\n')
    answer = Frame(0, frames[-1].t, "rpc", "server", raw=b'{"id":99,"result":{"userAgent":"x"}}\n')
    path = tmp_path / "hurried.ndjson"
    with CassetteWriter(path, Header("0.92.0", "", "authored", {"rpc": "authored"})) as writer:
        for frame in [*frames[:turn], early, *frames[turn:], answer]:
            writer.write(frame)
    good = Driver(path)
    broken = Driver(path, (sys.executable, str(ROOT / "tests" / "miniatures" / "log_order_fake.py")), timeout=6)
    try:
        good.play(patient=True)
        good.finish()
        with pytest.raises(SubjectFailure, match="the end of a turn"):
            broken.play(patient=True)
    finally:
        good.client.stop()
        broken.client.stop()


ODD_SERVER = """
import sys
for line in sys.stdin.buffer:
    for raw in [b'{"id": 1,\\t"result": {} }\\n', b'{"id":1,"result":{}}\\r\\n',
                b'{"method":"a","params":[1.0e5,-0,1E+2,0.10]}\\n', b'{"method":"b","params":"\\\\u0041\\\\/\\\\ud800"}\\n',
                b'\\xff\\xfe not utf-8\\n', b'\\n', b'no json\\n', b'unterminated']:
        sys.stdout.buffer.write(raw)
    break
"""


def test_odd_bytes_recorded_replayed_and_recorded_again_are_the_same(tmp_path: Path) -> None:
    server = tmp_path / "odd.py"
    server.write_text(ODD_SERVER)
    first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    hello = b'{"id":1,"method":"initialize","params":{}}\n'
    live = subprocess.run([sys.executable, str(server)], input=hello, capture_output=True, check=True).stdout
    said = []
    for out, command in ((first, [sys.executable, str(server)]), (second, [FAKE, "app-server"])):
        env = {**environment(first), "HOME": str(tmp_path)}
        done = subprocess.run(
            [RECORDER, "record", "--out", str(out), "--", *command], input=hello, capture_output=True, env=env, timeout=60
        )
        assert done.returncode == 0, done.stderr.decode()
        said.append(done.stdout)
    assert said == [live, live]
    kept = [[frame.raw for frame in read(path) if frame.sender == "server"] for path in (first, second)]
    assert kept[0] == kept[1]
    assert b"".join(kept[0]) == live


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 60


def test_the_recorder_would_find_no_secret_in_any_of_them() -> None:
    redactor = Redactor()
    assert redactor.redact(b'{"token":"sk-%s"}' % (b"a1B2" * 10)) != b'{"token":"sk-%s"}' % (b"a1B2" * 10)
    found = [
        f"{path.name}, frame {frame.n}" for path in RECORDINGS for frame in read(path) if redactor.redact(frame.raw) != frame.raw
    ]
    assert found == []


# One of each folder: the recorder is a process more, and it changes a line only where it finds a secret.
@pytest.mark.parametrize(
    "path",
    {path.parent: path for path in RECORDINGS}.values(),
    ids=lambda path: str(path.relative_to(ROOT / "cassettes").with_suffix("")),
)
def test_recorded_replayed_and_recorded_again_no_server_byte_differs(path: Path, tmp_path: Path) -> None:
    frames = read(path)
    again = tmp_path / "again.ndjson"
    env = {**environment(path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [RECORDER, "record", "--out", str(again), "--", FAKE, "app-server"],
        input=b"".join(frame.raw for frame in frames if frame.sender == "client"),
        capture_output=True,
        env=env,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    said = [frame.raw for frame in frames if frame.sender == "server"]
    assert sorted(done.stdout.splitlines(keepends=True)) == sorted(said)
    assert sorted(frame.raw for frame in read(again) if frame.sender == "server") == sorted(said)
