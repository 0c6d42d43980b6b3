"""Recordings of the http seam as answers: which request gets which; a miss is loud."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.http.backend_process import BackendError, BackendProcess
from tests.fakes.backend.http_replay.exchange import answered, ask, body_of, request, tape, wire


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
