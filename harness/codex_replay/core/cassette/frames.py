"""Convert the lines of a cassette (a header, then frames, then a footer) to and from bytes.

An `rpc` frame of a cassette is one line of JSON-RPC. If the bytes of that line are the canonical JSON of its value
(`json_text.dumps`) and end in a plain b"\\n", the cassette line contains the bytes unchanged under "msg". A replay sends
the bytes under "msg" without decoding them. Any other rpc line (pretty-printed or unusual JSON, CRLF, no JSON, invalid
UTF-8, no line end) is kept exactly under "text" or "base64". If a line under "text" or "base64" has a decoded value, the
value is kept under "view".

An `http` frame has its kind ("request", "response", "sse", "chunk", "ws", "close") as key and its `payload` as value. The module
`http_frames` describes the payloads; `ws_frames` describes the payload of a WebSocket message ("ws").
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, OutOfRange, dumps, loads, scan_finite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
_LARGEST = 1 << 53  # no number of a frame is as large: a float has each whole number below
HTTP_KINDS = ("request", "response", "sse", "chunk", "ws", "close")
_UNKNOWN: Any = object()


class BadLine(ValueError):
    """A line of a file is not a valid cassette line; the message gives the reason."""


class Header:
    """The first line of a cassette: Codex version, bundle, case, and the origin (`recorded` or `authored`) of each seam's frames.

    `extra` keeps, in order, the keys that this version of the cassette format does not know.
    """

    __slots__ = ("bundle", "case", "codex", "extra", "origin")

    def __init__(self, codex: str, bundle: str, case: str, origin: dict[str, str], extra: dict[str, Any] | None = None) -> None:
        self.codex = codex
        self.bundle = bundle
        self.case = case
        self.origin = origin
        self.extra = extra or {}


class Frame:
    """One frame of a seam: `n` counts from 1, `t` is seconds since the start, `sender` is "client" or "server".

    `raw` has the exact bytes of an rpc line, `payload` the value of an http frame; `value` is the decoded JSON of `raw` (None if
    `raw` is not JSON). `conn` numbers http connections; `extra` keeps marks such as {"truncated": true}.
    """

    __slots__ = ("_value", "conn", "extra", "kind", "n", "payload", "raw", "seam", "sender", "t")

    def __init__(
        self,
        n: int,
        t: float,
        seam: str,
        sender: str,
        kind: str = "msg",
        raw: bytes = b"",
        payload: Any = None,
        conn: int | None = None,
        value: Any = _UNKNOWN,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.n = n
        self.t = t
        self.seam = seam
        self.sender = sender
        self.kind = kind
        self.raw = raw
        self.payload = payload
        self.conn = conn
        self.extra = extra or {}
        self._value = value

    @property
    def value(self) -> Any:
        """The decoded message of an rpc frame, or the payload of an http frame.

        An rpc frame is decoded once, at the first use.
        """
        if self.seam != "rpc":
            return self.payload
        if self._value is _UNKNOWN:
            try:
                self._value = loads(self.raw)
            except NotJson:
                self._value = None
        return self._value

    @property
    def whole(self) -> bool:
        """Return False if the program that made the recording had already shortened the payload.

        A shortened payload must never count as complete.
        """
        return not self.extra.get("truncated")

    def __repr__(self) -> str:
        return f"Frame({self.n}, {self.seam}, {self.sender}, {self.kind}, {self.raw[:80]!r})"


class Footer:
    """The last line of a cassette: it shows that the cassette is complete, and gives the number of frames."""

    __slots__ = ("extra", "frames")

    def __init__(self, frames: int, extra: dict[str, Any] | None = None) -> None:
        self.frames = frames
        self.extra = extra or {}


def encode_header(header: Header, length: int = 0) -> bytes:
    """Return the header's line, filled with spaces before the line feed if it is shorter than `length` bytes."""
    fixed = {
        "cassette": FORMAT,
        "codex": header.codex,
        "bundle": header.bundle,
        "case": header.case,
        "origin": header.origin,
    }
    return dumps({**fixed, **header.extra}).ljust(length - 1) + b"\n"


def encode_footer(footer: Footer) -> bytes:
    """Return the footer's line."""
    return dumps({"end": True, "frames": footer.frames, **footer.extra}) + b"\n"


def encode_frame(frame: Frame, canonical: bool = False) -> bytes:
    """Return the line of a frame in a cassette. The form "msg" is used only if the exact bytes can be restored from it.

    With `canonical`, the caller guarantees that the bytes can be restored, so nothing is decoded.
    """
    conn = "" if frame.conn is None else f'"conn":{frame.conn},'
    lead = f'{{"n":{frame.n},"t":{round(frame.t, 6)!r},"seam":"{frame.seam}",{conn}"from":"{frame.sender}",'.encode()
    if frame.extra:
        lead += dumps(frame.extra)[1:-1] + b","
    if frame.seam != "rpc":
        return lead + b'"%s":' % frame.kind.encode() + dumps(frame.payload) + b"}\n"
    return lead + (b'"msg":' + frame.raw[:-1] if canonical else _encode_line(frame)) + b"}\n"


