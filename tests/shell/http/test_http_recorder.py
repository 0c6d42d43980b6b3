"""The recorder of the http seam, run as a program between raw sockets: the test is the client and the backend."""

from __future__ import annotations

import json
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.file import CassetteReader

PROGRAM = [str(Path(sys.executable).with_name("codex-replay")), "record"]
BROKEN = [sys.executable, str(Path(__file__).parents[2] / "shell" / "http" / "broken_recorders.py")]
PATIENCE = 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nX-oDD: a  b\r\n\r\n"
ONE = b'event: a\ndata: {"type":"a"}\n\n'
TWO = 'event: b\ndata: {"type": "b", "text": "é"}\n\n'.encode()
LAST = b"0\r\n\r\n"
JSON = b'HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\nContent-Length: 23\r\n\r\n{"error":{"code":"no"}}'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def post(body: bytes = b'{"input":[]}', host: str = "localhost:1") -> bytes:
    head = (
        f"POST /v1/responses HTTP/1.1\r\nSession_Id: s\r\nHost: {host}\r\nX-b: 1\r\nx-A: 2\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def read_request(sock: socket.socket) -> bytes:
    """Read one request with a content-length; less of it when the client ends."""
    data = b""
    while b"\r\n\r\n" not in data and (piece := sock.recv(65536)):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (piece := sock.recv(65536)):
        body += piece
    return head + b"\r\n\r\n" + body


def read_all(sock: socket.socket) -> tuple[bytes, bool]:
    """Read to the end; the second value tells whether that was a reset."""
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:
        return data, True
    return data, False


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := sock.recv(size - len(data))):
        data += piece
    return data


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Backend:
    """Listens, and gives each connection to `serve` in a thread of its own; keeps the requests and what went wrong."""

    def __init__(self, serve: Callable[[Backend, socket.socket], None]) -> None:
        self.requests: list[bytes] = []
        self.ends: list[tuple[bytes, bool]] = []
        self.go = threading.Event()
        self.errors: list[BaseException] = []
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._one, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _one(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE)
        with sock:
            try:
                self._serve(self, sock)
            except (OSError, AssertionError) as error:
                self.errors.append(error)

    def close(self) -> None:
        with suppress(OSError):  # closed already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)


@contextmanager
def backend(serve: Callable[[Backend, socket.socket], None]) -> Iterator[Backend]:
    made = Backend(serve)
    try:
        yield made
    finally:
        made.close()


class Recording:
    """A running recorder; after its end `frames` has what it wrote."""

    def __init__(self, folder: Path, upstream: str, name: str, variant: str | None, words: tuple[str, ...] = ()) -> None:
        self.path = folder / f"{name}.ndjson"
        program = [*BROKEN, variant, "record"] if variant else PROGRAM
        command = [*program, "--out", str(self.path), "--upstream", upstream, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self.process.stdout
        self.url = json.loads(self.process.stdout.readline())["url"]

    def connect(self) -> socket.socket:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE)

    def finish(self) -> list[Frame]:
        self.process.send_signal(signal.SIGTERM)
        _, self.stderr = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, self.stderr
        with CassetteReader(self.path) as cassette:
            frames = list(cassette)
            assert cassette.truncated is None
        return frames


@contextmanager
def recording(
    folder: Path, upstream: str | int, name: str = "run", variant: str | None = None, words: tuple[str, ...] = ()
) -> Iterator[Recording]:
    made = Recording(folder, f"http://127.0.0.1:{upstream}" if isinstance(upstream, int) else upstream, name, variant, words)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        for pipe in (made.process.stdout, made.process.stderr):
            assert pipe
            pipe.close()


def answering(*parts: bytes, end: str = "close") -> Callable[[Backend, socket.socket], None]:
    """Answer one request with these bytes, each a write of its own, then close, or reset, or wait for the client's end."""

    def serve(made: Backend, sock: socket.socket) -> None:
        made.requests.append(read_request(sock))
        for part in parts:
            sock.sendall(part)
        if end == "reset":
            made.go.wait(PATIENCE)  # until the client has read all, or the reset would destroy what it has not
            reset(sock)
        elif end == "wait":
            made.ends.append(read_all(sock))

    return serve


