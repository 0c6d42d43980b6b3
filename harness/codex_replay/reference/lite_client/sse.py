"""Server-sent events: bytes in chunks of any size become pairs of a name and its data."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield whole lines without their end, which is LF or CRLF; an unfinished last line is not a line."""
    pieces: list[bytes] = []
    for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        pieces.append(head)
        for part in rest:
            yield b"".join(pieces).removesuffix(b"\r").decode("utf-8", "replace")
            pieces = [part]


def events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield (name, data) of each event; comments and other fields are skipped."""
    name = ""
    data: list[str] = []
    for line in lines(chunks):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
