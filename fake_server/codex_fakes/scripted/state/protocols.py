"""The interfaces (protocols) of a thread's session and turn, and of the session's server, for modules that these import.

Only type checkers load the module, because `typing` must not be imported at start-up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

from codex_fakes.scripted.state.settings import Settings
from codex_fakes.scripted.state.waits import Ticket


class State(Protocol):
    """The interface of the state folder that a thread uses."""

    def allow(self, prefix: list[str]) -> None:
        """Store a command prefix that no longer needs an approval."""


class Out(Protocol):
    """The interface of the session that a thread uses."""

    table: dict[str, Any]
    rules: list[list[str]]

    @property
    def store(self) -> State | None:
        """The state folder, or None if threads are kept only in memory."""

    def send(self, frame: dict[str, Any]) -> None:
        """Send a notification."""

    def ask(self, frame: dict[str, Any], ticket: Ticket) -> None:
        """Give a request an id, and send the request to the client.

        The client's reply is stored in `ticket`, which a turn can wait for.
        """

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request of the client."""

    def delay_output(self, name: str) -> None:
        """Delay the next output by a pause that the real server makes."""

    def gap(self, name: str) -> Iterator[Any]:
        """Yield the pause `name` of the real server, if there is one."""

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Call a function after some seconds, whether a turn runs or not."""


class Server(Protocol):
    """The interface of the server that sends the frames of the threads."""

    user_agent: str  # the result of initialize
    experimental: bool  # whether the client has declared the capability experimentalApi
    unwanted: frozenset[str]  # notifications that the client does not want
    gaps: float  # the part of the real server's gaps that this one leaves

    @property
    def at_end(self) -> bool:
        """Return True when the client's input has ended."""

    def delay_output(self, seconds: float) -> None:
        """Delay all further output by some seconds."""

    def write_out(self, frame: dict[str, Any]) -> None:
        """Send a frame."""

    def answer_error(self, request_id: Any, error: dict[str, Any]) -> None:
        """Refuse a request."""


class Turn(Protocol):
    """The interface of a turn that its thread and its calls use."""

    id: str
    kind: str  # "turn", "review" or "compact"
    shown_id: str  # the id in turn/started
    settings: Settings
    begun: bool  # whether the client has been told so

    def run(self) -> Generator[Any, None, None]:
        """Run the turn to its end. Each wait of the turn is yielded (see the module `waits`)."""

    def abort(self) -> None:
        """End the turn as an interrupt does."""

    def warn_of_model(self) -> None:
        """Send a warning if the version does not know the model."""

    def sentence(self, key: str, /, **values: Any) -> str:
        """Return a text of the real server, from "sentences" in turn.json of the Codex version."""
