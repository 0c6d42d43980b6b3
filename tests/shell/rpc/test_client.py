"""The client against servers that break in each way a server can: it fails at once, in a sentence, and nothing runs on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codex_replay.shell.process.subject import CannotStart, Process, strays
from codex_replay.shell.rpc.client import Client, ErrorReply, SubjectFailure

SERVER = Path(__file__).parents[2] / "miniatures" / "server.py"
Start = Callable[..., Client]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    clients: list[Client] = []

    def start(way: str = "", timeout: float = 60.0) -> Client:
        clients.append(Client([sys.executable, "-I", str(SERVER), way], env=dict(os.environ), cwd=str(tmp_path), timeout=timeout))
        return clients[-1]

    yield start
    for client in clients:
        client.stop()
        assert strays(client.process.mark) == []


def test_a_conversation(start: Start) -> None:
    client = start()
    assert client.request("initialize", {}) == {"userAgent": "miniature/1"}
    first, second = client.post("a"), client.post("b", {"x": 1}, id="s")
    assert client.reply_to(second) == {"id": "s", "result": {}}
    assert client.reply_to(first) == {"id": 1, "result": {}}
    assert client.close() == 0
    assert [frame.sender for frame in client.timeline].count("client") == 3
    assert [frame.n for frame in client.timeline] == [1, 2, 3, 4, 5, 6]


def test_client_lines_stand_on_the_timeline_as_they_were_sent(start: Start) -> None:
    client = start()
    client.send(b'{"id":1,"meth')
    client.send(b'od":"a"}\r\n{"id":2,"method":"b"}\n{"id":3,"method":"c"}')
    client.reply_to(2)
    assert client.close() == 0
    assert client.raw("client") == [b'{"id":1,"method":"a"}\r\n', b'{"id":2,"method":"b"}\n', b'{"id":3,"method":"c"}']
    assert [message["id"] for message in client.messages()] == [1, 2, 3]


def test_two_equal_frames_are_two(start: Start) -> None:
    client = start()
    client.send(b'{"id":1,"method":"a"}\n{"id":1,"method":"a"}\n')
    assert client.reply_to(1) == client.reply_to(1)
    with pytest.raises(SubjectFailure, match=r"the reply to request 1 did not come within 0\.3 s"):
        client.reply_to(1, 0.3)


def test_ids_of_other_types_are_other_ids(start: Start) -> None:
    client = start()
    client.post("a", id=1)
    client.post("a", id="1")
    assert client.reply_to("1")["id"] == "1"
    with pytest.raises(SubjectFailure):
        client.reply_to(True, 0.3)


def test_dies_at_start(start: Start) -> None:
    client = start("die-at-start")
    with pytest.raises(SubjectFailure) as failure:
        client.request("initialize", {})
    first = str(failure.value).partition("\n")[0]
    assert first == "The server exited with status 3 too early: cannot open the configuration"


@pytest.mark.parametrize(
    ("way", "state"),
    [("die-in-turn", "exited with status 101"), ("crash-in-turn", "was ended by signal 11")],
)
def test_dies_in_mid_turn(start: Start, way: str, state: str) -> None:
    client = start(way, timeout=60)
    client.request("initialize", {})
    with pytest.raises(SubjectFailure) as failure:
        client.request("turn/start", {})
    assert "The reply to request 1 never came" in str(failure.value)
    assert state in str(failure.value)
    assert "turn/start" in str(failure.value)
    if way == "die-in-turn":
        assert "panicked at core.rs:1" in str(failure.value)
        assert client.raw()[-1] == b'{"id":'


def test_hangs(start: Start) -> None:
    client = start("hang")
    client.request("initialize", {})
    asked = client.post("turn/start", {})
    while not client.process.stderr_tail():
        time.sleep(0.01)
    progress = r"The last message of the server was result of request 0, and no turn had started"
    with pytest.raises(
        SubjectFailure,
        match=rf"^{progress}: the reply to request \d+ did not come within 0\.5 s\. The server is still running\..*\n.*waiting "
        rf"for "
        rf"something",
    ):
        client.reply_to(asked, 0.5)
    with pytest.raises(SubjectFailure, match=r"still running 0\.2 s after its stdin ended"):
        client.close(0.2)


def test_does_not_read_its_stdin(start: Start) -> None:
    client = start("deaf", timeout=0.3)
    with pytest.raises(SubjectFailure, match=r"it did not read its stdin for 0\.3 s"):
        client.send(b"x" * 10_000_000 + b"\n")


def test_what_is_quoted_of_a_server_does_nothing_to_a_terminal() -> None:
    says = r"import sys; sys.stderr.write('\x1b[2Jer\x00r\tor\x9b1m \u00e9\n'); print('\x1b[31m{\x7f'); sys.exit(3)"
    client = Client([sys.executable, "-c", says], env={"PYTHONUTF8": "1"}, cwd="/", timeout=60)
    try:
        with pytest.raises(SubjectFailure) as raised:
            client.request("initialize", {})
    finally:
        client.stop()
    told = str(raised.value)
    assert r"    \x1b[2Jer\x00r" + "\t" + r"or\x9b1m é" in told
    assert r"\x1b[31m{\x7f" in told
    assert set("".join(told.split())) & set("\x1b\x00\x9b\x7f") == set()


def test_floods_stderr(start: Start) -> None:
    client = start("flood-stderr", timeout=60)
    client.request("initialize", {})
    assert client.close() == 0
    assert client.process.stderr_bytes > 50_000_000
    assert client.process.stderr_tail(1) == ["the flood is over"]


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("flood-stdout", r"stopped because \d+ of its lines are not JSON"),
        ("endless-line", r"after \d+ MB without the end of a line"),
    ],
)
def test_floods_stdout(start: Start, way: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_replay.shell.rpc.client.LONGEST_LINE", 1 << 24)
    client = start(way, timeout=60)
    with pytest.raises(SubjectFailure, match=told):
        client.request("initialize", {})
    assert client.process.wait(10) == -9
    assert len(client.timeline) < 100_000


def test_writes_garbage(start: Start) -> None:
    client = start("garbage")
    assert client.request("initialize", {}) == {"userAgent": "miniature/1"}
    assert client.raw()[0] == b"\x00\xff\xfe garbage\n"
    assert client.messages()[:2] == [None, None]


def test_closes_stdout(start: Start) -> None:
    client = start("close-stdout", timeout=60)
    client.request("initialize", {})
    with pytest.raises(SubjectFailure, match="is still running, but has closed its stdout"):
        client.request("turn/start", {})


def test_what_has_no_reader_is_told_to_the_writer(tmp_path: Path) -> None:
    """close_stdout: the program's next write fails, and it can end as it likes."""
    program = "import os, sys\nsys.stdin.read(1)\ntry:\n os.write(1, b'y')\nexcept BrokenPipeError:\n sys.exit(7)"
    read: list[bytes] = []
    process = Process([sys.executable, "-I", "-c", program], env={}, cwd=str(tmp_path), on_stdout=read.append)
    try:
        process.close_stdout()
        process.write(b"z")
        assert process.wait(10) == 7
        assert read == [b""]
    finally:
        process.stop()


