"""`codex-replay connect`: an app-server over WebSocket, as a program on stdio."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.sync.server import ServerConnection, serve, unix_serve

from codex_replay.shell.cassettes.file import CassetteReader

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
#: A server that listens as Codex does: it answers each request with its method, and leaves after `leave`.
SERVER = """
import json, sys
from websockets.sync.server import serve

def answer(connection):
    for message in connection:
        value = json.loads(message)
        if value["method"] == "leave":
            connection.close()
            return
        connection.send(json.dumps({"id": value["id"], "result": value["method"]}))

assert sys.argv[1:3] == ["app-server", "--listen"], sys.argv
host, port = sys.argv[3].removeprefix("ws://").split(":")
with serve(answer, host, int(port), compression=None) as server:
    server.serve_forever()
"""


def answer(connection: ServerConnection) -> None:
    for message in connection:
        assert isinstance(message, str)  # text frames, whatever the line is
        value = json.loads(message)
        if value["method"] == "leave":
            connection.close()
            return
        connection.send(json.dumps({"id": value["id"], "result": value["method"]}, indent=1))


@contextmanager
def listening() -> Iterator[str]:
    with serve(answer, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


def connect(*words: str, said: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROGRAM, "connect", *words], input=said, capture_output=True, timeout=30, check=False)


def requests(*methods: str) -> bytes:
    return b"".join(json.dumps({"id": number, "method": method}).encode() + b"\n" for number, method in enumerate(methods))


def test_each_line_is_a_message_and_each_message_a_line() -> None:
    with listening() as url:
        done = connect(url, said=requests("one", "two") + b"\r\n" + b'{"id":"x","method":"three"}')
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": 0, "result": "one"},
        {"id": 1, "result": "two"},
        {"id": "x", "result": "three"},
    ]
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with unix_serve(answer, path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = connect(f"unix://{path}", said=requests("one"))
        server.shutdown()
    assert json.loads(done.stdout) == {"id": 0, "result": "one"}


def test_a_server_that_leaves() -> None:
    """The command ends at once, though its stdin is open."""
    with listening() as url:
        process = subprocess.Popen(
            [PROGRAM, "connect", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(requests("leave"))
        process.stdin.flush()
        assert process.wait(20) == 1
        _, stderr = process.communicate()
    assert stderr == b"The app-server closed the connection.\n"


def test_a_command_is_started_and_ended(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    done = connect("--", sys.executable, str(program), "app-server", said=requests("one"))
    assert (json.loads(done.stdout), done.returncode) == ({"id": 0, "result": "one"}, 0), done.stderr


def test_a_recorder_in_front_of_it(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with listening() as url:
        words = [PROGRAM, "record", "--out", str(out), "--codex", "0.169.0", "--", PROGRAM, "connect", url]
        done = subprocess.run(words, input=requests("one", "two"), capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    with CassetteReader(str(out)) as reader:
        assert [(frame.sender, frame.value["id"]) for frame in reader] != []
        assert reader.footer is not None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ws://127.0.0.1:9"], "No app-server answers at ws://127.0.0.1:9"),
        (["unix:///nowhere/socket"], "No app-server answers at unix:///nowhere/socket"),
        (["ws://127.0.0.1:9", "more"], "remove 'more'"),
        (["--", "/no/such/program"], "/no/such/program cannot be started"),
        (["--", sys.executable, "-c", "raise SystemExit(3)"], "ended with status 3 before it listened"),
    ],
)
def test_what_cannot_be_connected_is_a_sentence(words: list[str], why: str) -> None:
    done = connect(*words, said=b"")
    assert (done.returncode, done.stdout) == (2, b"")
    assert why in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
