"""Replay one recording as a stream: decide which server frames may be sent now, and which client frame must come next.

A `Track` reads the recording ahead only as far as necessary. The track releases a server frame when the client has sent all
frames that the server frame waits for (see `causality`). The client's requests and notifications must come in the recorded
order; replies may come in any order. The module `player` plays one track or several to a live client.

This module opens no files: a track reads lines from a `Source`, such as `shell.cassettes.file.CassetteReader`. The program
fake-codex loads this module at start-up.
"""

from __future__ import annotations

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay.causality import NO_LANE, UNKNOWN, Causality
from codex_replay.core.replay.match import Matcher, splice_id
from codex_replay.core.wire.json_text import dumps
from codex_replay.core.wire.jsonrpc import is_reply, kind, thread_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from codex_replay.core.replay.causality import Lane, Methods
    from codex_replay.core.replay.recorded_order import RecordedOrder

    class Source(Protocol):
        """The interface of a recording from which a track reads lines."""

        def read_line(self) -> bytes:
            """Return the next line, b"" at the end."""

        def parse(self, line: bytes) -> Frame | None:
            """Return the frame of a line, or None at the end of the recording."""

        def place(self, line: bytes) -> int | None:
            """Return the offset of the last line that was read, or None if the source cannot read a line a second time."""

        def lines_at(self, place: int, end: int, most: int) -> list[bytes]:
            """Return lines a second time: from offset `place` up to `end`, or up to about `most` bytes.

            The position for the next new line does not change.
            """


# How many held frames, and bytes of them, a track keeps for a client frame that may come early, when nothing that has begun needs
# more. Of further frames it keeps where they stand in the file.
READ_AHEAD = 4096
READ_AHEAD_BYTES = 1 << 20
# How many bytes of held frames go out at once, and how many are read at once.
RELEASE_BYTES = 1 << 20


class Run:
    """A run: neighbouring lines of a recording, from offset `place` to offset `end`, that wait for the same client frames."""

    __slots__ = ("end", "place")

    def __init__(self, place: int, end: int) -> None:
        self.place = place
        self.end = end


