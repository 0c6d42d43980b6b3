"""The recorder, run as the program that a client would start, between a client (the test) and small servers."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.rpc.recorder import LIMIT, Lane

PROGRAM = [str(Path(sys.executable).with_name("codex-replay"))]
BROKEN = [sys.executable, str(Path(__file__).parents[2] / "shell" / "http" / "broken_recorders.py")]
PATIENCE = 20  # seconds: only a hang takes so long

# Each server's first argument is a file in which it keeps, unbuffered, what it read: a witness that is not the recorder.
HEAD = """
import os, signal, sys, time
seen = open(sys.argv[1], "ab", 0)
def read():
    data = os.read(0, 65536)
    seen.write(data)
    return data
def write(data):
    while data:
        data = data[os.write(1, data):]
def lines():
    rest = b""
    while data := read():
        *whole, rest = (rest + data).split(b"\\n")
        yield from whole
"""
SERVERS = {
    "echo": "while data := read(): write(data)",
    # says what is in a file, in pieces of odd sizes, then reads to the end
    "speak": "data = open(sys.argv[2], 'rb').read()\nwhile data: write(data[:40009]); data = data[40009:]\nwhile read(): pass",
    # tells of each line whether it was in the cassette when it came
    "witness": "for line in lines():\n    write(b'%s is %d\\n' % (line, line in open(sys.argv[2], 'rb').read()))",
    "kill-parent": "for line in lines():\n    write(line + b' back\\n')\n    if b'kill' in line: os.kill(os.getppid(), 9)",
    "exit": "os._exit(int(sys.argv[2]))",
    "die": "n = int(sys.argv[2])\nif n != 9: signal.signal(n, signal.SIG_DFL)\nos.kill(os.getpid(), n)",
    "trap": "signal.signal(int(sys.argv[2]), lambda *_: os._exit(41))\nwrite(b'ready\\n')\nwhile 1: signal.pause()",
    "wait": "write(b'ready\\n')\nwhile 1: signal.pause()",
    "last-words": "write(b'x' * 300000 + b'\\nbye'); os._exit(5)",
    "deaf": "os.close(0); write(b'deaf\\n')\nwhile 1: signal.pause()",
    "closes-stdout": "os.close(1)\nwhile read(): pass\nos._exit(6)",
    "babble": "import errno\ntry:\n    while 1: write(b'{}\\n' * 9000)\nexcept BrokenPipeError: os._exit(43)",
    # reads nothing until it is told by a signal
    "stalls": (
        "signal.signal(signal.SIGUSR1, lambda *_: None)\n"
        "for n in range(50): write(b'%d\\n' % n)\n"
        "signal.pause()\n"
        "while read(): pass"
    ),
    "stderr": "os.write(2, bytes(range(256)))\nwhile read(): pass",
    "heir": "if os.fork(): write(b'parent\\n'); os._exit(3)\nos.read(int(sys.argv[2]), 1)",
    "context": (
        "import json\n"
        "facts = [dict(os.environ), sys.argv[2:], os.getcwd(), os.fstat(int(sys.argv[2])).st_ino]\n"
        "write(json.dumps(facts).encode() + b'\\n')"
    ),
}


class Bench:
    """A folder with the servers, the cassette and the witness's file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cassette = folder / "run.ndjson"
        self.seen = folder / "seen"

    def server(self, name: str, *args: object) -> list[str]:
        script = self.folder / f"{name}.py"
        script.write_text(HEAD + SERVERS[name])
        return [sys.executable, str(script), str(self.seen), *map(str, args)]

    def record(self, name: str, *args: object, variant: str | None = None) -> list[str]:
        program = [*BROKEN, variant] if variant else PROGRAM
        return [*program, "record", "--out", str(self.cassette), "--", *self.server(name, *args)]

    def raw(self, sender: str) -> bytes:
        with CassetteReader(self.cassette) as cassette:
            return b"".join(frame.raw for frame in cassette if frame.sender == sender)

    def whole(self) -> bool:
        with CassetteReader(self.cassette) as cassette:
            for _ in cassette:
                pass
            return cassette.truncated is None


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@contextmanager
def running(command: list[str], **kwargs: object):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **kwargs)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    """Read up to a newline, byte by byte (the pipe is unbuffered); a server that is silent too long fails the test."""
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], PATIENCE)[0], f"no answer after {line!r}"
        piece = os.read(process.stdout.fileno(), 1)
        if not piece:
            break
        line += piece
    return line


