"""What a live object did in a case, and a copy of it that does the same once more: the calls that wait for a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codex_replay.shell.rpc.client import SubjectFailure
from tests.mutants.recording import NotReplayable

LOG = "_mutants_log"


def log_calls(owner: type, names: tuple[str, ...], length: Callable[[Any], int]) -> Callable[[], None]:
    """Keep each outermost call of these methods: its name, its result, and how much had passed by then. Return the end of it."""
    old = {name: getattr(owner, name) for name in names}
    busy: set[int] = set()

    def logged(name: str) -> Callable[..., Any]:
        def call(self: Any, *given: Any, **more: Any) -> Any:
            if id(self) in busy:
                return old[name](self, *given, **more)
            busy.add(id(self))
            result: Any = None
            try:
                result = old[name](self, *given, **more)
            except SubjectFailure as error:
                result = error
                raise
            else:
                return result
            finally:
                self.__dict__.setdefault(LOG, []).append((name, result, length(self)))
                busy.discard(id(self))

        return call

    for name in names:
        setattr(owner, name, logged(name))

    def end() -> None:
        for name, method in old.items():
            setattr(owner, name, method)

    return end


class Log:
    """The kept calls of one object, taken one after the other."""

    def __init__(self, live: Any) -> None:
        self._calls = list(live.__dict__.get(LOG, []))
        self._at = 0
        self.length = 0

    def next_is(self, name: str) -> bool:
        """Return True if the next call is one of this method."""
        return self._at < len(self._calls) and self._calls[self._at][0] == name

    def take(self, name: str) -> Any:
        """Return what the next call gave, or raise what it raised. Raises `NotReplayable` if it is one of another method."""
        if not self.next_is(name):
            raise NotReplayable
        _, result, self.length = self._calls[self._at]
        self._at += 1
        if isinstance(result, SubjectFailure):
            raise result
        return result


def replayed(name: str) -> Callable[..., Any]:
    """Return a method that gives what the call of the live object gave; the object has its `log`."""

    def call(self: Any, *given: Any, **more: Any) -> Any:
        return self.log.take(name)

    return call