class Track:
    """The replay of one recording.

    `awaited` contains the client frames that were read from the recording, but that the live client has not sent yet.
    """

    def __init__(self, name: str, source: Source, methods: Methods, matcher: Matcher) -> None:
        self.name = name
        self.matcher = matcher
        self.awaited: dict[int, Frame] = {}
        self.ended = False
        self._source = source
        self._does = methods.does
        if methods.known:
            self._causality: Causality | RecordedOrder = Causality(methods)
        else:
            from codex_replay.core.replay.recorded_order import RecordedOrder  # not on fake-codex's start-up path

            self._causality = RecordedOrder()
        self._one_lane = not methods.known  # in the recorded order nothing overtakes anything
        self._ready: list[Frame] = []  # may go out, found while looking for a client frame
        self._held: list[tuple[Frame | Run, Lane, tuple[int, ...]]] = []
        self._held_bytes = 0
        self._blocked: set[Lane] = set()
        self._live_ids: dict[int, Any] = {}  # requests that came and whose response has not gone out
        self._open_turns: dict[str, int] = {}  # thread -> how many
        self._stale = False  # a client frame came, so held frames may go
        self._known: dict[bytes, tuple[bytes, bytes]] = {}

    # -- server frames ------------------------------------------------------------------------------------------------

    def advance(self, most: int, raw: bool = False) -> list[Frame | bytes]:
        """Return the server frames that may be sent now, in the recorded order; to find them, read at most `most` further lines.

        With `raw`, a frame that continues a running stream is returned as undecoded bytes.
        """
        out: list[Frame | bytes] = []
        if self._stale or self._ready:
            ready = self._ready + self._release_held()
            self._ready = []
            ready.sort(key=lambda frame: frame.n)
            out += ready
        known = self._known
        read_line = self._source.read_line
        size = 0
        while most > 0 and size < RELEASE_BYTES and not self._enough():
            most -= 1
            line = read_line()
            size += len(line)
            if raw:
                at = line.find(b',"msg":') + 7
                ends = known.get(line[at : line.find(b'"', at + 12)])
                # The line carries on what went out just now: the same method, thread and turn, in an open lane.
                if ends and line.startswith(ends[0], at) and line.endswith(ends[1]) and line[at - 22 : at - 7] == _SERVER:
                    out.append(line[at:-2] + b"\n")
                    continue
            frame = self._take(line)
            if frame is not None:
                out.append(frame)
        return out

    def _enough(self) -> bool:
        """Return True if no frame of a started turn can be released by reading further lines."""
        if self.ended:
            return True
        if not self.awaited:
            return False
        if not self._one_lane or NO_LANE not in self._blocked:  # else everything waits
            if self._live_ids:
                return False
            if any(count > 0 and ("thread", name) not in self._blocked for name, count in self._open_turns.items()):
                return False
        return len(self._held) >= READ_AHEAD or self._held_bytes >= READ_AHEAD_BYTES

    @property
    def may_advance(self) -> bool:
        """Return True if `advance` has anything to do."""
        return self._stale or bool(self._ready) or not self._enough()

    def _take(self, line: bytes) -> Frame | None:
        """Read the next line; return its frame if it may be sent now."""
        if line.find(_OTHER_SEAM, 0, 64) > 0:
            return None  # an upstream request is large and not ours: it is not even decoded
        frame = self._source.parse(line)
        if frame is None:
            self.ended = self._stale = True
        elif frame.seam == "rpc" and frame.sender == "client":
            self._known.clear()
            self._causality.client(frame)
            self.awaited[frame.n] = frame
        elif frame.seam == "rpc":
            lane, waits = self._causality.server(frame)
            if not self._is_blocked(lane, waits):
                self._stale |= lane[0] == "response" and bool(self._held)  # it may show which request the waiting frames need
                return self._let_out(frame, lane)
            self._known.clear()
            self._keep(frame, line, lane, waits)
        return None

    def _keep(self, frame: Frame, line: bytes, lane: Lane, waits: tuple[int, ...]) -> None:
        place = self._source.place(line) if self._held_bytes >= READ_AHEAD_BYTES else None
        self._held_bytes += len(line)
        if place is None:
            self._held.append((frame, lane, waits))
            return
        last = self._held[-1] if self._held else None
        if last is not None and isinstance(last[0], Run) and last[0].end == place and last[1:] == (lane, waits):
            last[0].end += len(line)
        else:
            self._held.append((Run(place, place + len(line)), lane, waits))

    def _is_blocked(self, lane: Lane, waits: tuple[int, ...]) -> bool:
        blocks = NO_LANE if self._one_lane else lane
        if blocks in self._blocked or any(self._is_awaited(n, lane) for n in waits):
            self._blocked.add(blocks)
            return True
        return False

    def _is_awaited(self, n: int | None, lane: Lane) -> bool:
        if n == UNKNOWN:
            n = self._causality.opener(lane)
            if n is None:
                return not self.ended
        return n in self.awaited

    def _release_held(self) -> list[Frame]:
        self._stale = False
        held, self._held, self._blocked, self._held_bytes = self._held, [], set(), 0
        out: list[Frame] = []
        size = 0
        for one, lane, waits in held:
            if not self._is_blocked(lane, waits):
                frames, rest = self._read_again(one, RELEASE_BYTES - size)
                size += sum(len(frame.raw) for frame in frames)
                out += [self._let_out(frame, lane) for frame in frames]
                if not rest:
                    continue
                # It may go, but not now: what follows it in its lane waits with it.
                self._blocked.add(NO_LANE if self._one_lane else lane)
                self._stale = True
            self._held.append((one, lane, waits))
            self._held_bytes += one.end - one.place if isinstance(one, Run) else len(one.raw)
        if self._held:
            self._known.clear()  # no line may overtake what stays
        return out

    def _read_again(self, one: Frame | Run, most: int) -> tuple[list[Frame], bool]:
        """Read stored frames a second time, at most about `most` bytes.

        Return the frames, and True if more stored frames remain.
        """
        if most <= 0:
            return [], True
        if isinstance(one, Frame):
            return [one], False
        frames = []
        for line in self._source.lines_at(one.place, one.end, most):
            one.place += len(line)
            frame = self._source.parse(line)
            assert frame is not None  # it was parsed when it was held
            frames.append(frame)
        return frames, one.place < one.end

    def _let_out(self, frame: Frame, lane: Lane) -> Frame:
        if is_reply(frame.value) and lane[1] in self._live_ids:
            recorded, live = frame.value["id"], self._live_ids.pop(lane[1])
            return with_bytes(frame, splice_id(frame.raw, recorded, live))
        if lane[0] == "thread" and kind(frame.value) == "notification":
            if self._does("ends_turn", frame.value["method"]):
                name = lane[1]
                self._open_turns[name] = self._open_turns.get(name, 0) - 1
            self._remember(frame, frame.value, lane)
        return frame

    def _remember(self, frame: Frame, value: dict[str, Any], lane: Lane) -> None:
        """Keep the beginning and the end of a frame, so that `advance` recognises the next frames of the same stream without
        decoding them.

        The kept bytes contain quotes, which are escaped inside a JSON string, so the bytes cannot match inside a string.
        """
        params, thread, does = value.get("params"), dumps(lane[1]), self._does
        if type(params) is not dict or does("ends_turn", value["method"]) or does("interrupted_by_request", value["method"]):
            return
        method = b'{"method":' + dumps(value["method"])
        if type(params.get("turnId")) is str:
            begin = method + b',"params":{"threadId":%s,"turnId":%s,"' % (thread, dumps(params["turnId"]))
            # With all its braces and what is before them: a line that has lost its last one is no such line.
            end = frame.raw[len(frame.raw.rstrip(b"}\n")) - 1 : -1] + b"}\n"
        elif type(params.get("id")) is str:
            begin = method + b',"params":{"id":%s,"msg":{"' % dumps(params["id"])
            end = b',"conversationId":%s}}}\n' % thread
        else:
            return
        if frame.raw.startswith(begin) and frame.raw.endswith(end[:-2] + b"\n"):
            self._known[method[:-1]] = (begin, end)

    # -- client frames ------------------------------------------------------------------------------------------------

    def candidate(self, live: Frame) -> Frame | None:
        """Return the recorded frame that the live frame must match.

        A reply must match the recorded reply with the same id. A frame that is not a reply must match the next recorded
        frame that is not a reply.
        """
        value = live.value
        reply = is_reply(value)
        while True:
            for frame in self.awaited.values():
                if reply:
                    if is_reply(frame.value) and frame.value["id"] == value["id"]:
                        return frame
                elif not is_reply(frame.value):
                    return frame
            if not self._read_to_client_frame():
                return None

    def _read_to_client_frame(self) -> bool:
        """Read lines until one more client frame is found. Store the server frames that come before the client frame."""
        count = len(self.awaited)
        while not self.ended and len(self.awaited) == count:
            frame = self._take(self._source.read_line())
            if frame is not None:
                self._ready.append(frame)
        return len(self.awaited) > count

    def consume(self, frame: Frame, live: Frame) -> None:
        """Record that the live client has sent the frame `live`, which matches the recorded client frame `frame`."""
        del self.awaited[frame.n]
        self._stale = True
        self.matcher.bind(frame.value, live.value)
        if kind(frame.value) == "request":
            self._live_ids[frame.n] = live.value["id"]
            name = thread_of(frame.value.get("params"))
            if name is not None and self._does("opens_turn", frame.value["method"]):
                self._open_turns[name] = self._open_turns.get(name, 0) + 1

    def upcoming(self) -> list[Frame]:
        """Return up to 1000 recorded client frames that the live client has not sent yet. Read ahead if necessary."""
        while len(self.awaited) < 1000 and self._read_to_client_frame():
            pass
        return list(self.awaited.values())


_SERVER = b'"from":"server"'
_OTHER_SEAM = b'"seam":"http"'


def with_bytes(frame: Frame, raw: bytes) -> Frame:
    """Return a copy of the frame with the bytes `raw` and the same decoded value."""
    if raw == frame.raw:
        return frame
    return Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, raw, value=frame.value, extra=frame.extra)
