"""One case: it starts its subject, drives it, and at its end is held to what the subject did.

Strategy. `Case` is what stands behind the `app_server` fixture. Live subjects get a hermetic home and a session of the fake
Responses backend with the case's script; the others get the case's cassette. At the end of the test function, while a
failure still counts as the test's own, `finish` closes every server and looks at exit statuses, unread scripts and the
validity of each frame; only then, if asked to, it writes the cassettes. `close` ends whatever is left, come what may.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from harness.core.redact import Redactor
from harness.plugin.checking import judge, make_checkers
from harness.plugin.coverage import seen
from harness.plugin.record import header_of, write_cassette
from harness.plugin.upstream import RecordedUpstream
from harness.protocol.bundle import DEFAULT_VERSION
from harness.protocol.schema_files import versions
from harness.shell.client import Client, SubjectFailure, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.core.frames import Frame
    from harness.plugin.options import Settings
    from harness.plugin.record import CaseName
    from harness.plugin.subjects import Subject
    from harness.shell.backend_process import BackendProcess, BackendSession

CLIENT_INFO = {"name": "codex-replay", "title": None, "version": "1.0.0"}
RECORDED_HOME = "/home/user"
#: The suite of which is told how much of the protocol it has shown.
COVERED = "app_server"
WAIT_REPLAY, WAIT_LIVE = 10.0, 30.0


class Server(Client):
    """A conversation with the app-server under test. `work` is its working directory."""

    work: str
    live: bool
    bad_input = False
    cut: int | None = None
    racy = ""
    ends: int | None = 0
    refused = False
    cassette: Path
    redactor: Redactor
    upstream: BackendSession | None = None
    recorded: RecordedUpstream | None = None
    behind: Mapping[str, Any]
    #: What every client tells at initialize besides its clientInfo; empty but when versions are compared (plugin/behaviour.py).
    opening: ClassVar[Mapping[str, Any]] = {}

    def initialize(self, **client_info: Any) -> Any:
        """Do the handshake, initialize and initialized, and return the result of the former."""
        __tracebackhide__ = True
        result = self.request("initialize", {"clientInfo": {**CLIENT_INFO, **client_info}, **self.opening})
        self.notify("initialized")
        return result

    def wait_exit(self) -> int:
        """Wait until the server ends of itself, its stdin still open, and return its exit status."""
        __tracebackhide__ = True
        status = self.process.wait(self.timeout)
        if status is None:
            raise SubjectFailure(self.tell(f"The server did not end of itself within {self.timeout:g} s"))
        return status

    def signal(self, number: int) -> None:
        """Send the server a signal (live only: a recording holds none)."""
        os.kill(self.process.pid, number)

    def still_runs(self, seconds: float) -> bool:
        """Tell whether the server has not ended within so many seconds."""
        return self.process.wait(seconds) is None

    def close_stdout(self) -> None:
        """Close the server's stdout from this side (live only: a recording cannot show what has no reader)."""
        self.process.close_stdout()

    def end_input(self) -> None:
        """End the server's stdin without waiting for its end."""
        self.process.close_stdin()

    def wait_upstream(self, requests: int) -> None:
        """Wait until the model has answered so many turns in all; in a replay there is no model to wait for."""
        __tracebackhide__ = True
        wanted = requests
        while self.upstream is not None:
            ledger = self.upstream.ledger(requests=wanted, seconds=self.timeout)
            others = sum(entry["method"] != "POST" for entry in ledger)
            if len(ledger) - others >= requests:
                return
            if len(ledger) < wanted:
                raise SubjectFailure(self.tell(f"The model was not asked {requests} times within {self.timeout:g} s"))
            wanted = requests + others


