"""What a verb's stdout is when its reader goes (`| head`): what is printed then goes nowhere, and the status still tells.

A verb that judges runs to its verdict, so that its exit status does not hang on how fast a reader was. A verb that would print on
and on asks `gone()`, and ends as if it had been told to. What cannot be written for another reason (a full disk) is an error.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Patient(io.FileIO):
    """The bytes of stdout; from the first write that fails on, they are dropped."""

    failure: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write, or drop, and return how many bytes were taken; raises `OSError` once, unless it is the reader that has gone."""
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.fileno())  # for what is started from now on, too
            os.close(nothing)
            if not isinstance(error, BrokenPipeError):
                raise
            return memoryview(data).nbytes


def patient(stream: TextIO | None) -> TextIO:
    """Return what takes the place of a program's own stdout; None is one that was closed from the start (`>&-`)."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    buffered = io.BufferedWriter(_Patient(stream.fileno(), "wb", closefd=False))
    return io.TextIOWrapper(buffered, stream.encoding, stream.errors, line_buffering=stream.isatty())


def failure() -> OSError | None:
    """Return why nothing can be written to stdout any more, as far as a write has shown."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _Patient) else None


def gone() -> bool:
    """Tell whether nobody reads stdout any more."""
    return isinstance(failure(), BrokenPipeError)
