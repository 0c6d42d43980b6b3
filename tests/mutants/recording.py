"""What the honest proxy sent in each case, and a stand-in for the fixture that gives it to the case once more, changed.

A case of the suite sees a proxy only by what it sends: the answer over HTTP and the frames to the app-server. So a case can run
on a recording, without a process, thousands of times. What the app-server would have answered to a changed call is not simulated:
a mutant is killed by an assertion, never by a refusal.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from codex_replay.plugin.proxy.fixture import Proxy, SubjectFailure
from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.script import marker_of
from codex_replay.plugin.proxy.subject import ProxySubject
from codex_replay.plugin.proxy.wire import WireFrame

CALLS = ("newConversation", "sendUserTurn", "sendUserMessage")
#: Changes one exchange into another; the same object if there is nothing to change in it.
Mutation = Callable[[Exchange], Exchange]


class NotReplayable(Exception):
    """The case needs the process itself: it ends it, or waits for it."""


@dataclass
class Recording:
    """One case: what it asked in its order, the handshake of its app-server, and what the model got."""

    exchanges: list[Exchange] = field(default_factory=list)
    handshake: list[WireFrame] = field(default_factory=list)
    model_calls: list[list[Any]] = field(default_factory=list)
    key: str = ""
    profile: str = ""

    @property
    def fixture(self) -> str:
        """The fixture that the stand-in is for."""
        return "proxy"

    @property
    def passes(self) -> set[str]:
        """The kinds of answers and, as-specified, the methods of what the proxy sends."""
        sent = [f for f in [*self.handshake, *(f for done in self.exchanges for f in done.frames)] if f.sender == "client"]
        methods = {str(f.value.get("method")) for f in sent if isinstance(f.value, dict)}
        answers = {answer_kind(done) for done in self.exchanges if done.status}
        specified = self.profile == "as-specified"
        return answers | (methods & {*CALLS, "initialize", "initialized"} if specified else set())

    def stand_in(self, nodeid: str, mutant: Any) -> Replayed | None:
        """Return the fixture's stand-in, None if the mutant changes nothing in this case."""
        handshake, answers = self.handshake, self.exchanges
        if mutant is not None:
            answers = [mutant.mutation(done) for done in answers]
            hands = Exchange("", "", None, frames=handshake)
            changed = mutant.mutation(hands) if mutant.passes.startswith("initialize") else hands
            if changed is hands and all(a is b for a, b in zip(answers, self.exchanges, strict=True)):
                return None
            handshake = changed.frames
        return Replayed(self, marker_of(nodeid), handshake, answers)

    def finish(self, stand_in: Replayed) -> None:
        """Nothing is checked behind a case."""


def answer_kind(done: Exchange) -> str:
    """Return which answer it is: the route without a query, its status, whole or stream."""
    outcome = "error" if done.status >= 400 else "stream" if done.is_stream else "whole"
    return f"{done.method} {done.path.partition('?')[0]} {outcome}"


def record(recordings: dict[str, Recording], current: Callable[[], str]) -> Callable[[], None]:
    """Record what every `Proxy` of this process asks, by the case that runs; return the function that ends it."""
    ask, model_calls = Proxy.ask, Proxy.model_calls

    def asked(self: Proxy, *given: Any, **more: Any) -> Exchange:
        one = recordings.setdefault(current(), Recording(profile=self.profile))
        count = len(self.exchanges)
        try:
            return ask(self, *given, **more)
        finally:
            if self.running is not None:
                one.key = self.running.key
                one.handshake = [f for f in self.running.wire.frames[:8] if f.sender == "client" and "initialize" in f.raw[:200]]
            one.exchanges += [replace(done, frames=list(done.frames)) for done in self.exchanges[count:]]

    def called(self: Proxy) -> list[Any]:
        found = model_calls(self)
        recordings[current()].model_calls.append(copy.deepcopy(found))
        return found

    Proxy.ask, Proxy.model_calls = asked, called  # type: ignore[method-assign]

    def end() -> None:
        Proxy.ask, Proxy.model_calls = ask, model_calls  # type: ignore[method-assign]

    return end


class Replayed(Proxy):
    """The fixture's stand-in: each request gets the next of these exchanges."""

    def __init__(self, recording: Recording, marker: str, handshake: list[WireFrame], answers: list[Exchange]) -> None:
        super().__init__(SimpleNamespace(), marker, recording.profile, 1.0, ProxySubject("replayed"))  # type: ignore[arg-type]
        self._answers = answers
        wire = SimpleNamespace(frames=list(handshake))
        self.running = SimpleNamespace(wire=wire, key=recording.key, process=None)  # type: ignore[assignment]
        self._model_calls = iter(recording.model_calls)

    def process(self, env: Any = None, script: Any = None) -> Any:
        """Refuse: there is no process."""
        raise NotReplayable

    def ask(self, method: str, path: str, body: Any = None, *, ok: bool = False, **given: Any) -> Exchange:
        """Return the next recorded exchange, changed."""
        if len(self.exchanges) >= len(self._answers) or given.get("stop_after") is not None:
            raise NotReplayable
        recorded = self._answers[len(self.exchanges)]
        if (recorded.method, recorded.path) != (method, path):
            raise NotReplayable
        done = replace(recorded, sent=body, frames=list(recorded.frames))
        self.exchanges.append(done)
        assert self.running is not None
        self.running.wire.frames += done.frames
        if done.problem:
            raise SubjectFailure(f"{method} {path}: {done.problem}.")
        if ok and not 200 <= done.status < 300:
            raise SubjectFailure(f"{method} {path} was answered {done.status}.")
        return done

    def model_calls(self) -> list[Any]:
        """Return what the model got."""
        return next(self._model_calls, [])

    def eventually(self, sent: Callable[[list[Any]], bool], seconds: float = 5.0, what: str = "") -> list[Any]:
        """Refuse: nothing comes later."""
        raise NotReplayable


def frame_of(frame: WireFrame, value: Any) -> WireFrame:
    """Return the frame with another value, written as the reference proxy writes it."""
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return WireFrame(frame.t, frame.child, frame.sender, json.dumps(raw).encode())
