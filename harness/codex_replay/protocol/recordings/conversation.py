"""The conversation that a test recorded: its frames in order, and a readable text for comparisons.

A `Conversation` has the raw traffic, including secrets. The function `text` returns the redacted and normalised conversation,
which is safe for files and terminals.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import clean
from codex_replay.core.text.escape import escape
from codex_replay.protocol import data_tables, versions
from codex_replay.protocol.recordings.compare import NormalEvent, normal_form

#: Columns of a line of JSON; a longer value has a line for each member.
WIDTH = 110
_MARGIN = 3


class Conversation(Sequence[Frame]):
    """The frames of a conversation, in the order in which they were recorded.

    `codex` is the Codex version whose tables apply to the frames.
    """

    def __init__(self, frames: Iterable[Frame], codex: str = versions.DEFAULT) -> None:
        self.codex = codex
        self._frames = tuple(frames)

    def __getitem__(self, index: Any) -> Any:
        return self._frames[index]

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self._frames)

    def __repr__(self) -> str:  # without the contents: pytest prints it when a comparison fails, secrets included
        return f"<conversation of {len(self)} frames>"


def rpc_conversation(lines: Iterable[tuple[str, bytes]], codex: str = versions.DEFAULT) -> Conversation:
    """Return a conversation that consists of the given JSON-RPC lines.

    Each line is given as a pair: the sender, "client" or "server", and the line with its line feed.
    """
    return Conversation((Frame(n, 0.0, "rpc", sender, "msg", raw) for n, (sender, raw) in enumerate(lines, 1)), codex)


def http_conversation(exchanges: Iterable[tuple[Mapping[str, Any], int | None]]) -> Conversation:
    """Return a conversation of HTTP requests (method, path, headers, body) and the statuses of their answers (None if not yet
    answered).
    """
    frames: list[Frame] = []
    for conn, (request, status) in enumerate(exchanges, 1):
        frames.append(Frame(len(frames) + 1, 0.0, "http", "client", "request", payload=dict(request), conn=conn))
        if status is not None:
            answer = {"status": status}
            frames.append(Frame(len(frames) + 1, 0.0, "http", "server", "response", payload=answer, conn=conn))
    return Conversation(frames)


def text(
    frames: Iterable[Frame],
    codex: str | None = None,
    *,
    literals: Mapping[str, str] | None = None,
    paths: Mapping[str, str] | None = None,
) -> str:
    """Return a conversation as redacted and normalised text. Each event is one line, followed by its content as JSON.

    `codex` is the Codex version whose tables are used (default: the version in the `Conversation`). If the version has no
    tables, there is a warning. `literals` and `paths` are arguments of `Redactor`, which raises `ValueError` for an entry
    that it cannot replace.
    """
    version = codex or (frames.codex if isinstance(frames, Conversation) else versions.DEFAULT)
    if note := data_tables.choose("normalise", version)[1]:
        warnings.warn(note, stacklevel=2)
    events = normal_form(clean(frames, Redactor(literals=literals, paths=paths)), version, replies_first=True)
    if not events:
        return "(no frames)\n"
    # A label is a method or a path as the program wrote it: control characters and lone surrogates are escaped.
    return "".join(escape(line) + "\n" for event in events for line in _lines(event))


def _lines(event: NormalEvent) -> Iterator[str]:
    counts = event.value
    counts.pop("from")
    exchange = counts.pop("exchange", None)
    message = counts.get("msg")
    if type(message) is dict and not set(message) - {"id", "method", "params", "result", "error"}:
        del counts["msg"]
        yield " ".join(str(word) for word in (event.label, message.get("id")) if word is not None)
        for key in ("params", "result", "error"):
            if key in message:
                yield from _json(message[key])
    else:
        yield event.label if exchange is None else f"{event.label} {exchange}"
    for value in counts.values():
        yield from _json(value)


def _json(value: Any) -> Iterator[str]:
    for line in _pretty("", value, "", _MARGIN).split("\n"):
        yield " " * _MARGIN + line


def _pretty(key: str, value: Any, comma: str, indent: int) -> str:
    """Return a JSON value on one line if it fits, otherwise with one line for each member."""
    short = key + json.dumps(value, ensure_ascii=False) + comma
    if indent + len(short) <= WIDTH or type(value) not in (dict, list) or not value:
        return short
    if type(value) is dict:
        members = [(f"{json.dumps(name, ensure_ascii=False)}: ", inner) for name, inner in value.items()]
        opening, closing = "{", "}"
    else:
        members = [("", inner) for inner in value]
        opening, closing = "[", "]"
    last = len(members) - 1
    lines = [_pretty(name, inner, "," if n < last else "", indent + 2) for n, (name, inner) in enumerate(members)]
    inside = "\n".join(lines).replace("\n", "\n  ")
    return f"{key}{opening}\n  {inside}\n{closing}{comma}"
