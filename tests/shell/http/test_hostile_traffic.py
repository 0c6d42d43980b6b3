"""The HTTP recorder between a client and a server of which one is hostile: the bytes pass, and nobody else is kept waiting."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.deferred import Deferred
from codex_replay.shell.http.relay import Relay
from codex_replay.shell.http.upstream import Upstream
from tests.fakes.backend.test_bounds import peak
from tests.shell.http.test_http_recorder import Backend, backend, post, read_all, read_exactly, read_request, recording

MB = 1 << 20
BOMBS = {
    "gzip": lambda: gzip.compress(b"\0" * (300 * MB), 1),
    "zstd": lambda: zstandard.ZstdCompressor().compress(b"\0" * (600 * MB)),
    "br": lambda: brotli.compress(b"\0" * (600 * MB), quality=1),
    "deflate": lambda: zlib.compress(b"\0" * (300 * MB), 1),
    "gzip, gzip": lambda: gzip.compress(gzip.compress(b"\0" * (300 * MB), 1)),
}
SMALL = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def packed(body: bytes, encoding: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def peak_with_bombs(folder: Path, encoding: str, variant: str | None = None) -> float:
    """Return the most memory (MB) that a recorder has had when two replies and a request that are bombs have passed."""
    bomb = BOMBS[encoding]()
    answer = packed(bomb, encoding)

    def serve(made: Backend, sock: socket.socket) -> None:
        sock.sendall(answer if b"X-b: 1" in read_request(sock) else SMALL)

    with backend(serve) as made, recording(folder, made.port, variant=variant) as run:
        for data, back in ((post(b"a"), answer), (post(b"b"), answer), (_encoded(bomb, encoding), SMALL)):
            with run.connect() as sock:
                sock.sendall(data)
                assert read_exactly(sock, len(back)) == back
        ended = time.monotonic() + 60
        while run.path.read_bytes().count(b'"omitted"') < 3 and time.monotonic() < ended:
            time.sleep(0.05)
            if (found := peak(run.process.pid)) > MOST:
                return found
        found = peak(run.process.pid)
        run.finish()
    return found


def _encoded(body: bytes, encoding: str) -> bytes:
    return post(body).replace(b"X-b: 1", f"content-encoding: {encoding}".encode())


MOST = 300  # MB


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc to read the memory from")
@pytest.mark.parametrize("encoding", BOMBS)
def test_a_recorder_of_bombs_stays_small(tmp_path: Path, encoding: str) -> None:
    assert peak_with_bombs(tmp_path, encoding) < MOST


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc to read the memory from")
def test_a_recorder_that_decodes_all_does_not(tmp_path: Path) -> None:
    assert peak_with_bombs(tmp_path, "gzip", "decodes-all") > MOST


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_bomb_passes_and_is_left_out_and_nobody_waits_for_it(tmp_path: Path, encoding: str) -> None:
    bomb = BOMBS[encoding]()
    answer = packed(bomb, encoding)

    def serve(made: Backend, sock: socket.socket) -> None:
        sock.sendall(answer if b"bomb" in read_request(sock) else SMALL)

    with backend(serve) as made, recording(tmp_path, made.port) as run:
        with run.connect() as first, run.connect() as other:
            first.sendall(post(b"bomb"))
            assert read_exactly(first, len(answer)) == answer
            other.sendall(post(b"small"))
            assert read_all(other)[0] == SMALL
        frames = run.finish()
    left_out = [frame.payload for frame in frames if frame.kind == "chunk" and "omitted" in frame.payload]
    assert left_out == [{"omitted": len(bomb)}]
    assert b"longer than 16 MB after decoding" in run.stderr
    kinds = [frame.kind for frame in frames if frame.conn == 1]
    assert kinds == ["request", "response", "chunk", "close"]


def test_a_bomb_of_a_client_passes_and_is_left_out(tmp_path: Path) -> None:
    bomb = gzip.compress(b"\0" * (100 * MB), 1)

    def serve(made: Backend, sock: socket.socket) -> None:
        made.requests.append(read_request(sock))
        sock.sendall(SMALL)

    with backend(serve) as made, recording(tmp_path, made.port) as run:
        with run.connect() as sock:
            sock.sendall(post(bomb).replace(b"X-b: 1", b"content-encoding: gzip"))
            assert read_all(sock)[0] == SMALL
        frames = run.finish()
        assert made.requests[0].endswith(bomb)
    assert frames[0].payload["omitted"] == len(bomb)
    assert frames[0].payload["path"] == "/v1/responses"


def test_what_decodes_to_much_but_not_too_much_is_recorded_in_its_order(tmp_path: Path) -> None:
    body = gzip.compress(b'{"text":"' + b"abcdefgh" * (MB // 2) + b'"}')

    def serve(made: Backend, sock: socket.socket) -> None:
        for _ in range(2):
            sock.sendall(packed(body, "gzip") if b"long" in read_request(sock) else SMALL)

    with backend(serve) as made, recording(tmp_path, made.port) as run:
        with run.connect() as sock:
            sock.sendall(post(b"long"))
            read_exactly(sock, len(packed(body, "gzip")))
            sock.sendall(post(b"small"))
            read_exactly(sock, len(SMALL))
        frames = run.finish()
    assert [frame.kind for frame in frames] == ["request", "response", "chunk", "close"] * 2
    assert [frame.n for frame in frames] == list(range(1, 9))
    assert len(frames[2].payload["view"]["text"]) == 4 * MB


@pytest.mark.parametrize(("limit", "kept"), [("1000", False), ("4000000", False), ("5000000", True)])
def test_the_limit_of_a_decoded_body_is_an_option(tmp_path: Path, limit: str, kept: bool) -> None:
    body = gzip.compress(b'{"text":"' + b"abcdefgh" * (MB // 2) + b'"}')

    def serve(made: Backend, sock: socket.socket) -> None:
        read_request(sock)
        sock.sendall(packed(body, "gzip"))

    with backend(serve) as made, recording(tmp_path, made.port, words=("--max-body", limit)) as run:
        with run.connect() as sock:
            sock.sendall(post(b"x"))
            assert read_exactly(sock, len(packed(body, "gzip"))) == packed(body, "gzip")
        frames = run.finish()
    assert ("omitted" not in frames[2].payload) == kept
    assert (b"Set another limit with --max-body." in run.stderr) != kept


class Writer:
    """Keeps the kinds of the frames that it gets."""

    path, frames = "x", 0

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, frame: Frame) -> None:
        self.written.append(frame.kind)

    def abandon(self) -> None:
        raise AssertionError

    def close(self) -> None:
        pass


def test_frames_wait_for_the_one_before_them_and_their_sender_does_not() -> None:
    go, writer = threading.Event(), Writer()
    written = writer.written

    def slow() -> Frame:
        assert go.wait(20)
        return made("slow")

    def made(kind: str) -> Frame:
        return Frame(0, 0.0, "http", "server", kind, b"", None, 1)

    log = Deferred(Log(writer, print))
    log.built(lambda: made("before"))
    assert written == ["before"]  # at once
    log.later(slow)
    log.built(lambda: made("after"))
    assert written == ["before"]
    go.set()
    log.drain()
    assert written == ["before", "slow", "after"]
    log.built(lambda: made("last"))
    assert written == ["before", "slow", "after", "last"]


def test_what_a_client_sends_before_the_server_is_reached_comes_first_and_whole(tmp_path: Path) -> None:
    def serve(made: Backend, sock: socket.socket) -> None:
        made.requests.append(read_all(sock)[0])
        sock.sendall(SMALL)

    requests = post(b"one") + post(b"two")
    with backend(serve) as made, recording(tmp_path, made.port) as run:
        for _ in range(100):
            with run.connect() as sock:
                sock.sendall(requests)
                sock.shutdown(socket.SHUT_WR)
                assert read_all(sock)[0] == SMALL
        run.finish()
    assert b"Traceback" not in run.stderr
    assert {request.count(b"POST ") for request in made.requests} == {2}


PAGES = {
    "a rebound name": ("evil.example:1", ""),
    "another origin": ("localhost:1", "Origin: http://evil.example\r\n"),
    "an image": ("localhost:1", "Sec-Fetch-Site: cross-site\r\n"),
}


@pytest.mark.parametrize(("host", "header"), PAGES.values(), ids=PAGES)
def test_a_web_page_is_refused_and_not_recorded(tmp_path: Path, host: str, header: str) -> None:
    def serve(made: Backend, sock: socket.socket) -> None:
        while (request := read_request(sock)).strip():
            made.requests.append(request)
            sock.sendall(SMALL)

    page = post(b"page", host).replace(b"X-b: 1\r\n", f"X-b: 1\r\n{header}".encode())
    with backend(serve) as made, recording(tmp_path, made.port) as run:
        with run.connect() as sock:
            sock.sendall(page)
            assert read_all(sock)[0].startswith(b"HTTP/1.1 403 Forbidden\r\n")
        with run.connect() as sock:  # also after a request that may pass
            sock.sendall(post(b"first"))
            read_exactly(sock, len(SMALL))
            sock.sendall(page)
            assert read_all(sock)[0].startswith(b"HTTP/1.1 403 Forbidden\r\n")
        frames = run.finish()
    assert [frame.kind for frame in frames] == ["request", "response", "chunk", "close"]
    assert [request.rpartition(b"\r\n")[2] for request in made.requests] == [b"first"]
    assert run.stderr.count(b"--allow-host") == 1


def test_a_name_that_is_allowed_may_ask_the_recorder(tmp_path: Path) -> None:
    def serve(made: Backend, sock: socket.socket) -> None:
        read_request(sock)
        sock.sendall(SMALL)

    with backend(serve) as made, recording(tmp_path, made.port, words=("--allow-host", "recorder.test")) as run:
        with run.connect() as sock:
            sock.sendall(post(b"x", "recorder.test:80"))
            assert read_all(sock)[0] == SMALL
        run.finish()


def test_what_waits_for_the_server_goes_before_what_comes_when_it_is_reached() -> None:
    class Transport(asyncio.Transport):
        def __init__(self) -> None:
            super().__init__()
            self.written: list[bytes] = []

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.written.append(bytes(data))

        def is_closing(self) -> bool:
            return False

    class Seen:
        client_ended, refused, asked = False, None, ()
        log = Deferred(Log(Writer(), print))

        def client(self, data: bytes) -> bytes:
            return data

        def waiting(self, sender: str) -> bool:
            return False

    watch: Any = Seen()
    relay = Relay(watch, Upstream("http://127.0.0.1:9"), None, print, lambda relay: None)
    relay.data(relay.client, b"first")
    transport = Transport()
    relay.server.connection_made(transport)
    relay.data(relay.client, b"second")
    assert transport.written == [b"first", b"second"]