def write_forever(process: subprocess.Popen[bytes]) -> None:
    while True:
        process.stdin.write(b"{}\n" * 9000)


ODD = [
    b'{"id":1,"method":"initialize","params":{}}\n',
    b'{ "id" : 2,\t"method":"spaced" }\n',
    b'{"id":3,"method":"crlf"}\r\n',
    b"\n",
    b"\r\n",
    b'{"n":1.0,"e":1e5,"z":-0,"big":123456789012345678901234567890}\n',
    '{"escaped":"\\u00e9","plain":"é","slash":"\\/","nul":"\\u0000","lone":"\\ud800"}\n'.encode(),
    b'{"id":4,"id":5}\n',
    b"\xff\xfe not UTF-8 \x00\x01\n",
    b"not JSON at all\n",
    b"[1,2]\n",
    b'"scalar"\n',
    b"NaN\n",
    b'{"msg":{"n":1},"end":true}\n',
]


def everything(megabytes: int) -> bytes:
    big = b'{"big":"' + b"x" * (megabytes << 20) + b'"}\n'
    return b"".join(ODD) + big + b"".join(reversed(ODD)) + b'{"id":6,"unterminated":true}\r'


def check_bytes(bench: Bench, variant: str | None = None) -> None:
    """Both ways, what one end wrote, what the cassette holds, and what the other end read are the same bytes."""
    said, told = everything(10), b'{"from":"server"}\n' + everything(3)
    (bench.folder / "told").write_bytes(told)
    command = bench.record("speak", bench.folder / "told", variant=variant)
    done = subprocess.run(command, input=said, capture_output=True, timeout=PATIENCE * 3)
    assert (done.returncode, done.stderr) == (0, b"")
    same(done.stdout, told, "what the client read")
    same(bench.seen.read_bytes(), said, "what the server read")
    same(bench.raw("client"), said, "what the cassette holds of the client")
    same(bench.raw("server"), told, "what the cassette holds of the server")
    assert bench.whole()


def same(found: bytes, expected: bytes, what: str) -> None:
    """Megabytes are compared without pytest, which in CI would explain every one of them for hours."""
    if found != expected:
        raise AssertionError(f"{what} differs: {len(found)} bytes, not the {len(expected)} expected")


def check_on_disk(bench: Bench, variant: str | None = None) -> None:
    """Each line is in the cassette when its receiver has it, whichever side that is."""
    with running(bench.record("witness", bench.cassette, variant=variant)) as process:
        for number in range(20):
            line = b'{"id":%d,"method":"m"}' % number
            process.stdin.write(line + b"\n")
            answer = read_line(process)
            assert answer == line + b" is 1\n"
            assert answer in bench.raw("server")


def check_killed(bench: Bench, variant: str | None = None) -> None:
    """Killed with SIGKILL at the moment when a line has arrived, the recorder has lost no line of either side."""
    with running(bench.record("kill-parent", variant=variant)) as process:
        process.stdin.write(b"one\ntwo\nkill\n")
        assert process.wait(PATIENCE) == -signal.SIGKILL
        received = process.stdout.read()
    assert bench.seen.read_bytes() == b"one\ntwo\nkill\n"
    assert bench.raw("client") == bench.seen.read_bytes()
    assert bench.raw("server").startswith(received)
    assert not bench.whole()


