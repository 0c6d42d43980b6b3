"""Write the traffic that a recorder sees to a cassette.

Both seams share one cassette and one clock. A write error stops the recording, but not the traffic.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.file import CassetteError


class Writer(Protocol):
    """The interface of a `CassetteWriter`: `frames` is the number of written frames, `path` the name of the file in messages."""

    path: str
    frames: int

    def write(self, frame: Frame) -> object:
        """Take one frame."""

    def abandon(self) -> None:
        """End an incomplete recording."""

    def close(self) -> None:
        """End."""


class Log:
    """Write the traffic that passes through a recorder to a cassette.

    If writing fails, the failure is reported once, and `on` becomes False. The function `write_out` gets a sentence about
    the failure. The failed frame and all later frames are omitted: the cassette is then truncated, but contains no wrong
    frame.
    """

    def __init__(self, writer: Writer, write_out: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.on = True
        self._whole = True
        self._writer = writer
        self._write_out = write_out
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()  # the http seam is recorded in a thread of its own

    def now(self) -> float:
        """Return the seconds since the recording started."""
        return self._clock() - self._start

    def line(self, sender: str, raw: bytes) -> None:
        """Record one line of the rpc seam. When `line` returns, the operating system has the recorded line."""
        self.frame(Frame(0, 0.0, "rpc", sender, "msg", raw))

    def frame(self, frame: Frame) -> None:
        """Log one frame, with its number and its time."""
        self.built(lambda: frame)

    def built(self, build: Callable[[], Frame]) -> None:
        """Record the frame that the function `build` returns.

        An error in the function `build` ends the recording, like a write error.
        """
        with self._lock:
            if not self.on:
                return
            try:
                frame = build()
                frame.t = self.now()
                self._writer.write(frame)
            except CassetteError as error:
                self._stop(str(error))
            except Exception as error:  # above all a redactor that fails: a frame must never be written unredacted
                self._stop(f"{self._writer.path}: frame {self._writer.frames} could not be recorded ({error!r}).")

    def partial(self) -> None:
        """Mark the recording as partial, because some traffic could not be recorded. The recording continues, but the cassette
        gets no footer.
        """
        self._whole = False

    def give_up(self, why: str) -> None:
        """Stop the recording, and leave the cassette without a footer."""
        with self._lock:
            self._stop(why)

    def _stop(self, why: str) -> None:
        if self.on:
            self.on = False
            self._writer.abandon()
            self._write_out(f"{why} Recording stops here; the traffic continues.")

    def close(self) -> None:
        """Write the footer, unless the recording is broken or partial."""
        with self._lock:
            if not self.on:
                return
            self.on = False
            if not self._whole:
                self._writer.abandon()
                return
            try:
                self._writer.close()
            except CassetteError as error:
                self._write_out(f"{error} The cassette has no footer.")
