"""Answer requests from recordings: find the recorded exchange that matches a request, and send its answer byte for byte.

A session with recordings and a script answers from the recordings first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from codex_fakes.backend.exchange import Exchange, MessageExchange, Request
from codex_fakes.backend.handshakes import Handshake
from codex_fakes.backend.ledger import Entry
from codex_fakes.backend.loop.waiting import Event
from codex_fakes.backend.replay.http import play
from codex_fakes.backend.replay.pace import Pace
from codex_fakes.backend.rules.auth import Asked
from codex_fakes.backend.rules.table import Violation, check
from codex_fakes.backend.rules.tokens import Tokens
from codex_replay.core.cassette import http_frames
from codex_replay.core.normalise.normaliser import Rules
from codex_replay.core.replay.http_match import HttpMiss, HttpPlayer, HttpTrack, Recorded, message_payload
from codex_replay.core.replay.match_on import BadMatchOn
from codex_replay.core.replay.pace import pace_of
from codex_replay.core.text.error_text import error_text
from codex_replay.core.wire import content_encoding
from codex_replay.protocol import data_tables
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, cassettes_in

KEYS = ("path", "by", "over", "pace", "hold")


class BadReplay(ValueError):
    """The recordings cannot be played; the message of the exception is a sentence that says how to fix the problem."""


class Replay:
    """The recordings of one session, the way to choose an exchange from them, and their pace."""

    def __init__(self, player: HttpPlayer, pace: Pace, notes: Sequence[str] = ()) -> None:
        self.player = player
        self.pace = pace
        #: Sentences about recordings that were cut short, or that are of a version without tables.
        self.notes = list(notes)
        self._judged: dict[int, str | None] = {}
        #: True if a recording has a WebSocket.
        self.upgrades = any(one.track.upgraded for one in player.exchanges)

    def grants(self, mode: str, request: Request, path: str, query: str) -> Handshake | None:
        """Return the recorded acceptance of a WebSocket handshake.

        Return None if the recorded server refused the handshake, or if the recordings contain none. A handshake that is not
        accepted is answered like an ordinary request. If a client connects more often than the recorded client, each
        further connection is accepted, too. With `mode` "on", a handshake is also accepted if the recording used HTTP; the
        recorded events are then sent as messages.
        """
        payload = http_frames.request_payload(request.method, f"{path}?{query}" if query else path, request.headers, b"")
        found = self.player.find(request.conn, payload)
        if isinstance(found, HttpMiss):
            return Handshake([], True) if self.upgrades or mode != "off" else None
        head = next((frame.payload for frame in reversed(found.answer) if frame.kind == "response"), None)
        if head is None or head["status"] != 101:
            return None
        self.player.use(request.conn, found, payload)
        own = ("connection", "upgrade", "sec-websocket-accept", "sec-websocket-extensions", "content-length", "date")
        headers = [(name, value) for name, value in head["headers"] if name.lower() not in own]
        return Handshake(headers, http_frames.header(head["headers"], "sec-websocket-extensions") is not None)

    async def answer_message(
        self, exchange: MessageExchange, entry: Entry, tokens: Tokens, off: Sequence[str], path: str, body: dict[str, Any]
    ) -> Violation | None:
        """Answer a WebSocket message of a client from the recordings.

        If the recordings have no answer, return the reason in the same form as `answer`.
        """
        request = exchange.request
        payload = message_payload(path, [list(pair) for pair in request.headers], body)
        found = self.player.find(request.conn, payload)
        other = self.player.convert(request.conn, payload) if isinstance(found, HttpMiss) else None
        if other is not None:
            payload = {**payload, "method": "POST"}
        elif isinstance(found, HttpMiss):
            return Violation("miss", 501, "replay_miss", str(found), found.path)
        one = other or found
        assert isinstance(one, Recorded)
        if (violation := self.violation(one, Asked(path, request.header, entry.body or b"", tokens), off)) is not None:
            return violation
        self.player.use(request.conn, one, payload)
        from codex_fakes.backend.replay.messages import play_as_messages, play_messages

        entry.answer, entry.status = "cassette", 200
        entry.recorded = {"cassette": one.track.name, "frame": one.request.n, **({"converted": True} if other else {})}
        entry.close(await (play_as_messages if other else play_messages)(exchange, one, self.pace))
        return None

    def unused(self) -> list[dict[str, Any]]:
        """Return the recorded requests that no client has sent."""
        return [
            {"cassette": one.track.name, "frame": one.request.n, "conn": one.conn, "request": str(one).partition(", ")[2]}
            for one in self.player.unused()
        ]

    async def answer(
        self, exchange: Exchange, entry: Entry, tokens: Tokens, off: Sequence[str], path: str, query: str
    ) -> Violation | None:
        """Answer an HTTP request of a client from the recordings.

        If the recordings have no answer, return the reason: a violated rule, or a miss (rule "miss").
        """
        request = exchange.request
        target = f"{path}?{query}" if query else path
        headers = request.headers
        if entry.body is None:  # the bytes do not decode, and may be recorded so
            entry.body = request.body
        payload = http_frames.request_payload(request.method, target, headers, request.body, request.version)
        found = self.player.find(request.conn, payload)
        other = None
        if isinstance(found, HttpMiss):
            if request.method == "POST" and path.endswith("/responses") and self.upgrades:
                other = self.player.convert(request.conn, payload)
            if other is None:
                return Violation("miss", 501, "replay_miss", str(found), found.path)
            found = other
        if request.method == "POST" and path.endswith("/responses"):
            asked = Asked(path, request.header, entry.body, tokens)
            if (violation := self.violation(found, asked, off)) is not None:
                return violation
        self.player.use(request.conn, found, payload)
        entry.answer = "cassette"
        entry.recorded = {"cassette": found.track.name, "frame": found.request.n}
        if other is not None:
            from codex_fakes.backend.replay.messages import play_as_events

            self.player.converted(other)
            entry.recorded["converted"], entry.status = True, 200
            entry.close(await play_as_events(exchange, other, self.pace))
            return None
        entry.status = next((frame.payload["status"] for frame in found.answer[::-1] if frame.kind == "response"), None)
        entry.close(await play(exchange, found, self.pace))
        return None

    def violation(self, one: Recorded, asked: Asked, off: Sequence[str]) -> Violation | None:
        """Return the rule that the live request violates and the recorded request obeys.

        Even if a recorded answer exists, the violated rule shows an error of the live client.
        """
        found = check(asked, off)
        return found if isinstance(found, Violation) and found.rule != self._rule_of(one, asked.mode, off) else None

    def _rule_of(self, one: Recorded, mode: str, off: Sequence[str]) -> str | None:
        if id(one) not in self._judged:
            payload = one.request.payload
            try:
                raw = http_frames.body_bytes(payload)
            except ValueError:
                raw = b""
            data = _decoded(raw, http_frames.header(payload["headers"], "content-encoding"))
            asked = Asked(
                payload["path"].partition("?")[0],
                lambda name: http_frames.header(payload["headers"], name.lower()),
                data,
                Tokens({"mode": mode}),
            )
            found = check(asked, off)
            self._judged[id(one)] = found.rule if isinstance(found, Violation) else None
        return self._judged[id(one)]


def _decoded(raw: bytes, encoding: str | None) -> bytes:
    plain = content_encoding.decode_partial(raw, encoding)
    return raw if plain is None else plain


def make_replay(value: Mapping[str, Any], gate: Callable[[str], Event]) -> Replay:
    """Load the recordings of a session: `path` (a file or folder, or a list), `by`, `over`, `pace`, `hold`.

    Raises `BadReplay` if a value is invalid.

    `hold` lists numbers of frames in one recording: an answer stops before each of them, at a gate. For example, with 43
    the answer stops before frame 43, at the gate "frame 43". The function `gate` returns the gate with a name.
    """
    for key in value:
        if key not in KEYS:
            raise BadReplay(f'"{key}" is not a key for recordings. The keys are {", ".join(KEYS)}.')
    paths = value.get("path")
    paths = [paths] if isinstance(paths, str) else paths
    over = value.get("over")
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
        raise BadReplay('"path" must name a cassette or a folder of cassettes, or be a list of them.')
    if over is not None and not (isinstance(over, list) and all(isinstance(word, str) for word in over)):
        raise BadReplay('"over" must be a list of parts of a request, such as ["method", "path", "body"].')
    pace = pace_of(str(value.get("pace", "fast")))
    if pace is None:
        raise BadReplay(f"The pace is {value['pace']!r}; it must be fast, recorded, or a number with an x, such as 2x.")
    hold = value.get("hold", [])
    if not isinstance(hold, list) or not all(type(number) is int for number in hold):
        raise BadReplay('"hold" must be a list of numbers of frames, such as [43].')
    notes: list[str] = []
    try:
        tracks = [track for path in paths for track in _tracks(Path(path), notes)]
    except OSError as error:  # a path that no file can have
        raise BadReplay(f"The recordings cannot be read: {error_text(error)}.") from None
    try:
        player = HttpPlayer(tracks, value.get("by", "content"), over)
    except BadMatchOn as error:
        raise BadReplay(str(error)) from None
    if hold and len(tracks) > 1:
        raise BadReplay('"hold" names frames of one recording, but "path" has several recordings.')
    return Replay(player, Pace(pace, {number: gate(f"frame {number}") for number in hold}), notes)


def _tracks(path: Path, notes: list[str]) -> list[HttpTrack]:
    files = [path]
    if path.is_dir():
        try:
            found, left_out = cassettes_in(str(path))
        except CassetteError as error:
            raise BadReplay(str(error)) from None
        files = sorted(map(Path, found))
        notes += left_out
    tracks = []
    for file in files:
        try:
            with CassetteReader(file) as reader:
                name = str(file.relative_to(path)) if path.is_dir() else file.name
                table, problem = data_tables.choose("normalise", reader.header.codex)
                if problem and problem not in notes:
                    notes.append(problem)
                track = HttpTrack(name, (frame for frame in reader if frame.seam == "http"), partial(Rules, table))
                if reader.truncated:
                    notes.append(reader.truncated)
        except CassetteError as error:
            raise BadReplay(str(error)) from None
        if track.exchanges:
            tracks.append(track)
    if not tracks:
        raise BadReplay(f"{path} has no recorded http request; record one with codex-replay record --upstream.")
    return tracks
