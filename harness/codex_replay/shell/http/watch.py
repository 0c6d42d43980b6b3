"""Turn the bytes of one HTTP connection into frames of the http seam; moves no bytes itself.

Strategy: httptools parses both directions. A request is one frame, logged when it is whole. A response is its head, then its
body as it comes (`http_bodies`), then how it ended. After an upgrade to a WebSocket each message is one frame (`messages`).
Traffic after another upgrade, or that is not HTTP, is not recorded (it could not be redacted), and a warning reports that.

Order matters: `client` and `server` log what is whole before the caller passes it on, so that on one timeline nothing
is before its cause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import httptools

from codex_replay.core.cassette import http_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact import encoded_body
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.wire.web_guard import WebGuard
from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.bodies import AT_ONCE, MAX_DECODED, MAX_HEAD, MAX_SENT, EventBody, WholeBody, decodes_to_more
from codex_replay.shell.http.deferred import Deferred
from codex_replay.shell.http.messages import Messages
from codex_replay.shell.http.offsets import Offsets, shortened

Pairs = list[tuple[str, str]]
#: Bytes of a chunked body that are kept, for what is left to pass on if it breaks off into other bytes.
KEPT = 256 << 10


class Watch:
    """The frames of connection number `conn`. `rewrite` returns the target and headers with which a request is passed on.

    With `later` the bodies of answers are logged unredacted if their writer redacts them (`hidden`).
    """

    def __init__(
        self,
        conn: int,
        log: Log | Deferred,
        redactor: Redactor,
        rewrite: Callable[[str, Pairs], tuple[str, Pairs]],
        write_out: Callable[[str], None],
        *,
        later: bool = False,
        guard: WebGuard | None = None,
        limit: int = MAX_DECODED,
    ) -> None:
        self.conn = conn
        self.limit = limit
        self.guard = guard
        #: Why the connection is to be ended with a refusal, None while it may go on; of a refused request nothing is logged.
        self.refused: str | None = None
        self.log = log
        self.redact = redactor.redact
        self.value = redactor.value
        self.later = later
        self.headers = redactor.headers  # by their names; the cassette's writer finds the rest
        self.rewrite = rewrite
        self.asked: deque[str] = deque()  # the methods of the requests that are not answered yet
        self.blind = False
        self.client_ended = False
        #: The messages of the connection, once it is upgraded to a WebSocket.
        self.messages: Messages | None = None
        self._write_out = write_out
        self._requests = Requests(self)
        self._responses = Responses(self)

    def client(self, data: bytes) -> bytes:
        """Take what the client wrote; return what is to be written to the server for it, unless it is `refused` now."""
        if self.blind:
            return data
        if self.messages is not None:
            self.messages.feed("client", data)
            return data
        return self._requests.feed(data)

    def server(self, data: bytes) -> None:
        """Take what the server wrote."""
        if self.blind:
            return
        if self.messages is not None:
            self.messages.feed("server", data)
        else:
            self._responses.feed(data)

    def upgrade(self, headers: Pairs, data: bytes) -> None:
        """Go on with the messages of a WebSocket, of which the server has sent `data` already."""
        try:
            self.messages = Messages(self, headers)
        except ValueError as error:
            self.stop_looking(f"it is a WebSocket that cannot be read: {error}")
            return
        if data:
            self.messages.feed("server", data)

    def disconnected(self, sender: str, how: str) -> None:
        """One side's connection has ended ("end") or was reset: end the exchange that is open, if one is."""
        self._requests.broken_off()
        self._responses.broken_off(sender, how)

    def emit(self, sender: str, kind: str, build: Callable[[], Any], *, long: bool = False, **marks: Any) -> None:
        """Log one frame, its payload built where a failure ends the recording and not the traffic; `long` if that takes long."""
        extra = {name: value for name, value in marks.items() if value or (name == "messages" and value is not None)}

        def frame() -> Frame:
            return Frame(0, 0.0, "http", sender, kind, b"", build(), self.conn, extra=extra)

        if long and isinstance(self.log, Deferred):
            self.log.later(frame)
        else:
            self.log.built(frame)

    def left_out(self, size: int, encoding: str | None) -> dict[str, Any]:
        """Return the cassette entry for a body that is too long, and report it."""
        packed = f" after decoding {encoding!r}" if encoding else ""
        limit = f"{self.limit >> 20} MB" if self.limit >= 1 << 20 else f"{self.limit} bytes"
        self._write_out(f"a body is longer than {limit}{packed}; it is not in the cassette. Set another limit with --max-body.")
        return {"omitted": size}

    def body(self, raw: bytes, encoding: str) -> dict[str, Any]:
        """Return what is in the cassette for an answer's body."""
        if decodes_to_more(raw, encoding, self.limit):
            return self.left_out(len(raw), encoding)
        fields = encoded_body.fields(raw, encoding) if self.later else http_frames.body_fields(raw, encoding, self.redact)
        return self.looked_into(fields, encoding)

    def lost(self, size: int, why: str) -> None:
        """Report a WebSocket message of which only the size is in the cassette."""
        self._write_out(f"a WebSocket message of {size} bytes is not in the cassette: {why}.")

    def looked_into(self, payload: dict[str, Any], encoding: str | None) -> dict[str, Any]:
        """Report a body that is left out because it cannot be decoded."""
        if "omitted" in payload:
            self._write_out(
                f"a body in the content-encoding {encoding!r} cannot be searched for secrets; it is not in the "
                "cassette. Use gzip, deflate, zstd, br or none to record it."
            )
        return payload

    def stop_looking(self, why: str) -> None:
        """Pass on the rest of the connection unrecorded, and leave the footer out: the cassette is not the whole traffic."""
        if not self.blind:
            self.blind = True
            self.log.partial()
            self._write_out(
                f"connection {self.conn}: {why}; the rest is passed on, but not recorded, so the cassette gets no footer: "
                "tools report it as cut short."
            )


