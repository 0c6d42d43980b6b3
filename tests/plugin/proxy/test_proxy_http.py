"""One request to a proxy: when its answer is given up, that a finished answer never is, and when the next case may begin."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from json import dumps

from codex_replay.plugin.proxy.http import Exchange, exchange
from codex_replay.plugin.proxy.no_end import QUIET, is_quiet
from codex_replay.plugin.proxy.wire import WireFrame

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nDone"


@contextlib.contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve one connection with `answer`; yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client, contextlib.suppress(OSError):
                client.recv(1 << 16)
                answer(client)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def asked(url: str, hopeless: Callable[[], bool] | None = None, seconds: float = 5.0) -> Exchange:
    return exchange(url, "GET", "/v1/models", None, {}, seconds, hopeless=hopeless)


def test_an_answer_that_ends_while_it_is_being_given_up_counts() -> None:
    go, sent = threading.Event(), threading.Event()

    def answer(client: socket.socket) -> None:
        go.wait(5)
        client.sendall(ANSWER)
        sent.set()

    def hopeless() -> bool:
        go.set()
        sent.wait(5)
        return True

    with served(answer) as url:
        done = asked(url, hopeless)
    assert (done.status, done.body, done.problem, done.silent) == (200, b"Done", "", False)


def test_an_answer_that_nothing_can_end_is_given_up_with_the_part_that_came() -> None:
    over = threading.Event()

    def answer(client: socket.socket) -> None:
        client.sendall(ANSWER[:-2])
        over.wait(5)

    with served(answer) as url:
        began = time.monotonic()
        done = asked(url, lambda: time.monotonic() - began > 0.5)
        over.set()
    assert (done.status, done.body, done.silent) == (200, b"Do", True)
    assert "no complete answer within" in done.problem


def test_the_limit_holds_for_an_answer_that_never_pauses() -> None:
    def answer(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            client.sendall(b"word ")
            time.sleep(0.01)

    with served(answer) as url:
        done = asked(url, lambda: False, seconds=0.5)
    assert done.problem == "no complete answer within 0.5 s"
    assert done.silent
    assert done.body.startswith(b"word ")


def test_a_connection_that_closes_in_mid_answer_is_named() -> None:
    with served(lambda client: client.sendall(ANSWER[:-2])) as url:
        done = asked(url, lambda: False)
    assert (done.problem, done.silent) == ("the connection closed before the end of the answer", False)


def test_a_second_submission_is_waited_for_only_until_its_turn_would_have_begun() -> None:
    def frames(ago: float) -> list[WireFrame]:
        thread = {"threadId": "own"}
        submission, started, ended = ({"method": f"turn/{name}", "params": thread} for name in ("start", "started", "completed"))
        sent = [("client", {"id": 1, **submission}), ("client", {"id": 2, **submission})]
        came = [("server", {"id": 1, "result": {}}), ("server", started), ("server", {"id": 2, "result": {}}), ("server", ended)]
        return [WireFrame(time.monotonic() - ago, "7", sender, dumps(dumps(value)).encode()) for sender, value in [*sent, *came]]

    assert is_quiet(frames(2 * QUIET))
    assert not is_quiet(frames(0))
    assert not is_quiet(frames(2 * QUIET)[:-1])


def test_a_message_shows_a_body_as_text() -> None:
    body = '{"error": "Größe: \u20ac"}'.encode()
    answer = Exchange("POST", "/v1/responses", {}, body=body)
    assert answer.shown() == """'{"error": "Größe: \u20ac"}'"""
    assert answer.shown(-5) == """'\u20ac"}'"""
    assert answer.shown(-4) == r"""'\\x82\\xac"}'""", "a character that is cut in two stays visible"


def test_a_client_hangs_up_once_the_text_of_the_model_has_come() -> None:
    """Many proxies send the head of a stream, of any length, before their app-server has started the turn."""
    seen = threading.Event()

    def answer(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b": ping\n\n" * 100 + b"data: wo")
        time.sleep(0.1)
        client.sendall(b"rd word\n\n")
        seen.set()
        client.recv(1)

    with served(answer) as url:
        done = exchange(url, "GET", "/v1/models", None, {}, 5.0, "word word")
        assert seen.wait(5)
    assert (done.problem, done.body[-17:]) == ("", b"data: word word\n\n")
