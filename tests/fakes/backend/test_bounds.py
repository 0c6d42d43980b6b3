"""What one client takes from the others: bodies that grow, requests that never end, a ledger that is never read."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import pytest
import zstandard

from codex_fakes.backend import connection
from codex_fakes.backend.limits import Limits, Traffic
from codex_fakes.backend.loop.sockets import Port
from codex_fakes.backend.loop.threads import in_thread
from codex_fakes.backend.loop.waiting import sleep, timeout
from codex_replay.shell.http.backend_process import BackendProcess, backend_command
from tests.support.loops import run_loop

BODY = json.dumps({"model": "m", "input": "hi", "stream": True}).encode()
MB = 1024 * 1024


@contextlib.contextmanager
def connected(backend: BackendProcess) -> Iterator[socket.socket]:
    parts = urlsplit(backend.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as sock:
        yield sock


def request(body: bytes = BODY, *headers: str, path: str = "/v1/responses", method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def rest(sock: socket.socket) -> bytes:
    """Read until the other side closes, or resets because it took no more."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(1 << 16):
            answer += piece
    return answer


def ask(backend: BackendProcess, data: bytes) -> int:
    with connected(backend) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        return int(rest(sock)[9:12])


def peak(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def gzip_bomb() -> bytes:
    """Return 2 GB of zeros in gzip, made from one block of them that stands there many times."""
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(b"\0" * (16 * MB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + block * 128 + b"\x03\x00" + bytes(8)


BOMBS = {
    "gzip": gzip_bomb,
    "deflate": lambda: b"\x78\x9c" + gzip_bomb()[10:],
    "zstd": lambda: zstandard.ZstdCompressor().compress(b"\0" * (600 * MB)),
    "gzip, gzip": lambda: gzip.compress(gzip_bomb()),
    "br": lambda: brotli.compress(b"\0" * (600 * MB), quality=1),
    "gzip, zstd": lambda: zstandard.ZstdCompressor().compress(gzip_bomb()),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc to read the memory from")
@pytest.mark.parametrize("encoding", BOMBS)
def test_a_bomb_is_413_in_bounded_memory_and_another_client_is_answered_meanwhile(encoding: str) -> None:
    with BackendProcess() as backend:
        session = backend.session("s")
        bomb = request(BOMBS[encoding](), f"content-encoding: {encoding}", path="/s/s/v1/responses")
        with connected(backend) as first, connected(backend) as second, connected(backend) as other:
            for sock in (first, second):
                sock.sendall(bomb)
                sock.shutdown(socket.SHUT_WR)
            other.sendall(request(path="/s/s/v1/responses"))
            other.shutdown(socket.SHUT_WR)
            assert rest(other).startswith(b"HTTP/1.1 200 ")
            for sock in (first, second):
                answer = rest(sock)
                assert answer.startswith(b"HTTP/1.1 413 "), answer[:300]
                assert b"longer than 67108864 bytes after decoding" in answer
        assert peak(backend.pid) < 300
        assert [entry["status"] for entry in session.ledger()].count(413) == 2


def test_what_was_replaced_is_freed_at_once(tmp_path: Path) -> None:
    """Sessions that are put again, recordings loaded again, what a reply repeats of its request, and closed connections."""
    recording = tmp_path / "r.ndjson"
    head = {"cassette": 1, "codex": "0.92.0", "bundle": "unknown", "case": "x", "origin": {"http": "authored"}}
    asked = {"method": "POST", "path": "/v1/responses", "headers": [], "body": {"input": "x" * 500_000}}
    frame = {"n": 1, "t": 0.0, "seam": "http", "conn": 1, "from": "client", "request": asked}
    recording.write_text("".join(json.dumps(line) + "\n" for line in (head, frame, {"end": True, "frames": 1})))
    with BackendProcess() as backend:

        def round_trip(n: int) -> None:
            session = backend.session("s")
            long = {"model": "m", "input": [], "stream": True, "prompt_cache_key": f"{n}" + "k" * 2_000_000}
            assert ask(backend, request(json.dumps(long).encode(), path="/s/s/v1/responses")) == 200
            session.cassette(recording)

        for n in range(5):
            round_trip(n)
        before = peak(backend.pid)
        for n in range(5, 65):
            round_trip(n)
        assert peak(backend.pid) - before < 40


def test_the_limit_of_a_body_is_an_option() -> None:
    with BackendProcess(options=["--max-body", "1000"]) as backend:
        assert ask(backend, request(b" " * 1001)) == 413
        assert ask(backend, request(gzip.compress(BODY + b" " * 1000), "content-encoding: gzip")) == 413
        assert ask(backend, request(gzip.compress(BODY), "content-encoding: gzip")) == 200


@pytest.mark.parametrize("more", ["", "expect: 100-continue\r\n"])
def test_a_body_that_is_announced_too_long_is_refused_before_it_comes(more: str) -> None:
    head = f"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {1 << 40}\r\n\r\n"
    with BackendProcess() as backend, connected(backend) as sock:
        sock.settimeout(30)  # the backend waits 120 s for a body
        sock.sendall(head.encode())
        answer = rest(sock)
        assert answer.startswith(b"HTTP/1.1 413 "), answer[:300]
        assert b"\r\nconnection: close\r\n" in answer
        assert b"The body is longer than 67108864 bytes" in answer


def test_a_client_that_sends_all_of_a_long_body_before_it_reads_sees_why_it_is_refused() -> None:
    with BackendProcess(options=["--max-body", "1000"]) as backend:
        for _ in range(5):
            with connected(backend) as sock:
                sock.sendall(request(b" " * (20 * MB)))  # no reset, which would also take the answer with it
                assert sock.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_goes_on_sending_after_it_is_refused_is_cut_off() -> None:
    with BackendProcess(options=["--max-body", "1000"]) as backend, connected(backend) as sock:
        sock.sendall(request(b"")[:-2].replace(b"length: 0", b"length: %d" % (1 << 40)) + b"\r\n")
        with pytest.raises(ConnectionError):
            sock.sendall(b" " * (200 * MB))


def test_a_client_that_is_refused_and_does_not_close_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER", 0.05)

    async def run() -> bytes:
        traffic = Traffic(Limits(body=1000))
        port = Port("127.0.0.1", 0, lambda transport: connection.Connection(pytest.fail, 1, traffic, transport))
        with socket.create_connection(port.address, 30) as sock:
            sock.sendall(request(b"")[:-2].replace(b"length: 0", b"length: 1001") + b"\r\n")
            answer = await in_thread(rest, sock)
            async with timeout(30):
                while traffic.connections:
                    await sleep(0.01)
        port.close()
        return answer

    assert run_loop(run()).startswith(b"HTTP/1.1 413 ")


def test_long_targets_and_headers_are_refused() -> None:
    with BackendProcess() as backend:
        assert ask(backend, request(path="/" + "x" * 100_000)) == 414
        assert ask(backend, request(BODY, "x: " + "y" * 300_000)) == 431
        assert ask(backend, request(BODY, *["x: y"] * 20_000)) == 431
        with connected(backend) as sock:  # a header that never ends
            with contextlib.suppress(ConnectionError):
                for _ in range(64):
                    sock.sendall(b"GET / HTTP/1.1\r\nx: " if _ == 0 else b"y" * 65536)
            assert rest(sock)[9:12] in (b"431", b"")
        assert peak(backend.pid) < 100


def test_a_request_that_never_ends_is_ended() -> None:
    with BackendProcess(options=["--idle-seconds", "0.5"]) as backend:
        pieces = (b"", b"POST /v1/responses HTT", request()[:-1], request() + b"GET /")
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(connected(backend)) for _ in pieces]
            for sock, piece in zip(socks, pieces, strict=True):
                sock.sendall(piece)
            silent, head, body, second = (rest(sock) for sock in socks)
        assert silent == b""
        assert head.startswith(b"HTTP/1.1 408 ")
        assert body.startswith(b"HTTP/1.1 408 ")
        assert second.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in second


def test_who_drips_bytes_has_no_longer_than_who_sends_none() -> None:
    with BackendProcess(options=["--idle-seconds", "0.5"]) as backend, connected(backend) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n")
        sock.settimeout(0.05)
        answer = b""
        for _ in range(600):  # 30 s, if nobody ends it
            try:
                sock.sendall(b"x: y\r\n")
                answer += sock.recv(1 << 16)
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_an_answer_that_waits_for_its_script_is_not_idle() -> None:
    with BackendProcess(options=["--idle-seconds", "0.2"]) as backend:
        session = backend.session("s", [{"items": ["late"], "first_delay_ms": 1500}])
        with connected(backend) as sock:  # not before the session is made: a connection that is silent meanwhile is idle
            sock.sendall(request(path="/s/s/v1/responses"))
            answer = sock.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert session.ledger(1)[0]["end"] == "end"


def test_a_client_that_takes_nothing_is_ended() -> None:
    big = [{"items": ["x" * 8_000_000], "delta": 4000}]
    with BackendProcess(options=["--idle-seconds", "0.5"]) as backend:
        session = backend.session("s", big)  # 8 MB: longer than a silent connection stays open
        with connected(backend) as sock:
            sock.sendall(request(path="/s/s/v1/responses"))
            (entry,) = session.ledger(1, 20)
        assert entry["end"] == "gone"


def test_a_thousand_requests_at_once_do_not_keep_another_client_waiting() -> None:
    with BackendProcess() as backend:
        session = backend.session("s")
        with connected(backend) as many, connected(backend) as one:
            many.sendall(request(path="/s/s/v1/responses") * 1000)
            many.shutdown(socket.SHUT_WR)
            one.sendall(request(path="/s/s/v1/responses"))
            one.shutdown(socket.SHUT_WR)
            assert rest(one).startswith(b"HTTP/1.1 200 ")
            rest(many)
        ledger = session.ledger(1001)
        place = next(entry["n"] for entry in ledger if entry["conn"] == max(one["conn"] for one in ledger))
        assert place < 900


def test_the_ledger_keeps_the_last_requests_and_counts_what_it_let_go() -> None:
    with BackendProcess(options=["--ledger-requests", "3"]) as backend:
        session = backend.session("s")
        for _ in range(5):
            ask(backend, request(path="/s/s/v1/responses"))
        assert [entry["n"] for entry in session.ledger(5)] == [3, 4, 5]
        assert session.dropped == 2
        assert [entry["n"] for entry in session.ledger(since=4)] == [5]


def test_who_follows_the_ledger_gets_nothing_while_the_next_answer_is_open_and_then_each_once() -> None:
    """`serve` follows it. It got all requests, again and again, while one stream was open and another request had ended."""
    with BackendProcess() as backend:
        session = backend.session("s", [{"items": ["slow"], "gate": "g"}, *["fast"] * 250])
        with connected(backend) as slow:
            slow.sendall(request(path="/s/s/v1/responses"))
            assert session.wait_at_gate("g")
            for _ in range(250):
                ask(backend, request(path="/s/s/v1/responses"))
            assert session.ended(0, 0.1) == []
            session.release("g")
            slow.shutdown(socket.SHUT_WR)
            rest(slow)
        seen, sizes = [], []
        while part := session.ended(len(seen), 0):
            seen += [entry["n"] for entry in part]
            sizes.append(len(part))
        assert sizes == [100, 100, 51]
        assert seen == list(range(1, 252))


def test_a_long_body_is_left_out_of_a_redacted_ledger() -> None:
    """Redacting it takes seconds, in which other clients wait; a program that prints it would hold it several times."""
    long = json.dumps({"model": "m", "input": "\u0000" * (MB // 4)}).encode()
    with BackendProcess() as backend:
        assert ask(backend, request(long)) == 200
        assert ask(backend, request(b"\0" * (2 * MB))) == 400
        assert ask(backend, request()) == 200
        assert [entry.get("body_left_out") for entry in backend.ledger()] == [None, None, None]
        redacted = backend.call("GET", "/_codex_replay/sessions/default/ledger")["requests"]
        assert [entry.get("body_left_out") for entry in redacted] == [len(long), 2 * MB, None]
        assert len(json.dumps(redacted)) < MB


def test_the_ledger_keeps_so_many_bytes() -> None:
    with BackendProcess(options=["--ledger-bytes", "100000"]) as backend:
        session = backend.session("s")
        long = json.dumps({"model": "m", "input": "x" * 30_000, "stream": True}).encode()
        longer = json.dumps({"model": "m", "input": "x" * 60_000, "stream": True}).encode()
        for body in (long, long, long, long, longer):
            ask(backend, request(body, path="/s/s/v1/responses"))
        ledger = session.ledger(5)
        assert [entry["n"] for entry in ledger] == [2, 3, 4, 5]
        assert session.dropped == 1
        assert ledger[-1]["body_left_out"] == len(longer)
        assert "body" not in ledger[-1]
        assert ledger[0]["body"] == json.loads(long)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--max-body", "0"], "--max-body 0 is not a whole number of 1 or more"),
        (["--ledger-requests", "x"], "--ledger-requests x is not a whole number"),
        (["--idle-seconds", "0"], "--idle-seconds 0 is not a number of seconds"),
        (["--idle-seconds", "nan"], "--idle-seconds nan is not"),
    ],
)
def test_a_limit_that_is_none_is_a_sentence(options: list[str], sentence: str) -> None:
    with pytest.raises(Exception, match=re.escape(sentence)):
        BackendProcess(options=options)


def test_more_connections_than_open_files_wait_and_are_answered_later() -> None:
    """The backend says so once in each pause, and goes on when a connection ends."""
    limited = ["/bin/sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *backend_command()]
    with BackendProcess(command=limited) as backend, contextlib.ExitStack() as many:
        clients = [many.enter_context(connected(backend)) for _ in range(60)]
        for client in clients:
            client.sendall(request(b"", method="GET", path="/v1/models"))
        deadline = time.monotonic() + 20
        while not backend.stderr() and time.monotonic() < deadline:
            time.sleep(0.05)
        why = "No further connection can be accepted at the moment: Too many open files. Close connections, or allow more"
        assert backend.stderr().startswith(why)
        for client in clients:
            assert client.recv(12) == b"HTTP/1.1 200"
            client.close()
