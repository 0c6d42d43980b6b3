"""The replaying app-server: stdin and stdout on one side, a deck of recordings on the other.

One loop, one thread: poll, take the client's lines, let out what their causes allow. Nothing is written that would block while
the client itself is blocked on writing to us. On fake-codex's start-up path: see `fake_codex`.
"""

from __future__ import annotations

import select
import sys
from posix import read, write
from time import monotonic

import harness
from harness.core.deck import Deck, Miss
from harness.core.frames import Frame
from harness.core.jsonrpc import kind, label
from harness.core.jsontext import dumps, loads
from harness.core.match import LEVELS, Matcher
from harness.core.ndjson import LineSplitter
from harness.core.replay import Track
from harness.shell.cassette import CassetteReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from harness.core.match import Rules
    from harness.shell.cassette import CassetteWriter

# How a client is told of a mismatch: a code that the real server never uses (only -32600 and -32603 occur there).
NO_RECORDING = -32001
_BATCH = 512  # lines read ahead at a time while the client has nothing to say
_ROOM = 1 << 18  # bytes that wait to be written before reading on


class ReplyMismatch(Exception):
    """The client replied to a server request with what no recording has; nothing can be answered, so the server ends."""


class AppServer:
    """One run of fake-codex over stdin and stdout, set by the `FAKE_CODEX_*` environment.

    Raises `CassetteError` for what cannot be read or written, `ValueError` for a wrong setting.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._pace = _pace(environ.get("FAKE_CODEX_PACE") or "fast")
        level = environ.get("FAKE_CODEX_MATCH") or "method"
        if level not in LEVELS:
            raise ValueError(f"FAKE_CODEX_MATCH is {level!r}; it must be {' or '.join(LEVELS)}.")
        self._home = environ.get("HOME", "")
        path = environ.get("FAKE_CODEX_CASSETTE")
        self._readers = [CassetteReader(name) for name in _cassettes(path)] if path else []
        causality = _load_causality() if path else {}
        self._deck = Deck([Track(reader.path, reader, causality, Matcher(_load_rules)) for reader in self._readers], level)
        self._capture = _open_capture(environ["FAKE_CODEX_CAPTURE"], self._readers) if environ.get("FAKE_CODEX_CAPTURE") else None
        self._start = monotonic()
        self._out: list[bytes] = []  # what may go out at once
        self._waiting = 0  # its size in bytes
        self._due: list[tuple[float, bytes]] = []  # with a pace: when, what
        self._last: tuple[float, float] = (0.0, 0.0)  # recorded and live time of the frame paced last
        self._initialized = False
        self._failed = False
        self._methods: dict[str, str] | None = None

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until the client closes stdin (then what has been caused still goes out) or goes away."""
        splitter = LineSplitter()
        open_in = True
        try:
            while open_in or self._may_advance or self._out or self._due:
                readable, writable = self._poll(open_in)
                if writable:
                    self._write()
                if readable:
                    data = read(0, 1 << 16)
                    if data:
                        open_in = all(self._line(line) for line in splitter.feed(data))
                    else:
                        open_in = False
                        tail = splitter.close()
                        if tail:
                            self._line(tail)
                elif self._may_advance and self._waiting < _ROOM:
                    self._advance()
        except BrokenPipeError:
            pass  # the client has gone: what is left to say has no reader
        except ReplyMismatch:
            self._flush()

    @property
    def _may_advance(self) -> bool:
        return bool(self._deck.tracks) and self._deck.may_advance

    def _poll(self, open_in: bool) -> tuple[bool, bool]:
        timeout: float | None = None
        if self._may_advance and self._waiting < _ROOM:
            timeout = 0.0
        elif self._due:
            timeout = max(0.0, self._due[0][0] - monotonic())
        if self._due:
            self._move_due()
        readable, writable, _ = select.select([0] if open_in else [], [1] if self._out else [], [], timeout)
        return bool(readable), bool(writable)

    def _advance(self) -> None:
        fast = self._pace == 0.0
        for frame in self._deck.advance(_BATCH, raw=fast):
            if not isinstance(frame, Frame):
                self._out.append(frame)
                self._waiting += len(frame)
            elif fast:
                self._send(frame.raw)
            else:
                self._schedule(frame)

    def _send(self, raw: bytes) -> None:
        self._out.append(raw)
        self._waiting += len(raw)

    def _schedule(self, frame: Frame) -> None:
        """Keep the recorded distance to the frame before, shortened by the pace; never send what is overdue in the past."""
        recorded, live = self._last
        due = max(monotonic(), live + max(0.0, frame.t - recorded) / self._pace) if live else monotonic()
        self._last = (frame.t, due)
        self._due.append((due, frame.raw))

    def _move_due(self) -> None:
        now = monotonic()
        while self._due and self._due[0][0] <= now:
            self._send(self._due.pop(0)[1])

    def _write(self) -> None:
        """Write what fits without blocking: a pipe that polls as writable takes PIPE_BUF bytes."""
        data = b"".join(self._out)
        sent = 0
        view = memoryview(data)
        while sent < len(data):
            sent += write(1, view[sent : sent + select.PIPE_BUF])
            if sent < len(data) and not select.select([], [1], [], 0)[1]:
                break
        self._out = [data[sent:]] if sent < len(data) else []
        self._waiting = len(data) - sent

    def _flush(self) -> None:
        for raw in self._out:
            write(1, raw)

    # -- one client line ----------------------------------------------------------------------------------------------

    def _line(self, line: bytes) -> bool:
        """Take one line of the client; False if the server ends on it (the real one does on invalid UTF-8)."""
        live = Frame(0, monotonic() - self._start, "rpc", "client", raw=line)
        if self._capture is not None:
            self._capture.write(live)
        miss = self._deck.receive(live) if self._deck.tracks else None
        if self._pace and not self._due:
            self._last = (self._last[0], 0.0)
        if miss is not None or not self._deck.tracks:
            self._not_recorded(live, miss)
        else:
            if kind(live.value) == "request" and live.value["method"] == "initialize":
                self._initialized = True
            if self._waiting < _ROOM:
                self._advance()  # what it caused goes out before any answer to the lines behind it
        return _is_utf8(line)

    def _retry_redacted(self, live: Frame, miss: Miss) -> Miss | None:
        """What a recording holds went through the redactor: so must what is compared with it."""
        from harness.core.redact import Redactor

        clean = Redactor(paths={self._home: "/home/user"} if self._home else {}).redact(live.raw)
        return miss if clean == live.raw else self._deck.receive(Frame(0, live.t, "rpc", "client", raw=clean))

    def _not_recorded(self, live: Frame, miss: Miss | None) -> None:
        # Not on the start-up path: a client's first line is seldom wrong.
        from harness.protocol.refusals import INVALID_REQUEST, is_message, load_methods, refusal

        value = live.value
        if not is_message(value):
            _say(f"fake-codex: Failed to deserialize JSONRPCMessage: {live.raw[:200]!r} (the real server is as silent)")
            return
        if kind(value) == "request":
            self._methods = self._methods or load_methods()
            refused = refusal(value, self._initialized, self._methods)
            if refused is not None:
                self._answer(value["id"], {"code": INVALID_REQUEST, "message": refused})
                return
        if miss is None:
            self._without_recording(value)
            return
        still = self._retry_redacted(live, miss)
        if still is not None:
            self._mismatch(value, still)

    def _mismatch(self, value: dict[str, Any], miss: Miss) -> None:
        sort = kind(value)
        if sort == "notification" and value["method"] == "initialized":
            return  # not required, and no harm (real-codex-0.92.md section 4)
        if sort in ("response", "error") and not self._is_awaited_reply(miss):
            return  # a reply to a request that was never made: the real server is silent
        self._failed = True
        if sort == "request":
            _say(f"fake-codex: {miss}")
            self._answer(value["id"], {"code": NO_RECORDING, "message": f"fake-codex: {miss}", "data": _details(miss)})
        elif sort == "notification":
            _say(f"fake-codex: {miss}")
        else:
            _say(f"fake-codex: {miss}; a reply cannot be answered with an error, so the server ends here")
            raise ReplyMismatch

    @staticmethod
    def _is_awaited_reply(miss: Miss) -> bool:
        nearest = miss.nearest
        return (
            nearest is not None and kind(nearest.value) in ("response", "error") and nearest.value["id"] == miss.live.value["id"]
        )

    def _without_recording(self, value: dict[str, Any]) -> None:
        """With no cassette at all there is the handshake and nothing more."""
        if kind(value) != "request":
            return
        if value["method"] == "initialize":
            self._initialized = True
            self._send(dumps({"id": value["id"], "result": {"userAgent": "fake-codex/0.92.0"}}) + b"\n")
            return
        self._failed = True
        text = (
            f"fake-codex: there is no recording for {label(value)}: set FAKE_CODEX_CASSETTE to a cassette or a directory of them"
        )
        _say(text)
        self._answer(value["id"], {"code": NO_RECORDING, "message": text})

    def _answer(self, request_id: Any, error: dict[str, Any]) -> None:
        # The real server writes the members of an error in this order.
        self._send(dumps({"error": error, "id": request_id}) + b"\n")

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> int:
        """Tell what never came, close every file, and return the exit status."""
        missing = self._deck.lead.upcoming() if self._deck.tracks else []
        for frame in missing[:20]:
            what = label(frame.value) if frame.value is not None else repr(frame.raw[:80])
            _say(f"fake-codex: frame {frame.n} of {self._deck.lead.name} never came from the client: {what}")
        if len(missing) > 20:
            _say(f"fake-codex: ... and {len(missing) - 20} more frames never came")
        for reader in self._readers:
            if reader.truncated and reader.path == self._deck.lead.name:
                _say(f"fake-codex: {reader.truncated}")
            reader.close()
        if self._capture is not None:
            self._capture.close()
        return 1 if self._failed or missing else 0