ANSWERS = {
    "stream": ((HEAD, chunk(ONE), chunk(TWO + ONE), chunk(ONE[:7]), chunk(ONE[7:]), LAST), "close"),
    "error": ((JSON,), "close"),
    "until-close": ((b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", ONE, TWO), "close"),
    "cut-between-events": ((HEAD, chunk(ONE)), "close"),
    "cut-in-an-event": ((HEAD, chunk(ONE), b"80\r\nevent: b\nda"), "close"),
    "cut-in-the-head": ((HEAD[:30],), "close"),
    "odd-spaces-in-the-head": ((JSON.replace(b": 3", b":  3 "),), "close"),
    "no-answer": ((), "close"),
    "reset-at-once": ((), "reset"),
    "reset-in-an-event": ((HEAD, chunk(ONE), b"80\r\nevent: b\nda"), "reset"),
    "crlf-comments-and-noise": (
        (HEAD, chunk(b": hi\r\n\r\n"), chunk(ONE.replace(b"\n", b"\r\n")), chunk(b"\xff\xfe\n\n"), LAST),
        "close",
    ),
    "json-in-chunks": ((HEAD.replace(b"text/event-stream", b"application/json"), chunk(b'{"a"'), chunk(b":1}"), LAST), "close"),
    "big-event": ((HEAD, chunk(b'data: {"x":"' + b"y" * 3_000_000 + b'"}\n\n'), LAST), "close"),
}


def exchange(folder: Path, made: Backend, name: str, size: int, variant: str | None = None) -> tuple[bytes, bool, list[Frame]]:
    """One request through a recorder: what came back, whether it ended in a reset, and the frames."""
    with recording(folder, made.port, name, variant) as recorder, recorder.connect() as client:
        client.sendall(post())
        first = read_exactly(client, size)
        made.go.set()
        rest, was_reset = read_all(client)
        return first + rest, was_reset, recorder.finish()


def check_fidelity(name: str, tmp_path: Path, variant: str | None = None) -> None:
    """What came passes as it is; played again from the cassette and recorded again, no frame differs, and no byte."""
    parts, end = ANSWERS[name]
    said = b"".join(parts)
    with backend(answering(*parts, end=end)) as made:
        got, was_reset, frames = exchange(tmp_path, made, "first", len(said), variant)
        assert (got, was_reset) == (said, end == "reset")
        assert made.requests == [post(host=f"127.0.0.1:{made.port}")]
    assert frames[0].payload["body"] == {"input": []}
    assert frames[-1].kind == "close"
    if name.endswith("-the-head"):  # it passes, but a cassette keeps whole heads, and no spaces around their values
        return
    replayed, close = played(frames)
    with backend(answering(*replayed, end="reset" if close == "reset" else "close")) as made:
        got, was_reset, again = exchange(tmp_path, made, "second", sum(map(len, replayed)))
    assert got == said
    assert (normal(again), was_reset) == (normal(frames), end == "reset")


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_replayed_recorded_again(name: str, tmp_path: Path) -> None:
    check_fidelity(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "variant"),
    [("cut-in-an-event", "forgets-half-events"), ("stream", "forgets-chunks"), ("reset-in-an-event", "ends-politely")],
)
def test_a_recorder_that_is_not_faithful_is_caught(name: str, variant: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check_fidelity(name, tmp_path, variant)


def played(frames: list[Frame]) -> tuple[list[bytes], str]:
    """The writes that a player of the cassette makes, and how it ends. Half a chunk was recorded as what came of it."""
    head = next((frame for frame in frames if frame.kind == "response"), None)
    if head is None:
        return [], frames[-1].payload
    body = http_frames.body_chunks(frame for frame in frames if frame.kind in ("sse", "chunk"))
    chunked = (http_frames.header(head.payload["headers"], "transfer-encoding") or "") == "chunked"
    writes = [http_frames.response_head(head.payload)]
    for number, (_, piece) in enumerate(body):
        broken = frames[-1].payload != "end" and number == len(body) - 1 and not piece.endswith(b"\n\n")
        writes.append(b"80\r\n" + piece if broken else chunk(piece) if chunked else piece)
    if chunked and frames[-1].payload == "end":
        writes.append(LAST)
    return writes, frames[-1].payload


def normal(frames: list[Frame]) -> list[object]:
    return [
        (frame.sender, frame.kind, frame.payload, [at for at, _ in frame.extra.get("cuts", ())], frame.extra.get("joined"))
        for frame in frames
    ]


def check_streaming(tmp_path: Path, variant: str | None = None, patience: float = PATIENCE) -> None:
    """An event arrives while the backend withholds the next, and half an event while it withholds the rest."""

    def serve(made: Backend, sock: socket.socket) -> None:
        read_request(sock)
        sock.sendall(HEAD + chunk(ONE) + b"20\r\nevent")
        made.go.wait(PATIENCE)
        sock.sendall(chunk(ONE))

    with backend(serve) as made, recording(tmp_path, made.port, variant=variant) as recorder, recorder.connect() as client:
        client.sendall(post())
        first = HEAD + chunk(ONE) + b"20\r\nevent"
        arrived = select.select([client], [], [], patience)[0] != []
        made.go.set()
        assert arrived
        assert read_exactly(client, len(first)) == first
        assert read_all(client)[0] == chunk(ONE)


def test_a_secret_that_is_streamed_in_pieces_is_taken_out_at_the_end_and_said(tmp_path: Path) -> None:
    form = b'data: {"type":"response.output_text.delta","item_id":"m","delta":"%b"}\n\n'
    events = [form % piece for piece in (b"It is ghp_", b"abcdefghijklmnop", b"qrstuvwxyzABCDEF6789.")]
    said = b"".join([HEAD, *map(chunk, events), LAST])
    with backend(answering(said)) as made, recording(tmp_path, made.port) as recorder, recorder.connect() as client:
        client.sendall(post())
        assert read_all(client) == (said, False)
        assert b"abcdefghijklmnop" in (tmp_path / "run.ndjson").read_bytes()  # until the recording is whole
        frames = recorder.finish()
    assert [frame.payload["data"]["delta"] for frame in frames if frame.kind == "sse"] == ["It is ghp_redacted-1", "", "."]
    assert "a secret (api-key) streamed in chunks in frames 3 to 5" in recorder.stderr.decode()
    assert b"abcdef" not in recorder.stderr


def test_a_secret_in_pieces_that_cannot_be_taken_out_makes_the_recorder_fail(tmp_path: Path) -> None:
    form = b'data: {"type":"response.output_text.delta","item_id":"m","delta":"%b"}\n\n'
    said = b"".join([HEAD, *(chunk(form % piece) for piece in (b"ghp_", b"abcdefghijklmnopqrstuvwxyzABCDEF6789")), LAST])
    with backend(answering(said)) as made, recording(tmp_path, made.port) as recorder, recorder.connect() as client:
        client.sendall(post())
        read_all(client)
        path = tmp_path / "run.ndjson"
        broken = path.read_bytes().replace(b'"seam"', b'"maes"')
        with path.open("r+b") as file:
            file.write(broken)
        with pytest.raises(AssertionError, match=r"run\.ndjson, line 4"):
            recorder.finish()
    assert b"run.ndjson, line 4 (frame 3): it contains a secret (api-key) streamed in chunks in frames 3 to 4" in recorder.stderr
    assert recorder.process.returncode == 1


def test_an_event_arrives_while_the_next_is_withheld(tmp_path: Path) -> None:
    check_streaming(tmp_path)


def test_a_recorder_that_buffers_is_caught(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check_streaming(tmp_path, "buffers", patience=2)


def test_an_event_is_in_the_cassette_when_it_arrives(tmp_path: Path) -> None:
    waits = answering(HEAD, chunk(ONE), end="wait")
    with backend(waits) as made, recording(tmp_path, made.port) as recorder, recorder.connect() as client:
        client.sendall(post())
        read_exactly(client, len(HEAD + chunk(ONE)))
        recorder.process.kill()
        recorder.process.wait()
    with CassetteReader(recorder.path) as cassette:
        assert [frame.kind for frame in cassette] == ["request", "response", "sse"]
        assert cassette.truncated


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_is_left_upstream_in_the_same_way(how: str, tmp_path: Path) -> None:
    with backend(answering(HEAD, chunk(ONE), end="wait")) as made, recording(tmp_path, made.port) as recorder:
        client = recorder.connect()
        client.sendall(post())
        read_exactly(client, len(HEAD + chunk(ONE)))
        if how == "reset":
            reset(client)
        else:
            client.close()
        made.close()
        assert made.ends == [(b"", how == "reset")]
        frames = recorder.finish()
    assert (frames[-1].sender, frames[-1].payload) == ("client", "reset" if how == "reset" else "cut")


def test_a_client_that_only_ends_its_own_direction_is_answered(tmp_path: Path) -> None:
    with backend(answering(HEAD, chunk(ONE), LAST)) as made, recording(tmp_path, made.port) as recorder:
        with recorder.connect() as client:
            client.sendall(post())
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == (HEAD + chunk(ONE) + LAST, False)
        assert recorder.finish()[-1].payload == "end"


def test_one_connection_serves_many_requests_pipelined_or_not(tmp_path: Path) -> None:
    def serve(made: Backend, sock: socket.socket) -> None:
        for number in range(5):
            made.requests.append(read_exactly(sock, len(post(host=f"127.0.0.1:{made.port}"))))
            sock.sendall(JSON if number % 2 else HEAD + chunk(ONE) + LAST)

    with backend(serve) as made, recording(tmp_path, made.port) as recorder, recorder.connect() as client:
        client.sendall(post())
        assert read_exactly(client, len(HEAD + chunk(ONE) + LAST)) == HEAD + chunk(ONE) + LAST
        client.sendall(post() * 4)
        assert read_all(client) == ((JSON + HEAD + chunk(ONE) + LAST) * 2, False)
        frames = recorder.finish()
    assert made.requests == [post(host=f"127.0.0.1:{made.port}")] * 5
    assert [frame.conn for frame in frames] == [1] * len(frames)
    assert [frame.payload for frame in frames if frame.kind == "close"] == ["end"] * 5


def test_many_connections_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    def serve(made: Backend, sock: socket.socket) -> None:
        name = json.loads(read_request(sock).partition(b"\r\n\r\n")[2])["name"]
        sock.sendall(HEAD + chunk(ONE))
        made.go.wait(PATIENCE)
        sock.sendall(chunk(b'data: {"name":%d}\n\n' % name) + LAST)

    with backend(serve) as made, recording(tmp_path, made.port) as recorder:
        clients = [recorder.connect() for _ in range(60)]
        for number, client in enumerate(clients):
            client.sendall(post(b'{"name":%d}' % number))
        for client in clients:
            read_exactly(client, len(HEAD + chunk(ONE)))
        made.go.set()
        for number, client in enumerate(clients):
            assert b'{"name":%d}' % number in read_all(client)[0]
            client.close()
        frames = recorder.finish()
    of: dict[int | None, list[Frame]] = {}
    for frame in frames:
        of.setdefault(frame.conn, []).append(frame)
    assert len(of) == 60
    for found in of.values():
        assert [frame.kind for frame in found] == ["request", "response", "sse", "sse", "close"]
        assert found[3].payload["data"] == found[0].payload["body"]


def test_a_client_that_does_not_read_stops_the_backend(tmp_path: Path) -> None:
    sent = 0

    def serve(made: Backend, sock: socket.socket) -> None:
        nonlocal sent
        read_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n")
        sock.setblocking(False)
        while select.select([], [sock], [], 1)[1] and sent < 200_000_000:
            sent += sock.send(b"x" * 65536)
        made.go.set()

    with backend(serve) as made, recording(tmp_path, made.port) as recorder, recorder.connect() as client:
        client.sendall(post())
        assert made.go.wait(PATIENCE)
        assert sent < 60_000_000
        assert read_exactly(client, 1000).startswith(b"HTTP/1.1 200 OK")


def test_a_backend_that_is_not_there_is_said_and_recorded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with recording(tmp_path, port) as recorder:
        with recorder.connect() as client:
            client.sendall(post())
            assert read_all(client) == (b"", True)
        frames = recorder.finish()
    assert [(frame.sender, frame.kind) for frame in frames] == [("client", "request"), ("server", "close")]
    assert frames[1].payload == "reset"
    assert recorder.stderr.count(b"\n") == 1
    assert b"cannot be reached" in recorder.stderr


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_the_upstreams_path_stands_before_the_clients(scheme: str, tmp_path: Path) -> None:
    with backend(answering(JSON)) as made, recording(tmp_path, f"{scheme}://127.0.0.1:{made.port}/s/one/") as recorder:
        with recorder.connect() as client:
            client.sendall(post())
            assert read_all(client)[0] == JSON
        assert recorder.finish()[0].payload["path"] == "/v1/responses"
    assert made.requests[0].startswith(b"POST /s/one/v1/responses HTTP/1.1\r\n")


def test_an_open_exchange_is_ended_with_the_recording(tmp_path: Path) -> None:
    waits = answering(HEAD, chunk(ONE), end="wait")
    with backend(waits) as made, recording(tmp_path, made.port) as recorder, recorder.connect() as client:
        client.sendall(post())
        read_exactly(client, len(HEAD + chunk(ONE)))
        frames = recorder.finish()
        assert read_all(client) == (b"", True)
    assert [frame.kind for frame in frames] == ["request", "response", "sse", "close"]
    assert frames[-1].payload == "cut"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--upstream", "ftp://x"], "not an http, https, ws or wss URL"),
        (["--upstream", "nonsense"], "not an http, https, ws or wss URL"),
        (["--upstream", "http://x/?q=1"], "query"),
        (["--upstream", "http://x", "--listen", "nowhere"], "not an address to listen on"),
        (["--upstream", "http://x", "--listen", "127.0.0.1:99999"], "not an address to listen on"),
        (["--upstream", "http://x", "--listen", "192.0.2.1:0"], "cannot listen there"),
        (["--upstream", "http://x", "--origin", "rpc=guessed"], "--origin rpc=guessed"),
        (["--upstream", "http://x", "--origin", "rpc=authored"], "--origin rpc: this traffic is recorded only with CMD"),
        (["--origin", "http.server=authored", "--", "cat"], "this traffic is recorded only with --upstream URL"),
        (["--listen", "nowhere", "--", "cat"], "add --upstream URL, or remove --listen"),
        (["--upstream", "", "--", "cat"], "not an http, https, ws or wss URL"),
    ],
)
def test_wrong_addresses_are_a_sentence_and_leave_no_file(options: list[str], part: str, tmp_path: Path) -> None:
    words = [*PROGRAM, "--out", str(tmp_path / "run.ndjson"), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# A stand-in for an app-server: for each line it asks the backend at the address in its argv, and tells how many events came.
ASKS = """
import os, sys, urllib.request
assert os.environ["BASE"] == sys.argv[1] + "/v1"
for line in sys.stdin:
    with urllib.request.urlopen(sys.argv[1] + "/v1/responses", data=line.encode()) as answer:
        print('{"events":%d}' % answer.read().count(b"data:"), flush=True)
"""


def test_both_seams_stand_on_one_timeline(tmp_path: Path) -> None:
    out = tmp_path / "run.ndjson"
    with backend(answering(HEAD, chunk(ONE), chunk(TWO), LAST)) as made:
        command = [*PROGRAM, "--out", str(out), "--upstream", f"http://127.0.0.1:{made.port}", "--origin", "http.server=authored"]
        script = ["--", "/usr/bin/env", "BASE={listen}/v1", sys.executable, "-c", ASKS, "{listen}"]
        done = subprocess.run(command + script, input=b'{"id":1}\n{"id":2}\n', capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"events":2}\n' * 2, b"")
    with CassetteReader(out) as cassette:
        frames = list(cassette)
        assert cassette.header.origin == {"rpc": "recorded", "http.client": "recorded", "http.server": "authored"}
        assert cassette.header.extra["command"][-1] == "{listen}"
        assert cassette.footer is not None
    assert [frame.t for frame in frames] == sorted(frame.t for frame in frames)
    once = ["request", "response", "sse", "sse", "close"]
    kinds = [frame.kind for frame in frames if frame.seam == "http"]
    assert kinds == once * 2
    seams = [(frame.seam, frame.sender, frame.kind) for frame in frames]
    for number in range(2):  # each answer to the client stands after the events that it tells of
        end = [i for i, frame in enumerate(frames) if frame.kind == "close"][number]
        answer = [i for i, frame in enumerate(seams) if frame == ("rpc", "server", "msg")][number]
        assert end < answer
