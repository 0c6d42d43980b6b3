"""A log that keeps the order of its frames when one takes long to build: it is built in a thread, and the traffic continues.

A compressed body of some kilobytes may take seconds to be decoded and redacted. Until that is done, the frames after it wait
here, and not their connections. All other frames are in the cassette before their bytes are passed on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.record_log import Log

Build = Callable[[], Frame]


class Deferred:
    """Passes frames on to a `Log`; to be used from one thread."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting: deque[Build] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def now(self) -> float:
        """Return the seconds since the start."""
        return self._log.now()

    def partial(self) -> None:
        """Note that some traffic is not recorded (`Log.partial`)."""
        self._log.partial()

    def built(self, build: Build) -> None:
        """Log the frame that `build` returns, at once if no frame before it is still being built."""
        with self._lock:
            busy = self._thread is not None
            if busy:
                self._waiting.append(build)
        if not busy:
            self._log.built(build)

    def later(self, build: Build) -> None:
        """Log a frame that takes long to build, in a thread."""
        with self._lock:
            self._waiting.append(build)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="http-recorder-bodies", daemon=True)
                self._thread.start()

    def drain(self) -> None:
        """Wait until all frames are logged."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                build = self._waiting.popleft()
            self._log.built(build)
