"""Decode server-sent events: convert bytes, in chunks of any size, to pairs of an event's name and data."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the complete lines of a stream without their line end (LF or CRLF). Bytes after the last line end are dropped."""
    pieces: list[bytes] = []
    for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        pieces.append(head)
        for part in rest:
            yield b"".join(pieces).removesuffix(b"\r").decode("utf-8", "replace")
            pieces = [part]


def events(chunks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield (name, data) for each server-sent event. Comments and all other fields of an event are ignored."""
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
