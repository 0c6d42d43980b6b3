"""Recordings of the http seam as answers: record, replay, record again, and nothing differs; a miss is loud."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_fakes.model.faults import NAMES, WEBSOCKET_FAULTS
from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.protocol.recordings.compare import compare
from codex_replay.protocol.script.keys import ITEM_KEYS
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter
from codex_replay.shell.http.backend_process import BackendError, BackendProcess, BackendSession
from tests.support.suite_run import forked_pytest

MINIATURES = Path(__file__).parents[2] / "miniatures" / "backends" / "broken_replays.py"
RECORD = [str(Path(sys.executable).with_name("codex-replay")), "record", "--codex", "0.92.0"]
TEXT = "Hello é✓ there, all of you good people."
KINDS: dict[str, list[Any]] = {
    "text": [TEXT],
    "refusal": [{"type": "refusal", "refusal": "no"}],
    "function_call": [{"type": "function_call", "name": "add", "arguments": {"a": i}} for i in range(3)],
    "custom_tool_call": [{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n"}],
    "web_search_call": [{"type": "web_search_call", "query": "cats"}, "Found."],
    "reasoning": [{"type": "reasoning", "summary": ["a", "b"], "content": "c", "encrypted_content": "x"}, "ok"],
    "item": [{"type": "item", "item": {"type": "local_shell_call", "id": "x", "action": {}}}],
    "failed": ["half", {"type": "failed", "code": "server_error"}],
    "incomplete": ["half", {"type": "incomplete"}],
    "error": ["half", {"type": "error"}],
    "event": [{"type": "event", "event": {"type": "response.odd", "x": "\u2028"}}, "ok"],
    "raw": [{"type": "raw", "data": 'event: a\r\ndata: {"x" : 1.0e3}\r\n\r\n: \n\n'}, "ok"],
    "comment": [{"type": "comment", "text": "busy"}, "ok"],
    "wait": ["ok", {"type": "wait", "ms": 5}],
    "gate": [{"type": "gate", "name": "open"}, "ok"],
    "queued": [{"type": "queued"}, "ok"],
    "audio": [{"type": "audio", "transcript": "ok"}],
}
# What the tools of the service report, each item with its defaults.
NEEDED: dict[str, Any] = {
    "mcp_call": {"name": "find"},
    "mcp_approval_request": {"name": "find"},
    "local_shell_call": {"action": {"command": ["ls"]}},
    "shell_call": {"action": {"commands": ["ls"]}},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "a.txt"}},
}
TOOLS = ("_call", "_output", "_tools", "_request")
KINDS |= {it: [{"type": it, **NEEDED.get(it, {})}, "ok"] for it in ITEM_KEYS if it.endswith(TOOLS) and it not in KINDS}
KINDS["compaction"] = [{"type": "compaction"}, "ok"]
#: name -> the turn that answers it, and whether its client must leave for it to end
TURNS: dict[str, dict[str, Any]] = {kind: {"items": items} for kind, items in KINDS.items()} | {
    f"fault {name}": {"items": [TEXT], "fault": {"name": name, **({"bytes": 300_000} if name == "huge_event" else {})}}
    for name in NAMES
    if name not in WEBSOCKET_FAULTS  # tests/fakes/backend/test_websocket_replay.py has these
}
TURNS |= {
    "pieces of 7 bytes": {"items": [TEXT], "write": 7},
    "in one piece": {"items": [TEXT], "write": "whole"},
    "retry later": {"status": 429, "headers": {"Retry-After": "3", "X-oDD": "a  b"}, "error": {"message": "slow", "code": "x"}},
    "plain text": {"status": 502, "body": "Bad gateway <html>"},
    "no body": {"status": 503},
}


@dataclass
class Answer:
    """What one request got: the bytes of the wire, and whether the connection ended with a reset."""

    raw: bytes = b""
    end: str = "closed"
    error: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ")[1])


def wire(
    url: str,
    body: Any,
    *,
    path: str = "/v1/responses",
    headers: tuple[str, ...] = (),
    connection: socket.socket | None = None,
    patience: float = 10,
) -> Answer:
    """Send one request; read its answer to its end, or leave after `patience` seconds of silence."""
    parts = urlsplit(url)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {parts.path}{path} HTTP/1.1", "host: localhost", *headers, f"content-length: {len(data)}", "", ""]
    sock = connection or socket.create_connection((parts.hostname, parts.port))
    sock.settimeout(patience)
    answer = Answer()
    try:
        sock.sendall("\r\n".join(lines).encode() + data)
        while piece := sock.recv(1 << 20):
            answer.raw += piece
            head, _, rest = answer.raw.partition(b"\r\n\r\n")
            length = next((int(x[15:]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")), None)
            if len(rest) == length or answer.raw.endswith(b"\r\n0\r\n\r\n"):
                answer.end = "whole"
                break
    except ConnectionResetError:
        answer.end = "reset"
    except TimeoutError:
        answer.end = "left"
    finally:
        if connection is None:
            sock.close()
    if answer.end == "whole" and answer.status == 501:
        answer.error = json.loads(answer.raw.partition(b"\r\n\r\n")[2])["error"]
    return answer


def ask(name: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": f"<{name}>", "stream": True, "store": False, **more}


class Recorder:
    """`codex-replay record --upstream` as a program."""

    def __init__(self, upstream: str, out: Path) -> None:
        self.out = out
        self.process = subprocess.Popen([*RECORD, "--out", str(out), "--upstream", upstream], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=120)


def frames_of(path: Path) -> list[Frame]:
    with CassetteReader(path) as reader:
        frames = list(reader)
    assert reader.truncated is None
    return frames


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


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    broken = os.environ.get("BROKEN_REPLAY")  # see the test of the broken replays
    with BackendProcess(command=(sys.executable, str(MINIATURES), broken) if broken else None) as process:
        yield process


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


def request(n: int, body: Any, conn: int = 1, path: str = "/v1/responses", **headers: str) -> Frame:
    pairs = [[name.replace("_", "-"), value] for name, value in headers.items()]
    length = len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())
    payload = {"method": "POST", "path": path, "headers": [*pairs, ["content-length", str(length)]], "body": body}
    return Frame(n, n * 0.1, "http", "client", "request", payload=payload, conn=conn)


def answered(text: str, conn: int = 1, *, status: int = 200, t: float = 0.0) -> list[Frame]:
    raw = text.encode()
    head = {"status": status, "headers": [["content-type", "application/json"], ["content-length", str(len(raw))]]}
    return [
        Frame(0, t, "http", "server", "response", payload=head, conn=conn),
        Frame(0, t, "http", "server", "chunk", payload=http_frames.body_fields(raw), conn=conn),
        Frame(0, t, "http", "server", "close", payload="end", conn=conn),
    ]


def tape(path: Path, *frames: Frame | list[Frame], end: bool = True) -> Path:
    writer = CassetteWriter(path, Header("0.92.0", "none", path.stem, {"http.client": "recorded", "http.server": "recorded"}))
    for frame in frames:
        for one in frame if isinstance(frame, list) else [frame]:
            writer.write(one)
    if end:
        writer.close()
    else:
        writer.abandon()
    return path


def body_of(answer: Answer) -> str:
    return answer.raw.partition(b"\r\n\r\n")[2].decode()


def test_a_request_is_found_by_what_it_says_in_any_order_and_spelling(backend: BackendProcess, tmp_path: Path) -> None:
    frames = [part for i in range(3) for part in (request(i, ask(f"{i} é"), conn=i), answered(f'"{i}"', i))]
    session = backend.session("content")
    session.cassette(tape(tmp_path / "a.ndjson", *frames))
    packed = gzip.compress(json.dumps(dict(reversed(ask("1 é").items())), indent=2).encode())
    assert body_of(wire(session.url, packed, headers=("content-encoding: gzip",))) == '"1"'
    assert body_of(wire(session.url, ask("0 é"))) == '"0"'
    assert [one["request"] for one in session.unused_frames()] == ["POST /v1/responses"]
    assert session.ledger()[0]["recorded"] == {"cassette": "a.ndjson", "frame": 5}


def test_volatile_values_are_masked_uuids_are_bound_and_spliced_into_the_answer(backend: BackendProcess, tmp_path: Path) -> None:
    ours, theirs = "0199a1b2-0000-7000-8000-000000000001", "0199ffff-0000-7000-8000-00000000000f"
    context = "<cwd>/home/user/project</cwd>"
    frames = [request(1, ask(context, prompt_cache_key=ours)), answered(json.dumps({"key": ours, "not": ours + "0"}))]
    frames += [request(2, ask("more", prompt_cache_key=ours)), answered('"more"')]
    session = backend.session("volatile")
    session.cassette(tape(tmp_path / "a.ndjson", *frames))
    answer = wire(session.url, ask("<cwd>/elsewhere</cwd>", prompt_cache_key=theirs))
    assert json.loads(body_of(answer)) == {"key": theirs, "not": ours + "0"}
    other = wire(session.url, ask("more", prompt_cache_key=theirs.replace("f", "e")))
    assert (other.status, other.error["param"]) == (501, "body.prompt_cache_key")
    assert body_of(wire(session.url, ask("more", prompt_cache_key=theirs))) == '"more"'


def test_secrets_that_were_redacted_match_any_secret_and_come_back(backend: BackendProcess, tmp_path: Path) -> None:
    refresh = {"grant_type": "refresh_token", "refresh_token": "redacted-token-7"}
    frames = [request(1, refresh, path="/oauth/token"), answered('{"said":"redacted-token-7"}')]
    session = backend.session("secrets")
    session.cassette(tape(tmp_path / "a.ndjson", *frames))
    assert wire(session.url, {**refresh, "refresh_token": ""}, path="/oauth/token").status == 501
    live = {**refresh, "refresh_token": "rt-live-0123456789"}
    assert json.loads(body_of(wire(session.url, live, path="/oauth/token"))) == {"said": "rt-live-0123456789"}


@pytest.mark.parametrize(
    ("over", "status"),
    [
        (None, 501),
        (["path"], 200),
        (["method", "path", "body.model"], 200),
        (["path", "body", "-body.input", "-body.metadata.run"], 200),
        (["path", "body", "-body.input"], 501),
        (["path", "headers.X-Case"], 200),
        (["path", "headers.originator"], 501),
    ],
)
def test_a_case_says_over_what(backend: BackendProcess, tmp_path: Path, over: list[str] | None, status: int) -> None:
    recorded = request(1, ask("one", metadata={"run": 1, "x": 2}), x_case="7", originator="a")
    session = backend.session(f"over {over}")
    session.cassette(tape(tmp_path / "a.ndjson", recorded, answered('"ok"')), over=over)
    answer = wire(session.url, ask("two", metadata={"run": 2, "x": 2}), headers=("X-CASE: 7", "originator: b"))
    assert answer.status == status


def test_by_connection_and_order(backend: BackendProcess, tmp_path: Path) -> None:
    frames = [request(1, ask("a1"), 1), answered('"a1"', 1), request(2, ask("b1"), 2), answered('"b1"', 2)]
    frames += [request(3, ask("a2"), 1), answered('"a2"', 1), request(4, ask("b2"), 2), answered('"b2"', 2)]
    session = backend.session("connection")
    session.cassette(tape(tmp_path / "a.ndjson", *frames), by="connection")
    parts = urlsplit(session.url)
    address = (parts.hostname, parts.port)
    with socket.create_connection(address) as one, socket.create_connection(address) as two:
        said = [body_of(wire(session.url, ask("?"), connection=sock)) for sock in (one, two, two, one)]
        assert said == ['"a1"', '"b1"', '"b2"', '"a2"']
        miss = wire(session.url, ask("?"), connection=one)
    assert miss.status == 501
    assert "it was already replayed" in miss.error["message"]


def test_a_conversation_gets_the_answers_of_the_one_it_is_most_like(backend: BackendProcess, tmp_path: Path) -> None:
    def said(key: str | None, *texts: str) -> dict[str, Any]:
        known = {} if key is None else {"prompt_cache_key": key}
        return {**ask("x"), "input": [{"role": "user", "content": text} for text in ("<cwd>/a</cwd>", *texts)], **known}

    recorded = [("a", "one"), ("b", "two"), ("a", "one", "more"), ("b", "two", "more")]
    frames = [
        part
        for n, (key, *texts) in enumerate(recorded, 1)
        for part in (request(n, said(key, *texts), conn=n), answered(f'"{key}{n}"', n))
    ]
    session = backend.session("conversation")
    session.cassette(tape(tmp_path / "a.ndjson", *frames), by="conversation")
    live = [("y", "two"), ("x", "one"), ("y", "two", "more, and other words"), ("x", "one", "another thing")]
    assert [body_of(wire(session.url, said(*one))) for one in live] == ['"b2"', '"a1"', '"b4"', '"a3"']
    assert wire(session.url, said("x", "one")).status == 501
    session.cassette(tmp_path / "a.ndjson", by="conversation")
    assert [body_of(wire(session.url, said(None, "x"))) for _ in range(4)] == ['"a1"', '"b2"', '"a3"', '"b4"']


def test_by_conversation_a_call_names_the_live_terminal(backend: BackendProcess, tmp_path: Path) -> None:
    def said(number: int) -> dict[str, Any]:
        output = {"type": "function_call_output", "call_id": "c", "output": f"Process running with session ID {number}"}
        return {**ask("x"), "input": [output]}

    answer = json.dumps({"arguments": '{"session_id":18,"x": 180, "session_id": 18}', "session_id": 180})
    session = backend.session("terminal")
    session.cassette(tape(tmp_path / "a.ndjson", request(1, said(18)), answered(answer)), by="conversation")
    live = json.loads(body_of(wire(session.url, said(39228))))
    assert live == {"arguments": '{"session_id":39228,"x": 180, "session_id": 39228}', "session_id": 180}


def test_a_miss_names_the_nearest_request_and_the_smallest_difference(backend: BackendProcess, tmp_path: Path) -> None:
    long = "You are a coding agent. " * 400
    frames = [request(1, ask("far", tools=[1], metadata={"a": 1})), answered("1")]
    frames += [request(2, ask("near", instructions=long + "Be kind.")), answered("2")]
    session = backend.session("miss")
    session.cassette(tape(tmp_path / "a.ndjson", *frames))
    answer = wire(session.url, ask("near", instructions=long + "Be terse."))
    assert answer.status == 501
    assert answer.error["code"] == "replay_miss"
    assert answer.error["param"] == "body.instructions"
    message = answer.error["message"]
    assert "the nearest is frame 5 of a.ndjson, POST /v1/responses, and differs at body.instructions: recorded ..." in message
    assert "Be kind." in message
    assert "Be terse." in message
    assert len(message) < 500
    (entry,) = session.ledger()
    assert (entry["answer"], entry["status"], entry["sentence"]) == ("miss", 501, message)
    assert session.problems() == [f"POST /v1/responses: {message}"]
    assert len(session.unused_frames()) == 2


def test_a_request_that_was_played_is_not_played_again(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("once")
    session.cassette(tape(tmp_path / "a.ndjson", request(1, ask("x")), answered("1")))
    assert wire(session.url, ask("x")).status == 200
    assert "matches, but it was already replayed (each is replayed once)." in wire(session.url, ask("x")).error["message"]


def test_recordings_answer_before_the_script_and_the_script_before_the_default(backend: BackendProcess, tmp_path: Path) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('"recorded"'))
    session = backend.session("order", {"turns": [{"match": "<y>", "items": ["scripted"]}], "otherwise": "default"})
    session.cassette(path)
    answers = [wire(session.url, ask(name)) for name in ("x", "y", "z")]
    assert [entry["answer"] for entry in session.ledger()] == ["cassette", "turn", "default"]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert session.problems() == []
    session.script([])
    assert "The nearest" not in wire(session.url, ask("z")).error["message"]
    assert "No recorded request matches" in wire(session.url, ask("z")).error["message"]


def test_the_rules_hold_for_what_the_recorded_request_kept(backend: BackendProcess, tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "add", "arguments": "{}", "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": "5"}
    good, bad = ask("", input=[call, output]), ask("", input=[output])
    frames = [request(1, good), answered('"fine"'), request(2, bad), answered('"said 400 then"', status=400)]
    path = tape(tmp_path / "a.ndjson", *frames)
    session = backend.session("rules")
    session.cassette(path, over=["path", "body.model"])
    assert wire(session.url, bad).status == 400
    assert session.ledger()[-1]["sentence"].startswith("output-without-call")
    assert body_of(wire(session.url, good)) == '"fine"'
    assert body_of(wire(session.url, bad)) == '"said 400 then"'  # what the real one said to it is more than a rule


def test_a_folder_is_one_deck_of_recordings(backend: BackendProcess, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    tape(tmp_path / "a.ndjson", request(1, ask("a")), answered('"a"'))
    tape(tmp_path / "sub" / "b.ndjson", request(1, ask("b")), answered('"b"'))
    session = backend.session("folder")
    session.cassette(tmp_path)
    assert [body_of(wire(session.url, ask(name))) for name in ("b", "a")] == ['"b"', '"a"']
    assert [entry["recorded"]["cassette"] for entry in session.ledger()] == ["sub/b.ndjson", "a.ndjson"]


def test_a_body_of_another_length_has_its_own_content_length(backend: BackendProcess, tmp_path: Path) -> None:
    frames = [request(1, ask("/work/a/b")), answered('{"at":"/work/a/b"}')]
    session = backend.session("length")
    session.cassette(tape(tmp_path / "a.ndjson", *frames))
    answer = wire(session.url, ask("/work/a/b"))
    assert (answer.end, body_of(answer)) == ("whole", '{"at":"/work/a/b"}')
    redacted = answered('{"email":"user-1@redacted.example"}')
    redacted[0].payload["headers"][1][1] = "9"  # as long as it was before it was redacted
    session.cassette(tape(tmp_path / "b.ndjson", request(1, ask("x")), redacted))
    assert wire(session.url, ask("x")).end == "whole"


def test_the_times_of_the_recording_are_kept_at_its_pace(backend: BackendProcess, tmp_path: Path) -> None:
    frames = [request(1, ask("x")), answered('"x"', t=0.4)]
    path = tape(tmp_path / "a.ndjson", *frames)
    took = []
    for pace in ("fast", "recorded"):
        session = backend.session(f"pace {pace}")
        session.cassette(path, pace=pace)
        wire(session.url, ask("x"))
        wire(session.url, ask("x"))  # a miss, whose time tells when the first answer had ended
        one, two = session.ledger(2)
        took.append(two["t"] - one["t"])
    assert took[1] >= 0.29 > took[0]


def test_a_recording_that_was_cut_short_is_said_and_played_as_far_as_it_goes(backend: BackendProcess, tmp_path: Path) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('"x"')[:2], end=False)
    session = backend.session("short")
    (note,) = session.cassette(path)
    assert "was cut short" in note
    assert wire(session.url, ask("x")).end in ("whole", "closed")
    assert session.ledger(1)[0]["end"] == "cut"


def test_an_answer_stops_before_a_held_frame_until_its_gate_is_released(backend: BackendProcess, tmp_path: Path) -> None:
    head = {"status": 200, "headers": [["transfer-encoding", "chunked"]]}
    parts = [("response", head), ("chunk", {"text": "one"}), ("chunk", {"text": "two"}), ("close", "end")]
    frames = [Frame(0, 1.0 + n, "http", "server", kind, payload=payload, conn=1) for n, (kind, payload) in enumerate(parts)]
    session = backend.session("held")
    session.cassette(tape(tmp_path / "a.ndjson", request(1, ask("x")), frames), hold=[4])
    parted = urlsplit(session.url)
    with socket.create_connection((parted.hostname, parted.port)) as connection:
        answer = wire(session.url, ask("x"), connection=connection, patience=0.5)
        assert (answer.end, answer.raw.partition(b"\r\n\r\n")[2]) == ("left", b"3\r\none\r\n")
        session.release("frame 4")
        connection.settimeout(10)
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest += connection.recv(4096)
    assert rest == b"3\r\ntwo\r\n0\r\n\r\n"


def test_frames_of_several_recordings_cannot_be_held(backend: BackendProcess, tmp_path: Path) -> None:
    paths = [tape(tmp_path / f"{name}.ndjson", request(1, ask(name)), answered("1")) for name in ("a", "b")]
    with pytest.raises(BackendError, match="names frames of one recording"):
        backend.session("several").cassette(paths, hold=[2])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"by": "luck"}, '"luck" is not a way to choose'),
        ({"over": ["bodies"]}, '"bodies" is not a part of a request'),
        ({"over": ["-body"]}, "is compared"),
        ({"pace": "slow"}, "it must be fast, recorded"),
        ({"hold": ["frame 2"]}, "must be a list of numbers of frames"),
    ],
)
def test_what_cannot_be_played_is_a_sentence(backend: BackendProcess, tmp_path: Path, more: dict[str, Any], why: str) -> None:
    session = backend.session("wrong")
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered("1"))
    with pytest.raises(BackendError, match=why):
        session.cassette(path, **more)


def test_a_file_that_is_no_recording_of_http_is_a_sentence(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("nothing")
    (tmp_path / "b.ndjson").write_text("{}\n")
    with pytest.raises(BackendError, match="this is not a cassette header"):
        session.cassette(tmp_path / "b.ndjson")
    with pytest.raises(BackendError, match="has no recorded http request"):
        session.cassette(tape(tmp_path / "c.ndjson", Frame(1, 0.0, "rpc", "client", raw=b"{}\n")))


def test_the_stories_of_a_report_are_left_out_of_a_folder_and_are_no_cassette(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("stories")
    stories = tmp_path / "stories.ndjson"
    stories.write_text('{"case":"proxy/test_a/b","source":"this run","cassette":null,"truncated":false,"frames":[]}\n')
    with pytest.raises(BackendError, match="this is not a cassette header"):
        session.cassette(stories)
    tape(tmp_path / "a.ndjson", request(1, ask("x")), answered("1"))
    assert session.cassette(tmp_path) == [f"{stories}: skipped; it holds the traces of a report and is not a cassette."]
    assert body_of(wire(session.url, ask("x"))) == "1"
    stories.write_text('{"cassette":2}\n')
    with pytest.raises(BackendError, match="cassette format 2"):
        session.cassette(tmp_path)


@pytest.mark.parametrize(("asked", "options", "status"), [("x", (), 0), ("y", (), 1), ("", (), 1), ("", ("--allow-unused",), 0)])
def test_serve_tells_what_was_missed_and_what_was_not_used(tmp_path: Path, asked: str, options: Any, status: int) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered("1"))
    command = [str(Path(sys.executable).with_name("codex-replay")), "serve", "--json", "--cassette", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        if asked:
            wire(url, ask(asked))
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        told = json.loads(process.communicate(timeout=120)[0])
    assert process.returncode == status
    assert told["missed"] == ([1] if asked == "y" else [])
    assert [one["frame"] for one in told["unused"]] == ([] if asked == "x" else [1])


def test_the_program_itself_plays_recordings(tmp_path: Path) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('"x"'))
    command = (sys.executable, "-P", "-m", "codex_fakes.backend", "--cassette", str(path), "--over", "path", "--by", "connection")
    with BackendProcess(command=command) as process:
        assert body_of(wire(process.url, ask("anything"))) == '"x"'
    with pytest.raises(BackendError, match="cannot be opened"):
        BackendProcess(command=(sys.executable, "-P", "-m", "codex_fakes.backend", "--cassette", str(tmp_path / "none.ndjson")))


REPLAY = [str(Path(sys.executable).with_name("codex-replay")), "replay"]


def played(path: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Run `codex-replay replay`: its status, what it tells, its stderr."""
    done = subprocess.run([*REPLAY, str(path), *options, "--json"], capture_output=True, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def test_the_recorded_client_is_played_to_a_backend_and_finds_the_same(backend: BackendProcess, tmp_path: Path) -> None:
    """Every kind and every fault again, the other way round: our player asks, and what comes back is what was recorded."""
    turns = [{"match": f"<{name}>", **turn} for name, turn in TURNS.items()]
    scripted = backend.session("to be played", turns)
    scripted.release("open")
    with Recorder(scripted.url, tmp_path / "run.ndjson") as recorder:
        for i, name in enumerate(TURNS):
            wire(recorder.url, ask(name), patience=0.3 if name == "fault idle" else 10)
            scripted.ledger(i + 1)
    again = backend.session("play it", turns)
    again.release("open")
    status, told, _ = played(tmp_path / "run.ndjson", "--backend", again.url)
    assert (status, told["failure"], told["differences"]) == (0, None, [])
    assert [entry["turn"] for entry in again.ledger()] == list(range(len(TURNS)))
    status, told, _ = played(tmp_path / "run.ndjson", "--backend", "fake")
    assert (status, told["failure"], told["differences"]) == (0, None, [])


def test_another_answer_is_a_difference(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("other", [{"status": 400, "body": {"x": 1}}])
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('{"x":2}', status=400))
    status, told, _ = played(path, "--backend", session.url)
    assert (status, told["identical"]) == (1, False)
    assert {d["path"] for d in told["differences"]} == {"$.chunk.body.x", '$.response.headers["x-request-id"]'}


def test_an_answer_that_does_not_end_is_said(backend: BackendProcess, tmp_path: Path) -> None:
    session = backend.session("endless", [{"items": ["x"], "fault": "idle"}])
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('"x"'))
    status, told, _ = played(path, "--backend", session.url, "--timeout", "0.3")
    assert status == 1
    assert told["failure"].startswith("POST /v1/responses (frame 1 of the recording) was not fully answered within 0.3 s")


