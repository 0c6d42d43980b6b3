"""The fakes: what the fake backend answers, and the frames of fake-codex."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.jsonrpc import kind
from codex_replay.plugin.app_server.server import Server
from codex_replay.plugin.app_server.start import AppServer
from codex_replay.plugin.backend.conversation import LOGIN, Answer, Backend, RecordedRequest, credentials
from codex_replay.plugin.base.checking import judge, make_checkers
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.rpc.client import SubjectFailure
from tests.mutants.clients import Given
from tests.mutants.logged import Log, log_calls, replayed
from tests.mutants.messages import OTHER, Message, Messages, default_opaque, slots
from tests.mutants.operators import OTHER_VALUES

# -- the backend -----------------------------------------------------------------------------------------------------------


#: The routes that the contract describes; of the others it has a status, or nothing.
ROUTES = ("POST /backend-api/codex/responses", "POST /v1/responses", "POST /oauth/token")
#: Events whose response is that of response.completed at another time: what may differ there, and nothing below it.
EARLIER = tuple(f"response.{name}" for name in ("created", "in_progress", "failed", "incomplete"))
MOVING = ("id", "object", "created_at", "status", "model", "output", "usage", "error", "incomplete_details")


class BackendAdapter:
    """A conversation is one answer: its head, and the events of its stream."""

    subject: str = "backend"
    fixture: str = "backend"
    opaque: Collection[str] = default_opaque("tools", "tool_choice", "reasoning", "format")
    words: Collection[str] = ("type", "object", "status", "role")

    def record(self, kept: Callable[[], list[Any]]) -> Callable[[], None]:
        """Keep each answer."""
        old = Backend._send

        def send(self: Backend, *given: Any) -> Answer:
            answer = old(self, *given)
            kept().append(answer)
            return answer

        Backend._send = send  # type: ignore[method-assign,assignment]
        return lambda: setattr(Backend, "_send", old)

    def messages(self, one: Answer) -> Messages:
        """The head, with the body if it is one value, then the events."""
        stream = one.header("content-type").startswith("text/event-stream")
        name = f"{one.asked} {'error' if one.status >= 400 else 'stream' if stream else 'whole'}"
        if one.asked not in ROUTES:
            return (Message(OTHER, "", place=one),)
        head = Message(name, "" if stream else _json(one.body), tuple(one.headers), one.status, one)
        blocks = [block + b"\n\n" for block in one.body.split(b"\n\n") if block] if stream else []
        return (head, *(_event(block) for block in blocks))

    def changed(self, one: Answer, messages: Messages) -> Answer:
        """The answer that these make; without its head it is an empty one."""
        head = next((each for each in messages if each.place is one), None)
        if head is None:
            return Answer(one.asked, 0, [], b"")
        body = b"".join(_block(each) for each in messages if each is not head and each.place is not one)
        if not body:
            body = one.body if head.text == _json(one.body) else head.text.encode()
        return Answer(one.asked, head.status or 0, list(head.headers), body)

    def leaves_out(self, kind: str, path: str, what: str) -> bool:
        """The order of the head and the first event, and the members of a response that response.completed has too."""
        if not path:
            return " " in kind or (kind == EARLIER[0] and "precedes" in what)
        return kind in EARLIER and path.startswith("response.") and path.removeprefix("response.") not in MOVING

    def stand_in(self, nodeid: str, found: list[Any]) -> Any:
        """Return a backend whose answers are these."""
        return ReplayedBackend(found)

    def finish(self, stand_in: Any) -> None:
        """Nothing is checked behind a case."""


def _json(body: bytes) -> str:
    try:
        json.loads(body)
    except ValueError:
        return ""
    return body.decode()


def _event(block: bytes) -> Message:
    data = b"\n".join(line[6:] for line in block.splitlines() if line.startswith(b"data: "))
    text = _json(data)
    value = json.loads(text) if text else None
    return Message(str(value["type"]) if isinstance(value, dict) and "type" in value else "(other)", text, place=(block, text))


def _block(message: Message) -> bytes:
    block, text = message.place
    if message.text == text:
        return bytes(block)
    lines = [line for line in block.rstrip(b"\n").splitlines() if not line.startswith(b"data: ")]
    return b"\n".join([*lines, b"data: " + message.text.encode()]) + b"\n\n"


class ReplayedBackend(Backend):
    """The fixture's stand-in."""

    def __init__(self, found: list[Any]) -> None:
        self._given = Given(found)
        session: Any = SimpleNamespace(script=lambda _: None, release=lambda _: None)
        super().__init__("fake", "http://replayed", session, credentials(LOGIN), 1.0)

    def _send(
        self, method: str, path: str, data: bytes | None, headers: Any, midway: Callable[[], object] | None = None
    ) -> Answer:
        if midway is not None:
            midway()  # its answers were complete, and kept, before this one
        answer: Answer = self._given.next()
        self.said.append(RecordedRequest(method, path, headers, data, 0.0, 0.0, answer))
        self.answers.append(answer)
        return answer


