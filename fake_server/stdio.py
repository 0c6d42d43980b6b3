"""The loop of fake-codex: stdin and stdout on one side, a server on the other that replays or improvises.

One thread: poll, take the client's lines, let the server go on. Nothing is written that would block while the client itself is
blocked on writing to us. On fake-codex's start-up path: see `fake_codex`.
"""

from __future__ import annotations

import select
import sys
from posix import read, write
from time import monotonic

from harness.core.frames import Frame
from harness.core.jsontext import NotJson, dumps, loads
from harness.core.ndjson import LineSplitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from fake_server.rpc_faults import Fault
    from harness.shell.cassette import CassetteWriter

ROOM = 1 << 18  # bytes that wait to be written before the server goes on


class Ended(Exception):
    """The server ends here; what is said already still goes out. `status` is the exit status, None for the usual one."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


class Stdio:
    """What both servers share: the loop, the output, the capture of what the client sent.

    A server overrides `line`, `may_advance`, `advance`, `next_due` and `finish`.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.home = environ.get("HOME", "")
        self.start = monotonic()
        self.waiting = 0  # bytes not yet written
        self.due: list[tuple[float, bytes]] = []  # with a pace: when, what
        self.failed = False
        self.capture: CassetteWriter | None = None
        self._out: list[bytes] = []
        self._status: int | None = None
        self.fault: Fault | None = None
        if environ.get("FAKE_CODEX_FAULT"):
            from fake_server.rpc_faults import fault_of

            self.fault = fault_of(environ["FAKE_CODEX_FAULT"])

    # -- what a server is ---------------------------------------------------------------------------------------------

    def line(self, live: Frame) -> None:
        """Take one line of the client."""
        raise NotImplementedError

    @property
    def may_advance(self) -> bool:
        """Tell whether there is something to say now that waits for nothing."""
        return False

    def advance(self) -> None:
        """Say some of it."""

    def next_due(self) -> float | None:
        """Return when something will have to be said of itself (monotonic seconds), or None."""
        return self.due[0][0] if self.due else None

    def finish(self) -> int:
        """Close every file and return the exit status."""
        return 0

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until the client closes stdin (then what has been caused still goes out) or goes away."""
        splitter = LineSplitter()
        open_in = True
        try:
            if self.fault is not None:
                self.fault.begin()
            while open_in or self.may_advance or self._out or self.due:
                readable, writable = self._poll(open_in)
                if writable:
                    self._write()
                if readable:
                    data = read(0, 1 << 16)
                    if data:
                        open_in = all(self._take(line) for line in splitter.feed(data))
                    else:
                        open_in = False
                        tail = splitter.close()
                        if tail:
                            self._take(tail)
                elif self.may_advance and self.waiting < ROOM:
                    self.advance()
        except BrokenPipeError:
            pass  # the client has gone: what is left to say has no reader
        except Ended as end:
            self._status = end.status
            self._flush()

    def _poll(self, open_in: bool) -> tuple[bool, bool]:
        timeout: float | None = None
        if self.may_advance and self.waiting < ROOM:
            timeout = 0.0
        elif (due := self.next_due()) is not None:
            timeout = max(0.0, due - monotonic())
        if self.due:
            self._move_due()
        readable, writable, _ = select.select([0] if open_in else [], [1] if self._out else [], [], timeout)
        return bool(readable), bool(writable)

    def _take(self, line: bytes) -> bool:
        """Take one line; False if the server ends on it (the real one does on invalid UTF-8)."""
        live = Frame(0, monotonic() - self.start, "rpc", "client", raw=line)
        if self.capture is not None:
            self.capture.write(live)
        self.line(live)
        return _is_utf8(line)

    # -- output -------------------------------------------------------------------------------------------------------

    def send(self, raw: bytes) -> None:
        """Say a line (or, without a fault, several)."""
        if self.fault is None:
            self._out.append(raw)
            self.waiting += len(raw)
            return
        for piece in self.fault.pieces(raw):
            self._out.append(piece)
            self.waiting += len(piece)
        if self.fault.over:
            self._flush()
            self.fault.strike()
            raise Ended(self.fault.status)

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        """Refuse a request. The real server writes the members of an error in this order."""
        self.send(dumps({"error": error, "id": request_id}) + b"\n")

    def _move_due(self) -> None:
        now = monotonic()
        while self.due and self.due[0][0] <= now:
            self.send(self.due.pop(0)[1])

    def _write(self) -> None:
        """Write what fits without blocking: a pipe that polls as writable takes PIPE_BUF bytes."""
        if self.fault is not None and self.fault.slow:
            self._write_pieces()
            return
        data = b"".join(self._out)
        sent = 0
        view = memoryview(data)
        while sent < len(data):
            sent += write(1, view[sent : sent + select.PIPE_BUF])
            if sent < len(data) and not select.select([], [1], [], 0)[1]:
                break
        self._out = [data[sent:]] if sent < len(data) else []
        self.waiting = len(data) - sent

    def _write_pieces(self) -> None:
        """Write each piece by itself, so that the client's reads can end where the pieces do."""
        piece = self._out.pop(0)
        sent = write(1, piece[: select.PIPE_BUF])
        if sent < len(piece):
            self._out.insert(0, piece[sent:])
        self.waiting -= sent
        if self.fault is not None:
            self.fault.rest()

    def _flush(self) -> None:
        for raw in self._out:
            view = memoryview(raw)
            while view:
                view = view[write(1, view) :]
        self._out = []

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> int:
        """End the server; return the exit status."""
        status = self.finish()
        if self.capture is not None:
            self.capture.close()
        return status if self._status is None else self._status


def say(text: str) -> None:
    """Tell the person, on stderr; a client that closed it must not stop us."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def read_script(path: str) -> bytes:
    """Return the text of the script, which is JSON; raises `ValueError` with a sentence if it cannot be read, or is none."""
    try:
        with open(path, "rb") as file:
            text = file.read()
        loads(text)
    except OSError as error:
        raise ValueError(f"the script {path} cannot be read ({error.strerror}); check FAKE_CODEX_SCRIPT.") from None
    except NotJson as error:
        raise ValueError(f"the script {path} is not JSON: {error}.") from None
    return text


def open_capture(path: str, codex: str = "0.92.0", bundle: str = "", replayed: Iterable[str] = ()) -> CassetteWriter:
    """Open the file that gets what the client sends, as a cassette; `{pid}` in its name stands for the process id.

    Raises `ValueError` if that is one of the cassettes `replayed`: it would be lost.
    """
    import os

    from harness.core.frames import Header
    from harness.core.redact import Redactor
    from harness.shell.cassette import CassetteWriter

    path = path.replace("{pid}", str(os.getpid()))
    if os.path.exists(path) and any(os.path.samefile(path, cassette) for cassette in replayed):
        raise ValueError(f"FAKE_CODEX_CAPTURE is {path}, the cassette that is replayed; choose another file.")
    header = Header(codex, bundle, "capture", {"rpc.client": "recorded"})
    home = os.environ.get("HOME", "")
    return CassetteWriter(path, header, Redactor(paths={home: "/home/user"} if home else {}))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
