"""A transparent recorder (a tee) between a client and an app-server.

Every line is on disk before it is passed on. One thread with one poll loop serves two lanes (client to server, server to
client). Frames are therefore recorded in the order in which they are passed on. A line is recorded when it is complete, and is
queued for writing after that. If the reader of a lane is slow, the lane stops reading from its source, and the other lane
continues. A lane therefore never queues more than `LIMIT` bytes and one line. The descriptors 0 and 1, which the recorder shares
with the client, stay blocking, because a change of their flags would also affect the client. The recorder writes to these
descriptors in small pieces, because a pipe that poll() reports as writable accepts only PIPE_BUF bytes without blocking. An end
of file, a disconnected reader, a signal or an exit at one end is repeated at the other end. If recording fails, the tee continues
as a plain pipe (see `Log`).
"""

from __future__ import annotations

import os
import select

from codex_replay.core.wire.ndjson import LineSplitter
from codex_replay.shell.process.child import Child
from codex_replay.shell.process.impersonate import close, die_with_parent, signal_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    class Log(Protocol):
        """The interface of an object that gets the recorded lines, such as `record_log.Log`.

        A log gets each line while its attribute `on` is True.
        """

        on: bool

        def line(self, sender: str, raw: bytes) -> None:
            """Take a line that the recorder has read. When `line` returns, the line must be stored."""

        def give_up(self, why: str) -> None:
            """Log no more lines."""

else:
    import _signal as signal  # see `child`

PIECE = 65536
LIMIT = 262144  # bytes that may wait for a slow reader before its writer is no longer read
LONGEST = 64 << 20  # bytes; a longer line is passed on, but no longer recorded


class Lane:
    """One direction of the traffic: data is read from `source`, split into lines, recorded, and then kept in `waiting` until it
    is written to `sink`.

    A closed descriptor has the value -1. `piece` is the number of bytes that may be written to `sink` when poll() reports
    `sink` as ready.
    """

    def __init__(self, sender: str, source: int, sink: int, piece: int, log: Log) -> None:
        self.source = source
        self.sink = sink
        self.waiting = bytearray()
        self._sender = sender
        self.piece = piece
        self._log = log
        self._splitter = LineSplitter()
        self._held = 0

    @property
    def readable(self) -> bool:
        """True while data may be read from `source`: `source` is open, and the buffer of the lane is not full."""
        return self.source >= 0 and len(self.waiting) < LIMIT

    def read(self) -> bool:
        """Read once from the source of the lane. Return False if a non-blocking source has no data now."""
        try:
            data = os.read(self.source, PIECE)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that hung up, a socket that was reset: there is no more to come
            data = b""
        if data:
            self.take(data)
        else:
            self.end()
        return True

    def take(self, data: bytes) -> None:
        """Take bytes from the source of the lane.

        Record and pass on each complete line, and keep an incomplete line until the rest arrives.
        """
        lines = self._splitter.feed(data)
        self._held = len(data) - data.rfind(b"\n") - 1 if lines else self._held + len(data)
        for line in lines:
            self.pass_on(line)
        if self._held > LONGEST:
            self._log.give_up(f"A line from the {self._sender} is longer than {LONGEST >> 20} MB.")
        if not self._log.on:
            self.waiting += self._splitter.close()
            self._held = 0

    def pass_on(self, line: bytes) -> None:
        """Record one line, then queue it for the sink."""
        self._log.line(self._sender, line)
        if self.sink >= 0:
            self.waiting += line

    def end(self) -> None:
        """Handle the end of the source: pass on an incomplete last line unchanged, and then close the sink."""
        if self.source < 0:
            return
        tail = self._splitter.close()
        if tail:
            self.pass_on(tail)
        close(self.source)
        self.source = -1
        self._settle()

    def write(self) -> None:
        """Write once to the sink of the lane.

        If the reader of the sink has disconnected, also close the source, so that the writer notices the end.
        """
        try:
            del self.waiting[: os.write(self.sink, self.waiting[: self.piece])]
        except BlockingIOError:
            return
        except OSError:
            self.drop()
        self._settle()

    def drop(self) -> None:
        """Stop the lane after its reader has disconnected."""
        self.waiting.clear()
        self.end()
        self.waiting.clear()
        self._settle()

    def _settle(self) -> None:
        if self.source < 0 and self.sink >= 0 and not self.waiting:
            close(self.sink)
            self.sink = -1


class Recorder:
    """Start an app-server, connect it to this process's stdin and stdout, and log the traffic until the server exits.

    The recorder must run in the main thread, because it handles signals. The process of the recorder must have no other
    task.
    """

    def __init__(self, command: Sequence[str], log: Log, env: Mapping[bytes, bytes] | None = None) -> None:
        """Start `command`, which is searched on PATH, with the environment `env`.

        Raises OSError if the command cannot be started.
        """
        self._poll = select.poll()
        self._registered: dict[int, int] = {}
        self._wake, self._hurry = signal_pipe(), False
        ours_in, ours_out = self._start(command, env)
        self.client = Lane("client", 0, ours_in, PIECE, log)
        self.server = Lane("server", ours_out, 1, select.PIPE_BUF, log)

    def _start(self, command: Sequence[str], env: Mapping[bytes, bytes] | None) -> tuple[int, int]:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        try:
            # Descriptors that the client handed down are for the server too; our own are not inheritable.
            self._child = Child(command, theirs_in, theirs_out, env, die_with_parent())
        except BaseException:
            os.close(ours_in)
            os.close(ours_out)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(ours_in, False)
        os.set_blocking(ours_out, False)
        return ours_in, ours_out

    def run(self) -> int:
        """Pass on all data until the server has exited and all its output is delivered.

        Return the exit status, as `Popen` does.
        """
        while not self._finished():
            self._watch()
            for descriptor, events in self._poll.poll():
                self._serve(descriptor, events)
            if self._child.returncode is not None:
                self._drain()
        status = self._child.returncode
        assert status is not None
        return status

    def _finished(self) -> bool:
        if self._child.returncode is None:
            return False
        return self._hurry or (self.server.source < 0 and not self.server.waiting)

    def _watch(self) -> None:
        """Register the events for which the recorder waits now with poll().

        Every sink is registered, so that poll() reports a closed reader.
        """
        wanted = {self._wake: select.POLLIN}
        for lane in (self.client, self.server):
            if lane.readable:
                wanted[lane.source] = select.POLLIN
            if lane.sink >= 0:
                wanted[lane.sink] = select.POLLOUT if lane.waiting else 0
        if wanted != self._registered:
            for descriptor in self._registered.keys() - wanted.keys():
                self._poll.unregister(descriptor)
            for descriptor, events in wanted.items():
                self._poll.register(descriptor, events)
            self._registered = wanted

    def _serve(self, descriptor: int, events: int) -> None:
        if descriptor == self._wake:
            self._signals()
            return
        for lane in (self.client, self.server):
            if descriptor == lane.source:
                lane.read()
            elif descriptor == lane.sink:
                if lane.waiting and events & select.POLLOUT:
                    lane.write()
                elif events & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                    lane.drop()

    def _signals(self) -> None:
        for number in os.read(self._wake, PIECE):
            if number == signal.SIGCHLD:
                self._child.poll()
            elif self._child.poll() is None:
                self._child.send_signal(number)
            elif number != signal.SIGWINCH:  # the server is gone, and whoever waits for us has lost patience
                self._hurry = True

    def _drain(self) -> None:
        """After the server's exit, pass on the output that is still in the pipe.

        Do not wait for other processes that keep the pipe open.
        """
        self.client.drop()
        while self.server.readable:
            if not self.server.read():
                self.server.end()
