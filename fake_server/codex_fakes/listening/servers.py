"""The servers behind a listener.

A server with a script serves all connections; with a recording, each connection gets a separate replay. The same two kinds
of server run behind `fake-codex app-server` on stdio. In this module, the lines come from WebSocket connections and go to
WebSocket connections. Source: the real 0.169.0, with two connections: threads are shared; messages of a thread go to the
connections that started or resumed it, and messages about the list of threads go to all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from codex_fakes.replaying.app_server import AppServer
from codex_fakes.scripted.server import ScriptedServer
from codex_fakes.scripted.state.ids import uuid_error
from codex_fakes.stdio.loop import ROOM, Ended, Stdio
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps, loads
from codex_replay.core.wire.jsonrpc import is_reply, kind
from codex_replay.protocol.refusals import is_message

#: Notifications about the list of threads, which every connection gets.
TO_ALL = frozenset(
    f"thread/{what}"
    for what in ("started", "status/changed", "name/updated", "archived", "unarchived", "closed", "deleted", "goal/cleared")
)
#: A notification of a turn that does not name its thread: it follows one that does.
OF_A_TURN = "account/rateLimits/updated"
#: What the real server repeats when a thread is resumed, for the connection that resumes it.
_REPEATED = "thread/tokenUsage/updated"
#: Requests whose result has a thread that the connection follows from then on, and the request that ends it.
_FOLLOWS = ("thread/start", "thread/resume", "thread/fork")
_UNFOLLOWS = "thread/unsubscribe"


class Connection:
    """The state of one WebSocket connection of a client.

    `send` is the function that sends a message to the client. `waiting` is the number of bytes that are not sent yet.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.send = send
        self.waiting = 0
        self.client: dict[str, Any] | None = None  # what initialize has said
        self.experimental = False
        self.unwanted: frozenset[str] = frozenset()  # notifications that the client does not want
        self.user_agent = ""


class Driven(Stdio):
    """A server without stdin and stdout.

    The listener passes lines to the server, and regularly lets it continue. `over` is True when the server has ended.
    """

    over = False

    def receive(self, connection: Connection, line: bytes) -> None:
        """Take one message of a connection."""
        try:
            self._take(line)
        except Ended as end:
            self._status, self.over = end.status, True

    def go_on(self) -> None:
        """Write the output that may be sent now."""
        try:
            self.advance()
        except Ended as end:
            self._status, self.over = end.status, True

    def pause(self) -> float | None:
        """Write the output that is due now.

        Return the seconds until more output can be written (0 means immediately), or None if input must come first.
        """
        if self.due:
            self._move_due()
        if self.may_advance and self.backlog() < ROOM:
            return 0.0
        due = self.next_due()
        return None if due is None else max(0.0, due - monotonic())

    def backlog(self) -> int:
        """Return the number of bytes that the clients have not read yet.

        If there are too many unread bytes, the server writes nothing more.
        """
        raise NotImplementedError


class Replayed(Driven, AppServer):
    """The replay of a recording for one connection."""

    def __init__(self, environ: Mapping[str, str], connection: Connection) -> None:
        super().__init__(environ)
        self._connection = connection

    def abandon(self) -> None:
        """Close the recordings without reporting unmatched frames."""
        for reader in self._readers:
            reader.close()

    def send(self, raw: bytes) -> None:
        """Send a recorded message."""
        self._connection.send(raw)

    def backlog(self) -> int:
        """Return the number of bytes that the connection has not taken yet."""
        return self._connection.waiting


