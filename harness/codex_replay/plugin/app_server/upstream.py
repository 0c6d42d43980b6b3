"""The http seam of a case that is being recorded: the recorder is between the real server and the scripted backend."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.recorder import HttpRecorder

if TYPE_CHECKING:
    from codex_replay.core.cassette.frames import Frame
    from codex_replay.core.redact.redactor import Redactor


class Frames:
    """Collects frames in place of a cassette's writer, until the case has passed and its cassette is written."""

    path = "the http seam"

    def __init__(self) -> None:
        self.kept: list[Frame] = []
        self.frames = 0

    def write(self, frame: Frame) -> None:
        """Keep one frame."""
        self.frames += 1
        self.kept.append(frame)

    def abandon(self) -> None:
        """Stop before the recording is complete; `RecordedUpstream.failure` has the reason."""

    def close(self) -> None:
        """End."""


class RecordedUpstream:
    """Forward a server's requests to `url` and keep the traffic of both sides.

    If the recording fails, `failure` is a sentence with the reason.
    """

    def __init__(self, url: str, redactor: Redactor) -> None:
        self.failure = ""
        self.started = time.monotonic()
        self._kept = Frames()
        self._log = Log(self._kept, self._fail)
        self._recorder = HttpRecorder(url, "127.0.0.1:0", self._log, redactor, self._fail)
        self.url = self._recorder.url
        self._open = True
        self._recorder.start()

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why

    def frames(self, since: float) -> list[Frame]:
        """Return the recorded frames, with times relative to `since` (a value of `time.monotonic`)."""
        for frame in self._kept.kept:
            frame.t = max(0.0, frame.t + self.started - since)
        self.started = since
        return self._kept.kept

    def close(self) -> None:
        """Stop listening; a second call has no effect."""
        if self._open:
            self._open = False
            self._recorder.stop()
            self._log.close()
