"""Play the recorded client of the seam `http` to a live backend, and keep the backend's answers as frames.

A request is sent when every exchange that ended before it in the recording has also ended in the replay. Exchanges that
overlapped in the recording therefore overlap in the replay, too. If the recorded client disconnected during an answer, the
player disconnects after the same number of chunks. In later requests, the ids that the live backend has sent replace the
recorded ids. The recorder's class `Watch` observes the traffic, so that the answers become frames in the same form as in a
recording. A WebSocket message is sent when its connection has received as many messages as the recorded client had received
before it. A WebSocket message is split into the recorded fragments, and is compressed if the recorded message was
compressed and the live backend accepted compression.
"""

from __future__ import annotations

import base64
import contextlib
import select
import socket
import ssl
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from codex_replay.core.cassette import http_frames, ws_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.normalise.masking import Rules
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.replay.match import Matcher
from codex_replay.core.wire import content_encoding
from codex_replay.protocol import data_tables, versions
from codex_replay.shell.http.upstream import Upstream
from codex_replay.shell.http.watch import Watch

if TYPE_CHECKING:
    from codex_replay.core.wire.websocket import Encoder

#: Once the backend has failed to answer, nothing more is waited for longer than this, in seconds.
IMPATIENT = 0.5


class Kept:
    """Keeps the frames of a `Watch`, redacted and with times."""

    def __init__(self, redactor: Redactor) -> None:
        self.frames: list[Frame] = []
        self.ends: Counter[int | None] = Counter()
        self.pieces: Counter[int | None] = Counter()
        self._redactor = redactor
        self._start = time.monotonic()

    def now(self) -> float:
        """Return the seconds since the replay started."""
        return time.monotonic() - self._start

    def partial(self) -> None:
        """Ignore the report of unrecorded traffic, because the comparison shows the missing frames."""

    def built(self, build: Callable[[], Frame]) -> None:
        """Keep the frame that the function `build` returns."""
        frame = build()
        frame.n, frame.t = len(self.frames) + 1, self.now()
        frame.payload = self._redactor.value(frame.payload)
        self.frames.append(frame)
        self.ends[frame.conn] += frame.kind == "close"
        self.pieces[frame.conn] += frame.sender == "server"


class _Line:
    """One live connection to the backend, and the frames on it so far."""

    def __init__(self, sock: socket.socket, watch: Watch) -> None:
        self.sock = sock
        self.watch = watch
        self.open = True
        self._encoder: Encoder | None = None

    def encoder(self, frames: Iterable[Frame]) -> Encoder | None:
        """Return an encoder for WebSocket messages with the compression that the connection's 101 response accepts.

        Return None if the connection has no 101 response.
        """
        if self._encoder is None and self.watch.messages is not None:
            from codex_replay.core.wire.websocket import Encoder, compression  # few recordings have a WebSocket

            heads = [frame.payload for frame in frames if frame.kind == "response" and frame.payload["status"] == 101]
            self._encoder = Encoder(True, compression(heads[-1]["headers"])[1])
        return self._encoder

    def read(self) -> None:
        """Receive the available bytes."""
        try:
            data = self.sock.recv(1 << 18)
            while isinstance(self.sock, ssl.SSLSocket) and self.sock.pending():
                data += self.sock.recv(1 << 18)
        except (ConnectionError, ssl.SSLError, TimeoutError):
            self._disconnected("reset")
            return
        if data:
            self.watch.server(data)
        else:
            self._disconnected("end")

    def _disconnected(self, how: str) -> None:
        self.open = False
        self.watch.disconnected("server", how)

    def leave(self, how: str) -> None:
        """End the connection in the way in which the recorded client ended it: "cut" or "reset"."""
        if self.open:
            self.watch.client_ended = how != "reset"
            self.watch.disconnected("client", "reset" if how == "reset" else "end")
        self.close(reset=how == "reset")

    def close(self, reset: bool = False) -> None:
        """Close the socket."""
        self.open = False
        with contextlib.suppress(OSError):
            if reset:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()


class _ServerIds:
    """Rules for a matcher that binds all ids of a backend, and not only uuids."""

    def __init__(self, rules: Rules) -> None:
        self.mask = rules.mask
        self.uuids = rules.identities