def check_backpressure(bench: Bench, variant: str | None = None) -> None:
    """A server that does not read stops the client, in bounded memory; the other direction goes on; nothing is lost."""
    line = b"y" * 999 + b"\n"
    with running(bench.record("stalls", variant=variant)) as process:
        assert [read_line(process) for _ in range(50)] == [b"%d\n" % n for n in range(50)]
        os.set_blocking(process.stdin.fileno(), False)
        sent = b""
        while select.select([], [process.stdin], [], 0.5)[1] and len(sent) < 40 * LIMIT:
            with suppress(BlockingIOError):
                rest = (line * 100)[len(sent) % 1000 :]
                sent += rest[: os.write(process.stdin.fileno(), rest)]
        assert LIMIT < len(sent) < 4 * LIMIT
        process.send_signal(signal.SIGUSR1)
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    assert bench.seen.read_bytes() == sent == bench.raw("client")


def check_secrets(bench: Bench, variant: str | None = None) -> None:
    """A planted secret passes, and is not in the cassette."""
    secret = b"sk-proj-" + b"Zx9" * 14
    said = b'{"id":1,"method":"loginApiKey","params":{"apiKey":"%s"}}\n' % secret
    done = subprocess.run(bench.record("echo", variant=variant), input=said, capture_output=True, timeout=PATIENCE)
    assert done.stdout == bench.seen.read_bytes() == said
    assert secret not in bench.cassette.read_bytes()
    assert b"loginApiKey" in bench.raw("client")


CHECKS = {
    "bytes": check_bytes,
    "on-disk": check_on_disk,
    "killed": check_killed,
    "backpressure": check_backpressure,
    "secrets": check_secrets,
}
BITES = [
    ("bytes", "drops-tail"),
    ("bytes", "tidies-line-ends"),
    ("on-disk", "logs-late"),
    ("killed", "logs-late"),
    ("killed", "forwards-first"),
    ("backpressure", "greedy"),
    ("secrets", "blind-redactor"),
    ("secrets", "failing-redactor"),
]


@pytest.mark.parametrize("check", CHECKS)
def test_check(check: str, bench: Bench) -> None:
    CHECKS[check](bench)


@pytest.mark.parametrize(("check", "variant"), BITES)
def test_a_broken_recorder_is_caught(check: str, variant: str, bench: Bench) -> None:
    with pytest.raises((AssertionError, OSError)):  # or the server never came to write what it saw
        CHECKS[check](bench, variant)


def test_every_check_is_turned_red_by_something() -> None:
    assert {check for check, _ in BITES} == set(CHECKS)


class Notes:
    """Stands in for the log: keeps the lines."""

    def __init__(self) -> None:
        self.on = True
        self.lines: list[bytes] = []

    def line(self, _sender: str, raw: bytes) -> None:
        self.lines.append(raw)

    def give_up(self, _why: str) -> None:
        self.on = False


@given(st.lists(st.one_of(st.binary(max_size=9), st.sampled_from([b"\n", b"a\nb", b"\r\n"])), max_size=20), st.integers(0, 20))
def test_a_lane_passes_on_what_it_logged_and_nothing_else(pieces: list[bytes], broken_after: int) -> None:
    """Whatever the pieces, and wherever the log breaks: all bytes go on, in order, whole lines only while it works."""
    notes = Notes()
    lane = Lane("client", os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY), 4096, notes)  # type: ignore[arg-type]
    for number, piece in enumerate(pieces):
        if number == broken_after:
            notes.on = False
        lane.take(piece)
        if notes.on:
            assert bytes(lane.waiting) == b"".join(notes.lines)
            assert all(line.endswith(b"\n") for line in notes.lines)
        else:
            assert bytes(lane.waiting) == b"".join(pieces[: number + 1])
    sent = bytes(lane.waiting)
    lane.waiting.clear()
    lane.end()
    assert sent + bytes(lane.waiting) == b"".join(pieces)
    lane.drop()
    assert (lane.source, lane.sink) == (-1, -1)


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_is_passed_on(status: int, bench: Bench) -> None:
    done = subprocess.run(bench.record("exit", status), input=b"", capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
    assert bench.whole()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE])