def _encode_line(frame: Frame) -> bytes:
    raw, value = frame.raw, frame.value
    if not is_canonical(raw, value):
        value = Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw).value  # a case may have changed the other one
    if is_canonical(raw, value):
        return b'"msg":' + raw[:-1]
    try:
        exact = b'"text":' + dumps(raw.decode())
    except UnicodeDecodeError:
        from binascii import b2a_base64

        exact = b'"base64":"' + b2a_base64(raw, newline=False) + b'"'
    try:
        return exact if value is None else exact + b',"view":' + dumps(value)
    except ValueError:  # a lone surrogate in the view; the exact text alone has all the data
        return exact


def is_canonical(raw: bytes, value: Any) -> bool:
    """Return True if writing `value` as JSON gives exactly the bytes `raw`."""
    if value is None or raw[-1:] != b"\n":
        return False
    try:
        return dumps(value) == raw[:-1]
    except ValueError:
        return False


def parse_line(line: bytes) -> Header | Frame | Footer:
    """Parse one line of a cassette; raises `BadLine` if the line is invalid."""
    at = line.find(b',"msg":')
    if (
        at > 0
        and line.startswith(b'{"n":')
        and line.endswith(b"}\n")
        and line.find(b'"seam":"rpc"', 0, 64) > 0
        and b',"view":' not in line[:at]
    ):
        # The message's bytes are lifted out undecoded. Nothing before ',"msg":' is free text, so the first one is the key,
        # unless it is inside the view of a line that is kept as text, or in what an http frame carries.
        return _frame(_object(line[:at] + b"}"), line[at + 7 : -2] + b"\n")
    fields = _object(line)
    if "n" in fields:
        return _frame(fields, None)
    if "cassette" in fields:
        return _header(fields)
    if "end" in fields:
        return _footer(fields)
    raise BadLine("it is not a header, a frame or a footer")


def why_no_message(frame: Frame, line: bytes) -> str | None:
    """Return the reason why the "msg" value in a cassette line is not a JSON-RPC message, or None if it is one.

    Bytes of the server that are not JSON are stored as "text" or "base64". A "msg" that is not JSON therefore shows that
    the cassette line is damaged.
    """
    if frame.value is not None or frame.seam != "rpc" or b',"msg":' not in line:
        return None
    try:
        loads(frame.raw)
    except NotJson as error:
        try:
            loads(frame.raw[:-1] + b"}")
        except NotJson:
            return f"its message is not JSON ({error})"
        return "it is not JSON: a '}' is missing at its end"
    return "its message is null"


_UNWRITABLE = "it has half a surrogate pair or a number out of range"


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = loads(line, scan_finite)
    except OutOfRange:
        raise BadLine(_UNWRITABLE) from None
    except NotJson as error:
        raise BadLine(f"it is not JSON ({error})") from None
    if type(fields) is not dict:
        raise BadLine("it is not a JSON object")
    if b"\\u" in line:  # half a surrogate pair has no other form
        try:
            dumps(fields)
        except ValueError:
            raise BadLine(_UNWRITABLE) from None
    return fields


def _header(fields: dict[str, Any]) -> Header:
    version = fields.pop("cassette")
    if type(version) is not int:  # a line of a report's stories.ndjson names its cassette so, or none
        raise BadLine('"cassette" is not a format number; this may be a file with the traces of a report')
    if version != FORMAT:
        raise BadLine(f"cassette format {version!r} is not supported; this version reads format {FORMAT}")
    try:
        codex, bundle, case, origin = (fields.pop(name) for name in ("codex", "bundle", "case", "origin"))
    except KeyError as error:
        raise BadLine(f"the header has no {error.args[0]!r}") from None
    for name, value in (("codex", codex), ("bundle", bundle), ("case", case)):
        if type(value) is not str:
            raise BadLine(f"{name!r} in the header must be a string")
    if type(origin) is not dict:
        raise BadLine("'origin' in the header must be an object")
    header = Header(codex, bundle, case, origin, fields)
    try:
        encode_header(header)
    except ValueError:
        raise BadLine("its header has half a surrogate pair or a number out of range") from None
    return header


def _footer(fields: dict[str, Any]) -> Footer:
    frames = fields.pop("frames", None)
    if type(frames) is not int:
        raise BadLine("the footer has no number of frames")
    del fields["end"]
    return Footer(frames, fields)


