"""Offsets in the bytes of HTTP requests, which the parser does not report: it is fed byte by byte to find them.

That takes a microsecond a byte, so it is done only in the blocks in which an offset is; the others are fed whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

import httptools

_BLOCK = 4096


class Offsets:
    """Byte offsets: the end of the last complete request (`ended`), the bytes passed on (`passed`), and the start of the open
    `chunk`.
    """

    def __init__(self, raw: bytes | bytearray) -> None:
        self.ended = self.passed = self.chunk = self._at = 0
        if len(raw) > _BLOCK:
            self._feed(raw, ())
            fine = {(at - 1) // _BLOCK for at in (self.ended, self.passed, self.chunk) if at}
            self.ended = self.passed = self.chunk = 0
        else:
            fine = {0}
        self._feed(raw, fine)

    def _feed(self, raw: bytes | bytearray, fine: Collection[int]) -> None:
        parser = httptools.HttpRequestParser(self)
        with contextlib.suppress(httptools.HttpParserError):
            for start in range(0, len(raw), _BLOCK):
                size = 1 if start // _BLOCK in fine else _BLOCK
                for at in range(start, min(start + _BLOCK, len(raw)), size):
                    self._at = min(at + size, len(raw))
                    parser.feed_data(raw[at : self._at])

    def on_headers_complete(self) -> None:
        """Note the end of a head."""
        self.passed = self.chunk = self._at

    def on_body(self, _: bytes) -> None:
        """Note a byte of a body."""
        self.passed = self._at

    def on_chunk_complete(self) -> None:
        """Note the end of an HTTP chunk."""
        self.passed = self.chunk = self._at

    def on_message_complete(self) -> None:
        """Note the end of a request."""
        self.passed = self.ended = self._at


_HEAD = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"


def shortened(raw: bytes | bytearray) -> bytes:
    """Return the beginning of a request that can go on as `raw` can, without the chunks whose bytes were passed on.

    `raw` begins with a request and ends in its chunked body. The result is short unless a size line or the trailers are long.
    """
    rest = bytes(raw[Offsets(raw).chunk :])
    line, complete, data = rest.partition(b"\r\n")
    size = int(line.partition(b";")[0], 16) if complete else 0
    if not size:
        return _HEAD + rest  # within a size line, or among the trailers
    if len(data) < size:
        return _HEAD + b"%x\r\n" % (size - len(data))
    return _HEAD + b"1\r\n" + data[size - 1 :]
