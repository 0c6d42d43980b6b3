"""Recorders with one documented fault each, run as programs: what the tests of the real one must turn red.

python broken_recorders.py VARIANT record --out F -- CMD
"""

from __future__ import annotations

import signal
import sys

from harness.core import redact
from harness.shell import recorder


class LogsLate(recorder.Lane):
    """Logs a line only when the next one comes."""

    late = b""

    def pass_on(self, line: bytes) -> None:
        if self.late:
            self._log.line(self._sender, self.late)
        self.late = line
        self.waiting += line


class ForwardsFirst(recorder.Lane):
    """Logs a line after it has gone on; the pause stands for the moment in which it may be killed."""

    def pass_on(self, line: bytes) -> None:
        self.waiting += line
        while self.waiting:
            self.write()
        if b"kill" in line:
            signal.pause()
        self._log.line(self._sender, line)


class DropsTail(recorder.Lane):
    """Forgets a last line that no newline ends."""

    def end(self) -> None:
        self._splitter.close()
        super().end()


class TidiesLineEnds(recorder.Lane):
    """Passes CRLF on as LF."""

    def pass_on(self, line: bytes) -> None:
        super().pass_on(line.replace(b"\r\n", b"\n"))


class Greedy(recorder.Lane):
    """Reads on though its sink does not."""

    @property
    def readable(self) -> bool:
        return self.source >= 0


class FailingRedactor(redact.Redactor):
    """Cannot redact a line: the frame must then not be written at all."""

    def redact(self, data: bytes) -> bytes:
        if data.endswith(b"\n"):
            raise RuntimeError("no redaction today")
        return super().redact(data)


class DeadRedactor(redact.Redactor):
    """Cannot redact anything, not even the header."""

    def redact(self, data: bytes) -> bytes:
        raise RuntimeError("no redaction today")


class BlindRedactor(redact.Redactor):
    """Leaves every secret where it is."""

    def redact(self, data: bytes) -> bytes:
        return data


LANES = {
    "logs-late": LogsLate,
    "forwards-first": ForwardsFirst,
    "drops-tail": DropsTail,
    "tidies-line-ends": TidiesLineEnds,
    "greedy": Greedy,
}
REDACTORS = {"failing-redactor": FailingRedactor, "blind-redactor": BlindRedactor, "dead-redactor": DeadRedactor}

if __name__ == "__main__":
    variant = sys.argv.pop(1)
    recorder.Lane = LANES.get(variant, recorder.Lane)  # type: ignore[misc]
    redact.Redactor = REDACTORS.get(variant, redact.Redactor)  # type: ignore[misc]
    from harness.cli.main import main

    main()