def _frame(fields: dict[str, Any], raw: bytes | None) -> Frame:
    try:
        n, t, seam, sender = fields.pop("n"), fields.pop("t"), fields.pop("seam"), fields.pop("from")
    except KeyError as error:
        raise BadLine(f"the frame has no {error.args[0]!r}") from None
    if type(n) is not int or type(t) not in (int, float):
        raise BadLine("'n' or 't' of the frame is not a number")
    if not (-_LARGEST < n < _LARGEST and -_LARGEST < t < _LARGEST):
        raise BadLine("'n' or 't' of the frame is out of range")
    if seam not in ("rpc", "http") or sender not in ("client", "server"):
        raise BadLine(f"the frame has an unknown seam or sender: seam {seam!r}, from {sender!r}")
    if seam == "http":
        return _http_frame(n, t, sender, fields)
    if raw is None:
        raw = _exact_bytes(fields)
    return Frame(n, t, seam, sender, "msg", raw, extra=fields)


def _exact_bytes(fields: dict[str, Any]) -> bytes:
    fields.pop("view", None)
    if "msg" in fields:
        try:
            return dumps(fields.pop("msg")) + b"\n"
        except ValueError:
            raise BadLine("its message has half a surrogate pair or a number out of range") from None
    if type(fields.get("text")) is str:
        text: str = fields.pop("text")
        return text.encode()
    if type(fields.get("base64")) is str:
        from binascii import Error, a2b_base64

        try:
            return a2b_base64(fields.pop("base64"))
        except Error as error:
            raise BadLine(f"its base64 is broken ({error})") from None
    raise BadLine("the rpc frame has no 'msg', 'text' or 'base64'")


#: Members of an http frame's payload, and what they must be; `body`, `data` and `view` may be anything.
_MEMBERS = {
    **dict.fromkeys(
        ("method", "path", "version", "reason", "text", "base64", "encoding", "packed", "event", "ping", "pong", "why"), str
    ),
    **dict.fromkeys(("status", "omitted"), int),
}
_REQUIRED = {"request": ("method", "path", "headers"), "response": ("status", "headers")}


def _why_no_payload(kind: str, payload: Any) -> str | None:
    """Return the reason why a value is not the payload of an http frame, or None if the payload is valid."""
    if kind == "close":
        return None if type(payload) is str else "the 'close' of the http frame is not a string"
    if type(payload) is not dict:
        return f"the {kind!r} of the http frame is not an object"
    for name, sort in _MEMBERS.items():
        if name in payload and type(payload[name]) is not sort:
            return f"the {name!r} of the http frame is not {'a number' if sort is int else 'a string'}"
    if kind == "ws" and (why := _why_no_message(payload)) is not None:
        return why
    if missing := [name for name in _REQUIRED.get(kind, ()) if name not in payload]:
        return f"the {kind!r} of the http frame has no {missing[0]!r}"
    for name in ("headers", "trailers"):
        pairs = payload.get(name, [])
        if type(pairs) is not list or any(
            type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not str for pair in pairs
        ):
            return f"the {name} of the http frame are not pairs of strings"
    return None


def _why_no_message(payload: dict[str, Any]) -> str | None:
    """Return the reason why a value is not the payload of a WebSocket message, or None if the payload is valid."""
    if not any(name in payload for name in ("json", "text", "base64", "ping", "pong", "close", "omitted")):
        return "the 'ws' of the http frame has no json, text, base64, ping, pong, close or omitted"
    close = payload.get("close", {})
    if type(close) is not dict or type(close.get("reason", "")) is not str:
        return "the 'close' of the WebSocket message is not an object with a code and a reason"
    code = close.get("code", 1000)
    return None if type(code) is int and 0 <= code < 65536 else "the 'code' of the WebSocket message is not a number below 65536"


def _why_no_cuts(cuts: Any) -> str | None:
    """Return the reason why a value is not a list of HTTP chunk ends, each [offset, seconds], or None if the list is valid."""
    if type(cuts) is list and all(
        type(cut) is list
        and len(cut) == 2
        and type(cut[0]) is int
        and type(cut[1]) in (int, float)
        and all(-_LARGEST < value < _LARGEST for value in cut)
        for cut in cuts
    ):
        return None
    return "the 'cuts' of the http frame are not pairs of an offset and a time"


def _http_frame(n: int, t: float, sender: str, fields: dict[str, Any]) -> Frame:
    for kind in HTTP_KINDS:
        if kind in fields:
            payload = fields.pop(kind)
            conn = fields.pop("conn", None)
            if type(conn) is not int:
                raise BadLine("the http frame has no connection number 'conn'")
            if (why := _why_no_payload(kind, payload) or _why_no_cuts(fields.get("cuts", []))) is not None:
                raise BadLine(why)
            return Frame(n, t, "http", sender, kind, b"", payload, conn, extra=fields)
    raise BadLine("the http frame has none of " + ", ".join(HTTP_KINDS))
