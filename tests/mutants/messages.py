"""The mutants of what any subject sends that is seen as messages: HTTP requests, answers and events, JSON-RPC lines.

A conversation is a tuple of messages. An adapter (clients, fakes) makes it of what a case has seen of its subject, and makes of
changed messages what the case sees of a wrong subject. So all subjects have the same changes, and the same judge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tests.mutants.operators import Change
from tests.mutants.sites import OPAQUE, Mutant, Sites, change_in


class Message(NamedTuple):
    """One message: its kind, its value as JSON ("" for none), and what it came with; `place` is for the way back."""

    kind: str
    text: str
    headers: tuple[tuple[str, str], ...] = ()
    status: int | None = None
    place: Any = None

    @property
    def value(self) -> Any:
        """The value decoded."""
        return json.loads(self.text)


Messages = tuple[Message, ...]
#: Changes a conversation; the same object if there is nothing to change in it.
Alter = Callable[[Messages], Messages]

#: The kind of a message that is not changed.
OTHER = "(another)"
#: Headers of the connection and of the HTTP library: no suite can see them, or there is no message without them.
CONNECTION = {"accept-encoding", "connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding"}
CONNECTION |= {"upgrade", "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-version"}
STATUSES = (200, 201, 400, 401, 404, 500)
#: What may become of the id of a request: with another value the peer would answer with that value.
IDS = {"is missing", "is null", "is a boolean", "is an object", "is an array"}


class Adapter(Protocol):
    """One kind of subject: how its cases are recorded and replayed."""

    subject: str
    fixture: str
    opaque: Collection[str]
    words: Collection[str]

    def record(self, kept: Callable[[], list[Any]]) -> Callable[[], None]:
        """Record what the subject sends: `kept` is the list of the case that runs. Return the function that ends it."""

    def messages(self, one: Any) -> Messages:
        """Return a recorded conversation as messages."""

    def changed(self, one: Any, messages: Messages) -> Any:
        """Return a recorded conversation with other messages."""

    def leaves_out(self, kind: str, path: str, what: str) -> bool:
        """Return True for a change that another mutant stands for."""

    def stand_in(self, nodeid: str, found: list[Any]) -> Any:
        """Return what takes the fixture's place in a case: it gives these conversations back."""

    def finish(self, stand_in: Any) -> None:
        """Check what the suite checks at the end of each case."""


@dataclass
class Conversations:
    """The conversations of one case."""

    adapter: Adapter
    found: list[Any] = field(default_factory=list)
    _messages: list[Messages] = field(default_factory=list)

    @property
    def fixture(self) -> str:
        """The fixture that the stand-in is for."""
        return self.adapter.fixture

    @property
    def messages(self) -> list[Messages]:
        """The messages of each conversation."""
        if len(self._messages) != len(self.found):
            self._messages = [self.adapter.messages(one) for one in self.found]
        return self._messages

    @property
    def passes(self) -> set[str]:
        """The kinds of all messages, behind the subject."""
        return {f"{self.adapter.subject} {message.kind}" for each in self.messages for message in each}

    def stand_in(self, nodeid: str, mutant: Mutant | None) -> Any:
        """Return the fixture's stand-in, None if the mutant changes nothing in this case."""
        found, same = [], True
        for one, messages in zip(self.found, self.messages, strict=True):
            altered = messages if mutant is None else mutant.mutation(messages)
            same = same and altered is messages
            found.append(one if altered is messages else self.adapter.changed(one, altered))
        return None if same and mutant is not None else self.adapter.stand_in(nodeid, found)

    def finish(self, stand_in: Any) -> None:
        """Check what the suite checks at the end of each case."""
        self.adapter.finish(stand_in)


