"""Send one HTTP request to a proxy and keep the bytes of the answer: synchronous, standard library only, with a time limit."""

from __future__ import annotations

import io
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from codex_replay.core.text.error_text import error_text
from codex_replay.core.wire.sse import Decoder
from codex_replay.plugin.proxy.answer import placed
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codex_replay.plugin.proxy.wire import WireFrame


#: Seconds without bytes between two looks at whether an answer can still end.
LOOK = 0.2


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: its name ("" if it has none), its data, and the decoded data (None if it is not JSON)."""

    name: str
    data: str
    value: Any


class Chunks:
    """A request body that is sent in several network packets: with Content-Length, or as HTTP chunks if the case sets the header
    Transfer-Encoding.
    """

    PAUSE = 0.1  # seconds after each piece, so that the kernel does not join two

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks
        self.whole = b"".join(chunks)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            yield chunk
            time.sleep(self.PAUSE)


@dataclass
class Exchange:
    """A request to the proxy and its answer.

    `started` and `ended` are seconds of the monotonic clock. `frames` are the frames between the proxy and its app-server;
    their times are seconds of the same clock.
    """

    method: str
    path: str
    sent: Any
    status: int = 0
    version: int = 11
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    started: float = 0.0
    ended: float = 0.0
    problem: str = ""
    silent: bool = False  # the problem is that its time was over
    frames: list[WireFrame] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        """Return the value of a response header, or None."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def shown(self, most: int = 300) -> str:
        """Return the first `most` bytes of the body as a quoted text; a negative `most` means the last bytes."""
        part = self.body[most:] if most < 0 else self.body[:most]
        return repr(part.decode("utf-8", "backslashreplace"))

    @property
    def json(self) -> Any:
        """Return the decoded JSON body of the answer; its values know their path (`answer.placed`).

        Raises `SubjectFailure` if the body is not JSON.
        """
        __tracebackhide__ = True
        try:
            return placed(json.loads(self.body), "the answer")
        except ValueError:
            raise SubjectFailure(f"The answer ({self.status}) is {self._not_json()}: {self.shown()}") from None

    def _not_json(self) -> str:
        """Return what is wrong with a body that is not JSON, in a few words."""
        length = self.header("content-length")
        if length is None or self.body.isascii():
            return "not JSON"
        return (
            f"not JSON after the {length} bytes of its Content-Length, which counts the bytes of the body and not its characters"
        )

    @property
    def answered(self) -> str:
        """The status of the answer and, for an error in OpenAI's form, its code (otherwise its type): "404 (not_found)"."""
        try:
            error = json.loads(self.body)["error"]
            code = error.get("code") or error.get("type")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            code = None
        word = "".join(c for c in code if c.isalnum() or c in "_-. ")[:40] if isinstance(code, str) else ""
        return f"{self.status} ({word})" if word else str(self.status)

    @property
    def retry_after(self) -> float | None:
        """The seconds after which a busy server (429, 503) asks the client to retry; None if the server names no time.

        The value comes from the header `Retry-After` (seconds or a date), or from OpenAI's header `retry-after-ms`.
        """
        if self.status not in (429, 503):
            return None
        message = (self.header("retry-after") or "").strip()
        try:
            if (ms := self.header("retry-after-ms")) is not None:
                return max(0.0, float(ms) / 1000)
            if message[:1].isdigit():
                return float(message)
            return max(0.0, parsedate_to_datetime(message).timestamp() - time.time())
        except ValueError:
            return None

    @property
    def is_stream(self) -> bool:
        """True if the Content-Type of the answer is an event stream."""
        return (self.header("content-type") or "").split(";")[0].strip() == "text/event-stream"

    @property
    def events(self) -> list[Event]:
        """The events of a streamed answer; raises `SubjectFailure` if the answer is not a stream."""
        __tracebackhide__ = True
        if not self.is_stream:
            raise SubjectFailure(
                f"The answer ({self.status}, {self.header('content-type')}) is not an event stream: {self.shown()}"
            )
        decoder = Decoder()
        blocks = [*decoder.feed(self.body), *decoder.close()]
        found: list[Event] = []
        for block in blocks:
            if block.data is not None:
                text = block.data.decode("utf-8", "surrogateescape")
                try:
                    value = json.loads(text)
                except ValueError:
                    value = None
                name = block.event.decode("utf-8", "replace")
                found.append(Event(name, text, placed(value, f"the data of event {len(found) + 1}")))
        return found

    # -- the JSON-RPC seam -----------------------------------------------------------------------------------------------

    def calls(self, *methods: str) -> list[dict[str, Any]]:
        """Return the requests that the proxy sent to its app-server, in order.

        If methods are given, return only the requests with one of these methods.
        """
        sent = [frame.value for frame in self.frames if frame.sender == "client" and frame.kind == "request"]
        return [value for value in sent if not methods or value["method"] in methods]

    def params(self, method: str) -> dict[str, Any]:
        """Return the params of the only call of `method`; raises `SubjectFailure` unless there is exactly one call."""
        __tracebackhide__ = True
        found = self.calls(method)
        if len(found) != 1:
            listed = ", ".join(call["method"] for call in self.calls()) or "nothing"
            raise SubjectFailure(
                f"The proxy must send {method} once for this request, but sent it {len(found)} times. The proxy sent: {listed}. "
                f"The answer was {self.status}: {self.shown(200)}"
            )
        params = found[0].get("params")
        if not isinstance(params, dict):
            raise SubjectFailure(f"The params of {method} are not an object: {params!r}")
        found_params: dict[str, Any] = placed(params, method)
        return found_params

    def raw(self, method: str) -> str:
        """Return the unchanged line with the only call of `method`."""
        __tracebackhide__ = True
        self.params(method)
        return next(f.raw for f in self.frames if f.sender == "client" and f.kind == "request" and f.value["method"] == method)


