"""The HTTP half of the backend: requests whole, byte by byte, pipelined; clients of every kind; no crash on any bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_fakes.backend.cache import Framed
from codex_fakes.backend.connection import Connection
from codex_fakes.backend.exchange import Exchange, frame
from codex_fakes.backend.limits import Limits, Traffic
from codex_fakes.backend.loop.waiting import sleep
from codex_fakes.backend.turns import STEP
from tests.support.loops import run_loop

POST = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-Odd-Case: 1\r\nx-odd-case: 2\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
GET = b"GET /g HTTP/1.1\r\nhost: x\r\n\r\n"


class Transport:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.written = b""
        self.ended = self.closed = False

    def write(self, data: Any) -> None:
        assert not self.closed, "written after the close"
        assert not self.ended, "written after the end"
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    abort = reset = close

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def echo(exchange: Exchange) -> None:
    request = exchange.request
    exchange.respond(200, [("x-path", request.target)], request.body)


def talk(pieces: list[bytes], handler: Callable[[Exchange], Any] = echo, *, eof: bool = False) -> tuple[list[Any], Transport]:
    """Feed pieces to a connection; return the requests it saw and what it wrote."""
    seen: list[Any] = []

    async def run() -> Transport:
        async def handle(exchange: Exchange) -> None:
            request = exchange.request
            seen.append(
                (request.method, request.target, request.version, list(request.headers), request.body, request.keep_alive)
            )
            await handler(exchange)

        transport = Transport()
        connection = Connection(handle, 1, Traffic(LIMITS), transport)  # type: ignore[arg-type]
        for piece in pieces:
            if not transport.closed:
                connection.data_received(piece)
                await sleep(0)
        for _ in range(8):
            await sleep(0)
        if eof:
            connection.eof_received()
            await sleep(0)
        connection.connection_lost()
        await sleep(0)
        return transport

    return seen, run_loop(run())


@pytest.mark.parametrize("request_", [POST, CHUNKED, GET, POST + GET, CHUNKED + POST + GET], ids=range(5))
def test_whole_and_byte_by_byte_are_the_same(request_: bytes) -> None:
    whole, answer = talk([request_])
    bytewise, answer_bytewise = talk([request_[i : i + 1] for i in range(len(request_))])
    assert bytewise == whole
    assert answer_bytewise.written == answer.written
    assert len(whole) == request_.count(b"HTTP/1.1")


def test_a_request_is_kept_as_it_came() -> None:
    (seen,), answer = talk([POST])
    headers = [("Host", "x"), ("X-Odd-Case", "1"), ("x-odd-case", "2"), ("Content-Length", "5")]
    assert seen == ("POST", "/a?b=c", "1.1", headers, b"hello", True)
    assert answer.written == b"HTTP/1.1 200 OK\r\nx-path: /a?b=c\r\ncontent-length: 5\r\n\r\nhello"
    assert not answer.closed


def test_an_old_client_gets_no_chunks() -> None:
    async def stream(exchange: Exchange) -> None:
        exchange.start(200, [])
        exchange.write([b"a", b"b"])
        exchange.end()

    _, answer = talk([GET.replace(b"1.1", b"1.0")], stream)
    assert answer.written == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab"
    assert answer.closed
    _, answer = talk([GET], stream)
    assert answer.written.endswith(b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n")


def test_connection_close_is_honoured() -> None:
    _, answer = talk([GET.replace(b"host: x", b"connection: close")])
    assert b"connection: close" in answer.written
    assert answer.closed


def test_a_client_that_asks_first_is_told_to_continue() -> None:
    head, _, body = POST.partition(b"\r\n\r\n")
    _, answer = talk([head + b"\r\nExpect: 100-continue\r\n\r\n", body])
    assert answer.written.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_head_has_no_body() -> None:
    _, answer = talk([GET.replace(b"GET", b"HEAD")])
    assert answer.written.endswith(b"\r\n\r\n")


def test_what_is_not_http_is_answered_after_what_was() -> None:
    _, answer = talk([GET + b"nonsense\r\n\r\n"])
    assert answer.written.startswith(b"HTTP/1.1 200 OK")
    assert b"HTTP/1.1 400 Bad Request" in answer.written
    assert answer.ended


def test_endless_headers_are_refused() -> None:
    _, answer = talk([b"GET / HTTP/1.1\r\n", *[b"x: " + b"y" * 65536 + b"\r\n"] * 20])
    assert b"HTTP/1.1 431 " in answer.written
    assert answer.ended


def test_half_a_request_and_the_end_of_the_client_close() -> None:
    seen, answer = talk([POST[:40]], eof=True)
    assert seen == []
    assert answer.written == b""


LIMITS = Limits()
SECRET = "sk-proj-" + "a1B2c3D4" * 5


def test_a_mistake_of_ours_is_a_500_and_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    async def broken(exchange: Exchange) -> None:
        raise LookupError("ours\n\x1b[31m")

    _, answer = talk([GET.replace(b"/g", b"/g?api_key=" + SECRET.encode())], broken)
    assert answer.written.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"LookupError" in answer.written.partition(b"\r\n\r\n")[2]
    assert answer.closed
    (line,) = capfd.readouterr().err.splitlines()
    assert "GET /g" in line
    assert "LookupError" in line
    assert "test_backend_http.py:" in line
    assert "\x1b" not in line
    assert SECRET not in line


def test_an_answer_that_has_begun_is_broken_off() -> None:
    async def broken(exchange: Exchange) -> None:
        exchange.start(200, [])
        raise LookupError("ours")

    _, answer = talk([GET], broken)
    assert b"500" not in answer.written
    assert answer.closed


def test_frames() -> None:
    assert frame([b"abc", b"", b"x" * 16]) == b"3\r\nabc\r\n10\r\n" + b"x" * 16 + b"\r\n"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([POST, CHUNKED, GET, b"\r\n", b"\0", b"GET ", b"5\r\n", b" HTTP/9.9\r\n", b"x" * 100]), max_size=6),
    st.data(),
)
def test_no_bytes_crash_it(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    talk([stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)], eof=True)


def test_a_long_answer_and_a_short_one_take_turns() -> None:
    order: list[str] = []

    class Noting(Transport):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def write(self, data: Any) -> None:
            super().write(data)
            order.append(self.name)

    async def answer(exchange: Exchange) -> None:
        size = 20 if exchange.request.target == "/long" else 1
        await exchange.stream_framed(200, [], Framed([[frame([b"x" * STEP])]] * size, ""))

    async def run() -> list[Noting]:
        transports = [Noting(name) for name in ("long", "long", "short")]
        for number, transport in enumerate(transports):
            connection = Connection(answer, number, Traffic(LIMITS), transport)  # type: ignore[arg-type]
            connection.data_received(f"GET /{transport.name} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        for _ in range(60):
            await sleep(0)
        return transports

    transports = run_loop(run())
    assert order.index("short") < 6
    assert order.count("long") == 40
    assert [transport.written.endswith(b"0\r\n\r\n") for transport in transports] == [True] * 3
    assert transports[0].written.count(b"x" * STEP) == 20
