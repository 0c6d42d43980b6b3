"""The shared state of one pytest process, and the keys under which pytest stores it."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from codex_replay.plugin.base.folder_lock import FolderLock
    from codex_replay.plugin.base.options import Settings
    from codex_replay.plugin.base.subjects import Subject
    from codex_replay.plugin.reporting.coverage import Coverage
    from codex_replay.plugin.reporting.spool import Spool
    from codex_replay.plugin.reporting.trace import TraceCollector
    from codex_replay.plugin.reporting.verdict import Verdict
    from codex_replay.shell.http.backend_process import BackendProcess

#: Under which key the controller of pytest-xdist gives its workers the folder of the traces.
TRACES = "codex_replay_traces"
#: The user property of a case that was skipped: the capabilities that its subject lacks.
UNCLAIMED = "codex-replay-proxy-unclaimed"


def suites_of(args: list[str]) -> list[str] | None:
    """Return the suites that the arguments of pytest name, each once.

    An empty list means all suites; None means that no argument is in a folder `suites`.
    """
    found: list[str] = []
    every = outside = True
    for arg in args:
        _, folder, rest = f"/{arg.partition('::')[0]}/".rpartition("/suites/")
        outside = outside and not folder
        every = every and not (folder and rest.strip("/"))
        found += [rest.strip("/").split("/")[0]] if folder and rest.strip("/") else []
    return None if outside else [] if every else list(dict.fromkeys(found))


class Session:
    """The state that all cases of one pytest process share."""

    def __init__(self, config: pytest.Config, settings: Settings, subject: Subject) -> None:
        from codex_replay.plugin.base.checking import has_bundle
        from codex_replay.plugin.reporting.verdict import Verdict

        self.config = config
        self.settings = settings
        self.subject = subject
        self.verdict: Verdict = Verdict(subject.name, subject.version, settings.profile, settings.record, settings.others)
        self.verdict.validated = settings.validate and has_bundle(subject.version)
        self.started = time.monotonic()
        self.compared: tuple[Any, Any] | None = None  # the two sides of the last comparison that failed
        self.spool: Spool | None = None  # made at first use; a worker of pytest-xdist is given the controller's
        self._traces: TraceCollector | None = None
        # Packaged suites may be run from anywhere: without a project of the user's own, reports go where the run was started.
        base = config.rootpath if config.inipath else config.invocation_params.dir
        self._reports = base / "reports"
        self.report_folder = settings.report or self._reports / subject.slug
        self.folder_lock: FolderLock | None = None  # the folder of the report, from before the first case on
        self._begun = False  # whether any case has run
        self.instead_of: Path | None = None  # the usual folder, if another run has locked it
        self.root = config.rootpath
        self._backend: BackendProcess | None = None
        self.began = datetime.now(UTC)
        self.tells = True  # whether traces are collected for a report
        self.advisers: list[Callable[[], list[str]]] = []  # each returns sentences for the report's next steps
        self.additions: list[Callable[[], dict[str, Any]]] = []  # each returns further members of the report

    def coverage(self) -> Coverage:
        """Return the protocol coverage of the run so far."""
        if self.verdict.coverage is None:
            from codex_replay.plugin.reporting.coverage import Coverage

            self.verdict.coverage = Coverage(self.subject.version)
        return self.verdict.coverage

    def backend(self) -> BackendProcess:
        """Return the fake Responses backend; the first call starts the backend."""
        if self._backend is None:
            from codex_replay.shell.http.backend_process import BackendProcess

            self._backend = BackendProcess()
        return self._backend

    def need_spool(self) -> Spool:
        """Return the spool folder in which the processes of a run store their traces."""
        from codex_replay.plugin.reporting.spool import Spool

        if self.spool is None:
            self.spool = Spool.make()
        return self.spool

    def trace_collector(self) -> TraceCollector:
        """Return the trace collector of this process, which redacts the traces of its cases."""
        if self._traces is None:
            from codex_replay.plugin.reporting.report import machine_paths
            from codex_replay.plugin.reporting.trace import TraceCollector

            self._traces = TraceCollector(machine_paths())
        return self._traces

    def lock_report_folder(self) -> None:
        """At the first case, lock the report folder; if another run has locked the default folder, lock the next free folder.

        Remove the report of the previous run: if the new run is killed, nobody must take the old verdict for a new one.
        """
        from codex_replay.plugin.base.folder_lock import lock_free_folder
        from codex_replay.report.files import remove_all

        if self._begun:
            return
        self._begun = True
        if self.settings.report is None:
            self.report_folder = self._reports / self._folder_name()
        with contextlib.suppress(OSError):  # then the new one cannot be written either, which is reported at the end
            if self.folder_lock is None:
                usual, self.folder_lock = self.report_folder, lock_free_folder(self.report_folder)
                if self.folder_lock.folder != usual:
                    self.report_folder, self.instead_of = self.folder_lock.folder, usual
            remove_all(self.report_folder)

    def _folder_name(self) -> str:
        """Return the name of the default report folder: the suite and the program under test; for other tests, the app-server."""
        from codex_replay.plugin.base.configuration import SUITE_OF
        from codex_replay.plugin.base.options import table_name
        from codex_replay.plugin.base.subjects import slug

        suites = suites_of(self.config.args)
        if suites is None:
            return self.subject.slug
        if len(suites) != 1:
            return f"{'-'.join(suites) or 'all'}-{self.subject.slug}"
        roles = {suite: role for role, suite in SUITE_OF.items()} | {"backend": "backend"}
        role = roles.get(suites[0], "")
        name = table_name(self.config, role) or self.verdict.others.get(role, self.subject.name)
        return f"{suites[0]}-{slug(name)}"

    def close(self) -> None:
        """End the backend, and unlock the folder of the report."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None
        if self.folder_lock is not None:
            self.folder_lock.release()
            self.folder_lock = None


SESSION = pytest.StashKey[Session]()
