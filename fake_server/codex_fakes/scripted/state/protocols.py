"""The interfaces of a thread's session and turn, for the modules below them.

Only type checkers load this module, because `typing` must not be imported at start-up."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol

from codex_fakes.scripted.state.settings import Settings
from codex_fakes.scripted.state.waits import Ticket


class State(Protocol):
    """The state folder, as a thread sees it."""

    def allow(self, prefix: list[str]) -> None:
        """Store a command prefix that no longer needs an approval."""


class Out(Protocol):
    """The session, as a thread sees it."""

    table: dict[str, Any]
    rules: list[list[str]]

    @property
    def store(self) -> State | None:
        """The state folder; None if threads are kept only in memory."""

    def send(self, frame: dict[str, Any]) -> None:
        """Send a notification."""

    def ask(self, frame: dict[str, Any], ticket: Ticket) -> None:
        """Number a request, send it, and store its reply in the ticket."""

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request of the client."""

    def delay_output(self, name: str) -> None:
        """Wait for a gap of the real server before the next output."""

    def gap(self, name: str) -> Iterator[Any]:
        """Yield the wait for a gap of the real server, if it has one here."""


class Turn(Protocol):
    """A turn, as its thread and its calls see it."""

    id: str
    settings: Settings

    def run(self) -> Generator[Any, None, None]:
        """Run the turn to its end; yield each wait (`waits`)."""

    def abort(self) -> None:
        """End the turn as an interrupt does."""

    def sentence(self, key: str, /, **values: Any) -> str:
        """Return a text of the table's "sentences"."""
