"""WebSocket frames of both sides through the recorder: both get them byte for byte, and the cassette can be read."""

from __future__ import annotations

import contextlib
import select
import socket
from random import Random
from urllib.parse import urlsplit

from tests.fuzz.frame import HANG
from tests.fuzz.mutate import damaged, json_text
from tests.fuzz.targets import backend_websocket, recorder_requests
from tests.fuzz.ws_wire import frames, handshake

EVENT = {"type": "response.completed", "response": {"id": "resp_1", "output": [], "usage": {"input_tokens": 1}}}
GRANTED = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n"
EXTENSIONS = ("permessage-deflate; server_max_window_bits=99", "permessage-deflate; server_max_window_bits=9", "x-unknown", ";")
#: The redaction of a million control characters takes seconds.
LONG = 50_000
END = b"\r\n\r\n"


class Target(recorder_requests.Target):
    """The server behind the recorder is this process; a case has twelve frames on the average."""

    total, share = 2000, 60

    def _upstream(self) -> str:
        self._server = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._server.settimeout(HANG)
        return f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def case(self, random: Random) -> bytes:
        """Return the sizes of the three parts, and the parts: the client's handshake, its frames, the server's answer."""
        packed = random.random() < 0.5
        head = handshake(random, "/v1/responses", packed)
        sent = frames(random, backend_websocket.message, masked=True, packed=packed, long=LONG)
        named = "permessage-deflate" if packed else ""
        if random.random() < 0.05:
            named = random.choice(EXTENSIONS)
        granted = (GRANTED + (f"sec-websocket-extensions: {named}\r\n" if named else "") + "\r\n").encode()
        if random.random() < 0.05:
            granted = damaged(random, granted)
        answer = granted + frames(random, event, masked=False, packed=packed, long=LONG)
        return b"%d %d\n" % (len(head), len(sent)) + head + sent + answer

    def run(self, data: bytes) -> str | None:
        """Let a client and a server send their parts, and compare what each receives."""
        line, _, rest = data.partition(b"\n")
        size, more = map(int, line.split())
        head, sent, answer = rest[:size], rest[size : size + more], rest[size + more :]
        parts = urlsplit(self._url)
        with socket.create_connection((parts.hostname, parts.port), timeout=HANG) as one:
            try:
                other, _ = self._server.accept()
            except TimeoutError:
                return "the recorder does not connect to the server"
            with other:
                first, then = (head, sent) if END in answer else (head + sent, b"")
                client, server = _End(one, first, then if head.endswith(END) else b""), _End(other, b"", answer)
                if not _pump(client, server):
                    return f"it hangs: nothing moved for {HANG:g} s after {bytes(client.got[-200:])!r}"
        if not head.endswith(END):
            return None
        if client.got != answer:
            return f"the client received {len(client.got)} bytes of the server's {len(answer)}, or other ones"
        passed = server.got.partition(END)[2]
        return None if passed == sent else f"the server received {len(passed)} bytes of the client's {len(sent)}, or other ones"

    def pids(self) -> list[int]:
        """Return the recorder."""
        return [self._process.pid]


class _End:
    """One end of the connection: sends `first` at once, and `then` after a whole head has come."""

    def __init__(self, sock: socket.socket, first: bytes, then: bytes) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.out, self._then = first, then
        self.got = bytearray()
        self.reads = self.writes = True

    def read(self) -> None:
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionError:
            data, self.writes = b"", False
        self.got += data
        self.reads = bool(data)
        if self._then and (END in self.got or not data):
            self.out, self._then = self.out + self._then, b""

    def write(self) -> None:
        try:
            self.out = self.out[self.sock.send(self.out) :]
        except ConnectionError:
            self.writes = False

    def may_end(self) -> bool:
        return self.writes and not self.out and not self._then

    def end(self) -> None:
        self.writes = False
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)


def _pump(client: _End, server: _End) -> bool:
    """Let both ends send and receive to their end, the server's last; return False if that hangs."""
    ends = {end.sock: end for end in (client, server)}
    while client.reads or server.reads:
        if client.may_end():
            client.end()
        if server.may_end() and not server.reads:
            server.end()
        reading = [sock for sock, end in ends.items() if end.reads]
        writing = [sock for sock, end in ends.items() if end.writes and end.out]
        readable, writable, _ = select.select(reading, writing, [], HANG)
        if not readable and not writable:
            return False
        for sock in writable:
            ends[sock].write()
        for sock in readable:
            ends[sock].read()
    return True


def event(random: Random) -> bytes:
    """Return the text of an event, whole or not."""
    return json_text(random, EVENT)
