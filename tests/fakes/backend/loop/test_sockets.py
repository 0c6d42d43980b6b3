"""The transport of the backend's loop, with true sockets: slow readers, half-closed connections, resets, no free descriptors."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest

from codex_fakes.backend.loop.sockets import HIGH, Port, Transport
from codex_fakes.backend.loop.tasks import Loop
from codex_fakes.backend.loop.threads import in_thread
from codex_fakes.backend.loop.waiting import Event, sleep, timeout
from tests.support.loops import run_loop


class Kept:
    """A protocol that keeps what happens to it."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.happened: list[object] = []
        self.received = b""
        self.ended = Event()
        self.keeps_open = False

    def data_received(self, data: memoryview) -> None:
        self.received += bytes(data)

    def eof_received(self) -> bool:
        self.happened.append("eof")
        return self.keeps_open

    def pause_writing(self) -> None:
        self.happened.append("pause")

    def resume_writing(self) -> None:
        self.happened.append("resume")

    def connection_lost(self) -> None:
        self.happened.append("lost")
        self.ended.set()


async def until(condition: Callable[[], object]) -> None:
    async with timeout(20):
        while not condition():
            await sleep(0.001)


async def connected(make: Callable[[Transport], Kept] = Kept) -> tuple[Kept, socket.socket, Port]:
    """Accept a client; return the protocol of its connection, the client's socket, and the port."""
    made: list[Kept] = []

    def connect(transport: Transport) -> Kept:
        made.append(make(transport))
        return made[-1]

    port = Port("127.0.0.1", 0, connect)
    client = socket.create_connection(port.address, timeout=20)
    client.setblocking(False)
    await until(lambda: made)
    return made[0], client, port


def taken(client: socket.socket) -> bytes:
    """Return the bytes that a client can read now."""
    found = b""
    try:
        while data := client.recv(1 << 20):
            found += data
    except BlockingIOError:
        pass
    return found


def test_bytes_go_both_ways_and_the_end_of_the_client_ends_it() -> None:
    async def run() -> list[object]:
        kept, client, port = await connected()
        with client:
            client.sendall(b"hello")
            await until(lambda: kept.received)
            kept.transport.write(b"answer")
            assert taken(client) == b"answer"
        await kept.ended.wait()
        port.close()
        return [kept.received, *kept.happened]

    assert run_loop(run()) == [b"hello", "eof", "lost"]


def test_a_slow_reader_pauses_writing_and_gets_every_byte_before_the_close() -> None:
    data = bytes(range(256)) * (1 << 16)

    async def run() -> list[object]:
        kept, client, port = await connected()
        with client:
            kept.transport.write(data)
            unsent = kept.transport.get_write_buffer_size()
            assert unsent > HIGH
            kept.transport.write(b"the end")
            assert kept.transport.get_write_buffer_size() == unsent + 7
            kept.transport.close()
            assert kept.transport.is_closing()
            found = b""
            async with timeout(20):
                while not kept.ended.is_set():
                    found += taken(client)
                    await sleep(0)
            found += taken(client)
        assert found == data + b"the end"
        port.close()
        return kept.happened

    assert run_loop(run()) == ["pause", "resume", "lost"]


def test_a_half_closed_connection_is_answered_if_the_protocol_wants() -> None:
    async def run() -> list[object]:
        kept, client, port = await connected()
        kept.keeps_open = True
        with client:
            client.shutdown(socket.SHUT_WR)
            await until(lambda: kept.happened)
            kept.transport.resume_reading()
            await sleep(0.02)
            assert kept.happened == ["eof"], "the end is reported once"
            kept.transport.write(b"late")
            kept.transport.close()
            await kept.ended.wait()
            assert taken(client) == b"late"
        port.close()
        return kept.happened

    assert run_loop(run()) == ["eof", "lost"]


