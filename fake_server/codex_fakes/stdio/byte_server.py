"""A server that sends given bytes to any JSON-RPC client, by a list of steps.

The byte server does exactly what the steps demand, for example fragments, several messages in one write, CRLF, or an exit during
a turn. The byte server is not an app-server, and knows only JSON-RPC.

The command `python -m codex_fakes.stdio.byte_server FOLDER` accepts all arguments of `codex` after FOLDER. The file
`FOLDER/steps.json` is {"runs": [STEPS, ...]}: the steps of the first start, of the second start, ... The file
`FOLDER/ledger.ndjson` is the log, with one JSON object per line. The keys of the log are run, got (a line of the client),
said (a line of the byte server), sent (bytes that are not a line, or too long for the log), gate, eof, exit, lost. Each
file `FOLDER/gates/NAME` is a named pipe: a byte that is written into it opens the gate NAME.

A client request that no later step expects is refused in the same way as Codex refuses an unknown method. After the last
step, the server answers nothing more. The server ends when its stdin ends. The exit status is 0, the status of the step
`exit`, or 2 if the server could not play its steps.

The module imports as little as fake-codex, because a run of a suite starts a hundred byte servers.

Each step is an object with one of these keys:

    expect METHOD           wait for a request or notification of the client
    expect_reply ID         wait for the client's answer to the server's request ID
    reply RESULT            answer the request that was expected last
    refuse ERROR            answer that request with an error
    send MESSAGE            write a message
    together [MESSAGE...]   write several messages together; one without method and id answers the request expected last
    raw TEXT                write this text unchanged
    write {...}             change how later bytes are written: `split` (bytes per piece), `eol`, `ascii` (escape others)
    gate NAME               wait here until the gate is opened
    quiet SECONDS           wait here until the client has sent nothing for this time
    stderr BYTES            write this number of bytes to stderr
    exit STATUS             end immediately
    stay                    do not end with stdin: wait to be killed
"""

from __future__ import annotations

import posix
import select
import sys
from time import monotonic

from codex_replay.core.text.error_text import error_text
from codex_replay.core.wire.json_text import ascii_dumps, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INVALID_REQUEST = -32600  # the real server's error for an unknown method
#: How long a fragment may lie unread before the next one is written all the same, in seconds.
PATIENCE = 0.05
#: Longer lines are not in the ledger.
LONGEST = 1 << 16


class EndOfInput(Exception):
    """The client has closed the stdin of the server."""


class Ledger:
    """Write all traffic of the byte server to its log. Each line of the log is written before the next step."""

    def __init__(self, path: str) -> None:
        self._file = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o644)

    def add(self, **said: Any) -> None:
        """Add a line."""
        posix.write(self._file, ascii_dumps(said) + b"\n")


class Writer:
    """Writes to stdout in the way that the `write` steps define."""

    def __init__(self) -> None:
        self.split = 0
        self.eol = "\n"
        self.ascii = False

    def encode(self, message: Any) -> bytes:
        """Return the line that is written for a message."""
        return (ascii_dumps(message) if self.ascii else dumps(message)) + self.eol.encode()

    def write(self, data: bytes) -> None:
        """Write data to the client.

        With `split`, write pieces of this number of bytes, each when the client has read the previous piece.
        """
        size = self.split or len(data)
        for at in range(0, len(data), size):
            view = memoryview(data)[at : at + size]
            while view:
                view = view[posix.write(1, view) :]
            if self.split:
                _wait_until_read()


def _wait_until_read() -> None:
    import termios  # late: few runs write in pieces

    siocoutq = getattr(termios, "TIOCOUTQ", 0x5411)
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline and any(_pending_output(request) for request in (termios.FIONREAD, siocoutq)):
        posix.sched_yield()


def _pending_output(request: int) -> int:
    """Return the number of bytes that the server has written and the client has not read yet.

    A pipe and a socket need different system calls.
    """
    import fcntl

    try:
        return int.from_bytes(fcntl.ioctl(1, request, bytes(4)), sys.byteorder)
    except OSError:
        return 0


