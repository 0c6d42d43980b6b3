"""A request to the control API of any program: its bytes, and each form of answer."""

from __future__ import annotations

import socket
import threading

import pytest

from codex_replay.shell.http.control_call import BadAnswer, call


def asked(answer: bytes, host: str = "127.0.0.1", body: bytes = b"") -> tuple[bytes, tuple[int, bytes]]:
    """Let a server answer one request with these bytes; return the request, and what `call` returns."""
    received = b""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            nonlocal received
            connection, _ = server.accept()
            with connection:
                while not received.endswith(b"\r\n\r\n" + body):
                    received += connection.recv(65536)
                for i in range(0, len(answer), 50):
                    connection.sendall(answer[i : i + 50])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            found = call(host, server.getsockname()[1], "PUT", "/a/b?c=1", "secret", body, 20)
        finally:
            thread.join()
    return received, found


def test_the_request_is_complete() -> None:
    request, _ = asked(b"HTTP/1.1 200 OK\r\n\r\n{}", body=b'{"a": 1}')
    first, host, *rest = request.split(b"\r\n")
    assert (first, rest) == (
        b"PUT /a/b?c=1 HTTP/1.0",
        [b"x-codex-replay-token: secret", b"content-length: 8", b"", b'{"a": 1}'],
    )
    assert host.startswith(b"host: 127.0.0.1:")


@pytest.mark.parametrize(
    "head", ["HTTP/1.1 200 OK\r\ncontent-length: 4", "HTTP/1.0 200 OK", "HTTP/1.1 200\r\nContent-Length:4\r\nX: y"]
)
def test_answers_of_other_servers(head: str) -> None:
    assert asked(f"{head}\r\n\r\nbody".encode())[1] == (200, b"body")


def test_a_refusal_and_a_long_answer() -> None:
    assert asked(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 1000\r\n\r\n" + 1000 * b"x")[1] == (403, 1000 * b"x")


def test_a_name_as_host() -> None:
    assert asked(b"HTTP/1.1 200 OK\r\n\r\n{}", host="localhost")[1] == (200, b"{}")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "its answer was cut short"),
        (b"hello\r\n\r\n", "its answer is not HTTP"),
        (b"HTTP/1.1 OK\r\n\r\n", "its answer is not HTTP"),
    ],
)
def test_a_bad_answer(answer: bytes, why: str) -> None:
    with pytest.raises(BadAnswer) as error:
        asked(answer)
    assert str(error.value) == why


def test_a_port_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        call("127.0.0.1", port, "GET", "/", "", b"", 20)