def _say(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # the client closed our stderr: there is no one to tell


def _pace(text: str) -> float:
    """Return how many times faster than recorded to go; 0 stands for as fast as can be."""
    if text in ("fast", "recorded"):
        return 0.0 if text == "fast" else 1.0
    try:
        pace = float(text.removesuffix("x"))
    except ValueError:
        pace = 0.0
    if not text.endswith("x") or not 0.0 < pace < 1e6:
        raise ValueError(f"FAKE_CODEX_PACE is {text!r}; it must be fast, recorded, or a number with an x, as 2x.")
    return pace


def _cassettes(path: str) -> list[str]:
    """Return the cassette, or those of the directory; a path that is neither is for the reader to complain of."""
    try:
        with open(path, "rb"):
            return [path]
    except IsADirectoryError:
        pass
    except OSError:
        return [path]
    import os

    found = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(".ndjson"))
    if not found:
        raise ValueError(f"FAKE_CODEX_CASSETTE is the directory {path}, and it holds no cassette (*.ndjson).")
    return found


def _load_causality() -> dict[str, list[str]]:
    # The path without `os`, which alone would cost a tenth of the start-up.
    with open(harness.__path__[0] + "/protocol/data/0.92.0/causality.json", "rb") as file:
        causality: dict[str, list[str]] = loads(file.read())
    return causality


def _load_rules() -> Rules:
    from harness.core.normalise import Rules
    from harness.protocol.tables import load

    return Rules(load("normalise"))


def _open_capture(path: str, readers: list[CassetteReader]) -> CassetteWriter:
    import os

    from harness.core.frames import Header
    from harness.core.redact import Redactor
    from harness.shell.cassette import CassetteWriter

    codex = readers[0].header.codex if readers else "0.92.0"
    bundle = readers[0].header.bundle if readers else ""
    header = Header(codex, bundle, "capture", {"rpc.client": "recorded"})
    home = os.environ.get("HOME", "")
    return CassetteWriter(path.replace("{pid}", str(os.getpid())), header, Redactor(paths={home: "/home/user"} if home else {}))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _details(miss: Miss) -> dict[str, Any]:
    nearest = None if miss.nearest is None or miss.track is None else {"frame": miss.nearest.n, "cassette": miss.track.name}
    return {
        "nearest": nearest,
        "differences": [{"path": d.path, "recorded": d.recorded, "got": d.live} for d in miss.differences[:20]],
    }
