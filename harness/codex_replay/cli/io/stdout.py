"""Write to a stdout that its reader may close (as in `| head`): further output is dropped, and the exit status stays correct.

A command with a verdict always runs to its end, so that its exit status does not depend on the reader of stdout. If the
reader of stdout is gone, a command with endless output ends as after an interrupt (see `disconnected()`). Any other
error while writing to stdout, such as a full disk, makes the command fail.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from codex_replay.core.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from codex_replay.core.redact.redactor import Redactor


def _escaping(keep: bool) -> Callable[[UnicodeError], tuple[bytes, int]]:
    """Return an error handler for the encoding of stdout.

    The error handler writes a character that the encoding lacks as a JSON escape (`\\u....`).

    With `keep`, if a file name contains a byte that Python could not decode, the error handler writes the byte unchanged.
    """

    def escaped(error: UnicodeError) -> tuple[bytes, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        encoded = b""
        for sign in error.object[error.start : error.end]:
            if keep and "\udc80" <= sign <= "\udcff":
                encoded += bytes([ord(sign) - 0xDC00])
            else:
                units = sign.encode("utf-16-be", "surrogatepass").hex()
                encoded += b"".join(b"\\u" + units[at : at + 4].encode() for at in range(0, len(units), 4))
        return encoded, error.end

    return escaped


_SHORT = 8  # characters: less is no secret
#: Instead of a stream's own way with what it cannot encode, if that would end in a traceback.
_WAYS = {"strict": "codex-replay-escape", "surrogateescape": "codex-replay-escape-or-keep"}
codecs.register_error(_WAYS["strict"], _escaping(keep=False))
codecs.register_error(_WAYS["surrogateescape"], _escaping(keep=True))


class _Patient(io.FileIO):
    """Writes bytes to stdout; after the first failed write, all further bytes are dropped."""

    failure: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write the bytes to stdout, or drop them if an earlier write failed; return their number.

        Raises `OSError` for the first failed write, unless the reader has closed stdout.
        """
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
    """Return the stream that replaces stdout; `stream` is None if stdout was closed from the start (`>&-`)."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    buffered = io.BufferedWriter(_Patient(stream.fileno(), "wb", closefd=False))
    errors = _WAYS.get(stream.errors or "strict", stream.errors)
    return _Visible(buffered, stream.encoding, errors, line_buffering=stream.isatty())


class _Visible(io.TextIOWrapper):
    """A text stream for users: secrets and control sequences are removed, except in texts for `write_coloured`."""

    _redactor: Redactor | None = None

    def write(self, text: str, /) -> int:
        """Write the text; return the number of characters."""
        self.write_data(self._redacted(text))
        return len(text)

    def write_data(self, text: str) -> None:
        """Write a text for programs to stdout without redaction, because programs may open the paths in the text."""
        super().write(visible(text))

    def write_coloured(self, text: str) -> None:
        """Write a text with control sequences of codex-replay itself (colours, progress).

        The caller must escape control characters in texts that come from other programs before the call.
        """
        super().write(self._redacted(text))

    def _redacted(self, text: str) -> str:
        if len(text) <= _SHORT:
            return text
        if self._redactor is None:
            from codex_replay.core.redact.redactor import Redactor  # most commands print nothing on stderr

            self._redactor = Redactor(homes=False)
        return self._redactor.text(text)


class Coloured:
    """A stream on top of stdout or stderr for the package rich, which writes its own control sequences."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text with its control sequences; return the number of characters."""
        if isinstance(self._stream, _Visible):
            self._stream.write_coloured(text)
        else:
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def coloured_line(text: str) -> None:
    """Print a coloured line on stdout.

    The caller must escape control characters in texts that come from other programs before the call.
    """
    out = Coloured(sys.stdout)
    out.write(text + "\n")
    out.flush()


def for_programs(text: str) -> None:
    """Print a line for programs (JSON, or a path) on stdout.

    The caller must redact texts of other programs in the line before the call.
    """
    out = sys.stdout
    if isinstance(out, _Visible):
        out.write_data(text + "\n")
    else:
        out.write(text + "\n")
    out.flush()


def for_people(stream: TextIO | None) -> TextIO:
    """Return a stream that replaces stderr; the stream removes secrets and control characters from all texts."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    return _Visible(io.FileIO(stream.fileno(), "wb", closefd=False), stream.encoding, "backslashreplace", write_through=True)


def failure() -> OSError | None:
    """Return the error of the first failed write to stdout, or None if all writes succeeded."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _Patient) else None


def disconnected() -> bool:
    """Return True if the reader of stdout has closed it."""
    return isinstance(failure(), BrokenPipeError)


def at_once(text: str) -> None:
    """Print a line without Python's buffer, because the buffer would print its line twice if Ctrl-C interrupts a flush."""
    out: Any = sys.stdout
    out.flush()
    line = (text + "\n").encode(out.encoding, out.errors or "strict")
    raw = getattr(out.buffer, "raw", out.buffer)  # standard output that was closed from the start has none
    while line:
        line = line[raw.write(line) :]
