"""The event loop of fake-codex, which connects stdin and stdout to a replaying or scripted server.

One thread polls, reads the client's lines and runs the server. While the client is blocked in a write to stdin, the thread
never blocks in a write. The program fake-codex loads this module at start-up (see `fake_codex`). A signal that ends the
real server (TERM, INT, HUP) also ends fake-codex. Many clients stop their server with a signal, so fake-codex prints its
report before it ends. The signal takes effect when the loop waits, after the current message. If the client does not read
stderr or sends a second signal, the report is dropped.
"""

from __future__ import annotations

import select
import sys

# `signal` itself would load enum.
from _signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal  # type: ignore[import-not-found]
from posix import _exit, getpid, kill, read, write
from time import monotonic

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.ndjson import LineSplitter
from codex_replay.core.wire.serde import read as read_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from codex_fakes.stdio.faults import Fault
    from codex_replay.shell.cassettes.file import CassetteWriter

ROOM = 1 << 18  # unwritten bytes at which the server stops to produce more
_UNHEARD = 64  # the maximum number of reads of earlier input after a signal


class Ended(Exception):
    """An exception that ends the server.

    Waiting output is written before the end. `status` is the exit status, or None for the default status.
    """

    def __init__(self, status: int | None = None) -> None:
        super().__init__(status)
        self.status = status


class Killed(BaseException):
    """Raised when a signal ends the server during a wait."""