@pytest.mark.parametrize("size", [3, 20 * HIGH])
def test_the_end_follows_the_unsent_bytes_and_reading_goes_on(size: int) -> None:
    async def run() -> bytes:
        kept, client, port = await connected()
        with client:
            client.settimeout(20)
            kept.transport.write(b"x" * size)
            kept.transport.write_eof()
            found = await in_thread(lambda: b"".join(iter(lambda: client.recv(1 << 16), b"")))
            assert found == b"x" * size
            client.sendall(b"late")
            await until(lambda: kept.received)
        await kept.ended.wait()
        port.close()
        return kept.received

    assert run_loop(run()) == b"late"


def test_nothing_is_read_while_reading_is_paused() -> None:
    async def run() -> bytes:
        kept, client, port = await connected()
        with client:
            kept.transport.pause_reading()
            client.sendall(b"early")
            await sleep(0.02)
            assert kept.received == b""
            kept.transport.resume_reading()
            await until(lambda: kept.received)
        await kept.ended.wait()
        port.close()
        return kept.received

    assert run_loop(run()) == b"early"


@pytest.mark.parametrize("end", ["close", "abort", "reset"])
def test_the_ends_of_a_connection(end: str) -> None:
    """Unsent bytes are dropped by `abort` and `reset`; the client of `reset` gets an error."""

    async def run() -> list[object]:
        kept, client, port = await connected()
        with client:
            for _ in range(2):  # the second call changes nothing
                getattr(kept.transport, end)()
            kept.transport.write(b"too late")
            await kept.ended.wait()
            kept.transport.pause_reading()
            kept.transport.resume_reading()
            try:
                found: object = client.recv(10)
            except ConnectionResetError:
                found = "reset"
        port.close()
        return [found, *kept.happened]

    assert run_loop(run()) == ["reset" if end == "reset" else b"", "lost"]


def test_a_client_that_resets_ends_its_connection_alone() -> None:
    async def run() -> list[object]:
        kept, client, port = await connected()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        await kept.ended.wait()
        kept.transport.write(b"to nobody")
        port.close()
        return kept.happened

    assert run_loop(run()) == ["lost"]


def test_an_exception_in_a_protocol_ends_its_connection_and_is_reported() -> None:
    class Failing(Kept):
        def data_received(self, data: memoryview) -> None:
            raise KeyError("a bug")

    reported: list[Exception] = []

    async def run() -> list[object]:
        kept, client, port = await connected(Failing)
        with client:
            client.sendall(b"x")
            await kept.ended.wait()
        port.close()
        return kept.happened

    assert Loop(reported.append).run(run()) == ["lost"]
    assert list(map(repr, reported)) == ["KeyError('a bug')"]


def test_without_free_descriptors_the_port_pauses_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Exception] = []
    accept = socket.socket.accept
    failures = [OSError(errno.EMFILE, "too many"), ConnectionAbortedError()]

    def failing(self: socket.socket) -> Any:
        if failures:
            raise failures.pop(0)
        return accept(self)

    monkeypatch.setattr("codex_fakes.backend.loop.sockets.PAUSE", 0.01)
    monkeypatch.setattr(socket.socket, "accept", failing)

    async def run() -> None:
        kept, client, port = await connected()
        client.close()
        await kept.ended.wait()
        port.close()

    Loop(reported.append).run(run())
    assert list(map(str, reported)) == ["No further connection can be accepted at the moment: too many."]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_on_an_address_and_on_a_name(host: str) -> None:
    async def run() -> str:
        port = Port(host, 0, Kept)
        port.close()
        return port.address[0]

    assert run_loop(run()) in ("127.0.0.1", "::1" if host == "localhost" else "")


@pytest.mark.parametrize(("host", "port"), [("256.0.0.1", 0), ("x" * 70, 0), ("127.0.0.1", 70000), ("192.0.2.1", 0)])
def test_an_address_that_cannot_be(host: str, port: int) -> None:
    async def run() -> None:
        Port(host, port, Kept)

    with pytest.raises((OSError, OverflowError, UnicodeError)):
        run_loop(run())
