"""The HTTP recorder lets no long body and no burst of events of one connection keep the others waiting."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact.redactor import Redactor
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http import deferred, relay
from codex_replay.shell.http.bodies import AT_ONCE
from codex_replay.shell.http.deferred import Deferred
from codex_replay.shell.http.relay import FIRST, FULL, LEAST, MOST, SLOW, Relay, Side
from codex_replay.shell.http.upstream import Upstream
from codex_replay.shell.http.watch import Watch
from tests.shell.http.test_hostile_traffic import SMALL, Writer
from tests.shell.http.test_http_recorder import Backend, backend, post, read_exactly, read_request, recording

LONG = b'{"text":"' + b"word " * (AT_ONCE // 5) + b'"}'
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(LONG)
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Waits(Writer):
    """Takes long to write: until `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def write(self, frame: Frame) -> None:
        if len(str(frame.payload)) > AT_ONCE:
            assert self.go.wait(20)
        super().write(frame)


def watched(writer: Writer) -> tuple[Watch, Deferred]:
    log = Deferred(Log(writer, print))
    return Watch(1, log, Redactor(), lambda target, headers: (target, headers), print, later=True), log


@pytest.mark.parametrize(
    ("asked", "answer", "kinds"),
    [
        (post(LONG), b"", ["request"]),
        (post(), PLAIN + LONG, ["request", "response", "chunk", "close"]),
        (post(), EVENTS + b"data: " + LONG + b"\n\n", ["request", "response", "sse"]),
    ],
    ids=["request", "reply", "event"],
)
def test_what_takes_long_to_redact_is_logged_off_the_loop(asked: bytes, answer: bytes, kinds: list[str]) -> None:
    writer = Waits()
    watch, log = watched(writer)

    def pass_on() -> None:
        watch.client(asked)
        if answer:
            watch.server(answer)

    loop = threading.Thread(target=pass_on, daemon=True)
    loop.start()
    loop.join(10)
    waited = loop.is_alive()
    writer.go.set()
    loop.join(20)
    log.drain()
    assert not waited, "the traffic waited for a long frame"
    assert writer.written == kinds


def test_a_log_with_much_to_do_is_full_until_it_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "ROOM", 100)
    go = threading.Event()
    calls: list[str] = []

    def slow() -> Frame:
        assert go.wait(20)
        return Frame(0, 0.0, "http", "server", "chunk", b"", None, 1)

    log = Deferred(Log(Writer(), print))
    log.when_room(lambda: calls.append("at once"))
    log.later(slow, 90)
    assert not log.full
    log.built(slow, 90)
    assert log.full
    log.when_room(lambda: calls.append("later"))
    assert calls == ["at once"]
    go.set()
    log.drain()
    assert not log.full
    assert calls == ["at once", "later"]


def test_a_recorder_takes_more_connections_than_its_soft_limit_of_files(tmp_path: Path) -> None:
    def serve(made: Backend, sock: socket.socket) -> None:
        read_request(sock)
        made.go.wait(20)
        sock.sendall(SMALL)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with backend(serve) as made:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        with contextlib.ExitStack() as stack:
            try:
                run = stack.enter_context(recording(tmp_path, made.port))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            clients = [stack.enter_context(run.connect()) for _ in range(60)]
            for client in clients:
                client.settimeout(20)
                client.sendall(post())
            made.go.set()
            assert [read_exactly(client, len(SMALL)) for client in clients] == [SMALL] * 60
            run.finish()
    assert b"Traceback" not in run.stderr


class Transport(asyncio.Transport):
    """Notes whether its reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


def test_a_side_is_not_read_while_any_reason_not_to_is_left() -> None:
    side = Side(Relay(watched(Writer())[0], Upstream("http://127.0.0.1:9"), None, print, lambda relay: None), "server")
    transport = Transport()
    side.connection_made(transport)
    side.hold_on(SLOW)
    side.hold_on(FULL)
    side.read_on(SLOW)
    assert transport.paused
    side.read_on(FULL)
    assert not transport.paused


def test_a_connection_that_is_reset_may_be_ended() -> None:
    class Reset(Transport):
        def can_write_eof(self) -> bool:
            return True

        def write_eof(self) -> None:
            raise OSError(107, "Transport endpoint is not connected")

    side = Side(Relay(watched(Writer())[0], Upstream("http://127.0.0.1:9"), None, print, lambda relay: None), "server")
    side.connection_made(Reset())
    side.end()


def test_a_connection_is_not_read_while_much_of_it_waits_to_be_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "ROOM", AT_ONCE)
    writer = Waits()

    async def run() -> None:
        watch, log = watched(writer)
        made = Relay(watch, Upstream("http://127.0.0.1:9"), None, print, lambda relay: None)
        transport = Transport()
        made.server.connection_made(transport)
        made.data(made.client, post())
        made.data(made.server, PLAIN + LONG)
        assert transport.paused
        writer.go.set()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if not transport.paused:
                break
        assert not transport.paused
        log.drain()

    asyncio.run(run())
    assert writer.written == ["request", "response", "chunk", "close"]


def test_a_connection_with_many_short_events_is_read_in_shorter_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    sizes: list[int] = []

    class Slow:
        def data(self, side: Side, data: bytes) -> None:
            sizes.append(len(data))
            time.sleep(seconds)

    slow: Any = Slow()
    side = Side(slow, "server")

    def feed(times: int, of: int = MOST) -> list[int]:
        sizes.clear()
        for _ in range(times):
            side.buffer_updated(min(of, len(side.get_buffer(-1))))
        return list(sizes)

    monkeypatch.setattr(relay, "TURN", 5)
    assert feed(6) == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST, MOST, MOST]
    monkeypatch.setattr(relay, "TURN", 0.001)
    seconds = 0.002
    assert feed(7) == [MOST, MOST // 2, MOST // 4, MOST // 8, MOST // 16, MOST // 32, LEAST]
    assert feed(2) == [LEAST, LEAST]
    monkeypatch.setattr(relay, "TURN", 5)
    assert feed(2, of=10) == [10, 10]
    assert feed(2) == [LEAST, 2 * LEAST]  # a piece that is not full makes none longer