class Stdio:
    """The base class of the replaying and the scripted server: the loop, the output, and the capture of the client's messages.

    A subclass overrides `line`, `may_advance`, `advance`, `next_due` and `finish`.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.home = environ.get("HOME", "")
        self.start = monotonic()
        self.waiting = 0  # bytes not yet written
        self.due: list[tuple[float, bytes]] = []  # with a pace: when, what
        self.failed = False
        self.keeps_numbers = False  # whether the imitated version keeps unusual numbers as texts (`serde.read`)
        self.capture: CassetteWriter | None = None
        self._out: list[bytes] = []
        self._status: int | None = None
        self._splitter: LineSplitter | None = LineSplitter()  # None once the client is no longer read
        self._waits = True  # whether a signal may strike here
        self._signal = 0  # the one that ends this run
        self.fault: Fault | None = None
        if environ.get("FAKE_CODEX_FAULT"):
            from codex_fakes.stdio.faults import fault_of

            self.fault = fault_of(environ["FAKE_CODEX_FAULT"])

    # -- what a server is ---------------------------------------------------------------------------------------------

    def line(self, live: Frame) -> None:
        """Process one line of the client."""
        raise NotImplementedError

    @property
    def may_advance(self) -> bool:
        """Return True if some output can be written now."""
        return False

    def advance(self) -> None:
        """Write the output that may be sent now."""

    def next_due(self) -> float | None:
        """Return the time of the next timed output (monotonic seconds), or None."""
        return self.due[0][0] if self.due else None

    def finish(self) -> int:
        """Close every file and return the exit status."""
        return 0

    def exits_on(self, number: int) -> bool:
        """Return True if the imitated Codex version exits with a status after the signal `number`, and False if the signal
        kills it.
        """
        return False

    @property
    def at_end(self) -> bool:
        """Return True when fake-codex no longer reads from the client."""
        return self._splitter is None

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until the client closes stdin, exits or sends a signal.

        After the end of stdin, send the frames whose causes have already arrived.
        """
        try:
            try:
                if self.fault is not None:
                    self.fault.begin()
                self._serve()
            except BrokenPipeError:
                pass  # the client has gone: the remaining output has no reader
            except Ended as end:
                self._status = end.status
                self._splitter = None
                self._flush()
            self._waits = False
        except Killed:
            self._hear_out()

    def _serve(self) -> None:
        while self._splitter is not None or self.may_advance or self._out or self.due:
            self._wait()
            readable, writable = self._poll(self._splitter is not None)
            if writable:
                self._write()
            self._waits = False
            if readable:
                self._read()
            elif self.may_advance and self.waiting < ROOM:
                self.advance()

    def _read(self) -> None:
        """Read the client's input, including a last line without a newline."""
        if (splitter := self._splitter) is None:
            return
        data = read(0, 1 << 16)
        if data:
            if not all(self._take(line) for line in splitter.feed(data)):
                self._splitter = None
            return
        self._splitter = None
        tail = splitter.close()
        if tail:
            self._take(tail)

    # -- signals ------------------------------------------------------------------------------------------------------

    def install_signal_handlers(self) -> None:
        """Install handlers for the signals that end the real server: they end `run`.

        A signal that the client ignores stays ignored.
        """
        for number in (SIGTERM, SIGINT, SIGHUP):
            if getsignal(number) != SIG_IGN:
                signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._signal or not _can_be_told():
            if self.exits_on(number):
                _exit(0)
            die(number)
        self._signal = number
        if self._waits:
            raise Killed

    def _wait(self) -> None:
        """From now on, let signals end the run, including a signal that has already arrived."""
        self._waits = True
        if self._signal:
            raise Killed

    def _hear_out(self) -> None:
        """Read the input that the client sent before its signal. The input gets no answer."""
        self._waits = False
        try:
            for _ in range(_UNHEARD):
                if self._splitter is None or not select.select([0], [], [], 0)[0]:
                    break
                self._read()
        except (Ended, Killed):
            pass

    # -- output -------------------------------------------------------------------------------------------------------

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
        """Process one line of the client. Return False if the line ends the server: the real server ends after invalid UTF-8."""
        live = Frame(0, monotonic() - self.start, "rpc", "client", raw=line, value=read_message(line, self.keeps_numbers))
        if self.capture is not None:
            self.capture.write(live)
        self.line(live)
        return _is_utf8(line)

    def send(self, raw: bytes) -> None:
        """Write a line to the client. A fault may replace the line by several lines."""
        if self.fault is None:
            self._out.append(raw)
            self.waiting += len(raw)
            return
        for piece in self.fault.chunks(raw):
            self._out.append(piece)
            self.waiting += len(piece)
        if self.fault.over:
            self._splitter = None
            self._flush()
            self.fault.strike()
            raise Ended(self.fault.status)

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        """Refuse a request: write an error whose members are in the order of the real server."""
        self.send(dumps({"error": error, "id": request_id}) + b"\n")

    def _move_due(self) -> None:
        now = monotonic()
        while self.due and self.due[0][0] <= now:
            self.send(self.due.pop(0)[1])

    def _write(self) -> None:
        """Write as many bytes to the client as possible without blocking.

        A pipe that poll() reports as writable accepts PIPE_BUF bytes without blocking.
        """
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
        """Write each chunk of a fault separately, so that the client can read the chunks separately."""
        piece = self._out.pop(0)
        sent = write(1, piece[: select.PIPE_BUF])
        if sent < len(piece):
            self._out.insert(0, piece[sent:])
        self.waiting -= sent
        if self.fault is not None:
            self.fault.rest()

    def _flush(self) -> None:
        """Write the remaining output at the end of the server. If the client no longer reads, drop the output."""
        self._wait()
        data, self._out = memoryview(b"".join(self._out)), []
        try:
            while data:
                data = data[write(1, data) :]
        except BrokenPipeError:
            pass

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> int:
        """End the server. Return the exit status; if a signal ended the run, let it kill this process."""
        status = 1
        try:
            status = self.finish()
            if self.capture is not None:
                self.capture.close()
        except Exception as error:
            if not self._signal:
                raise
            from codex_replay.core.text.error_text import error_text

            write_out(f"fake-codex: {error_text(error)}")
        if self._signal and not self.exits_on(self._signal):
            die(self._signal)
        return status if self._status is None else self._status


def die(number: int) -> None:
    """Let the signal `number` kill this process immediately, as it kills the real server (REAL-94)."""
    signal(number, SIG_DFL)
    kill(getpid(), number)


def _can_be_told() -> bool:
    try:
        return bool(select.select([], [2], [], 0)[1])
    except (OSError, ValueError):
        return False


def write_out(text: str) -> None:
    """Write a message for the user to stderr, without secrets and control characters. Ignore a closed stderr."""
    from codex_replay.core.redact.sentence import sentence  # not on the start-up path

    try:
        sys.stderr.write(sentence(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def report_unreadable(live: Frame) -> None:
    """Report on stderr a line of the client that is not a JSON-RPC message."""
    from codex_replay.core.redact.sentence import shown_line

    sentence = f"Failed to deserialize JSONRPCMessage: {shown_line(live.raw)} (the real server does not answer it either)"
    write_out(f"fake-codex: {sentence}")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
