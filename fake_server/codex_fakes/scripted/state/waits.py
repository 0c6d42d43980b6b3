"""The conditions that a turn of the scripted fake waits for: a reply, a time, a gate of the script, more input, or nothing.

A turn yields one of the objects in this module, and continues when the object is `ready`.
"""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Ticket:
    """Wait for the client's reply to a request of the server. `reply` is the whole reply message."""

    __slots__ = ("api", "asked", "frame", "late", "number", "reply")

    def __init__(self) -> None:
        self.asked = False
        self.number = -1  # the id of the request
        self.frame: dict[str, Any] = {}  # the request
        self.late: Callable[[], None] | None = None  # what a reply does that comes after the end of the turn
        self.api = "v2"  # the API of the listener that was asked
        self.reply: dict[str, Any] | None = None

    def ready(self) -> bool:
        """Return True if the reply has arrived."""
        return self.reply is not None

    def take_late(self) -> None:
        """Process the reply if it has come after the end of its turn."""
        if self.late is not None:
            self.late()


class Sleep:
    """Wait for a time, in seconds from now."""

    __slots__ = ("until",)

    def __init__(self, seconds: float) -> None:
        self.until = monotonic() + seconds

    def ready(self) -> bool:
        """Return True if the waiting time has passed."""
        return monotonic() >= self.until


class Gap(Sleep):
    """Wait for the length of a pause that the real server makes.

    A wait for a pause ends immediately when the client has closed stdin (`server.at_end`).
    """

    __slots__ = ("_server",)

    def __init__(self, seconds: float, server: Any) -> None:
        super().__init__(seconds)
        self._server = server

    def ready(self) -> bool:
        """Return True if the waiting time has passed, or if the client has closed stdin and can no longer send anything."""
        return self._server.at_end or super().ready()


class SleepOrSteer(Sleep):
    """Wait for a time, or until the client steers the turn. `steered` is the thread's list of inputs that steer the turn."""

    __slots__ = ("_steered",)

    def __init__(self, seconds: float, steered: list[Any]) -> None:
        super().__init__(seconds)
        self._steered = steered

    def ready(self) -> bool:
        """Return True if the waiting time has passed or the turn was steered."""
        return bool(self._steered) or super().ready()


class Gate:
    """Wait at a gate of the script until the gate is released, or the turn is steered or interrupted.

    `steered` is the thread's list of inputs that steer the turn. The first `used` inputs have opened earlier gates, so that only
    a further input opens this gate.
    """

    __slots__ = ("_steered", "_used")

    def __init__(self, steered: list[Any], used: int) -> None:
        self._steered, self._used = steered, used

    def ready(self) -> bool:
        """Return True if the client has steered the turn once more."""
        return len(self._steered) > self._used


class Never:
    """Wait forever, for example after the client has replied with an error. Only an interrupt ends the wait."""

    __slots__ = ()

    @staticmethod
    def ready() -> bool:
        """Return False, because only an interrupt ends the wait."""
        return False


class First:
    """Wait until the first of several waits is ready."""

    __slots__ = ("_waits",)

    def __init__(self, waits: Iterable[Any]) -> None:
        self._waits = tuple(waits)

    def ready(self) -> bool:
        """Return True if one of the waits is ready."""
        return any(wait.ready() for wait in self._waits)


class Quiet:
    """Wait until all input that has already arrived is read, because it comes before the first request to the model."""

    __slots__ = ()

    @staticmethod
    def ready() -> bool:
        """Return True, because the loop reads all input before it continues a turn."""
        return True


class Pause:
    """Let other work run once, and then continue the turn."""

    __slots__ = ()

    @staticmethod
    def ready() -> bool:
        """Return True, because the turn need not wait."""
        return True
