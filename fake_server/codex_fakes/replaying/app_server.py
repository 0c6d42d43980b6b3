"""The replaying app-server.

The server is a player of recordings, connected to stdin and stdout (`codex_fakes.stdio.loop`). The server matches the
frames of the client, and sends the recorded frames that they cause. The program fake-codex loads this module at start-up
(see `fake_codex`).
"""

from __future__ import annotations

from time import monotonic

from codex_fakes.stdio.loop import ROOM, Ended, Stdio, report_unreadable, write_out
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.replay.causality import Methods
from codex_replay.core.replay.match import LEVELS, Matcher
from codex_replay.core.replay.player import Miss, Player
from codex_replay.core.replay.track import Track
from codex_replay.core.wire.jsonrpc import kind, label
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.cassettes.file import CassetteReader, cassettes_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.core.replay.match import Rules

_KEPT = 1000  # requests that may differ, kept for the end of the run
# The code of a mismatch for the client, which the real server never uses (it uses only -32600 and -32603).
NO_RECORDING = -32001
_BATCH = 512  # lines to read ahead at a time while the client is silent
_FIRST_BATCH = 8  # the same before the first answer, which is at the top of a recording and must not wait for the rest


class Noting(Track):
    """A track that notes which requests differ from the recorded requests.

    The notes are printed when fake-codex ends (`content_notes`).
    """

    def __init__(self, *what: Any) -> None:
        super().__init__(*what)
        self.differing: list[tuple[Frame, Frame]] = []

    def consume(self, frame: Frame, live: Frame) -> None:
        """Mark a recorded client frame as received, with the live frame."""
        ours, theirs = frame.value, live.value
        if len(self.differing) < _KEPT and kind(ours) == "request" and _compared(ours) != _compared(theirs):
            self.differing.append((frame, live))
        super().consume(frame, live)