class Shared(Driven, ScriptedServer):
    """One scripted server for all connections.

    Each request gets a new id for the server, and its answer gets the client's id back.
    """

    def __init__(self, environ: Mapping[str, str], overrides: list[tuple[str, str]]) -> None:
        super().__init__(environ, overrides)
        self.connections: list[Connection] = []
        self._followers: dict[str, list[Connection]] = {}
        self._asked: dict[str, tuple[Connection, Any, dict[str, Any]]] = {}  # our id: whose request, its id, the request
        self._count = 0  # of requests
        self._asker: Connection | None = None  # whose line is being processed
        self._resumes = False  # whether that line resumes a thread
        self._greeted: Connection | None = None  # whose initialize is being answered
        self._last: list[Connection] = []  # the connections that got the last message about a thread

    # -- in -----------------------------------------------------------------------------------------------------------

    def receive(self, connection: Connection, line: bytes) -> None:
        """Take one message of a connection."""
        self._asker = connection
        self._client, self.experimental, self.user_agent = connection.client, connection.experimental, connection.user_agent
        super().receive(connection, line)
        connection.client, connection.experimental, connection.user_agent = self._client, self.experimental, self.user_agent
        self._asker = None

    def line(self, live: Frame) -> None:
        """Take one line of the client whose id `receive` has stored."""
        request = live.value
        self._resumes = kind(request) == "request" and request["method"] == "thread/resume"
        if kind(request) == "request" and is_message(request) and self._asker is not None:
            self._count += 1
            ours = f"request {self._count}"
            self._asked[ours] = (self._asker, request["id"], request)
            live = Frame(live.n, live.t, "rpc", "client", raw=live.raw, value={**request, "id": ours})
            if request["method"] == _UNFOLLOWS and (status := self._unfollow(self._asker, request.get("params"))):
                self.write_out({"id": ours, "result": {"status": status}})
                return
        super().line(live)

    def _unfollow(self, connection: Connection, params: Any) -> str | None:
        """Stop sending the messages of a thread to a connection.

        Return the status for the response, or None if the request is invalid.
        """
        name = params.get("threadId") if type(params) is dict and self._client is not None else None
        if type(name) is not str or uuid_error(name) is not None:
            return None
        thread = self.session.threads.get(name.lower())
        if thread is None or not thread.loaded:
            return "notLoaded"
        followers = self._followers.get(thread.id, [])
        if connection not in followers:
            return "notSubscribed"
        followers.remove(connection)
        return "unsubscribed"

    def _initialize(self, request: dict[str, Any]) -> None:
        self._greeted = self._asker
        super()._initialize(request)
        if self._asker is not None:
            self._asker.unwanted, self.unwanted = self.unwanted, frozenset()
        self._greeted = None

    def leave(self, connection: Connection) -> None:
        """Forget a closed connection. The threads of the closed connection continue."""
        self.connections.remove(connection)
        for followers in (*self._followers.values(), self._last):
            if connection in followers:
                followers.remove(connection)

    # -- out ----------------------------------------------------------------------------------------------------------

    def write_out(self, frame: dict[str, Any]) -> None:
        """Send a frame of the server to the connections that must get it.

        The answer to initialize, and the notifications after it, go only to the new client, and are sent without delay.
        """
        if self._greeted is None:
            super().write_out(frame)
            return
        for connection in self._recipients(frame):
            connection.send(dumps(frame))

    def send(self, raw: bytes) -> None:
        """Send a line of the server to the connections that must get it."""
        frame = loads(raw)
        for connection in self._recipients(frame):
            connection.send(dumps(frame))

    def _recipients(self, frame: dict[str, Any]) -> list[Connection]:
        """Return the connections that must get a frame of the server, each with its own form of the frame.

        An answer gets the id of the client's request.
        """
        if is_reply(frame):
            return self._answered(frame)
        return [one for one in self._hearers(frame) if frame["method"] not in one.unwanted]

    def _hearers(self, frame: dict[str, Any]) -> list[Connection]:
        if self._greeted is not None:
            return [self._greeted]
        params = frame.get("params")
        thread = params.get("threadId") if type(params) is dict else None
        if frame["method"] in TO_ALL:
            return [one for one in self.connections if one.client is not None]
        if thread is not None:
            self._last = self._followers.get(thread, [])
        if self._asker is not None and (
            (thread is None and frame["method"] != OF_A_TURN) or (self._resumes and frame["method"] == _REPEATED)
        ):
            return [self._asker]
        return list(self._last)

    def _answered(self, frame: dict[str, Any]) -> list[Connection]:
        if frame["id"] not in self._asked:  # an id that no server accepts is refused at once
            return [] if self._asker is None else [self._asker]
        connection, frame["id"], request = self._asked.pop(frame["id"])
        if connection not in self.connections:
            return []
        if "result" in frame:
            self._follow(connection, request, frame["result"])
        return [connection]

    def _follow(self, connection: Connection, request: dict[str, Any], result: Any) -> None:
        if request["method"] in _FOLLOWS:
            followers = self._followers.setdefault(result["thread"]["id"], [])
            if connection not in followers:
                followers.append(connection)

    @property
    def busy(self) -> bool:
        """Return True while a turn of any thread runs."""
        return bool(self.due) or (self._session is not None and self._session.busy)

    def backlog(self) -> int:
        """Return 0, because a connection that does not read must not delay other connections.

        If a connection does not read, the listener disconnects it.
        """
        return 0