def test_a_server_that_died_by_a_signal_is_died_after(number: int, bench: Bench) -> None:
    done = subprocess.run(bench.record("die", int(number)), input=b"", capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (-number, b"")
    assert bench.whole()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_is_passed_on(number: int, bench: Bench) -> None:
    with running(bench.record("trap", int(number))) as process:
        assert read_line(process) == b"ready\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == 41
    assert bench.whole()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_the_server_dies_by_is_died_by(number: int, bench: Bench) -> None:
    with running(bench.record("wait"), stderr=subprocess.PIPE) as process, process.stderr:
        assert read_line(process) == b"ready\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
        # The servers here are Python, which has a word to say about SIGINT; the recorder has none.
        assert number == signal.SIGINT or process.stderr.read() == b""
    assert bench.whole()


def test_an_ignored_signal_stays_ignored_for_both(bench: Bench) -> None:
    command = ["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *bench.record("echo")]
    with running(command) as process:
        process.stdin.write(b"a\n")
        assert read_line(process) == b"a\n"
        process.send_signal(signal.SIGHUP)
        process.stdin.write(b"b\n")
        assert read_line(process) == b"b\n"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_the_clients_end_of_file_is_passed_on_while_the_server_goes_on(bench: Bench) -> None:
    with running(bench.record("echo")) as process:
        process.stdin.write(b"unterminated")
        process.stdin.close()
        assert read_line(process) == b"unterminated"
        assert process.wait(PATIENCE) == 0


def test_all_that_a_server_wrote_before_it_exited_arrives(bench: Bench) -> None:
    with running(bench.record("last-words")) as process:
        assert process.stdout.read() == b"x" * 300000 + b"\nbye"
        assert process.wait(PATIENCE) == 5
    assert bench.raw("server") == b"x" * 300000 + b"\nbye"


def test_a_server_that_exits_while_the_client_writes_ends_the_recorder(bench: Bench) -> None:
    with running(bench.record("exit", 9)) as process:
        with pytest.raises(BrokenPipeError):
            write_forever(process)
        assert process.wait(PATIENCE) == 9


def test_a_server_that_closes_its_stdin_closes_it_for_the_client(bench: Bench) -> None:
    with running(bench.record("deaf")) as process:
        assert read_line(process) == b"deaf\n"
        with pytest.raises(BrokenPipeError):
            write_forever(process)
        assert process.poll() is None


def test_a_server_that_closes_its_stdout_closes_it_for_the_client(bench: Bench) -> None:
    with running(bench.record("closes-stdout")) as process:
        assert read_line(process) == b""
        assert process.poll() is None
        process.stdin.write(b"still here\n")
        process.stdin.close()
        assert process.wait(PATIENCE) == 6
    assert bench.seen.read_bytes() == b"still here\n"


def test_a_client_that_stops_reading_breaks_the_servers_pipe(bench: Bench) -> None:
    with running(bench.record("babble")) as process:
        assert read_line(process) == b"{}\n"
        process.stdout.close()
        assert process.wait(PATIENCE) == 43


def test_whoever_inherited_the_servers_stdout_is_not_waited_for(bench: Bench) -> None:
    read, write = os.pipe()
    try:
        with running(bench.record("heir", read), pass_fds=[read]) as process:
            assert process.stdout.read() == b"parent\n"
            assert process.wait(PATIENCE) == 3
    finally:
        os.close(write)
        os.close(read)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a server sees the end of its input, and this one ignores it")
def test_a_killed_recorder_leaves_no_orphan(bench: Bench) -> None:
    """Both programs hold the writing end of a pipe: its end of file is the end of both."""
    read, write = os.pipe()
    with running(bench.record("wait"), pass_fds=[write]) as process:
        os.close(write)
        assert read_line(process) == b"ready\n"
        process.kill()
        assert select.select([read], [], [], PATIENCE)[0]
        assert os.read(read, 1) == b""
    os.close(read)


def test_stderr_is_the_servers_own(bench: Bench) -> None:
    done = subprocess.run(bench.record("stderr"), input=b"", capture_output=True, timeout=PATIENCE)
    assert done.stderr == bytes(range(256))


def test_the_server_gets_the_clients_environment_arguments_folder_and_descriptors(bench: Bench, monkeypatch) -> None:
    monkeypatch.setenv("LC_ALL", "")
    monkeypatch.delenv("LC_CTYPE", raising=False)
    monkeypatch.setenv("LANG", "C")
    with open(os.devnull) as extra:
        server = bench.server("context", extra.fileno(), "a b", "é", "--out", "-c", "k=v", "--")
        kwargs = {"pass_fds": [extra.fileno()], "input": b"", "capture_output": True, "timeout": PATIENCE, "cwd": bench.folder}
        direct = subprocess.run(server, check=True, **kwargs)
        tee = subprocess.run([*PROGRAM, "record", "--out", str(bench.cassette), "--", *server], check=True, **kwargs)
    theirs, ours = json.loads(direct.stdout), json.loads(tee.stdout)
    assert ours == theirs


def test_a_closed_stdin_is_an_empty_one(bench: Bench) -> None:
    command = ["/bin/sh", "-c", '"$@" <&-', "sh", *bench.record("echo")]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert bench.whole()


def test_the_two_sides_stand_on_one_timeline(bench: Bench) -> None:
    with running(bench.record("echo")) as process:
        for number in range(5):
            process.stdin.write(b"%d\n" % number)
            assert read_line(process) == b"%d\n" % number
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    with CassetteReader(bench.cassette) as cassette:
        frames = list(cassette)
    assert [(frame.n, frame.sender) for frame in frames] == [(n + 1, ("client", "server")[n % 2]) for n in range(10)]
    times = [frame.t for frame in frames]
    assert times == sorted(times)


def test_a_stream_in_any_pieces_is_recorded_line_by_line(bench: Bench) -> None:
    said = b"".join(ODD) * 3
    with running(bench.record("echo")) as process:
        dice = random.Random(4)
        at = 0
        while at < len(said):
            at += process.stdin.write(said[at : at + dice.choice([1, 2, 30])])
        process.stdin.close()
        assert process.stdout.read() == said
        assert process.wait(PATIENCE) == 0
    with CassetteReader(bench.cassette) as cassette:
        assert [frame.raw for frame in cassette if frame.sender == "client"] == ODD * 3


def test_a_disk_that_is_full_ends_the_recording_not_the_traffic(bench: Bench) -> None:
    limited = ["/bin/sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *bench.record("speak", bench.folder / "told")]
    told = b"".join(b'{"n":%d,"pad":"%s"}\n' % (n, b"p" * 500) for n in range(100))
    (bench.folder / "told").write_bytes(told)
    done = subprocess.run(limited, input=b"ok\n", capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, told)
    assert bench.seen.read_bytes() == b"ok\n"
    assert done.stderr.count(b"\n") == 1
    assert b"run.ndjson" in done.stderr
    assert b"File too large" in done.stderr
    assert not bench.whole()
    assert told.startswith(bench.raw("server"))


def test_a_redactor_that_fails_ends_the_recording_not_the_traffic(bench: Bench) -> None:
    command = bench.record("echo", variant="failing-redactor")
    done = subprocess.run(command, input=b"one\ntwo\n", capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, b"one\ntwo\n")
    assert done.stderr.count(b"\n") == 1
    assert b"no redaction today" in done.stderr
    assert bench.raw("client") == b""
    assert not bench.whole()


def test_a_redactor_that_fails_at_once_starts_nothing(bench: Bench) -> None:
    done = subprocess.run(bench.record("echo", variant="dead-redactor"), input=b"one\n", capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"no redaction today" in done.stderr
    assert b"Traceback" not in done.stderr
    assert not bench.cassette.exists()
    assert not bench.seen.exists()
