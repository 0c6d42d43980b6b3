"""Split a stream of newline-delimited JSON: take bytes in chunks of any size, and return complete lines.

Each line keeps its line end, so that the joined lines are exactly the received bytes. Only b"\\n" ends a line: the real
app-server treats a carriage return as white space (REAL-84).
"""

from __future__ import annotations


class LineSplitter:
    """Split a stream of bytes into lines, in linear time, even if the chunks are very small."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, each with its b"\\n"."""
        end = data.rfind(b"\n") + 1
        if not end:
            if data:
                self._pieces.append(data)
            return []
        whole = data[:end]
        if self._pieces:
            self._pieces.append(whole)
            whole = b"".join(self._pieces)
            self._pieces.clear()
        if end < len(data):
            self._pieces.append(data[end:])
        lines = whole.split(b"\n")
        lines.pop()
        return [line + b"\n" for line in lines]

    def close(self) -> bytes:
        """Return the bytes after the last b"\\n": an unterminated line, or nothing."""
        tail = b"".join(self._pieces)
        self._pieces.clear()
        return tail