class AppServer(Stdio):
    """One run of fake-codex that replays `FAKE_CODEX_CASSETTE`, with the settings in the `FAKE_CODEX_*` variables.

    Raises `CassetteError` for a file that cannot be read or written, and `ValueError` for an invalid setting.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self._pace = _pace(environ.get("FAKE_CODEX_PACE") or "fast")
        level = environ.get("FAKE_CODEX_MATCH") or "method"
        if level not in LEVELS:
            raise ValueError(f"FAKE_CODEX_MATCH is {level!r}; it must be {' or '.join(LEVELS)}.")
        self._readers = [CassetteReader(name) for name in cassettes(environ["FAKE_CODEX_CASSETTE"])]
        kind_of_track = Track if quiet(environ) else Noting
        methods: dict[str, Methods] = {}
        self._refuses = True  # what the real server refuses is known of every recording's version
        tracks = []
        for reader in self._readers:
            codex = reader.header.codex
            if codex not in methods:
                lacking = _lacking(codex)
                methods[codex] = Methods(None if "causality" in lacking else _causality(codex))
                self._refuses &= "methods" not in lacking
            tracks.append(kind_of_track(reader.path, reader, methods[codex], Matcher(_rules(codex))))
        self._player = Player(tracks, level)
        self._batch = _FIRST_BATCH
        if environ.get("FAKE_CODEX_CAPTURE"):
            from codex_fakes.stdio.capture import open_capture

            header = self._readers[0].header
            self.capture = open_capture(
                environ["FAKE_CODEX_CAPTURE"], header.codex, header.bundle, [reader.path for reader in self._readers]
            )
        self._ending = environ.get("FAKE_CODEX_ENDING", "")
        self._unmatched: list[str] = []  # why frames were refused, for the ending
        self._refused: set[tuple[Track | None, int]] = set()  # the recorded frames that refused frames of the client stood for
        self._last: tuple[float, float] = (0.0, 0.0)  # recorded and live time of the frame paced last
        self._initialized = False
        self._redactor: Redactor | None = None  # made for the first frame that is not the recorded one as it stands
        self._methods: dict[str, str] | None = None

    @property
    def may_advance(self) -> bool:
        """Return True if recorded frames may be sent now."""
        return self._player.may_advance

    def advance(self) -> None:
        """Send the frames whose causes have arrived."""
        fast = self._pace == 0.0
        for frame in self._player.advance(self._batch, raw=fast and self.fault is None):
            self._batch = _BATCH
            if not isinstance(frame, Frame):
                self.send(frame)
            elif fast:
                self.send(frame.raw)
            else:
                self._schedule(frame)

    def _schedule(self, frame: Frame) -> None:
        """Decide when a recorded frame is sent.

        The time between two frames is the recorded time, divided by the pace. A frame that is overdue is sent immediately.
        """
        recorded, live = self._last
        due = max(monotonic(), live + max(0.0, frame.t - recorded) / self._pace) if live else monotonic()
        self._last = (frame.t, due)
        self.due.append((due, frame.raw))

    # -- one client line ----------------------------------------------------------------------------------------------

    def line(self, live: Frame) -> None:
        """Process one line of the client. Match the line with the recording, or report why it does not match."""
        miss = self._player.receive(live)
        if self._pace and not self.due:
            self._last = (self._last[0], 0.0)
        if miss is not None:
            self._not_recorded(live, miss)
            return
        if kind(live.value) == "request" and live.value["method"] == "initialize":
            self._initialized = True
        if self.waiting < ROOM:
            self.advance()  # what it caused goes out before any answer to the lines behind it

    def _retry_redacted(self, live: Frame, miss: Miss) -> Miss | None:
        clean = self._clean(live)
        return miss if clean.raw == live.raw else self._player.receive(clean)

    def _clean(self, live: Frame) -> Frame:
        """Redact a live frame by the rules of the recording, so that the two can be compared."""
        if self._redactor is None:
            from codex_fakes.stdio.capture import redactor

            self._redactor = redactor(self.home)
            for track in self._player.tracks:
                track.matcher.redacted = True
        raw = self._redactor.redact(live.raw)
        return live if raw == live.raw else Frame(0, live.t, "rpc", "client", raw=raw)

    def _not_recorded(self, live: Frame, miss: Miss) -> None:
        # Not on the start-up path: a client's first line is seldom wrong.
        from codex_replay.protocol.refusals import INVALID_REQUEST, is_message, refusal

        value = live.value
        if not is_message(value):
            report_unreadable(live)
            return
        if kind(value) == "request" and self._refuses:
            self._methods = self._methods or _table("methods", self._readers[0].header.codex)
            refused = refusal(value, self._initialized, self._methods)
            if refused is not None:
                self.answer_error(value["id"], {"code": INVALID_REQUEST, "message": refused})
                return
        still = self._retry_redacted(live, miss)
        if still is not None:
            self._mismatch(value, still)

    def _mismatch(self, value: dict[str, Any], miss: Miss) -> None:
        sort = kind(value)
        if sort == "notification" and value["method"] == "initialized":
            return  # not required, and no harm (REAL-87)
        if sort in ("response", "error") and not self._is_awaited_reply(miss):
            return  # a reply to a request that was never made: the real server is silent
        self.failed = True
        if len(self._unmatched) < _KEPT:
            self._unmatched.append(str(miss))
        nearest = miss.nearest
        if nearest is not None and kind(nearest.value) == sort and label(nearest.value) == label(value):
            self._refused.add((miss.track, nearest.n))
        if sort == "request":
            write_out(f"fake-codex: {miss}")
            self.answer_error(value["id"], {"code": NO_RECORDING, "message": f"fake-codex: {miss}", "data": _details(miss)})
        elif sort == "notification":
            write_out(f"fake-codex: {miss}")
        else:
            write_out(f"fake-codex: {miss}; a reply cannot be answered with an error, so the server stops")
            raise Ended

    @staticmethod
    def _is_awaited_reply(miss: Miss) -> bool:
        nearest = miss.nearest
        return (
            nearest is not None and kind(nearest.value) in ("response", "error") and nearest.value["id"] == miss.live.value["id"]
        )

    # -- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> int:
        """Report differences and missing frames, close every file, and return the exit status."""
        lead = self._player.lead
        notes = self._content_notes()
        missing = [(frame.n, _shown(frame), (lead, frame.n) in self._refused) for frame in lead.upcoming()]
        if self._ending:
            from codex_fakes.replaying.ending import append

            append(self._ending, lead.name, missing, notes, self._unmatched)
        for n, what, refused in missing[:20]:
            fate = "came from the client, but did not match (see above)" if refused else "never came from the client"
            write_out(f"fake-codex: frame {n} of {lead.name} {fate}: {what}")
        if len(missing) > 20:
            write_out(f"fake-codex: ... and {len(missing) - 20} more frames never came")
        for reader in self._readers:
            if reader.truncated and reader.path == lead.name:
                write_out(f"fake-codex: {reader.truncated}")
            reader.close()
        return 1 if self.failed or missing else 0

    def _content_notes(self) -> list[tuple[int, str]]:
        """Report the requests that were answered although their content differs from the recording.

        For each request that differs, return the frame number and a sentence.
        """
        lead = self._player.lead
        if not isinstance(lead, Noting) or not lead.differing:
            return []
        from codex_fakes.replaying.content_notes import content_notes, summary

        notes = content_notes(lead.differing, lead.matcher, self._clean, lead.name)
        for text in summary(notes, len(lead.differing) == _KEPT):
            write_out(f"fake-codex: {text}")
        return notes


def _shown(frame: Frame) -> str:
    return label(frame.value) if frame.value is not None else repr(frame.raw[:80])


def quiet(environ: Mapping[str, str]) -> bool:
    """Return True if the user has set a match level.

    If the user has set FAKE_CODEX_MATCH, differences in the content of requests are not reported.
    """
    return bool(environ.get("FAKE_CODEX_MATCH"))


def _compared(request: Any) -> Any:
    """Return a request without the members that may differ between clients (`clientInfo`)."""
    params = request.get("params")
    if request["method"] == "initialize" and type(params) is dict:
        return {name: value for name, value in params.items() if name != "clientInfo"}
    return params


def _pace(text: str) -> float:
    """Return the pace in a setting (see `codex_replay.core.replay.pace`). Raises `ValueError` for any other text."""
    if text == "fast":
        return 0.0
    from codex_replay.core.replay.pace import pace_of

    if text.startswith("race:"):
        what = "reorders the frames of a script, but a recording is replayed in the recorded order"
        raise ValueError(
            f"FAKE_CODEX_PACE is {text!r}, which {what}; with a recording it must be fast, recorded, or a number "
            f"with an x, such as 2x."
        )
    pace = pace_of(text)
    if pace is None:
        raise ValueError(f"FAKE_CODEX_PACE is {text!r}; it must be fast, recorded, or a number with an x, such as 2x.")
    return pace


def cassettes(path: str) -> list[str]:
    """Return the cassette at `path`, or all cassettes in a directory.

    If `path` does not exist, the reader of cassettes raises an error later.
    """
    try:
        with open(path, "rb"):
            return [path]
    except IsADirectoryError:
        pass
    except OSError:
        return [path]
    found, left_out = cassettes_in(path)
    for text in left_out:
        write_out(f"fake-codex: {text}")
    if not found:
        raise ValueError(f"FAKE_CODEX_CASSETTE is the directory {path}, which has no cassette (*.ndjson).")
    return found


#: The tables of a version that a replay uses.
_TABLES = ("causality", "normalise", "methods")


def _lacking(codex: str) -> list[str]:
    """Return the tables that the version of a recording lacks, and report them in one line."""
    if codex == DEFAULT:  # it has every table; to look would cost start-up time
        return []
    from codex_replay.protocol.data_tables import has, without

    if problem := without(_TABLES, codex):
        write_out(f"fake-codex: {problem}")
    return [name for name in _TABLES if not has(name, codex)]


def _table(name: str, codex: str) -> dict[str, Any]:
    """Return a table of the Codex version of the cassette.

    If the version lacks the table, return the table for all versions (`_lacking` reports this).
    """
    from codex_replay.protocol.data_tables import choose  # no table is read before the first answer

    table: dict[str, Any] = choose(name, codex)[0]
    return table


def _causality(codex: str) -> Callable[[], dict[str, list[str]]]:
    return lambda: _table("causality", codex)


def _rules(codex: str) -> Callable[[], Rules]:
    def load() -> Rules:
        from codex_replay.core.normalise.masking import Rules

        return Rules(_table("normalise", codex))

    return load


def _details(miss: Miss) -> dict[str, Any]:
    nearest = None if miss.nearest is None or miss.track is None else {"frame": miss.nearest.n, "cassette": miss.track.name}
    return {
        "nearest": nearest,
        "differences": [{"path": d.path, "recorded": d.recorded, "got": d.live} for d in miss.differences[:20]],
    }
