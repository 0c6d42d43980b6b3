"""`codex-replay record --literal TEXT`: what only the user knows is in the traffic, and in nothing that is written or said."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_replay.core.redact.encoded_body import opened
from codex_replay.shell.cassettes.file import CassetteReader
from tests.shell.http.test_http_recorder import Backend, backend, read_all, read_request, recording

PROGRAM = [str(Path(sys.executable).with_name("codex-replay"))]
BROKEN = [sys.executable, str(Path(__file__).parents[1] / "shell" / "http" / "broken_recorders.py")]
SECRET = 'Project "Blue bird" é'
SHORT = "k7"

SERVER = r"""
import json, sys
def say(item, piece):
    params = {"threadId": "t", "turnId": "0", "itemId": item, "delta": piece}
    print(json.dumps({"method": "item/agentMessage/delta", "params": params}), flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
secret = sys.argv[1].partition("=")[2]
for piece in ("It is " + secret[:7], secret[7:12], secret[12:] + "."):
    say("m", piece)
say("n", "Whole: " + secret)
"""


def record(folder: Path, *args: str, said: bytes = b"", variant: str | None = None) -> subprocess.CompletedProcess[bytes]:
    program = [*BROKEN, variant] if variant else PROGRAM
    env = {**os.environ, "HOME": str(folder)}
    return subprocess.run([*program, "record", *args], input=said, capture_output=True, timeout=120, cwd=folder, env=env)


def check_rpc(folder: Path, variant: str | None = None) -> None:
    """In a frame, escaped, in pieces, in the command line, in the case's name: nowhere is it left."""
    (folder / "server.py").write_text(SERVER)
    line = json.dumps({"id": 1, "method": "x", "params": {"is": SECRET, "short": SHORT, "word": "k7x"}}).encode() + b"\n"
    command = [sys.executable, "server.py", f"--name={SECRET}", SHORT]
    words = ["--literal", SECRET, "--literal", SHORT, "--case", f"a {SECRET} b", "--codex", f"mine {SECRET}"]
    done = record(folder, "--out", "run.ndjson", *words, "--", *command, said=line, variant=variant)
    assert done.returncode == 0
    assert done.stdout.startswith(line)
    assert json.loads(done.stdout.splitlines()[-1])["params"]["delta"] == f"Whole: {SECRET}"  # the client gets what was said
    text = (folder / "run.ndjson").read_text()
    assert "Blue" not in text
    assert "bird" not in text
    with CassetteReader(folder / "run.ndjson") as cassette:
        header, frames = cassette.header, [frame.value["params"] for frame in cassette]
    assert header.extra["command"][2:] == ["--name=redacted-1", "redacted-2"]
    assert (header.case, header.codex) == ("a redacted-1 b", "mine redacted-1")
    assert frames[0] == {"is": "redacted-1", "short": "redacted-2", "word": "k7x"}
    assert frames[0] == frames[1]
    assert [one["delta"] for one in frames[2:]] == ["It is redacted-1", "", ".", "Whole: redacted-1"]
    assert done.stderr.decode() == (
        f"codex-replay record: {folder}/run.ndjson: the client received a secret (literal) streamed in chunks in frames 3 to 5. "
        "The cassette contains placeholders instead.\n"
    )
    lint = subprocess.run([*PROGRAM, "cassette", "lint", "run.ndjson", "--literal", SECRET], cwd=folder, capture_output=True)
    assert b": secret:" not in lint.stdout


def check_http(folder: Path, variant: str | None = None) -> None:
    """In a path, a header, a request's body, an answer that is compressed, and in the pieces of one."""
    escaped = json.dumps(SECRET)[1:-1]

    def events(*pieces: str) -> bytes:
        data = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        return b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in data)

    plain = events("Of " + SECRET[:9], SECRET[9:] + " and " + SECRET)
    head = b"HTTP/1.1 200 OK\r\nx-of: Project+%22Blue+bird%22+%C3%A9\r\ncontent-type: text/event-stream\r\n"
    answers = [(b"gzip", gzip.compress(plain, mtime=0)), (b"identity", plain)]

    def answer(made: Backend, sock: socket.socket) -> None:
        read_request(sock)
        form, body = answers.pop()
        sock.sendall(head + b"content-encoding: %b\r\ncontent-length: %d\r\n\r\n" % (form, len(body)) + body)

    body = f'{{"input":"{escaped}"}}'.encode()
    path = b"/v1/x?of=Project%20%22Blue%20bird%22%20%C3%A9"
    asked = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (path, len(body)) + body
    with backend(answer) as made, recording(folder, made.port, variant=variant, words=("--literal", SECRET)) as recorder:
        for form in ("identity", "gzip"):
            with recorder.connect() as client:
                client.sendall(asked)
                got, _ = read_all(client)
            assert form.encode() in got
            assert form != "identity" or got.endswith(plain)
        frames = recorder.finish()
    assert b"Blue" not in recorder.stderr
    text = (folder / "run.ndjson").read_text()
    text += "".join(
        opened(frame.payload)[0].decode() for frame in frames if type(frame.payload) is dict and "base64" in frame.payload
    )
    assert "Blue" not in text
    assert "bird" not in text
    # In the body that was compressed, in the events, and in their views.
    assert text.count("Of redacted-1") == text.count(" and redacted-1") == 3


