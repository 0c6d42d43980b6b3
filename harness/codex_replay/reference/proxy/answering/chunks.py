"""The parts of an answer, the same for both APIs: texts, calls, breaks between messages, and finally the token usage."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

from codex_replay.reference.proxy.answering.dialect import DialectParser
from codex_replay.reference.proxy.answering.events import AgentMessage, Delta, Native, Usage
from codex_replay.reference.proxy.answering.tool_calls import Piece as Parsed
from codex_replay.reference.proxy.answering.tool_calls import ToolCallParser
from codex_replay.reference.proxy.asking.instructions import call_markup
from codex_replay.reference.proxy.asking.normalise import Asked
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.settings import OBSIDIAN_XML


class Text(NamedTuple):
    """A piece of the answer's text."""

    text: str


class Call(NamedTuple):
    """A call of one of the client's tools; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class Break(NamedTuple):
    """A break between messages: the texts after it belong to the next message of the model."""


class Done(NamedTuple):
    """The last part of an answer. `usage` is None if the server did not report the token usage."""

    usage: Usage | None


Piece = Text | Call | Break | Done


async def answer_chunks(exchange: Exchange, asked: Asked, mode: str) -> AsyncIterator[Piece]:
    """Yield the parts of the answer to a client's request.

    If the request declares tools, the model's text is searched for tool calls. Raises `ProxyError` if the turn or the server
    fails.
    """
    sort = _Sorter(asked, mode, exchange.markup)
    sent: dict[str, list[str]] = {}
    item: str | None = None
    usage = None
    async for event in exchange.events():
        if isinstance(event, Usage):
            usage = event
        elif isinstance(event, Native):
            for piece in sort.call(event.call_id, event.name, event.arguments):
                yield piece
        elif isinstance(event, Delta | AgentMessage) and (new := _unsaid(sent.setdefault(event.item, []), event)):
            if item not in (None, event.item):
                for piece in [*sort.end(), Break()]:
                    yield piece
            item = event.item
            for piece in sort.text(new):
                yield piece
    for piece in sort.end():
        yield piece
    yield Done(usage)


def _unsaid(sent: list[str], event: Delta | AgentMessage) -> str:
    """Return the new text of an event: the text of a delta, or the part of a complete message that is not in the deltas before
    it.
    """
    new = event.text
    if isinstance(event, AgentMessage):
        so_far = "".join(sent)
        new = new[len(so_far) :] if new.startswith(so_far) else ""
    sent.append(new)
    return new


class _Sorter:
    """Split each message of the model into texts and calls."""

    def __init__(self, asked: Asked, mode: str, markup: Mapping[str, str] | None) -> None:
        self._markup = markup
        self._parser = self._new_parser() if asked.tools.names else None
        self._one = not asked.tools.parallel
        self._as_text = mode == OBSIDIAN_XML
        self._called = False

    def _new_parser(self) -> ToolCallParser | DialectParser:
        return ToolCallParser() if self._markup is None else DialectParser(self._markup)

    def text(self, text: str) -> Iterable[Piece]:
        return self._sorted(self._parser.feed(text)) if self._parser else [Text(text)]

    def end(self) -> list[Piece]:
        found = list(self._sorted(self._parser.close())) if self._parser else []
        self._parser = self._new_parser() if self._parser else None
        return found

    def call(self, call_id: str, name: str, arguments: str) -> Iterable[Piece]:
        found = [*self.end()]
        if not (self._one and self._called):
            self._called = True
            found.append(Text(call_markup(name, arguments)) if self._as_text else Call(call_id, name, arguments))
        return found

    def _sorted(self, parsed: list[Parsed]) -> Iterable[Piece]:
        for part in parsed:
            if isinstance(part, str):
                yield Text(part)
            elif not (self._one and self._called):
                self._called = True
                name, arguments = part
                yield Text(call_markup(name, arguments)) if self._as_text else Call(new_id("call_"), name, arguments)


def new_id(prefix: str) -> str:
    """A unique id."""
    return prefix + os.urandom(12).hex()