class _Hopeless(Exception):
    """The client stopped reading the answer, because nothing can end the answer any more."""


class _Incoming(io.RawIOBase):
    """A reader of the bytes of a connection.

    Raises `TimeoutError` after `deadline`, and `_Hopeless` when `hopeless` returns True.

    Before an answer counts as hopeless, all received bytes are read once more, so that a complete answer is always
    returned.
    """

    def __init__(self, sock: socket.socket, deadline: float, hopeless: Callable[[], bool] | None) -> None:
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline, self._hopeless = deadline, hopeless
        self._come = select.poll()
        self._come.register(self._raw, select.POLLIN)

    def readable(self) -> bool:
        """Return True, as Python requires of a readable stream."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Wait for bytes and read them; the docstring of the class lists the errors."""
        while (left := self._deadline - time.monotonic()) > 0:
            if self._come.poll(1000 * (left if self._hopeless is None else min(left, LOOK))):
                return self._raw.readinto(buffer)
            if self._hopeless is not None and self._hopeless() and not self._come.poll(0):
                raise _Hopeless
        raise TimeoutError

    def close(self) -> None:
        """Release the connection."""
        self._raw.close()
        super().close()


class _Incomings:
    """A replacement for a socket: `http.client` calls only the method `makefile` to read an answer."""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the file from which http.client reads the answer."""
        return io.BufferedReader(_Incoming(*self._given))


def exchange(
    url: str,
    method: str,
    path: str,
    body: Any,
    headers: Mapping[str, str],
    timeout: float,
    stop_after: str | None = None,
    hopeless: Callable[[], bool] | None = None,
) -> Exchange:
    """Send a request and read its answer, within `timeout` seconds; `problem` of the returned `Exchange` describes an error.

    `body` is a value that is sent as JSON, bytes that are sent unchanged, `Chunks` of bytes, or None. Close the connection
    once the answer has the text `stop_after`, or when `hopeless` returns True. `hopeless` is a function, which is called
    whenever no bytes have arrived for a while.
    """
    import http.client  # not needed by a run of other suites; it loads ssl

    done = Exchange(method, path, body.whole if isinstance(body, Chunks) else body, started=time.monotonic())
    deadline = time.monotonic() + timeout
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=timeout)

    def answer(sock: socket.socket, **given: Any) -> http.client.HTTPResponse:
        return http.client.HTTPResponse(cast("socket.socket", _Incomings(sock, deadline, hopeless)), **given)

    connection.response_class = cast("type[http.client.HTTPResponse]", answer)
    data = body if body is None or isinstance(body, bytes | Chunks) else json.dumps(body, ensure_ascii=False).encode()
    pieces: list[bytes] = []
    try:
        sent = {"Content-Type": "application/json", **headers} if data is not None else dict(headers)
        chunked = "Transfer-Encoding" in sent
        if isinstance(data, Chunks) and not chunked:
            sent["Content-Length"] = str(len(data.whole))
        connection.request(method, parts.path + path, data, sent, encode_chunked=chunked)
        response = connection.getresponse()
        done.status, done.headers, done.version = response.status, response.getheaders(), response.version
        while piece := response.read1(1 << 16):
            pieces.append(piece)
            if stop_after is not None and stop_after.encode() in b"".join(pieces):
                break
        else:
            if response.length:  # http.client reports only a body in chunks that ends too early
                raise http.client.IncompleteRead(b"", response.length)
    except _Hopeless:
        done.problem, done.silent = f"no complete answer within {time.monotonic() - deadline + timeout:.1f} s", True
    except TimeoutError:
        done.problem, done.silent = f"no complete answer within {timeout:g} s", True
    except http.client.IncompleteRead as error:
        pieces.append(error.partial)
        done.problem = "the connection closed before the end of the answer"
    except ConnectionRefusedError:
        done.problem = f"a refused connection: no server listens at {url}"
    except (OSError, http.client.HTTPException) as error:
        done.problem = f"the connection failed ({type(error).__name__}: {error_text(error)})"
    finally:
        connection.close()
        done.body = b"".join(pieces)
        done.ended = time.monotonic()
    return done
