"""Play one recording, or several with a common opening, to a live client.

The player decides which client frame is expected next, and which server frame is sent next.

The frames that the client sends decide which recording is played. For example, the client's reply to an approval chooses
between a recording with `accept` and a recording with `decline`. When a recording is chosen, its ids are bound to the ids
that the client already got, because both name the same thread. The program fake-codex loads this module at start-up.
"""

from __future__ import annotations

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay.match import Difference, Matcher, first_few
from codex_replay.core.replay.track import READ_AHEAD, Track, with_bytes
from codex_replay.core.wire.json_text import value_or_none
from codex_replay.core.wire.jsonrpc import is_reply, kind, label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_replay.core.replay.match import Bindings


class Miss:
    """The report of a live frame that no recording expects next: the most similar recorded frame, if any, and the difference
    between the two frames.
    """

    __slots__ = ("differences", "live", "nearest", "track")

    def __init__(self, live: Frame, track: Track | None, nearest: Frame | None, differences: list[Difference]) -> None:
        self.live = live
        self.track = track
        self.nearest = nearest
        self.differences = differences

    def __str__(self) -> str:
        message = label(self.live.value) if self.live.value is not None else repr(self.live.raw[:80])
        if self.nearest is None or self.track is None:
            return f"no recorded frame is left for {message}: the recording ends before it"
        near = f"the nearest is frame {self.nearest.n} of {self.track.name}, {label(self.nearest.value)}"
        if not self.differences:
            return f"no recorded frame matches {message}: {near}, which comes later, after other client frames"
        return f"no recorded frame matches {message}: {near}, and differs at {first_few(self.differences)}"


class Player:
    """One recording, or several recordings with a common opening.

    The client's frames choose among the recordings; as long as several are possible, the first one (the leading track) is
    played.
    """

    def __init__(self, tracks: list[Track], level: str = "method") -> None:
        self.tracks = tracks
        self.level = level
        self._history: dict[Track, list[Frame]] = {track: [] for track in tracks}
        self._late: list[Frame | bytes] = []  # what a new lead has for the opening and the old one had not

    @property
    def lead(self) -> Track:
        """The leading track: the recording whose frames are sent to the client."""
        return self.tracks[0]

    @property
    def may_advance(self) -> bool:
        """Return True if `advance` has anything to do."""
        return bool(self._late) or self.lead.may_advance

    def advance(self, most: int, raw: bool = True) -> list[Frame | bytes]:
        """Return the frames that may be sent now, with live values inserted.

        With `raw`, some frames are returned as undecoded bytes, which is faster.
        """
        out, self._late = self._late, []
        if len(self.tracks) == 1:
            out += self.lead.advance(most, raw)
        else:
            out += self._advance_one_of_many(self.lead, most)
        bindings = self.lead.matcher.bindings
        for i, frame in enumerate(out):
            if isinstance(frame, Frame):
                if is_reply(frame.value):
                    _give(frame.value, bindings)
                if bindings:
                    out[i] = with_bytes(frame, bindings.apply(frame.raw))
            elif bindings:
                out[i] = bindings.apply(frame)
        return out

    def _advance_one_of_many(self, track: Track, most: int) -> list[Frame | bytes]:
        out = track.advance(most)
        self._history[track] += [frame for frame in out if isinstance(frame, Frame)]
        return out

    def receive(self, live: Frame) -> Miss | None:
        """Take a live client frame.

        Keep the recordings that expect the given frame next, and drop all other recordings. Return None if the frame
        matches a recording, otherwise a `Miss`. A miss leaves the player unchanged.
        """
        same: list[tuple[Track, Frame]] = []
        alike: list[tuple[Track, Frame]] = []
        for track in self.tracks:
            frame = track.candidate(live)
            if frame is None:
                continue
            if len(self.tracks) == 1 and self._is_alike(frame, live):
                alike.append((track, frame))  # there is nothing to choose: its content does not matter
            elif not _differences(track.matcher, frame, live):
                same.append((track, frame))
            elif self._is_alike(frame, live):
                alike.append((track, frame))
        chosen = same or alike
        if not chosen:
            return self._miss(live)
        if len(self.tracks) > 1:
            self._choose([track for track, _ in chosen])
        for track, frame in chosen:
            track.consume(frame, live)
        return None

    def _is_alike(self, recorded: Frame, live: Frame) -> bool:
        """Return True if the level is `method`, and both frames are requests or notifications of the same method.

        Return False for a reply at any level.
        """
        if self.level != "method" or kind(live.value) not in ("request", "notification"):
            return False
        return recorded.value is not None and _same_message(recorded.value, live.value)

    def _miss(self, live: Frame) -> Miss:
        nearest: tuple[tuple[bool, int], Track, Frame, list[Difference]] | None = None
        for track in self.tracks:
            for frame in track.upcoming():
                found = _differences(track.matcher, frame, live)
                other = kind(frame.value) != kind(live.value) or label(frame.value) != label(live.value)
                if nearest is None or (other, len(found)) < nearest[0]:
                    nearest = ((other, len(found)), track, frame, found)
        return Miss(live, *nearest[1:]) if nearest else Miss(live, None, None, [])

    def _choose(self, tracks: list[Track]) -> None:
        """Continue with the recordings in `tracks`.

        If the leading recording changes, bind the ids in its opening to the ids that the client already got.
        """
        old, new = self.lead, tracks[0]
        if new is not old:
            while new.may_advance and self._advance_one_of_many(new, READ_AHEAD):
                pass
            self._late += self._tie(self._history[old], self._history[new], old, new)
        self.tracks = tracks
        self._history = {track: self._history[track] for track in tracks}

    @staticmethod
    def _tie(sent: list[Frame], recorded: list[Frame], old: Track, new: Track) -> list[Frame]:
        """Bind the values of the new leading recording to the values that the client already got.

        Return the frames of the new leading recording that have no counterpart among the sent frames.
        """
        waiting = list(sent)
        unsent = []
        for frame in recorded:
            for i, other in enumerate(waiting):
                if _same_place(frame.value, other.value):
                    del waiting[i]
                    new.matcher.bind(frame.value, value_or_none(old.matcher.bindings.apply(other.raw)))
                    break
            else:
                unsent.append(frame)
        return unsent


def _differences(matcher: Matcher, recorded: Frame, live: Frame) -> list[Difference]:
    if recorded.raw == live.raw and kind(recorded.value) == "other":
        return []  # a line that is not a message: the fake may read it as one, as the real server does
    if recorded.value is None or live.value is None:
        return [Difference("the line", repr(recorded.raw[:200]), repr(live.raw[:200]))]
    if not _same_message(recorded.value, live.value):
        return [Difference("method", label(recorded.value), label(live.value))]
    return matcher.differences(recorded.value, live.value)


def _same_message(recorded: Any, live: Any) -> bool:
    """Return True if both messages have the same kind and the same method. Two responses have no method and count as equal."""
    sort = kind(recorded)
    if sort != kind(live):
        return False
    return bool(recorded["method"] == live["method"]) if sort in ("request", "notification") else True


def _same_place(a: Any, b: Any) -> bool:
    if kind(a) == "other" or not _same_message(a, b):
        return False
    return bool(a["id"] == b["id"]) if is_reply(a) else True


def _give(response: dict[str, Any], bindings: Bindings) -> None:
    """Store the thread id in a response to the client, because the client must send this id back unchanged."""
    result = response.get("result")
    if type(result) is dict:
        thread = result.get("thread")
        for name in (result.get("conversationId"), thread.get("id") if type(thread) is dict else None):
            if type(name) is str and bindings.agrees(name, name) is None:
                bindings.give(name)
