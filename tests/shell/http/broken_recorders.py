"""Recorders with one documented fault each, run as programs: what the tests of the real one must turn red.

python broken_recorders.py VARIANT record --out F -- CMD
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from codex_replay.cli.io import literals
from codex_replay.core.redact import redactor, sentence
from codex_replay.core.wire import content_encoding
from codex_replay.shell.http import bodies, deferred, relay, watch
from codex_replay.shell.http import recorder as http_recorder
from codex_replay.shell.rpc import recorder


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


class FailingRedactor(redactor.Redactor):
    """Cannot redact a line: the frame must then not be written at all."""

    def redact(self, data: bytes) -> bytes:
        if data.endswith(b"\n"):
            raise RuntimeError("no redaction today")
        return super().redact(data)


class DeadRedactor(redactor.Redactor):
    """Cannot redact anything, not even the header."""

    def redact(self, data: bytes) -> bytes:
        raise RuntimeError("no redaction today")


class BlindRedactor(redactor.Redactor):
    """Leaves every secret where it is."""

    def redact(self, data: bytes) -> bytes:
        return data


class ForgetsLiterals(redactor.Redactor):
    """Knows no secrets but those that have a form."""

    def __init__(self, *, paths: Any = None, literals: Any = None, homes: bool = True) -> None:
        super().__init__(paths=paths, homes=homes)


class ForgetsHalfEvents(bodies.EventBody):
    """Logs no event that its stream broke off."""

    def close(self) -> None:
        self._flush()


class ForgetsChunks(bodies.EventBody):
    """Takes no note of where HTTP chunks end in an event."""

    def chunk_end(self) -> None:
        self._flush()


class EndsPolitely(relay.Side):
    """Passes a reset on as an end in good order."""

    def close(self, reset: bool = False) -> None:
        super().close()


class Buffers(relay.Side):
    """Sends a client nothing before its answer is whole."""

    held = b""

    def write(self, data: bytes) -> None:
        self.held += data
        if self.name == "server" or self.held.endswith(b"0\r\n\r\n"):
            super().write(self.held)
            self.held = b""


class LagsBehind(deferred.Deferred):
    """Logs a frame of HTTP only when three more have come."""

    lag: list[deferred.Build]

    def built(self, build: deferred.Build) -> None:
        self.lag = [*getattr(self, "lag", []), build]
        if len(self.lag) > 3:
            super().built(self.lag.pop(0))


LANES = {
    "logs-late": LogsLate,
    "forwards-first": ForwardsFirst,
    "drops-tail": DropsTail,
    "tidies-line-ends": TidiesLineEnds,
    "greedy": Greedy,
}
REDACTORS = {
    "failing-redactor": FailingRedactor,
    "blind-redactor": BlindRedactor,
    "dead-redactor": DeadRedactor,
    "forgets-literals": ForgetsLiterals,
}
EVENT_BODIES = {"forgets-half-events": ForgetsHalfEvents, "forgets-chunks": ForgetsChunks}
SIDES = {"ends-politely": EndsPolitely, "buffers": Buffers}

if __name__ == "__main__":
    variant = sys.argv.pop(1)
    assert sentence.Redactor is redactor.Redactor, "the sentences of a broken recorder have a whole redactor"
    recorder.Lane = LANES.get(variant, recorder.Lane)  # type: ignore[misc]
    redactor.Redactor = REDACTORS.get(variant, redactor.Redactor)  # type: ignore[misc]
    watch.EventBody = EVENT_BODIES.get(variant, bodies.EventBody)  # type: ignore[misc]
    relay.Side = SIDES.get(variant, relay.Side)  # type: ignore[misc]
    if variant == "lags-behind":
        http_recorder.Deferred = LagsBehind  # type: ignore[misc]
    if variant == "decodes-all":
        decode = content_encoding.decode
        content_encoding.decode = lambda raw, encoding, limit=0: decode(raw, encoding, 1 << 40)  # knows no limit
    if variant == "says-literals":
        literals.without = lambda text, literals: text
    from codex_replay.cli.main import main

    main()