# -- the app-server --------------------------------------------------------------------------------------------------------

#: The changes of a value that leave its type.
VALUES = {f"is {name}" for changes in OTHER_VALUES.values() for name in changes}
#: Members whose names are the case's own: ids, paths, keys of a configuration.
MAPS = ("config", "data", "arguments", "changes", "fileChanges", "agentsStates", "statuses", "origins")
#: What waits for the server's process.
DONE = ("wait_exit", "signal", "still_runs", "close_stdout", "end_input", "wait_upstream", "close", "stop")


class AppServerAdapter:
    """A conversation is that with one server: the lines that it wrote."""

    subject: str = "app_server"
    fixture: str = "app_server"
    opaque: Collection[str] = default_opaque(*MAPS)
    words: Collection[str] = ("type", "status", "method")

    def record(self, kept: Callable[[], list[Any]]) -> Callable[[], None]:
        """Keep each server, and what it did."""
        old = AppServer.__call__

        def start(self: AppServer, *given: Any, **more: Any) -> Server:
            server = old(self, *given, **more)
            kept().append(RecordedServer(server))
            return server

        AppServer.__call__ = start  # type: ignore[method-assign]
        end_log = log_calls(Server, DONE, lambda server: len(server.timeline))

        def end() -> None:
            AppServer.__call__ = old  # type: ignore[method-assign]
            end_log()

        return end

    def messages(self, one: RecordedServer) -> Messages:
        """The server's lines by their methods; those of the client have their places, and are not changed."""
        asked: dict[str, str] = {}
        found = []
        for at, frame in enumerate(one.frames):
            value = frame.value
            if not isinstance(value, dict):
                continue
            if frame.sender == "client":
                if "method" in value and "id" in value:
                    asked[json.dumps(value["id"])] = str(value["method"])
                continue
            name = str(value.get("method") or f"{kind(value)} of {asked.get(json.dumps(value.get('id')), 'nothing')}")
            found.append(Message(name, frame.raw.decode(), place=at))
        return tuple(found)

    def changed(self, one: RecordedServer, messages: Messages) -> RecordedServer:
        """The server with other lines in the places of its own."""
        lines = slots(messages)
        sent = {each.place for each in self.messages(one)}
        frames: list[Frame] = []
        for at, old in enumerate(one.frames):
            for raw in [text.rstrip("\n").encode() + b"\n" for text in lines.get(at, [])] if at in sent else [old.raw]:
                frames.append(Frame(len(frames) + 1, old.t, old.seam, old.sender, old.kind, raw))
        return RecordedServer(one.live, frames)

    def leaves_out(self, kind: str, path: str, what: str) -> bool:
        """Other values of the same type: the frames were recorded, and the case judges them."""
        return what in VALUES

    def stand_in(self, nodeid: str, found: list[Any]) -> Any:
        """Return a fixture whose servers are these."""
        return ReplayedAppServer(found)

    def finish(self, stand_in: ReplayedAppServer) -> None:
        """Validate each frame of the servers, as the fixture does behind each case."""
        for server in stand_in.servers:
            findings = judge(server.timeline, make_checkers(DEFAULT), bad_input=server.bad_input)
            if texts := [each.text for each in findings if each.blame == "subject"]:
                raise SubjectFailure(f"The server broke the protocol: {texts[0]}")


class RecordedServer:
    """One server, with its timeline."""

    def __init__(self, live: Server, frames: list[Frame] | None = None) -> None:
        self.live = live
        self._frames = frames

    @property
    def frames(self) -> list[Frame]:
        """What passed, to the end."""
        return self.live.timeline if self._frames is None else self._frames


class ReplayedAppServer:
    """The fixture's stand-in."""

    def __init__(self, found: list[Any]) -> None:
        self._given = Given(found)
        self.servers: list[ReplayedServer] = []

    def __call__(self, *_: Any, **__: Any) -> Server:
        """Return the next server."""
        self.servers.append(ReplayedServer(self._given.next()))
        return self.servers[-1]


class ReplayedServer(Server):
    """The server's stand-in: all that it wrote is there from the beginning."""

    def __init__(self, one: RecordedServer) -> None:
        self.__dict__.update(one.live.__dict__)
        self.log = Log(one.live)
        self.timeline = list(one.frames)
        self._taken, self._next_id, self._ended = set(), 0, True
        self._changed = threading.Condition()

    def send(self, message: Any) -> None:
        """Do nothing: what the client wrote is on the timeline."""

    def _gone(self, what: str) -> str:
        return what

    def report_on(self, what: str) -> str:
        """Return the sentence."""
        return what


for _name in DONE:
    setattr(ReplayedServer, _name, replayed(_name))