class Requests:
    """The client's direction: whole requests are logged, and rewritten with the target and headers of `rewrite`."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._parser = httptools.HttpRequestParser(self)
        self._out: list[bytes] = []
        self._open = False
        self._raw = bytearray()  # of the request that has begun, and of those that ended in the same piece
        self._begun = self._ended = False

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return those to be passed on, with all that is whole among them logged."""
        if self._open and not self._chunked and 0 < (left := self._length - self._size) < len(data):
            return self.feed(data[:left]) + self.feed(data[left:])  # the body, and what follows it
        self._raw += data
        self._ended = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The response shows whether it is granted; if not, the next request begins here.
            self._parser = httptools.HttpRequestParser(self)
            self._raw.clear()
            rest = data[upgrade.args[0] :]
            return self._take() + (self.feed(rest) if rest else b"")
        except httptools.HttpParserError as error:
            self._watch.stop_looking(f"the client does not speak HTTP ({error})")
            return self._take() + bytes(self._raw[Offsets(self._raw).passed :])
        if not self._begun or (self._open and not self._chunked):
            self._raw.clear()  # all of it has been passed on
        elif self._ended:
            del self._raw[: Offsets(self._raw).ended]
        elif self._open and len(self._raw) > KEPT:
            self._raw[:] = shortened(self._raw)
            if len(self._raw) > MAX_HEAD:
                self._watch.stop_looking(f"a chunk size or the trailers of a request are longer than {MAX_HEAD >> 10} KB")
                return self._take() + bytes(self._raw[Offsets(self._raw).passed :])
        if self._begun and not self._open and len(self._raw) > MAX_HEAD and self._watch.refused is None:
            self._watch.stop_looking(f"the head of a request is longer than {MAX_HEAD >> 10} KB")
            return self._take() + bytes(self._raw)
        return self._take()

    def _take(self) -> bytes:
        out = b"".join(self._out)
        self._out.clear()
        return out

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._begun = True
        self._target = b""
        self._headers: Pairs = []
        self._body: list[bytes] = []
        self._size = 0
        self._logged = self._complete = False

    def on_url(self, url: bytes) -> None:
        """Take the target, which may come in pieces."""
        self._target += url

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Take a header."""
        self._headers.append((name.decode("latin-1"), (value or b"").decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Pass on the head."""
        self._open = True
        self._method = self._parser.get_method().decode("latin-1")
        self._version = self._parser.get_http_version()
        self._chunked = "chunked" in (http_frames.header(self._headers, "transfer-encoding") or "").lower()
        self._length = int(http_frames.header(self._headers, "content-length") or 0)  # the parser takes nothing but digits
        if self._watch.guard is not None and self._watch.refused is None:
            self._watch.refused = self._watch.guard.refusal(self._headers, self._target.decode("latin-1"))
        if self._watch.refused is not None:
            self._open = False
            return
        self._watch.asked.append(self._method)
        target, headers = self._watch.rewrite(self._target.decode("latin-1"), self._headers)
        self._out.append(http_frames.head(f"{self._method} {target} HTTP/{self._version}", headers))

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body."""
        self._size += len(body)
        if self._size > MAX_SENT:
            self._body.clear()
        else:
            self._body.append(body)
        self._out.append(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)

    def on_message_complete(self) -> None:
        """Log the request."""
        if self._chunked:
            self._out.append(b"0\r\n\r\n")
        self._complete = True
        self.log()
        self._open = self._begun = False
        self._ended = True

    def log(self) -> None:
        """Log the received part of the request, once."""
        if not self._open or self._logged:
            return
        self._logged = True
        body, size = b"".join(self._body), self._size
        self._body = []
        watch, method, version, headers = self._watch, self._method, self._version, self._headers
        path = self._target.decode("latin-1")
        encoding = http_frames.header(headers, "content-encoding")

        def payload() -> dict[str, Any]:
            if size > MAX_SENT or decodes_to_more(body, encoding, watch.limit):
                bare = http_frames.request_payload(method, path, watch.headers(headers), b"", version)
                last = {"version": bare.pop("version")} if "version" in bare else {}
                return {**bare, **watch.left_out(size, encoding), **last}
            request = http_frames.request_payload(method, path, watch.headers(headers), body, version, watch.redact)
            return watch.looked_into(request, encoding)

        long = decodes_to_more(body, encoding, AT_ONCE)
        watch.emit("client", "request", payload, long=long, truncated=not self._complete)

    def broken_off(self) -> None:
        """The connection has ended: log a request that is not whole."""
        self.log()
        self._open = False


class Responses:
    """The server's direction: heads, bodies and ends are logged; the bytes are passed on unchanged."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._parser = httptools.HttpResponseParser(self)
        self._head = b""
        self._body: EventBody | WholeBody | None = None
        self._unread = 0  # bytes of a head that is not whole

    def feed(self, data: bytes) -> None:
        """Take bytes and log what is whole among them."""
        asked = self._watch.asked
        while data and asked and asked[0] == "HEAD" and not self._in_body():
            # Such a response has the head of one with a body but no body, which the parser cannot know.
            self._head += data
            end = self._head.find(b"\r\n\r\n") + 4
            if end < 4:
                return
            head, data, self._head = self._head[:end], self._head[end:], b""
            self._parse(head)
            if self._in_body():
                self._parser = httptools.HttpResponseParser(self)
                self.on_message_complete()
        if data and not self._watch.blind:
            self._parse(data)

    def _in_body(self) -> bool:
        return self._body is not None

    def _parse(self, data: bytes) -> None:
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
            if self._unread > MAX_HEAD:
                self._watch.stop_looking(f"the head of an answer is longer than {MAX_HEAD >> 10} KB")
        except httptools.HttpParserUpgrade as upgrade:
            if any(name.lower() == "upgrade" and "websocket" in value.lower() for name, value in self._headers):
                self._watch.upgrade(self._headers, data[upgrade.args[0] :])
            else:
                self._watch.stop_looking("it was upgraded to another protocol")
        except httptools.HttpParserError as error:
            self._watch.stop_looking(f"the server does not speak HTTP ({error})")

    def on_message_begin(self) -> None:
        """Begin a response."""
        self._reason = b""
        self._headers: Pairs = []

    def on_status(self, reason: bytes) -> None:
        """Take the reason phrase, which may come in pieces."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Take a header."""
        self._headers.append((name.decode("latin-1"), (value or b"").decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Log the head, and know what the body will be."""
        self._unread = 0
        watch, headers = self._watch, self._headers
        watch._requests.log()  # an answer before the end of its request
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        reason = self._reason.decode("latin-1")
        watch.emit("server", "response", lambda: http_frames.response_payload(status, watch.headers(headers), reason, version))
        if status < 200:  # 101 has no body: it ends when the connection does
            return
        chunked = "chunked" in (http_frames.header(headers, "transfer-encoding") or "").lower()
        kind = (http_frames.header(headers, "content-type") or "").lower()
        packed = (http_frames.header(headers, "content-encoding") or "identity").lower()
        if kind.startswith("text/event-stream") and packed == "identity":
            self._body = EventBody(watch, chunked)
        else:
            self._body = WholeBody(watch, chunked, packed)
        # Without a length it ends with the connection.
        self._until_close = not chunked and http_frames.header(headers, "content-length") is None

    def on_body(self, body: bytes) -> None:
        """Log what is whole of the body."""
        self._unread = 0
        if self._body is not None:
            self._body.feed(body)

    def on_chunk_complete(self) -> None:
        """Note the end of an HTTP chunk."""
        if self._body is not None:
            self._body.chunk_end()

    def on_message_complete(self) -> None:
        """Log the rest of the body, and that the response ended."""
        self._finish("server", "end")

    def _finish(self, sender: str, how: str) -> None:
        if self._body is None:
            return
        self._body.close()
        self._body = None
        if self._watch.asked:
            self._watch.asked.popleft()
        self._watch.emit(sender, "close", lambda: how)

    def broken_off(self, sender: str, how: str) -> None:
        """The connection has ended: so has what is open on it, in good order only if the end of the connection is its end."""
        if (messages := self._watch.messages) is not None and self._watch.asked:
            ended = how == "end" and messages.closed_by is not None
            if how == "end":
                sender, how = ("client" if self._watch.client_ended else sender), ("end" if ended else "cut")
            # Without this mark, a 101 without messages is one whose messages are missing.
            self._watch.emit(sender, "close", lambda: how, messages=None if messages.count else 0)
            self._watch.asked.clear()
            return
        if self._body is None and not self._watch.asked:
            return
        whole = self._body is not None and self._until_close and (sender, how) == ("server", "end")
        if how == "end" and not whole:
            sender, how = ("client" if self._watch.client_ended else sender), "cut"
        if self._body is not None:
            self._finish(sender, how)
        else:
            self._watch.emit(sender, "close", lambda: how)
        self._watch.asked.clear()