def _kind_of(frame: Frame) -> tuple[str, Any, Any]:
    """Return those parts of a frame that must be equal in two frames before their ids are bound to each other."""
    payload = frame.payload
    if frame.kind == "response":
        return frame.kind, payload["status"], None
    if frame.kind == "ws":
        return frame.kind, None, ws_frames.name_of(payload)
    value = http_frames.sse_value(payload) if frame.kind == "sse" else None
    return frame.kind, payload.get("event") if type(payload) is dict else None, value.get("type") if type(value) is dict else None


def _redacted(frame: Frame, redactor: Redactor) -> Frame:
    payload = redactor.value(frame.payload)
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, frame.raw, payload, frame.conn, extra=frame.extra)


class HttpPlayer:
    """Play a recorded client to the backend at `url`.

    Raises `ValueError` if `url` is not a valid URL. `codex` is the Codex version of the recording. `headers` replace
    recorded headers with the same name; they contain the credentials, which a recording does not have. `seconds` is the
    time limit for one answer. The method `play` returns a sentence if an answer was not complete. `frames` has the traffic
    of the replay, and `recorded` has the recorded frames with which it is compared.
    """

    def __init__(
        self,
        url: str,
        *,
        codex: str = versions.DEFAULT,
        headers: Mapping[str, str] | None = None,
        seconds: float = 10.0,
    ) -> None:
        self._upstream = Upstream(url)
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._seconds = seconds
        self._kept: Kept | None = None
        self._lines: dict[int | None, _Line] = {}
        self._failure: str | None = None
        self._heard: dict[int | None, list[Frame]] = defaultdict(list)  # recorded server frames whose ids are not bound yet
        self._learnt: Counter[int | None] = Counter()  # how many live ones have been looked at
        self._matcher = Matcher(lambda: _ServerIds(Rules(data_tables.choose("normalise", codex)[0])), every=True)
        self.recorded: list[Frame] = []

    @property
    def frames(self) -> list[Frame]:
        """Return the traffic in the form of a recording, redacted."""
        return self._kept.frames if self._kept is not None else []

    def play(self, frames: Iterable[Frame]) -> str | None:
        """Send every request of a recording, in order. Raises OSError if the backend cannot be reached."""
        recorded = self.recorded = [frame for frame in frames if frame.seam == "http"]
        literals = self._literals(recorded)
        redactor = Redactor(literals=literals)
        self._kept = Kept(redactor)
        if literals:
            # Our key may be a word of an answer: then it is removed from both sides, or from neither.
            self.recorded = [_redacted(frame, redactor) for frame in recorded]
        ends: Counter[int | None] = Counter()
        pieces: Counter[int | None] = Counter()
        title = ""
        try:
            for frame in recorded:
                if frame.kind == "request":
                    title = f"{frame.payload['method']} {frame.payload['path']} (frame {frame.n} of the recording)"
                    self._send(frame)
                    continue
                if frame.kind == "ws" and frame.sender == "client":
                    self._until(self._kept.pieces, pieces, frame.conn, title)
                    self._learn(frame.conn)
                    title = f"{ws_frames.name_of(frame.payload)} (frame {frame.n} of the recording)"
                    self._send_message(frame, title)
                    continue
                pieces[frame.conn] += frame.sender == "server"
                if frame.sender == "server":
                    self._heard[frame.conn].append(frame)
                if frame.kind == "close" and frame.conn in self._lines:
                    ends[frame.conn] += 1
                    if frame.sender == "client":
                        self._until(self._kept.pieces, pieces, frame.conn, title)
                        self._lines[frame.conn].leave(frame.payload)
                    else:
                        self._until(self._kept.ends, ends, frame.conn, title)
                    self._learn(frame.conn)
                    self._learnt[frame.conn] = len(self._answers(frame.conn))
        finally:
            for line in self._lines.values():
                line.close()
        return self._failure

    def _literals(self, recorded: list[Frame]) -> dict[str, str]:
        """Return a map from the live credentials to the placeholders of the recorded credentials, so that both count as equal."""
        found: dict[str, str] = {}
        for frame in recorded:
            for name, value in frame.payload["headers"] if frame.kind == "request" else ():
                live = self._headers.get(name.lower())
                if live is not None and live != value:
                    found[live.removeprefix("Bearer ")] = value.removeprefix("Bearer ")
        return found

    def _answers(self, conn: int | None) -> list[Frame]:
        """Return the live frames of the backend on a connection."""
        return [frame for frame in self.frames if frame.conn == conn and frame.sender == "server"]

    def _learn(self, conn: int | None) -> None:
        """Bind the ids in the live frames to the ids in the recorded frames of the same kind."""
        recorded, live = self._heard.pop(conn, []), self._answers(conn)[self._learnt[conn] :]
        self._learnt[conn] += len(recorded)
        for one, other in zip(recorded, live, strict=False):
            if _kind_of(one) != _kind_of(other):
                return
            self._matcher.bind(one.payload, other.payload)

    def _live(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of a recorded request in which live ids replace the recorded ids."""
        bindings = self._matcher.bindings
        body = http_frames.body_bytes(payload)
        if not bindings:
            return payload
        encoding = http_frames.header(payload["headers"], "content-encoding")
        plain = content_encoding.decode_partial(body, encoding)
        live = plain if plain is None else bindings.apply(plain)
        if live is not None and live != plain:
            body = content_encoding.encode(live, encoding)
        rest = {key: value for key, value in payload.items() if key not in ("body", "text", "view", "packed")}
        path = bindings.apply(payload["path"].encode("latin-1")).decode("latin-1")
        return {**rest, "path": path, "base64": base64.b64encode(body).decode()}

    def _send(self, frame: Frame) -> None:
        assert self._kept is not None
        line = self._lines.get(frame.conn)
        if line is None or not line.open:
            if line is not None:
                line.close()
            line = self._lines[frame.conn] = self._connect(frame.conn or 0)
        payload = self._live(frame.payload)
        headers = [[name, self._headers.get(name.lower(), value)] for name, value in payload["headers"]]
        body = http_frames.body_bytes(payload)
        if frame.whole:  # a redacted body is of another length than the one that was sent
            headers = [[name, str(len(body)) if name.lower() == "content-length" else value] for name, value in headers]
        data = line.watch.client(http_frames.request_bytes({**payload, "headers": headers}))
        try:
            line.sock.sendall(data)
        except OSError:
            line.read()  # it was refused before it was complete: the answer is there to be read

    def _send_message(self, frame: Frame, title: str) -> None:
        """Send a WebSocket message of the recorded client.

        If the backend did not open the WebSocket, keep a sentence about this as the failure of the replay.
        """
        line = self._lines.get(frame.conn)
        if line is None or not line.open:
            return  # the connection ended earlier than in the recording, which the comparison shows
        encoder = line.encoder(self._answers(frame.conn))
        if encoder is None:
            self._failure = self._failure or f"{title} was not sent: the backend did not grant the WebSocket."
            return
        data = self._matcher.bindings.apply(ws_frames.data_of(frame.payload))
        fragments = frame.extra.get("fragments", ())
        compressed = bool(frame.extra.get("compressed"))
        sent = encoder.message(ws_frames.kind_of(frame.payload), data, compressed=compressed, fragments=fragments)
        try:
            line.sock.sendall(line.watch.client(sent))
        except OSError:
            line.read()  # the backend has gone; what it said last is there to be read

    def _connect(self, conn: int) -> _Line:
        upstream = self._upstream
        sock: socket.socket = socket.create_connection((upstream.host, upstream.port), timeout=self._seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if upstream.tls:
            sock = upstream.context().wrap_socket(sock, server_hostname=upstream.host)
        assert self._kept is not None
        watch = Watch(conn, self._kept, Redactor(), upstream.rewrite, lambda sentence: None)  # type: ignore[arg-type]
        return _Line(sock, watch)

    def _until(self, live: Counter[int | None], wanted: Counter[int | None], conn: int | None, title: str) -> None:
        """Read from all connections until `conn` has received the wanted number of frames, or until the time limit."""
        line = self._lines[conn]
        limit = time.monotonic() + (self._seconds if self._failure is None else min(IMPATIENT, self._seconds))
        while line.open and live[conn] < wanted[conn]:
            rest = limit - time.monotonic()
            if rest <= 0:
                self._failure = self._failure or f"{title} was not fully answered within {self._seconds:g} s."
                return
            lines = {one.sock: one for one in self._lines.values() if one.open}
            for sock in select.select(list(lines), [], [], rest)[0]:
                lines[sock].read()
