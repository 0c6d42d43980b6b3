"""Convert the bytes of one HTTP connection to frames of the seam `http`, without any I/O.

The library httptools parses both directions. A request becomes one frame, which is recorded when the request is complete. A
response is recorded in parts: its head, the parts of its body (module `bodies`), and its end. After an upgrade to a
WebSocket, each message becomes one frame (module `messages`). Traffic after any other upgrade, and traffic that is not
HTTP, cannot be redacted, so it is not recorded, and a warning is written. The methods `client` and `server` log complete
frames before the caller passes on their bytes, so that the cassette never has an effect before its cause.
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
from codex_replay.shell.http.bodies import MAX_DECODED, MAX_HEAD, EventBody, WholeBody, decodes_to_more
from codex_replay.shell.http.client_requests import Pairs, Requests
from codex_replay.shell.http.deferred import Deferred
from codex_replay.shell.http.messages import Messages


class Watch:
    """Record the frames of the HTTP connection with the number `conn`.

    The function `rewrite` returns the target and headers with which a request is passed on. With `later`, the bodies of
    responses are recorded unredacted, because the writer of the cassette redacts them (`encoded_body`).
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
        """Take bytes from the client of the connection.

        Return the bytes to write to the server. If the client is `refused` after the call, the caller must write nothing.
        """
        if self.blind:
            return data
        if self.messages is not None:
            self.messages.feed("client", data)
            return data
        return self._requests.feed(data)

    def server(self, data: bytes) -> None:
        """Take bytes from the server of the connection."""
        if self.blind:
            return
        if self.messages is not None:
            self.messages.feed("server", data)
        else:
            self._responses.feed(data)

    def waiting(self, sender: str) -> bool:
        """Return True if bytes of one side of a WebSocket are not recorded yet, because they take long to decompress."""
        return self.messages is not None and not self.blind and self.messages.waiting(sender)

    def more(self, sender: str) -> None:
        """Record one more piece of the bytes for which `waiting` is True."""
        if self.messages is not None and not self.blind:
            self.messages.feed(sender, b"")

    def upgrade(self, headers: Pairs, data: bytes) -> None:
        """After an upgrade, continue with the messages of a WebSocket.

        `data` are the first bytes of the WebSocket, which the server has already sent.
        """
        try:
            self.messages = Messages(self, headers)
        except ValueError as error:
            self.stop_looking(f"it is a WebSocket that cannot be read: {error}")
            return
        if data:
            self.messages.feed("server", data)

    def disconnected(self, sender: str, how: str) -> None:
        """Record that the connection of one side has ended ("end") or was reset ("reset"). If an exchange is open, end it."""
        self._requests.broken_off()
        self._responses.broken_off(sender, how)

    def emit(self, sender: str, kind: str, build: Callable[[], Any], *, size: int = 0, long: bool = False, **marks: Any) -> None:
        """Record one frame whose payload has about `size` bytes.

        `long` is True if the payload takes long to build. If the payload cannot be built, the recording ends and the
        traffic continues.
        """
        extra = {name: value for name, value in marks.items() if value or (name == "messages" and value is not None)}

        def frame() -> Frame:
            return Frame(0, 0.0, "http", sender, kind, b"", build(), self.conn, extra=extra)

        if not isinstance(self.log, Deferred):
            self.log.built(frame)
        elif long:
            self.log.later(frame, size)
        else:
            self.log.built(frame, size)

    def left_out(self, size: int, encoding: str | None) -> dict[str, Any]:
        """Return the cassette entry for a body that is too long, and report it."""
        packed = f" after decoding {encoding!r}" if encoding else ""
        limit = f"{self.limit >> 20} MB" if self.limit >= 1 << 20 else f"{self.limit} bytes"
        self._write_out(
            f"a body is longer than {limit}{packed}, so it is not in the cassette. Set another limit with --max-body."
        )
        return {"omitted": size}

    def body(self, raw: bytes, encoding: str) -> dict[str, Any]:
        """Return the cassette entry for the body of a response."""
        if decodes_to_more(raw, encoding, self.limit):
            return self.left_out(len(raw), encoding)
        fields = encoded_body.fields(raw, encoding) if self.later else http_frames.body_fields(raw, encoding, self.redact)
        return self.looked_into(fields, encoding)

    def lost(self, size: int, why: str) -> None:
        """Report a WebSocket message that was lost: the cassette has only its size."""
        self._write_out(f"a WebSocket message of {size} bytes is not in the cassette: {why}.")

    def looked_into(self, payload: dict[str, Any], encoding: str | None) -> dict[str, Any]:
        """Report a body that is left out of the cassette because it cannot be decoded."""
        if "omitted" in payload:
            self._write_out(
                f"a body in the content-encoding {encoding!r} cannot be searched for secrets; it is not in the "
                "cassette. Use gzip, deflate, zstd, br or none to record it."
            )
        return payload

    def stop_looking(self, why: str) -> None:
        """Pass on the rest of the connection without recording it.

        The cassette gets no footer, because it does not have the whole traffic.
        """
        if not self.blind:
            self.blind = True
            self.log.partial()
            self._write_out(
                f"connection {self.conn}: {why}; the rest is passed on, but not recorded, so the cassette gets no footer: "
                "tools report it as cut short."
            )


class Responses:
    """Record the server's direction of an HTTP connection: the heads, bodies and ends of responses.

    The bytes are passed on unchanged.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._parser = httptools.HttpResponseParser(self)
        self._head = b""
        self._body: EventBody | WholeBody | None = None
        self._unread = 0  # bytes of a head that is not whole

    def feed(self, data: bytes) -> None:
        """Take bytes from the server, and log the complete parts."""
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
        """Take the reason phrase, which may come in parts."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes | None) -> None:
        """Take a header."""
        self._headers.append((name.decode("latin-1"), (value or b"").decode("latin-1")))

    def on_headers_complete(self) -> None:
        """Record the head of the response. The headers determine the form of the body."""
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
        """Log the complete part of the body."""
        self._unread = 0
        if self._body is not None:
            self._body.feed(body)

    def on_chunk_complete(self) -> None:
        """Record the end of an HTTP chunk."""
        if self._body is not None:
            self._body.chunk_end()

    def on_message_complete(self) -> None:
        """Log the rest of the body, and the end of the response."""
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
        """End the open response, because the connection has ended.

        The end of the connection is a regular end of the response only if no header of the response marks the end of its body.
        """
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
