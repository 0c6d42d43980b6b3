"""Record frames in order, even if some frames take long to build.

A frame that takes long is built in a thread, while the traffic continues. For example, decoding and redacting a long body,
or a compressed body of some kilobytes, may take seconds. Later frames wait until the slow frame is built. The connections
continue as long as the waiting frames together have fewer than `ROOM` bytes. If no frame waits, a frame is in the cassette
before its bytes are passed on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from codex_replay.core.cassette.frames import Frame
from codex_replay.shell.cassettes.record_log import Log

Build = Callable[[], Frame]
ROOM = 64 << 20  # bytes of waiting frames: with more, `full` is True


class Deferred:
    """Pass frames on to a `Log` in their order. Only one thread may call the methods."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting: deque[tuple[Build, int]] = deque()
        self._size = 0  # bytes of the frames that wait or are being built
        self._awaiting: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def now(self) -> float:
        """Return the seconds since the recording started."""
        return self._log.now()

    def partial(self) -> None:
        """Mark the recording as partial, because some traffic is missing in it (`Log.partial`)."""
        self._log.partial()

    @property
    def full(self) -> bool:
        """True if the frames that wait to be recorded have more than `ROOM` bytes.

        While `full` is True, the caller should read no more traffic.
        """
        return self._size > ROOM

    def when_room(self, call: Callable[[], object]) -> None:
        """Call the function `call` once, as soon as the waiting frames have fewer than `ROOM` bytes.

        Any thread may call `call`.
        """
        with self._lock:
            if self.full:
                self._awaiting.append(call)
                return
        call()

    def built(self, build: Build, size: int = 0) -> None:
        """Record the frame of about `size` bytes that the function `build` returns.

        The frame is written immediately if all frames before it are built.
        """
        with self._lock:
            busy = self._thread is not None
            if busy:
                self._wait(build, size)
        if not busy:
            self._log.built(build)

    def later(self, build: Build, size: int = 0) -> None:
        """Build a frame of `size` bytes in a thread, because building it takes long, and log the frame."""
        with self._lock:
            self._wait(build, size)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="http-recorder-bodies", daemon=True)
                self._thread.start()

    def drain(self) -> None:
        """Wait until all frames are written."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _wait(self, build: Build, size: int) -> None:
        self._waiting.append((build, size))
        self._size += size

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                build, size = self._waiting.popleft()
            self._log.built(build)
            del build  # a body is not kept until the next one comes
            with self._lock:
                self._size -= size
                calls = [] if self.full else self._awaiting
                self._awaiting = self._awaiting if self.full else []
            for call in calls:
                call()
