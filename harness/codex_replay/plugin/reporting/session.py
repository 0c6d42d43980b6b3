"""What one pytest process shares among its cases, and the keys under which pytest keeps it."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.plugin.coverage import Coverage
    from harness.plugin.held import Held
    from harness.plugin.options import Settings
    from harness.plugin.run import Case
    from harness.plugin.spool import Spool
    from harness.plugin.story import Taker
    from harness.plugin.subjects import Subject
    from harness.plugin.verdict import Verdict
    from harness.shell.backend_process import BackendProcess

#: Under which name a report of pytest has what is said of its case.
PROPERTY = "codex-replay"
CASE: pytest.StashKey[Case] = pytest.StashKey()
#: Under which key the controller of pytest-xdist tells its workers where stories go.
STORIES = "codex_replay_stories"


class Session:
    """What one pytest process shares among its cases."""

    def __init__(self, config: pytest.Config, settings: Settings, subject: Subject) -> None:
        from harness.plugin.checking import has_bundle
        from harness.plugin.verdict import Verdict

        self.settings = settings
        self.subject = subject
        self.verdict: Verdict = Verdict(subject.name, subject.version, settings.profile, settings.record, settings.others)
        self.verdict.validated = settings.validate and has_bundle(subject.version)
        self.started = time.monotonic()
        self.compared: tuple[Any, Any] | None = None  # the two sides of the last comparison that failed
        self.spool: Spool | None = None  # made at first use; a worker of pytest-xdist is given the controller's
        self._taker: Taker | None = None
        # Packaged suites may be run from anywhere: without a project of the user's own, reports go where the run was started.
        base = config.rootpath if config.inipath else config.invocation_params.dir
        self.report_folder = settings.report or base / "reports" / subject.slug
        self.held: Held | None = None  # the folder of the report, from before the first case on
        self._begun = False  # whether a case has been heard of
        self.instead_of: Path | None = None  # the usual folder, where another run holds it
        self.root = config.rootpath
        self._backend: BackendProcess | None = None
        self.began = datetime.now(UTC)
        self.tells = not config.getoption("strength", False)  # whether there is a report that could tell stories

    def coverage(self) -> Coverage:
        """Return what the run has shown of the protocol, begun at first use."""
        if self.verdict.coverage is None:
            from harness.plugin.coverage import Coverage

            self.verdict.coverage = Coverage(self.subject.version)
        return self.verdict.coverage

    def backend(self) -> BackendProcess:
        """Return the fake Responses backend, started at first use."""
        if self._backend is None:
            from harness.shell.backend_process import BackendProcess

            self._backend = BackendProcess()
        return self._backend

    def need_spool(self) -> Spool:
        """Return where the processes of this run put their stories."""
        from harness.plugin.spool import Spool

        if self.spool is None:
            self.spool = Spool.make()
            SPOOLS.append(self.spool)
        return self.spool

    def taker(self) -> Taker:
        """Return what takes the stories of this process's cases."""
        if self._taker is None:
            from harness.plugin.report import machine_paths
            from harness.plugin.story import Taker

            self._taker = Taker(machine_paths())
        return self._taker

    def hold(self) -> None:
        """At the first case, hold the folder of the report; the next free one where another run holds the usual one.

        The report of an older run goes: this run may be killed, and then its verdict must not be taken for that of this one.
        """
        from harness.plugin.held import hold_free
        from harness.report.files import remove_all

        if self._begun:
            return
        self._begun = True
        with contextlib.suppress(OSError):  # then none can be written either, and that is said at the end
            if self.held is None:
                usual, self.held = self.report_folder, hold_free(self.report_folder)
                if self.held.folder != usual:
                    self.report_folder, self.instead_of = self.held.folder, usual
            remove_all(self.report_folder)

    def close(self) -> None:
        """End the backend, and let others have the folder of the report."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None
        if self.held is not None:
            self.held.release()
            self.held = None


SESSION = pytest.StashKey[Session]()
#: The spools that this process has made.
SPOOLS: list[Spool] = []