class Player:
    """Plays the steps that `steps.json` lists for one start of the server."""

    def __init__(self, steps: list[dict[str, Any]], folder: str, ledger: Ledger) -> None:
        self.steps = steps
        self.folder = folder
        self.ledger = ledger
        self.writer = Writer()
        self.stays = False
        self._at = 0
        self._inbox: list[dict[str, Any]] = []
        self._pieces: list[bytes] = []
        self._asked: Any = None

    def play(self) -> int:
        """Play all steps, and wait for the end of stdin. Return the exit status. Raises `ValueError` for an invalid step."""
        try:
            for at, step in enumerate(self.steps):
                self._at = at
                name = next(iter(step), "")
                if len(step) != 1 or not hasattr(self, f"step_{name}"):
                    message = ascii_dumps(step).decode()
                    raise ValueError(f"{message} is not a step; the docstring of codex_fakes.stdio.byte_server lists all steps.")
                getattr(self, f"step_{name}")(step[name])
            self._at = len(self.steps)
            while True:
                self._receive()
        except EndOfInput:
            self.ledger.add(eof=True)
        while self.stays:
            import signal  # late: few runs stay

            signal.pause()
        return 0

    # -- the steps -------------------------------------------------------------------------------------------------------

    def step_expect(self, method: str) -> None:
        """Wait for a request or notification with the given method."""
        message = self._take(lambda m: m.get("method") == method)
        self._asked = message.get("id")

    def step_expect_reply(self, asked: Any) -> None:
        """Wait for the answer to a request of the server."""
        self._take(lambda m: "method" not in m and "id" in m and m["id"] == asked and type(m["id"]) is type(asked))

    def step_reply(self, result: Any) -> None:
        """Answer with a result."""
        self._send({"id": self._asked, "result": result})

    def step_refuse(self, error: Any) -> None:
        """Answer with an error."""
        self._send({"error": error, "id": self._asked})

    def step_send(self, message: Any) -> None:
        """Write a message."""
        self._send(message)

    def step_together(self, messages: list[Any]) -> None:
        """Write several messages together, in one write."""
        messages = [message if "method" in message or "id" in message else {"id": self._asked, **message} for message in messages]
        for message in messages:
            self._report_on(message)
        self.writer.write(b"".join(self.writer.encode(message) for message in messages))

    def step_raw(self, text: str) -> None:
        """Write text unchanged."""
        self.ledger.add(sent="raw")
        self.writer.write(text.encode("utf-8", "surrogatepass"))

    def step_write(self, how: dict[str, Any]) -> None:
        """Set how the byte server writes all later data: in pieces, with another line end, or in ASCII."""
        self.writer.split = how.get("split", 0)
        self.writer.eol = how.get("eol", "\n")
        self.writer.ascii = how.get("ascii", False)

    def step_gate(self, name: str) -> None:
        """Wait at a gate until it is opened."""
        self.ledger.add(gate=name)
        with open(f"{self.folder}/gates/{name}", "rb") as gate:
            gate.read(1)

    def step_quiet(self, seconds: float) -> None:
        """Wait until the client has sent nothing for the given number of seconds."""
        while select.select([0], [], [], seconds)[0]:
            self._receive()

    def step_stderr(self, size: int) -> None:
        """Write filler to stderr."""
        line = b"WARN codex_app_server: something that nobody should have to read here ........\n"
        noise = memoryview(line * (size // len(line) + 1))
        while noise:
            noise = noise[posix.write(2, noise) :]

    def step_exit(self, status: int) -> None:
        """End immediately."""
        self.ledger.add(exit=status)
        posix._exit(status)

    def step_stay(self, stays: bool) -> None:
        """Let the server keep running after its stdin has ended."""
        self.stays = stays

    # -- messages --------------------------------------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        self._report_on(message)
        self.writer.write(self.writer.encode(message))

    def _report_on(self, message: Any) -> None:
        line = ascii_dumps(message).decode()
        if len(line) <= LONGEST:
            self.ledger.add(said=line)
        else:
            self.ledger.add(sent=message.get("method", "reply"), bytes=len(line))

    def _take(self, wanted: Any) -> dict[str, Any]:
        """Wait for the first message that the function `wanted` accepts, and return it.

        Other messages are kept for later steps.
        """
        while True:
            for message in self._inbox:
                if wanted(message):
                    self._inbox.remove(message)
                    return message
            self._receive()

    def _receive(self) -> None:
        """Read once from stdin, and take the complete lines. Raises `EndOfInput` at the end of stdin."""
        data = posix.read(0, 1 << 16)
        if not data:
            raise EndOfInput
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join([*self._pieces, line])
            self._pieces.clear()
            self._line(whole)
        self._pieces.append(rest)

    def _line(self, line: bytes) -> None:
        self.ledger.add(got=line.decode("utf-8", "surrogateescape"))
        try:
            message = loads(line)
        except ValueError:
            return  # the real server is silent too; the ledger has it
        if not isinstance(message, dict):
            return
        method = message.get("method")
        expected = any(step.get("expect") == method for step in self.steps[self._at :])
        if method is not None and "id" in message and not expected:
            text = f"Invalid request: unknown variant `{method}`"
            self._send({"error": {"code": INVALID_REQUEST, "message": text}, "id": message["id"]})
        else:
            self._inbox.append(message)


def write_out(text: str) -> None:
    """Write a sentence to stderr."""
    from codex_replay.core.redact.sentence import sentence  # few runs say anything

    sys.stderr.write(sentence(text) + "\n")


def claim_run(folder: str) -> int:
    """Return how often the byte server was started before: 0 for the first start."""
    number = 0
    while True:
        try:
            posix.close(posix.open(f"{folder}/run.{number}", posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL))
            return number
        except FileExistsError:
            number += 1


def main(argv: list[str]) -> int:
    """Play the next run in a folder. Return the exit status."""
    if not argv:
        write_out("byte_server: give the folder of its steps.json.")
        return 2
    folder = argv[0]
    try:
        with open(f"{folder}/steps.json", "rb") as file:
            runs = loads(file.read())["runs"]
        ledger = Ledger(f"{folder}/ledger.ndjson")
        number = claim_run(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        write_out(f"byte_server: {folder}/steps.json cannot be played ({type(error).__name__}: {error_text(error)}).")
        return 2
    ledger.add(run=number, pid=posix.getpid(), argv=argv[1:])
    if number >= len(runs):
        ledger.add(lost=f"This is start {number + 1}, but the number of starts with steps is {len(runs)}.")
        return 2
    try:
        return Player(runs[number], folder, ledger).play()
    except ValueError as error:
        ledger.add(lost=str(error))
        write_out(f"byte_server: {error}")
    except OSError as error:
        ledger.add(lost=f"The client no longer reads ({error.strerror}).")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
