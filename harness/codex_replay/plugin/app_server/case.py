"""The fixture `app_server`: start the servers of a case, and check them at the end of the case.

`Case` implements the fixture `app_server`; `AppServer` starts the servers of a case. At the end of the test function,
`finish` closes every server, so that a failed check fails the test. `finish` checks exit statuses, unused turns of the
scripts, and the validity of each frame. After all checks, `finish` writes the cassettes if the option `--record` requests
new ones. `close` always ends every remaining process, even if a check failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from codex_replay.plugin.app_server.record import header_of, write_cassette
from codex_replay.plugin.base.checking import judge, make_checkers
from codex_replay.plugin.reporting.coverage import seen
from codex_replay.protocol import data_tables
from codex_replay.shell.rpc.client import SubjectFailure, describe

if TYPE_CHECKING:
    from codex_replay.core.cassette.frames import Frame
    from codex_replay.plugin.app_server.server import Server
    from codex_replay.plugin.app_server.start import AppServer
    from codex_replay.plugin.base.naming import CaseName
    from codex_replay.plugin.base.options import Settings
    from codex_replay.plugin.base.subjects import Subject

CASE: pytest.StashKey[Case] = pytest.StashKey()
#: The suite that measures the coverage of the protocol.
COVERED = "app_server"


class Case:
    """One running test case; its `start` starts app-servers."""

    def __init__(self, name: CaseName, settings: Settings, subject: Subject, start: AppServer) -> None:
        self.name = name
        self.start = start
        self.recorded: list[str] = []
        self.shown: set[str] = set()  # of the protocol; see `coverage`
        self._settings = settings
        self._subject = subject

    @property
    def servers(self) -> list[Server]:
        """The app-servers that the case has started."""
        return self.start.servers

    @property
    def version(self) -> str:
        """The Codex version of the server under test, or the version that a fake server imitates.

        Return "unknown" if the Codex version is not known.
        """
        return self._subject.version

    # -- the end ---------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Close each server and raise `SubjectFailure` for the first error.

        If no server had an error, write the cassettes if the option `--record` requests new ones.
        """
        __tracebackhide__ = True
        if not self.servers:
            raise SubjectFailure(
                "The case started no server, so it did not verify anything. Start a server, or remove the "
                "app_server fixture from the case."
            )
        for server in self.servers:
            self._finish(server)
        if self.name.suite == COVERED and data_tables.has("coverage", self._subject.version):
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
                message = "\n".join(server.process.stderr_tail(40))
                raise SubjectFailure(f"The conversation differs from the recorded one ({server.cassette}):\n{message}")
            if status != expected:
                raise SubjectFailure(server.report_on("The server did not exit cleanly when its stdin ended"))
        if server.upstream is not None:
            problems = server.upstream.problems(but=(401,) if server.refused else ())
            if problems:
                raise SubjectFailure("The server sent invalid requests to the model backend:\n    " + "\n    ".join(problems))
            script = server.behind["script"]
            turns = script["turns"] if isinstance(script, dict) else script or []
            spare = [
                i for i, turn in enumerate(turns) if server.racy and isinstance(turn, dict) and turn.get("times") == "always"
            ]
            if unused := [i for i in server.upstream.unused_turns() if i not in spare]:
                raise SubjectFailure(server.report_on(f"The server never asked for these turns of the script: {unused}"))
        checkers = make_checkers(self._subject.version) if self._settings.validate else []
        findings = judge(server.timeline, checkers, bad_input=server.bad_input)
        for blame, what in (
            ("harness", "The case itself sends messages that the protocol does not have"),
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
        """Return a text for failure reports: the last frames of each server and the end of its stderr."""
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
        """Stop every server, and close its recording."""
        for server in self.servers:
            server.stop()
            if server.recorded is not None:
                server.recorded.close()
            if server.upstream is not None:
                server.upstream.close()
