"""Start a proxy process with a chosen codex, wait until it is ready, and end the process with all its children.

The `codex` of the proxy is a small program in the folder of the proxy process. The small program replaces itself with the
app-server under test, in another environment than that of the proxy. Between the proxy and the app-server, another program
(the tap) records the messages. Each tap writes its own file, the ledger, with the process id of the tap in the name. Cases
with the same environment variables share a proxy process. If there are too many proxy processes, the harness ends the
process that was unused for the longest time.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.last_words import last_words
from codex_replay.plugin.base.checking import keeps_experimental
from codex_replay.plugin.base.subjects import fill
from codex_replay.plugin.proxy.http import Exchange, exchange
from codex_replay.plugin.proxy.no_end import is_quiet
from codex_replay.plugin.proxy.subject import READY_PATH
from codex_replay.plugin.proxy.wire import Wire
from codex_replay.report.group_failures import STDERR
from codex_replay.shell.process.programs import program
from codex_replay.shell.process.subject import MARK, CannotStart, Process
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from codex_replay.plugin.base.subjects import Subject
    from codex_replay.plugin.proxy.subject import ProxySubject
    from codex_replay.plugin.proxy.wire import WireFrame
    from codex_replay.shell.http.backend_process import BackendProcess, BackendSession

#: Seconds for one answer to the question whether a proxy is ready, and within which an answer can be expected.
ASK, ENOUGH = 5.0, 1.0
#: Seconds between two such questions.
AGAIN = 0.02
#: The paths by which a proxy may say that it is not ready yet (503), and how many seconds it is believed: a path that is wrong
#: while requests are served is for its own case to judge.
HEALTH_PATHS, BUSY, GOES_ON = ("/readyz", "/healthz"), 503, 5.0
#: The status with which a server answers a method or a route that it does not have; Python's http.server does so.
NOT_IMPLEMENTED = 501
#: The maximum seconds after a case until its turns have ended.
SETTLES = 0.3
#: The maximum number of processes of one run at a time.
MOST = 5
#: In a case's environment: not for the proxy, but in how many bytes at a time its app-server writes.
PIECE = "CODEX_REPLAY_PIECE"
#: The same: messages to put among those of its app-server, the JSON of `shell/rpc/inserting.py`.
INSERT = "CODEX_REPLAY_INSERT"
#: The same: any text, if a scripted fake keeps its threads on disk, as the real Codex always does.
STATE = "CODEX_REPLAY_STATE"
#: The same: how many bytes its app-server writes to stderr at its start.
NOISE = "CODEX_REPLAY_STDERR"
#: The same: how often its app-server repeats a stream of the model that breaks off; 0 if not given.
RETRIES = "CODEX_REPLAY_STREAM_RETRIES"
#: The folder beside codex that ends it at its start, with status 1; each such start writes a file into it.
ENDS = "ends-at-its-start"
#: The one variable that every case sets.
PROFILE = "PROXY_PROFILE"
#: Set for Codex versions that refuse dynamic tools and raw items to clients without the capability experimentalApi.
EXPERIMENTAL = "PROXY_EXPERIMENTAL_API"
PROFILES = ("as-specified", "works-on-0.92", "speaks-v2")
#: A run of the profile on the left has the cases of that on the right, too.
INCLUDED = {"speaks-v2": "works-on-0.92"}


def profile_in(chosen: str, names: Container[str]) -> bool:
    """Return True if a run of the profile `chosen` contains the case with the given profile names."""
    return chosen in names or INCLUDED.get(chosen) in names


#: What the real Codex would find in its config.toml; nothing that a proxy sets itself is here.
_KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_START")


class NotReady(SubjectFailure):
    """The proxy did not become ready in time.

    `answered` is True if the proxy answered any request: then it listens at the right port.
    """

    def __init__(self, text: str, answered: bool) -> None:
        super().__init__(text)
        self.answered = answered


class RunningProxy:
    """One process of the proxy under test; for a proxy that is given as a URL, the proxy that already runs.

    The constructor raises `SubjectFailure` if the proxy does not start or does not become ready.
    """

    def __init__(
        self,
        subject: ProxySubject,
        app_server: Subject,
        folder: Path,
        env: Mapping[str, str],
        script: Any,
        cwd: str,
        backend: Callable[[], BackendProcess],
    ) -> None:
        __tracebackhide__ = True
        self.subject, self.folder, self.env = subject, folder, dict(env)
        self.wire = Wire(folder)
        self.upstream: BackendSession | None = None
        self.process: Process | None = None
        self._left: list[WireFrame] = []  # the frames of a case whose turn may go on
        self._settled_by = 0.0
        self.retired = False  # whether the pool ended it; else an ended process ended by itself
        self.url = subject.url or ""
        self.key = subject.key
        if subject.url is None:
            codex = self._codex(app_server, script, backend)
            self._start(codex, cwd, app_server.version)
        self._await_ready()

    def _codex(self, subject: Subject, script: Any, backend: Callable[[], BackendProcess]) -> str:
        from codex_replay.shell.codex.home import PROVIDER, HermeticHome

        argv = subject.argv[:-1] if subject.argv[-1] == "app-server" else subject.argv
        url, added = "http://127.0.0.1:9", {}
        if subject.live:
            self.upstream = backend().session(f"proxy:{self.folder}", script)
            url = self.upstream.url
        else:
            (self.folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
            added["FAKE_CODEX_SCRIPT"] = str(self.folder / "script.json")
            if STATE in self.env:
                added["FAKE_CODEX_STATE"] = str(self.folder / "state")
        extra = {"model_providers": {PROVIDER: {"stream_max_retries": int(self.env.pop(RETRIES, "0"))}}}
        home = HermeticHome(self.folder / "codex-home", url, version=subject.version, extra_config=extra)
        environ = {**home.env, **added}
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in environ.items())
        tap = shlex.join([*program("codex_replay.shell.rpc.wire_tap"), "--timed"])
        self.env.pop(STATE, None)
        piece = self.env.pop(PIECE, "")
        if insert := self.env.pop(INSERT, ""):
            (self.folder / "insert.json").write_text(insert, encoding="utf-8")
            argv = (*program("codex_replay.shell.rpc.inserting"), str(self.folder / "insert.json"), "--", *argv)
        where = shlex.quote(str(self.folder))
        noise = f"cat {where}/noise >&2\n" if (size := int(self.env.pop(NOISE, "0"))) else ""
        if noise:
            (self.folder / "noise").write_bytes((b"A line that the app-server logs.\n" * (size // 33 + 1))[:size])
        path = self.folder / "codex"
        path.write_text(
            f"#!/bin/sh\n[ -e {where}/{ENDS} ] && {{ : > {where}/{ENDS}/$$; exit 1; }}\n{noise}"
            f'exec env -i {settings} FAKE_CODEX_LEDGER={where}/ledger.$$ {MARK}="${{{MARK}-}}" '
            f'{tap} {where}/wire.$$ {piece} -- {shlex.join(argv)} "$@"\n',
            encoding="utf-8",
        )
        path.chmod(0o755)
        return str(path)

    def _start(self, codex: str, cwd: str, version: str) -> None:
        __tracebackhide__ = True
        port = str(free_port())
        (self.folder / "home").mkdir()
        kept = {name: value for name in _KEPT if (value := os.environ.get(name))}
        given = {
            **kept,
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "NO_PROXY": "*",
            "CODEX_BIN": codex,
            "HOST": "127.0.0.1",
            "PORT": port,
            "PROXY_HOST": "127.0.0.1",
            "PROXY_PORT": port,
            "PROXY_API_KEY": self.key,
            "PROXY_API_KEYS": self.key,
        }
        if keeps_experimental(version):
            given[EXPERIMENTAL] = "true"
        filled = {"{port}": port, "{codex}": codex, "{key}": self.key}
        argv = [fill(word, filled) for word in self.subject.argv]
        given.update({name: fill(value, filled) for name, value in {**self.subject.env, **self.env}.items()})
        self.url = f"http://127.0.0.1:{port}"
        try:
            self.process = Process(argv, env=given, cwd=cwd)
        except CannotStart as error:
            raise SubjectFailure(f"--proxy: {error}") from None
        self.process.close_stdin()

    def _await_ready(self) -> None:
        """Send requests until an answer shows that the proxy is ready; raises `NotReady` if no such answer comes in time.

        A proxy is ready if it answers with a status below 500, or with 501 (the method or route does not exist).

        If the configuration sets no path, `/readyz` and `/healthz` decide: status 503 means that the proxy is still starting,
        status 200 that it is ready. If `/readyz` or `/healthz` has answered with 503 or 200, the status of `/v1/models` does not
        matter.
        """
        __tracebackhide__ = True
        began = time.monotonic()
        deadline = began + self.subject.ready_seconds
        last = "no answer"
        while (left := deadline - time.monotonic()) > 0.1:
            if self.process is not None and self.process.exited.is_set():
                last_line = last_words(self.process.stderr_tail(60))
                why = f"The proxy ended (status {self.process.status}) before it answered GET {self.subject.ready}{last_line}"
                raise self._not_ready(why, False)
            done = self._get(self.subject.ready, min(left, ASK))
            answers = bool(done.status) and not done.problem
            health = self._health() if answers and self.subject.ready == READY_PATH else {}
            busy = next((path for path, status in health.items() if status == BUSY), None)
            if answers and (done.status < 500 or done.status == NOT_IMPLEMENTED or 200 in health.values()):
                if done.version < 11:
                    raise self._not_ready(_old_http(done), True)
                if busy is None or time.monotonic() > began + GOES_ON:
                    return
            # Silence says nothing about the proxy if the last question of all has left it no time for an answer.
            if last == "no answer" or left > ENOUGH or done.status or not done.silent:
                last = done.problem or f"status {done.status}"
            if self.process is not None:
                self.process.exited.wait(AGAIN)
            else:
                time.sleep(AGAIN)
        why = f"The proxy was not ready within {self.subject.ready_seconds:g} s: GET {self.subject.ready} gave {last}."
        if self.process is None:
            why += " Start the proxy before the run, or correct the URL."
        raise self._not_ready(why, last.startswith("status "))

    def _get(self, path: str, seconds: float) -> Exchange:
        return exchange(self.url, "GET", path, None, {"Authorization": f"Bearer {self.key}"}, seconds)

    def _health(self) -> dict[str, int]:
        """Return the status of the answer for each path of `HEALTH_PATHS`; 0 means no answer."""
        return {path: self._get(path, ENOUGH).status for path in HEALTH_PATHS}

    def _not_ready(self, why: str, answered: bool) -> NotReady:
        lines = self.process.stderr_tail(15) if self.process is not None else []
        self.stop()
        why = why if why.endswith(".") else f"{why}."
        if len(lines) == 1 and lines[0].strip() in why:
            lines = []  # the sentence has it already
        return NotReady("\n".join([f"{why}{STDERR if lines else ''}", *lines]), answered)

    @contextmanager
    def codex_ends_at_its_start(self) -> Iterator[Callable[[], list[float]]]:
        """Make each new app-server of the proxy exit immediately with status 1, inside the `with` block.

        The value of the `with` statement is a function that returns the times at which the app-servers exited in this way,
        in seconds of the monotonic clock.
        """
        path = self.folder / ENDS
        path.mkdir()
        try:
            # The system keeps the times of files by the wall clock.
            yield lambda: sorted(time.monotonic() - time.time() + each.stat().st_mtime for each in path.iterdir())
        finally:
            path.rename(path.with_name(f"{ENDS}.{time.monotonic_ns()}"))  # at once: a start may still write into it

    def leave(self, since: int) -> None:
        """Record that a case has ended, although one of its turns may still run.

        The frames of the case begin at the index `since`.
        """
        self.wire.update()
        self._left = self.wire.frames[since:]
        self._settled_by = time.monotonic() + SETTLES

    def settled(self) -> bool:
        """Return True once no turn of an earlier case runs; return False if a turn still runs after `SETTLES` seconds.

        The harness waits before the next case and not after the earlier case, because most turns end in the meantime.
        """
        if self._left and not self.wire.until(self._is_quiet, self._settled_by - time.monotonic(), self._left):
            return False
        self._left = []
        return True

    def _is_quiet(self, frames: list[WireFrame]) -> bool:
        return is_quiet([frame for frame in frames if frame.child not in self.wire.ended])

    @property
    def alive(self) -> bool:
        """Return True unless the proxy process is known to have ended."""
        return self.process is None or not self.process.exited.is_set()

    def stop(self) -> None:
        """End the proxy process and all processes that it started; do nothing to a proxy that was given as a URL."""
        if self.process is not None:
            self.process.stop(grace=2.0)
        if self.upstream is not None:
            self.upstream.close()
            self.upstream = None


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _old_http(done: Exchange) -> str:
    """Return the error text for a proxy that answers with HTTP/1.0.

    For some web servers, the text also explains how to use HTTP/1.1.
    """
    server = done.header("server") or ""
    how = (
        'Set `protocol_version = "HTTP/1.1"` in the handler class of Python\'s http.server'
        if "Python/" in server
        else "Set the protocol version of its HTTP server to 1.1"
    )
    return f"The proxy answers with HTTP/1.0; it must speak HTTP/1.1. {how}."


def _key(env: Mapping[str, str], script: Any) -> str:
    return json.dumps([sorted(env.items()), script])


class Pool:
    """The proxy processes of one run, by their environment and script."""

    def __init__(self, start: Callable[[Mapping[str, str], Any], RunningProxy]) -> None:
        self._start = start
        self._running: dict[str, RunningProxy] = {}
        self._broken: dict[str, str] = {}
        self._begun = False  # whether any process has ever started
        self._never = ""  # why the first of all did not start, though nothing special was asked of it
        self._lock = threading.Lock()

    def broken(self, env: Mapping[str, str], script: Any = None) -> str:
        """Return the reason why an earlier start of a proxy process with the given environment variables failed, in one line.

        Return "" if no start failed.
        """
        why = self._never or self._broken.get(_key(env, script), "")
        return why.partition("\n")[0].removesuffix(STDERR)

    def get(self, env: Mapping[str, str], script: Any = None) -> RunningProxy:
        """Return a proxy process with the environment variables `env`; start a process if none runs.

        Raises `SubjectFailure` if the process does not start.
        """
        __tracebackhide__ = True
        with self._lock:
            return self._get(env, script)

    def _get(self, env: Mapping[str, str], script: Any) -> RunningProxy:
        __tracebackhide__ = True
        key = _key(env, script)
        found = self._running.pop(key, None)
        if found is not None and not (found.alive and found.settled()):
            found.retired = found.alive
            found.stop()
            found = None
        if found is None:
            while len(self._running) >= MOST:
                self._running.pop(next(iter(self._running))).stop()
            try:
                found = self._start(env, script)
            except SubjectFailure as error:
                self._broken[key] = str(error)
                # One that does not start with the profile alone will not start with more: no other case waits for it.
                if not self._begun and script is None and set(env) == {PROFILE}:
                    self._never = str(error)
                raise
            self._begun = True
        self._running[key] = found  # the last one used is last
        return found

    def retire(self, running: RunningProxy) -> None:
        """End a proxy process that did not finish an answer; the next case with its environment gets a new process."""
        with self._lock:
            for key in [key for key, each in self._running.items() if each is running and running.process is not None]:
                del self._running[key]
                running.retired = True
                running.stop()

    def close(self) -> None:
        """End all processes."""
        for proxy in self._running.values():
            proxy.stop()
        self._running.clear()
