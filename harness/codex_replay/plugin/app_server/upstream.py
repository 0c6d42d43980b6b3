"""Record the HTTP traffic of a case: the recorder runs between the real server and the scripted backend."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codex_replay.shell.cassettes.record_log import Log
from codex_replay.shell.http.recorder import HttpRecorder

if TYPE_CHECKING:
    from codex_replay.core.cassette.frames import Frame
    from codex_replay.core.redact.redactor import Redactor


class Frames:
    """Collects frames in memory; they are written to a cassette only after the case has passed."""

    path = "the http seam"

    def __init__(self) -> None:
        self.kept: list[Frame] = []
        self.frames = 0

    def write(self, frame: Frame) -> None:
        """Keep one frame."""
        self.frames += 1
        self.kept.append(frame)

    def abandon(self) -> None:
        """Stop the recording before it is complete; `RecordedUpstream.failure` has the reason."""

    def close(self) -> None:
        """End."""


class RecordedUpstream:
    """Forward the HTTP requests of a server to `url`, and keep the requests and the answers.

    If recording failed, `failure` is a sentence with the reason.
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
        """Stop the recorder; a second call has no effect."""
        if self._open:
            self._open = False
            self._recorder.stop()
            self._log.close()