def test_credentials_take_the_place_of_redacted_ones_and_are_no_difference(backend: BackendProcess, tmp_path: Path) -> None:
    auth = tmp_path / "auth.json"
    auth.write_text(json.dumps({"tokens": {"access_token": "at-secret-0123456789", "account_id": "acc-42-secret"}}))
    session = backend.session("login", {"turns": ["hi"], "auth": {"mode": "chatgpt", "access_token": "at-secret-0123456789"}})
    with Recorder(session.url, tmp_path / "run.ndjson") as recorder:
        headers = ("authorization: Bearer at-secret-0123456789", "chatgpt-account-id: acc-42-secret")
        assert wire(recorder.url, ask("x"), headers=headers).status == 200
    assert "secret-0123456789" not in (tmp_path / "run.ndjson").read_text()
    session.script({"turns": ["hi"], "auth": {"mode": "chatgpt", "access_token": "at-secret-0123456789"}})
    assert played(tmp_path / "run.ndjson", "--backend", session.url, "--auth", str(auth))[0] == 0
    status, told, _ = played(tmp_path / "run.ndjson", "--backend", session.url)
    assert status == 1  # without them the backend refuses
    assert any(d["path"] == "$.response.status" for d in told["differences"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "either --app-server or --backend"),
        (("--backend", "https://example.invalid/v1"), "This would send 1 request (0 KB) to example.invalid, on your account"),
        (("--backend", "127.0.0.1"), "is not an http, https, ws or wss URL"),
        (("--backend", "http://127.0.0.1:9"), "the backend at http://127.0.0.1:9 cannot be reached"),
        (("--backend", "fake", "--auth", "/nowhere.json"), "the login cannot be read"),
    ],
)
def test_what_cannot_be_played_to_is_a_sentence_and_status_2(tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered("1"))
    status, _, stderr = played(path, *options)
    assert (status, stderr.count("\n")) == (2, 1)
    assert why in stderr


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
        chosen = ["-k", " and ".join(re.findall(r"\w+", name)), __file__]  # few cases more than the one
    done = forked_pytest(["--tb=short", "-rfE", *chosen], BROKEN_REPLAY=variant, ROUND=round_)
    assert done.returncode == 1, done.stdout + done.stderr
    named = any(SEEN[variant] in line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert named, done.stdout + done.stderr


def test_there_is_a_test_for_every_wrong_replay() -> None:
    table = MINIATURES.read_text().split("@variant\ndef ")[1:]
    assert {part.partition("(")[0].replace("_", "-") for part in table} == set(SEEN)


@pytest.mark.parametrize(
    ("codex", "start"),
    [
        ("0.93.0", "There is no normalise table for Codex 0.93.0 (`codex-replay codex add 0.93.0` makes it): times,"),
        ("unknown", "The header names no Codex version ('unknown'), so no version's tables apply: times,"),
    ],
)
def test_a_recording_of_a_version_without_tables_is_said_and_played(
    backend: BackendProcess, tmp_path: Path, codex: str, start: str
) -> None:
    path = tape(tmp_path / "a.ndjson", request(1, ask("x")), answered('"x"'))
    path.write_bytes(path.read_bytes().replace(b'"codex":"0.92.0"', f'"codex":"{codex}"'.encode(), 1))
    session = backend.session(f"of {codex}")
    (note,) = session.cassette(path)
    assert note.startswith(start)
    assert wire(session.url, ask("x")).status == 200
