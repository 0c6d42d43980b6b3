"""What a turn of the scripted fake waits for: a reply, a time, a gate of the script, more input, nothing, or what never comes.

A turn yields one of these; the thread lets it go on once the one that it waits for is `ready`.
"""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Ticket:
    """A reply that is waited for; `reply` is the client's whole message."""

    __slots__ = ("api", "asked", "late", "number", "reply")

    def __init__(self) -> None:
        self.asked = False
        self.number = -1  # the id of the request
        self.late: Callable[[], None] | None = None  # what a reply does that comes after the end of the turn
        self.api = "v2"  # the API of the listener that was asked
        self.reply: dict[str, Any] | None = None

    def ready(self) -> bool:
        """Return True if the reply is there."""
        return self.reply is not None


class Sleep:
    """A time that is waited for, in seconds from now."""

    __slots__ = ("until",)

    def __init__(self, seconds: float) -> None:
        self.until = monotonic() + seconds

    def ready(self) -> bool:
        """Return True if the time has come."""
        return monotonic() >= self.until


class Gap(Sleep):
    """A time that the real server takes; it is over at once when the client has closed stdin (`server.at_end`)."""

    __slots__ = ("_server",)

    def __init__(self, seconds: float, server: Any) -> None:
        super().__init__(seconds)
        self._server = server

    def ready(self) -> bool:
        """Return True if the time has come, or nobody is left who could miss what follows."""
        return self._server.at_end or super().ready()


class SleepOrSteer(Sleep):
    """A time that is waited for unless the turn is steered before (`steered` is its thread's list)."""

    __slots__ = ("_steered",)

    def __init__(self, seconds: float, steered: list[Any]) -> None:
        super().__init__(seconds)
        self._steered = steered

    def ready(self) -> bool:
        """Return True if the time has come or the turn was steered."""
        return bool(self._steered) or super().ready()


class Gate:
    """A gate of the script: it is until the turn is steered (`steered` is its thread's list), or interrupted."""

    __slots__ = ("_before", "_steered")

    def __init__(self, steered: list[Any]) -> None:
        self._steered, self._before = steered, len(steered)

    def ready(self) -> bool:
        """Return True if the turn has been steered since."""
        return len(self._steered) > self._before


class Never:
    """A wait that never ends, such as for a reply that was an error. Only an interrupt ends it."""

    __slots__ = ()

    @staticmethod
    def ready() -> bool:
        """Return False: it has not come."""
        return False


class First:
    """The first of several waits to be ready."""

    __slots__ = ("_waits",)

    def __init__(self, waits: Iterable[Any]) -> None:
        self._waits = tuple(waits)

    def ready(self) -> bool:
        """Return True if one of them is."""
        return any(wait.ready() for wait in self._waits)


class Quiet:
    """A wait until the client has sent nothing more: input that is there already comes before the first request to the model."""

    __slots__ = ()

    @staticmethod
    def ready() -> bool:
        """Return True: the loop reads first, and goes on when there is nothing to read."""
        return True


class Pause:
    """A check of the client: other work continues, and the turn continues at once."""

    __slots__ = ()

    @staticmethod
    def ready() -> bool:
        """Return True: there is nothing to wait for."""
        return True