class AppServer(Protocol):
    """What the `app_server` fixture is: call it to start the subject."""

    def __call__(
        self,
        script: object = None,
        *,
        bad_input: bool = False,
        match: str = "exact",
        cut: int | None = None,
        racy: str = "",
        ends: int | None = 0,
        refused: bool = False,
        config: Mapping[str, Any] | None = None,
        auth: str | Mapping[str, Any] | None = None,
        prepare: Callable[[Path], None] | None = None,
    ) -> Server:
        """Start the app-server under test.

        `script` is what the model says, turn by turn (see docs/scripts.md). `bad_input` declares that the case sends frames
        that are wrong on purpose. `match` says how strictly the fake compares the client's frames with the cassette: exact,
        or method. `cut` leaves longer strings of very long client lines out of the cassette. `racy` says why the real
        server has more than one right way; the recording shows one, and is then kept by --record all. `ends` is the exit
        status that the server must come to (negative: the signal it dies by; None: it never ends of itself, and is stopped).
        `refused` declares that the upstream turns down the login of a live server on purpose.

        For a live server only: `config` adds to its config.toml; `auth` is "api_key", "chatgpt" or the whole of auth.json;
        `prepare` is called with the folder that holds `home`, `tmp` and `work` before it starts.
        """
        ...


class Case:
    """One running test case and the servers that it has started."""

    def __init__(
        self,
        name: CaseName,
        settings: Settings,
        subject: Subject,
        cassettes: Path,
        folder: Callable[[], Path],
        backend: Callable[[], BackendProcess],
    ) -> None:
        self.name = name
        self.servers: list[Server] = []
        self.recorded: list[str] = []
        self.shown: set[str] = set()  # of the protocol; see `coverage`
        self.both_seams = settings.record != "none"  # whether the requests to the model are watched as well
        self.played: Callable[[object], object] = lambda script: script  # what becomes of a script before the model has it
        self._settings = settings
        self._subject = subject
        self._cassettes = cassettes
        self._folder = folder
        self._backend = backend

    def start(
        self,
        script: object = None,
        *,
        bad_input: bool = False,
        match: str = "exact",
        cut: int | None = None,
        racy: str = "",
        ends: int | None = 0,
        refused: bool = False,
        config: Mapping[str, Any] | None = None,
        auth: str | Mapping[str, Any] | None = None,
        prepare: Callable[[Path], None] | None = None,
    ) -> Server:
        """Start the subject; see `AppServer`."""
        __tracebackhide__ = True
        cassette = self.name.path(self._cassettes, len(self.servers) + 1)
        root = self._folder()
        upstream = None
        homes = {str(root / "home"): RECORDED_HOME, **{str(root / name): f"{RECORDED_HOME}/{name}" for name in ("work", "tmp")}}
        redactor, recorded = Redactor(paths=homes), None
        if self._subject.live:
            session = str(self.name) if not self.servers else f"{self.name}.{len(self.servers) + 1}"
            upstream = self._backend().session(session, self.played(script if script is not None else {"turns": []}))
            if self.both_seams:
                recorded = RecordedUpstream(upstream.url, redactor)
            env, work = self._live_home(root, recorded.url if recorded else upstream.url, config, auth)
            if prepare is not None:
                prepare(root)
        else:
            if not cassette.exists():
                raise SubjectFailure(
                    f"There is no recording of {self.name} ({cassette}); "
                    f"make it with --app-server codex@{self._subject.version} --record new."
                )
            env, work = _fake_home(root, cassette, match)
        server = Server(self._subject.argv, env=env, cwd=work, timeout=self._wait)
        server.work, server.live, server.bad_input = work, self._subject.live, bad_input
        server.cut, server.racy, server.ends, server.refused = cut, racy, ends, refused
        server.cassette, server.upstream, server.redactor, server.recorded = cassette, upstream, redactor, recorded
        server.behind = {"script": script, "config": config}
        self.servers.append(server)
        return server

    @property
    def version(self) -> str:
        """The Codex that the subject is or plays; for one that is not known, the default."""
        return self._subject.version if self._subject.version in versions() else DEFAULT_VERSION

    @property
    def _wait(self) -> float:
        return self._settings.wait or (WAIT_LIVE if self._subject.live else WAIT_REPLAY)

    def _live_home(
        self, root: Path, url: str, config: Mapping[str, Any] | None, auth: str | Mapping[str, Any] | None
    ) -> tuple[dict[str, str], str]:
        from harness.shell.codex import HermeticHome
        from harness.shell.codex.home import ApiKey, ChatGpt

        version = self._subject.version if self._subject.version[:1].isdigit() else "0.92.0"
        home = HermeticHome(root, url, version=version, extra_config=config)
        if auth is not None:
            known = {"api_key": ApiKey, "chatgpt": ChatGpt}
            home.write_auth(known[auth]().encode() if isinstance(auth, str) else auth)
        return dict(home.env), str(home.work)

    # -- the end ---------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Close each server and raise `SubjectFailure` for the first thing that is wrong; then record, if that was asked for."""
        __tracebackhide__ = True
        if not self.servers:
            raise SubjectFailure("The case has started no server, so it has verified nothing; drop its app_server fixture.")
        for server in self.servers:
            self._finish(server)
        if self.name.suite == COVERED and self._subject.version in versions():
            self.shown = {each for server in self.servers for each in seen(server.timeline, self._subject.version)}
        if self._settings.record != "none":
            for server in self.servers:
                self._record(server)

    def _finish(self, server: Server) -> None:
        __tracebackhide__ = True
        expected = server.ends if server.live else 0
        if expected is None:
            server.stop()
        else:
            status = server.close()
            if not server.live and status == 1:
                said = "\n".join(server.process.stderr_tail(40))
                raise SubjectFailure(f"The conversation was not the recorded one ({server.cassette}):\n{said}")
            if status != expected:
                raise SubjectFailure(server.tell("The server did not end well when its stdin ended"))
        if server.upstream is not None:
            problems = server.upstream.problems(but=(401,) if server.refused else ())
            if problems:
                raise SubjectFailure("The server sent its upstream what it must not:\n    " + "\n    ".join(problems))
            unused = server.upstream.unused_turns()
            if unused:
                raise SubjectFailure(server.tell(f"The server never asked for these turns of the script: {unused}"))
        checkers = make_checkers(self._subject.version) if self._settings.validate else []
        findings = judge(server.timeline, checkers, bad_input=server.bad_input)
        for blame, what in (
            ("harness", "The case itself sends what the protocol does not have"),
            ("subject", "The server broke the protocol"),
        ):
            texts = [finding.text for finding in findings if finding.blame == blame]
            if texts:
                raise SubjectFailure(f"{what} ({blame}):\n    " + "\n    ".join(texts[:10]))

    def _record(self, server: Server) -> None:
        __tracebackhide__ = True
        if (self._settings.record == "new" or server.racy) and server.cassette.exists():
            return
        header = header_of(self.name, self._subject.version, server.behind)
        if write_cassette(server.cassette, header, self._both_seams(server), server.redactor, server.cut):
            self.recorded.append(str(server.cassette))

    @staticmethod
    def _both_seams(server: Server) -> list[Frame]:
        __tracebackhide__ = True
        if server.recorded is None:
            return server.timeline
        server.recorded.close()
        if server.recorded.failure:
            raise SubjectFailure(f"The http seam could not be recorded: {server.recorded.failure}")
        return sorted([*server.timeline, *server.recorded.frames(server.started)], key=lambda frame: frame.t)

    def traffic(self, most: int = 60) -> str:
        """Return the last frames of each server, for people, and the end of its stderr."""
        parts = []
        for number, server in enumerate(self.servers, 1):
            frames = server.timeline
            lines = [f"server {number}, pid {server.process.pid}, {len(frames)} frames"] if len(self.servers) > 1 else []
            if len(frames) > most:
                lines.append(f"     ({len(frames) - most} earlier frames)")
            lines += [describe(frame) for frame in frames[-most:]]
            lines += [f"     stderr: {line}" for line in server.process.stderr_tail(8)]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def close(self) -> None:
        """End every server; nothing of them is left."""
        for server in self.servers:
            server.stop()
            if server.recorded is not None:
                server.recorded.close()
            if server.upstream is not None:
                server.upstream.close()


def _fake_home(root: Path, cassette: Path, match: str) -> tuple[dict[str, str], str]:
    """Make the folders a live server would have; the fake is told no more than it must know."""
    home, tmp, work = (root / name for name in ("home", "tmp", "work"))
    for folder in (home, tmp, work):
        folder.mkdir(parents=True)
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        "FAKE_CODEX_CASSETTE": str(cassette),
        "FAKE_CODEX_MATCH": match,
    }
    return env, str(work)
