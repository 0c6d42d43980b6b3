"""Find the recorded exchange that answers a live request.

If no exchange matches, find the most similar exchange and the difference from it.

The case names the parts of a request that are compared (`http_over`). The module `match` masks the values that change from
run to run by the rules of `normalise`, and binds uuids. The secrets of the live request are redacted by the same rules as
the secrets of the recording.

With `by="content"`, a live request gets the answer of the first unused recorded exchange that matches, on any recorded
connection. With `by="connection"`, a live connection gets the answers of one recorded connection, in order. When all
answers of the recorded connection are used, the live connection gets the answers of the next unused connection. With
`by="conversation"`, a live conversation (a value of `prompt_cache_key`) gets the answers of the recorded conversation whose
first input is most similar. Each recorded exchange is played once.

The handshake of a WebSocket is an exchange, and each later `response.create` message is another. The exchange of a
`response.create` message has the method "WEBSOCKET" and the full request as its body (see `increments`).

Source: DESIGN.md, "Matching, replaying, normalising".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from codex_replay.core.cassette import ws_frames
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.replay.increments import Increments, comparable
from codex_replay.core.replay.match import Difference, Matcher
from codex_replay.core.replay.match_on import BadMatchOn, MatchOn, body_of, placeholders, terminals, without_numbers
from codex_replay.core.replay.ways import WAYS
from codex_replay.core.text.truncate import excerpts

if TYPE_CHECKING:
    from codex_replay.core.replay.match import Rules

#: The method of the exchange that a WebSocket message begins.
MESSAGE = "WEBSOCKET"
#: The default parts to compare.
OVER = {"content": ("method", "path", "body"), "connection": ("method", "path"), "conversation": ("method", "path")}
#: The maximum number of recorded requests that are searched for the nearest one.
LOOKS = 256
#: Characters of a text that are shown, and how many of them from before the place where two long ones part.
SHOWN = 100
BEFORE = 30


class HttpTrack:
    """The exchanges of one cassette, in the order of their requests. `matcher` binds recorded ids to live ids."""

    def __init__(self, name: str, frames: Iterable[Frame], rules: Callable[[], Rules]) -> None:
        self.name = name
        self.matcher = Matcher(rules)
        self.exchanges = list(_exchanges(self, frames))
        #: True if a WebSocket was granted in it.
        self.upgraded = any(one.request.payload["method"] == MESSAGE or _granted(one) for one in self.exchanges)


class Recorded:
    """One recorded request, the frames of its answer (1xx heads, a head, a body), and the end of the answer (None if the end is
    not known).
    """

    __slots__ = ("answer", "close", "conn", "request", "track", "used", "views")

    def __init__(self, track: HttpTrack, request: Frame) -> None:
        self.track = track
        self.request = request
        self.conn = request.conn
        self.answer: list[Frame] = []
        self.close: Frame | None = None
        self.used = False
        self.views: dict[bool, Any] = {}

    def __str__(self) -> str:
        return f"frame {self.request.n} of {self.track.name}, {_title(self.request.payload)}"


def _exchanges(track: HttpTrack, frames: Iterable[Frame]) -> Iterator[Recorded]:
    """Group frames into exchanges. Answers on one connection come in the order of the requests (RFC 9112, section 9.3.2)."""
    waiting: dict[int | None, deque[Recorded]] = {}
    found = []
    sockets: dict[int | None, _Socket] = {}
    for frame in frames:
        if frame.seam != "http":
            continue
        if frame.kind == "ws":
            queue = waiting.setdefault(frame.conn, deque())
            if frame.conn not in sockets and queue:
                sockets[frame.conn] = _Socket(track, queue[0])
            if frame.conn in sockets and (begun := sockets[frame.conn].add(frame)) is not None:
                found.append(begun)
            continue
        if frame.kind == "close" and frame.conn in sockets:
            socket = sockets.pop(frame.conn)
            socket.current.close = None if socket.left else frame
        queue = waiting.setdefault(frame.conn, deque())
        if frame.kind == "request":
            queue.append(Recorded(track, frame))
            found.append(queue[-1])
        elif queue and frame.kind == "close":
            queue.popleft().close = frame
        elif queue:
            queue[0].answer.append(frame)
    # A request that its client broke off is never asked again as a whole one.
    return (one for one in found if one.request.whole)


def _granted(one: Recorded) -> bool:
    return any(frame.kind == "response" and frame.payload.get("status") == 101 for frame in one.answer)


class _Socket:
    """The WebSocket messages of one recorded connection after the handshake. `current` is the exchange in progress."""

    def __init__(self, track: HttpTrack, handshake: Recorded) -> None:
        self._track = track
        self._head = handshake.request.payload
        self._increments = Increments()
        self.current = handshake
        self.left = False  # True once the client has sent a close frame: what follows is the server's reply to it

    def add(self, frame: Frame) -> Recorded | None:
        """Take one frame of the recording. If the frame begins an exchange, return the exchange."""
        value = ws_frames.value_of(frame.payload)
        self.left = self.left or (frame.sender == "client" and "close" in frame.payload)
        if self.left:
            return None
        if frame.sender == "server":
            self._increments.take_event(value)
            self.current.answer.append(frame)
            return None
        if type(value) is not dict or value.get("type") != "response.create":
            return None
        body = self._increments.full(value)
        self._increments.begin(body)
        payload = message_payload(self._head["path"], self._head["headers"], comparable(body, value))
        request = Frame(frame.n, frame.t, "http", "client", "request", b"", payload, frame.conn, extra=frame.extra)
        self.current = Recorded(self._track, request)
        return self.current


def message_payload(path: str, headers: list[list[str]], body: dict[str, Any]) -> dict[str, Any]:
    """Return a WebSocket message in the form of a request's payload, so that `HttpPlayer.find` can find a recorded exchange for
    it.
    """
    return {"method": MESSAGE, "path": path, "headers": headers, "body": body}


class HttpMiss:
    """The report of a live request that no recording answers: the most similar unused recorded request, if any, and the
    difference between the two requests.
    """

    __slots__ = ("differences", "nearest", "said", "total")

    def __init__(self, said: str, total: int, nearest: Recorded | None, differences: list[Difference]) -> None:
        self.said = said
        self.total = total
        self.nearest = nearest
        self.differences = differences

    @property
    def path(self) -> str | None:
        """The JSON path at which the live request and the nearest recorded request differ.

        If the two requests differ at several places, return the place with the shortest values.
        """
        return _shown(self.differences[0].path) if self.differences else None

    def __str__(self) -> str:
        if self.nearest is None:
            return f"There is no recorded request for {self.said}: the recordings contain no requests."
        used = " but it was already replayed (each is replayed once)" if self.nearest.used else ""
        if not self.differences:
            why = used.removeprefix(" and") if used else " but another request of its connection comes first"
            return f"No recorded request is left for {self.said}: {self.nearest} matches,{why}."
        more = f" (and in {len(self.differences) - 1} more places)" if len(self.differences) > 1 else ""
        left = "" if not used else f"; all {self.total} recorded requests are used up" if self.total else used
        return (
            f"No recorded request matches {self.said}: the nearest is {self.nearest}, "
            f"and differs at {_excerpt(self.differences[0])}{more}{left}."
        )


class HttpPlayer:
    """Recorded exchanges that answer live requests, from one or more tracks.

    `find` searches for an exchange, and `use` marks an exchange as played.
    """

    def __init__(self, tracks: Sequence[HttpTrack], by: str = "content", over: Sequence[str] | None = None) -> None:
        if by not in WAYS:
            raise BadMatchOn(f'"{by}" is not a way to choose a recorded exchange. Use {" or ".join(WAYS)}.')
        self.by = by
        self.over = MatchOn(OVER[by] if over is None else over)
        self.exchanges = [one for track in tracks for one in track.exchanges]
        self._redactor = Redactor()
        self._follows: dict[int, tuple[HttpTrack, int | None]] = {}  # live connection -> the recorded one that it follows

    def unused(self) -> list[Recorded]:
        """Return the exchanges that no request has used."""
        return [one for one in self.exchanges if not one.used]

    def find(self, conn: int, payload: dict[str, Any]) -> Recorded | HttpMiss:
        """Return the exchange that answers a live request on connection `conn`, or an `HttpMiss`. The exchange stays unused."""
        live = _Live(self.over.view(payload), self._redactor)
        candidates = list(self._next(conn)) if self.by == "connection" else self.unused()
        agreeing = (one for one in candidates if not self._differences(one, live))
        found = self._of_conversation(agreeing, payload) if self.by == "conversation" else next(agreeing, None)
        return self._miss(payload, live, candidates) if found is None else found

    def _of_conversation(self, agreeing: Iterator[Recorded], payload: dict[str, Any]) -> Recorded | None:
        """Return the next exchange of the recorded conversation that the live conversation replays.

        If the live conversation is new, return the next exchange of the recorded conversation that is most similar to it.
        """
        live = body_of(payload)
        heads: dict[str | None, Recorded] = {}
        for one in agreeing:
            heads.setdefault(_conversation(body_of(one.request.payload)), one)

        def rank(key: str | None) -> tuple[int, int]:
            matcher, mine = heads[key].track.matcher, _conversation(live)
            follows = matcher.bindings.agrees(key, mine) if key is not None and mine is not None else key == mine
            if follows:
                return 0, 0
            recorded = body_of(heads[key].request.payload)
            return 1 if follows is None else 2, len(matcher.differences(_input(recorded), _input(live)))

        if len(heads) < 2:
            return next(iter(heads.values()), None)
        return heads[min(heads, key=rank)]

    def use(self, conn: int, one: Recorded, payload: dict[str, Any]) -> None:
        """Mark a matched exchange as played, and bind the recorded ids to the ids of the live request."""
        one.used = True
        self._follows[conn] = (one.track, one.conn)
        ours, theirs = self.over.view(one.request.payload), self.over.view(payload)
        if ours != theirs:
            one.track.matcher.bind(ours, theirs)
        if self.by == "conversation":
            self._follow(one, body_of(payload))
        for placeholder, secret in placeholders(body_of(one.request.payload), body_of(payload)):
            one.track.matcher.bindings.pair(placeholder, secret)

    def _follow(self, one: Recorded, live: Any) -> None:
        """Bind the values that the server itself generated: pair each live value in the request with its recorded value.

        The bound values are the key of the conversation and the numbers of terminals.
        """
        recorded, bindings = body_of(one.request.payload), one.track.matcher.bindings
        ours, theirs = _conversation(recorded), _conversation(live)
        if ours is not None and theirs is not None:
            bindings.pair(ours, theirs)
        for member, other in terminals(recorded, live):
            bindings.pair(member, other)

    def convert(self, conn: int, payload: dict[str, Any]) -> Recorded | None:
        """Return the exchange of the other transport (HTTP or WebSocket) that answers a request, or None.

        The exchange stays unused.
        """
        other = "POST" if payload["method"] == MESSAGE else MESSAGE
        found = self.find(conn, {**payload, "method": other})
        return found if isinstance(found, Recorded) else None

    def converted(self, one: Recorded) -> None:
        """Mark the exchanges of a recorded WebSocket that have no counterpart over HTTP as used: the handshake and the prewarm
        request.
        """
        for other in self.exchanges if one.request.payload["method"] == MESSAGE else ():
            if other.track is one.track and other.conn == one.conn and (_granted(other) or _is_prewarm(other)):
                other.used = True

    def _next(self, conn: int) -> Iterator[Recorded]:
        """Yield the next exchange of the recorded connection that the live connection `conn` replays.

        If `conn` is new, yield the first exchange of each unused connection.
        """
        followed = self._follows.get(conn)
        firsts: dict[tuple[HttpTrack, int | None], Recorded] = {}
        for one in self.unused():
            firsts.setdefault((one.track, one.conn), one)
        if followed in firsts:
            yield firsts[followed]
            return
        taken = set(self._follows.values())
        yield from (one for key, one in firsts.items() if key not in taken)

    def _differences(self, one: Recorded, live: _Live) -> list[Difference]:
        found = one.track.matcher.differences(self._view(one, plain=False), live.view)
        if not found:
            return found
        return one.track.matcher.differences(self._view(one, plain=True), live.plain())

    def _view(self, one: Recorded, *, plain: bool) -> Any:
        if plain not in one.views:
            one.views[plain] = without_numbers(self._view(one, plain=False)) if plain else self.over.view(one.request.payload)
        return one.views[plain]

    def _miss(self, payload: dict[str, Any], live: _Live, candidates: list[Recorded]) -> HttpMiss:
        nearest: tuple[tuple[int, int, int, int], Recorded, list[Difference]] | None = None
        looked = {id(one) for one in candidates}
        others = [one for one in self.exchanges if id(one) not in looked]
        for place, one in enumerate([*candidates, *others][:LOOKS]):
            found = self._differences(one, live)
            found.sort(key=lambda difference: len(difference.recorded) + len(difference.live))
            # Another path or method is farther than any body; of used ones only one that is just the same is worth telling.
            other = sum(difference.path in ("method", "target") for difference in found)
            rank = (other, int(bool(found) and one.used), len(found), place)
            if nearest is None or rank < nearest[0]:
                nearest = (rank, one, found)
        total = 0 if self.unused() else len(self.exchanges)
        return HttpMiss(_title(payload), total, *(nearest[1:] if nearest else (None, [])))


class _Live:
    """The parts of a live request that are compared. The live request is redacted only if necessary."""

    def __init__(self, view: dict[str, Any], redactor: Redactor) -> None:
        self.view = view
        self._redactor = redactor
        self._plain: Any = None

    def plain(self) -> Any:
        if self._plain is None:
            self._plain = without_numbers(self._redactor.value(self.view))
        return self._plain


def _conversation(body: Any) -> str | None:
    """Return a key that identifies the conversation of a request."""
    key = body.get("prompt_cache_key") if type(body) is dict else None
    return key if type(key) is str else None


def _input(body: Any) -> Any:
    return body.get("input") if type(body) is dict else None


def _is_prewarm(one: Recorded) -> bool:
    body = one.request.payload.get("body")
    return one.request.payload["method"] == MESSAGE and type(body) is dict and body.get("generate") is False


def _title(payload: dict[str, Any]) -> str:
    return f"{payload['method']} {payload['path']}"


def _shown(path: str) -> str:
    return "path" if path == "target" else path


def _excerpt(difference: Difference) -> str:
    ours, theirs = excerpts((difference.recorded, difference.live), SHOWN, BEFORE)
    return f"{_shown(difference.path)}: recorded {ours}, got {theirs}"