def check_sentences(folder: Path, variant: str | None = None) -> None:
    """No sentence says it, whatever it is about."""
    words = ["--out", "Bluebird/run.ndjson", "--literal", "Bluebird", "--", "no-Bluebird-here", "app-server"]
    for number, status in enumerate((2, 127, 2)):
        if number == 1:
            (folder / "Bluebird").mkdir()
        if number == 2:
            words[3] = "redacted"  # which stands in every placeholder
        done = record(folder, *words, variant=variant)
        assert done.returncode == status, done.stderr
        assert b"Bluebird" not in done.stderr if number < 2 else b"--literal: this text cannot be replaced" in done.stderr
        assert b"Traceback" not in done.stderr


CHECKS: dict[str, Callable[..., None]] = {"rpc": check_rpc, "http": check_http, "sentences": check_sentences}


@pytest.mark.parametrize("check", CHECKS)
def test_what_only_the_user_knows_is_recorded_nowhere(check: str, tmp_path: Path) -> None:
    CHECKS[check](tmp_path)


@pytest.mark.parametrize(
    ("check", "variant"), [("rpc", "forgets-literals"), ("http", "forgets-literals"), ("sentences", "says-literals")]
)
def test_a_recorder_that_lets_it_through_is_caught(check: str, variant: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        CHECKS[check](tmp_path, variant)


@pytest.mark.parametrize("literals", [[""], [" "], ["redacted"], ["Bluebird", "redacted-1"]])
def test_what_cannot_be_taken_out_starts_nothing_and_is_not_said(literals: list[str], tmp_path: Path) -> None:
    words = [word for literal in literals for word in ("--literal", literal)]
    done = record(tmp_path, "--out", "run.ndjson", *words, "--", "/bin/sh", "-c", "> started")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--literal: " in done.stderr
    assert os.listdir(tmp_path) == []
    assert (b"number 2" in done.stderr) == (len(literals) == 2)
    assert not literals[-1].strip() or literals[-1].encode() not in done.stderr
    (tmp_path / "c.ndjson").write_text(
        '{"cassette":1,"codex":"x","bundle":"unknown","case":"c","origin":{}}\n{"end":true,"frames":0}\n'
    )
    lint = subprocess.run([*PROGRAM, "cassette", "lint", "c.ndjson", *words], cwd=tmp_path, capture_output=True)
    assert lint.returncode == 2
    assert b"--literal: " in lint.stderr
    assert not literals[-1].strip() or literals[-1].encode() not in lint.stderr