def message_mutants(adapter: Adapter, cases: Iterable[Conversations]) -> Iterator[Mutant]:
    """Yield the mutants of one subject: of each member of each kind of message, of its headers and status, and of the order."""
    sites: dict[str, Sites] = {}
    headers: dict[str, set[str]] = {}
    with_status: set[str] = set()
    for message in (message for case in cases for each in case.messages for message in each):
        if message.kind == OTHER:
            continue
        found = sites.setdefault(message.kind, Sites(adapter.opaque, adapter.words))
        if message.text:
            found.add(message.value)
        headers.setdefault(message.kind, set()).update({name.lower() for name, _ in message.headers} - CONNECTION)
        if message.status is not None:
            with_status.add(message.kind)

    def mutant(kind: str, site: str, what: str, alter: Alter) -> Mutant:
        return Mutant(adapter.subject, f"{kind}{site}", what, alter, f"{adapter.subject} {kind}")

    for kind, found in sites.items():
        for path, wanted, what, change in found.all():
            if adapter.leaves_out(kind, path, what) or (path == "id" and "method" in found.members and what not in IDS):
                continue
            yield mutant(kind, f" {path}", f"({wanted}) {what}", _in_value(kind, path, str(wanted), change))
        for what, order in ORDERS.items():
            if adapter.leaves_out(kind, "", what):
                continue
            yield mutant(kind, "", what, _in_order(kind, order))
        for name in sorted(headers[kind]):
            for what, make in HEADERS.items():
                yield mutant(kind, f" header {name}", what, _in_headers(kind, name, make))
        if headers[kind]:
            yield mutant(kind, " header x-unknown", "is added", _in_headers(kind, "x-unknown", lambda _: "x"))
        for status in STATUSES if kind in with_status else ():
            yield mutant(kind, " status", f"is {status}", _with_status(kind, status))


def _in_value(kind: str, path: str, wanted: str, change: Change) -> Alter:
    def alter(messages: Messages) -> Messages:
        altered = list(messages)
        for at, message in enumerate(messages):
            if message.kind == kind and message.text and change_in(value := message.value, path, wanted, change):
                altered[at] = message._replace(text=json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        return tuple(altered) if altered != list(messages) else messages

    return alter


HEADERS: dict[str, Callable[[str], str | None]] = {
    "is missing": lambda _: None,
    "is empty": lambda _: "",
    "has another value": lambda _: "x-other",
    "is longer": lambda value: value + "x",
}


def _in_headers(kind: str, name: str, make: Callable[[str], str | None]) -> Alter:
    def one(message: Message) -> Message:
        if message.kind != kind:
            return message
        old = next((value for key, value in message.headers if key.lower() == name), "")
        value = make(old)
        kept = tuple((key, each) for key, each in message.headers if key.lower() != name)
        return message._replace(headers=kept if value is None else (*kept, (name, value)))

    def alter(messages: Messages) -> Messages:
        altered = tuple(map(one, messages))
        return altered if altered != messages else messages

    return alter


def _with_status(kind: str, status: int) -> Alter:
    def alter(messages: Messages) -> Messages:
        altered = tuple(each._replace(status=status) if each.kind == kind else each for each in messages)
        return altered if altered != messages else messages

    return alter


def _swap(messages: list[Message], at: int) -> None:
    if at:
        messages[at - 1], messages[at] = messages[at], messages[at - 1]


ORDERS: dict[str, Callable[[list[Message], int], None]] = {
    "is omitted": lambda messages, at: messages.__delitem__(at),
    "comes twice": lambda messages, at: messages.insert(at, messages[at]),
    "comes before the one that precedes it": _swap,
    "comes last": lambda messages, at: messages.append(messages.pop(at)),
}


def _in_order(kind: str, order: Callable[[list[Message], int], None]) -> Alter:
    def alter(messages: Messages) -> Messages:
        at = next((n for n, message in enumerate(messages) if message.kind == kind), None)
        if at is None:
            return messages
        altered = list(messages)
        order(altered, at)
        return tuple(altered) if tuple(altered) != messages else messages

    return alter


def slots(messages: Messages) -> dict[int, list[str]]:
    """Return the texts by the places in which they are sent: the places stay, in their order, whatever is sent in them."""
    found: dict[int, list[str]] = {}
    for at, message in zip(sorted(message.place for message in messages), messages, strict=True):
        found.setdefault(at, []).append(message.text)
    return found


def default_opaque(*more: str) -> Collection[str]:
    """Return the members whose values are one place each, with these."""
    return OPAQUE | set(more)