def test_ignores_sigterm(start: Start) -> None:
    client = start("ignore-sigterm")
    client.request("initialize", {})
    assert client.process.stop(grace=0.1) == -9


@pytest.mark.parametrize("way", ["child-holds-stdout", "escaped-child"])
def test_a_child_keeps_stdout_open(start: Start, way: str) -> None:
    client = start(way, timeout=30)
    client.request("initialize", {})
    assert client.close() == 0
    with pytest.raises(SubjectFailure, match="never came"):
        client.notification("anything")


def test_ten_megabytes_on_a_line(start: Start) -> None:
    client = start()
    client.request("initialize", {"x": "y" * 10_000_000})
    assert client.close() == 0


def test_errors_are_told_apart(start: Start, tmp_path: Path) -> None:
    code = 'import sys\nfor l in sys.stdin: print(\'{"id":0,"error":{"code":-32600,"message":"no"}}\', flush=True)'
    client = Client([sys.executable, "-I", "-c", code], env=dict(os.environ), cwd=str(tmp_path))
    try:
        with pytest.raises(ErrorReply, match="answered a with the error") as failure:
            client.request("a", id=0)
        assert failure.value.error == {"code": -32600, "message": "no"}
        assert client.request_error("a", id=0)["message"] == "no"
    finally:
        client.stop()


def test_an_accepted_request_that_must_be_refused_fails(start: Start) -> None:
    with pytest.raises(SubjectFailure, match="accepted a, which it must refuse"):
        start().request_error("a")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"/nowhere/codex cannot be started \(No such file or directory\)"):
        Process(["/nowhere/codex"], env={}, cwd=str(tmp_path))


@pytest.mark.parametrize("end", ["", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"])
def test_nothing_runs_on_when_the_interpreter_ends(tmp_path: Path, end: str) -> None:
    script = (
        "import os, sys; from codex_replay.shell.process.subject import Process\n"
        f"p = Process([sys.executable, '-I', {str(SERVER)!r}, 'ignore-sigterm'], env=dict(os.environ), cwd='.')\n"
        f"print(p.mark, flush=True)\n{end}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip()
    assert strays(done.stdout.strip()) == []
