"""The pytest hooks: thin, over the objects of the other modules.

A test is a case when it stands below a folder `suites` or uses one of our fixtures that have a subject or are a fake; a run
without cases is left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.options import Settings, add_options, check_profile, check_report, settings_of
from harness.plugin.places import installed_id
from harness.plugin.progress import LAST_WORDS, VARIABLE, Progress

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from harness.plugin.coverage import Coverage
    from harness.plugin.held import Held
    from harness.plugin.run import AppServer, Case
    from harness.plugin.story import Spool, Taker
    from harness.plugin.subjects import Subject
    from harness.plugin.verdict import Verdict
    from harness.shell.backend_process import BackendProcess

PROPERTY = "codex-replay"
#: The fixtures that make a test a case, wherever it stands, and the role of what it judges.
ROLE_OF_FIXTURE = {
    "proxy": "proxy",
    "backend": "backend",
    "lite_client": "lite-client",
    "editor_client": "editor-client",
    "codex_backend": "backend",
    "fake_codex": "app-server",
    "app_server": "app-server",
}
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
        from harness.plugin.story import Spool

        if self.spool is None:
            self.spool = Spool.make()
            _SPOOLS.append(self.spool)
        return self.spool

    def taker(self) -> Taker:
        """Return what takes the stories of this process's cases."""
        if self._taker is None:
            from harness.plugin.report import machine_paths
            from harness.plugin.story import Taker

            self._taker = Taker(machine_paths())
        return self._taker

    def hold(self) -> None:
        """Hold the folder of the report; the next free one where another run holds the usual one."""
        from harness.plugin.held import hold_free

        if self.held is None:
            with contextlib.suppress(OSError):  # then none can be written either, and that is said at the end
                usual, self.held = self.report_folder, hold_free(self.report_folder)
                if self.held.folder != usual:
                    self.report_folder, self.instead_of = self.held.folder, usual

    def close(self) -> None:
        """End the backend, and let others have the folder of the report."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None
        if self.held is not None:
            self.held.release()
            self.held = None


SESSION = pytest.StashKey[Session]()
_SPOOLS: list[Spool] = []


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options, and bring in the fixtures of the other subjects."""
    add_options(parser)
    from harness.plugin import backend_fixture, baseline, editor_client, fixtures, lite_client, proxy, strength

    pluginmanager.register(lite_client, "codex-replay-lite-client")
    pluginmanager.register(backend_fixture, "codex-replay-backend-subject")
    pluginmanager.register(editor_client, "codex-replay-editor-client")
    pluginmanager.register(proxy, "codex-replay-proxy")
    pluginmanager.register(baseline, "codex-replay-baseline")
    pluginmanager.register(fixtures, "codex-replay-fixtures")
    pluginmanager.register(strength, "codex-replay-strength")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected, and see to it that a terminated run leaves no process."""
    from harness.plugin.story import Spool
    from harness.plugin.subjects import BadSubject, parse_app_server

    config.addinivalue_line("markers", "profile(*names): the case belongs to these profiles only")
    config.addinivalue_line("markers", "live_only(reason): no recording can show it; skipped, with the reason, on a fake")
    settings = settings_of(config)
    try:
        subject = parse_app_server(settings.app_server)
    except BadSubject as error:
        if settings.app_server == "fake":  # whoever only has this plugin installed must not be bothered by it
            return
        raise pytest.UsageError(str(error)) from None
    if settings.record != "none" and not subject.live:
        raise pytest.UsageError(
            f"--record {settings.record}: only a real app-server can be recorded, not {subject.name}; "
            "add --app-server codex@VERSION."
        )
    config.stash[SESSION] = session = Session(config, settings, subject)
    given = getattr(config, "workerinput", {})
    if STORIES in given:
        session.spool = Spool(Path(given[STORIES]))
    if not hasattr(config, "workerinput"):  # with pytest-xdist the controller collects
        if settings.report is not None:
            session.held = check_report(settings.report)
        config.pluginmanager.register(Collector(session), "codex-replay-collector")
        if os.environ.get(VARIABLE, "").isdigit():
            config.pluginmanager.register(Progress(int(os.environ[VARIABLE])), "codex-replay-progress")
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: object) -> None:
    from harness.shell.process import stop_all

    stop_all()
    for spool in _SPOOLS:
        spool.remove()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the run shared."""
    if SESSION in config.stash:
        session = config.stash[SESSION]
        session.close()
        if session.spool in _SPOOLS:
            _SPOOLS.remove(session.spool)
            session.spool.remove()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Call a module of an installed suite by a name that can be given again."""
    name = installed_id(module_path, parent.config.rootpath)
    return None if name is None else pytest.Module.from_parent(parent, path=module_path, nodeid=name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of other profiles; refuse a profile that is none."""
    if SESSION not in config.stash:
        return
    profile = config.stash[SESSION].settings.profile
    cases = any("suites" in item.path.parts[:-1] or role_of(item) is not None for item in items)
    if cases and (wrong := check_profile(config, items, profile)):
        from harness.plugin.baseline import refuse

        refuse(config, items, wrong)
        return
    out = [item for item in items if any(profile not in mark.args for mark in item.iter_markers("profile"))]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture
def app_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """Start the app-server under test: `server = app_server(script=[...])`."""
    from harness.plugin.run import Case

    if SESSION not in request.config.stash:
        raise pytest.UsageError(
            "There is no fake-codex in this environment; install codex-replay with pip, or give --app-server."
        )
    session = request.config.stash[SESSION]
    live_only = request.node.get_closest_marker("live_only")
    if live_only is not None and not session.subject.live:
        pytest.skip(f"live only, not verified on {session.subject.name}: {live_only.args[0]}")
    case = Case(
        case_name(request.node, session.root),
        session.settings if live_only is None else replace(session.settings, record="none"),
        session.subject,
        session.settings.cassettes or cassette_folder(request.node.path, session.root),
        lambda: tmp_path_factory.mktemp("case"),
        session.backend,
    )
    request.node.stash[CASE] = case
    yield case.start
    case.close()


def case_name(item: Any, root: Path) -> Any:
    """Return the `CaseName` of a test function: its folder below `suites` (or the root), its module, its name and parameters."""
    from harness.plugin.record import CaseName

    path: Path = item.path
    parts = path.parts
    below = parts[len(parts) - parts[::-1].index("suites") : -1] if "suites" in parts[:-1] else _below(path, root)
    case = getattr(item, "originalname", item.name).removeprefix("test_")
    callspec = getattr(item, "callspec", None)
    if callspec is not None:
        case += "-" + "".join(c if c.isalnum() or c in "-_." else "_" for c in callspec.id)
    return CaseName("/".join(below) or "tests", path.stem, case)


def name_of_node(nodeid: str, root: Path) -> Any:
    """Return the `CaseName` that `case_name` gives to the test with this node id, for a test that cannot be asked any more."""
    from harness.plugin.record import CaseName

    place, _, rest = nodeid.partition("::")
    path = root / place
    parts = path.parts
    below = parts[len(parts) - parts[::-1].index("suites") : -1] if "suites" in parts[:-1] else _below(path, root)
    test, bracket, parameters = rest.rpartition("::")[2].partition("[")
    case = test.removeprefix("test_") + bracket.replace("[", "-")
    case += "".join(c if c.isalnum() or c in "-_." else "_" for c in parameters.removesuffix("]"))
    return CaseName("/".join(below) or "tests", path.stem, case)


def role_of(item: pytest.Item) -> str | None:
    """Return the role of the subject that a test uses by a fixture of ours; None for a test that uses none.

    A fixture of the user's own may have the name of one of ours.
    """
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for name, role in ROLE_OF_FIXTURE.items():
        if name in known and str(getattr(known[name][-1].func, "__module__", "")).startswith("harness.plugin."):
            return role
    return None


def _below(path: Path, root: Path) -> tuple[str, ...]:
    return path.parent.relative_to(root).parts if path.is_relative_to(root) else path.parts[-2:-1]


def cassette_folder(path: Path, root: Path) -> Path:
    """Return the folder `cassettes` beside the `suites` folder that `path` lies in, or in the root."""
    for parent in path.parents:
        if parent.name == "suites":
            return parent.parent / "cassettes"
    return root / "cassettes"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the case to how its servers ended, as part of the test itself."""
    if SESSION in item.config.stash:
        item.config.stash[SESSION].compared = None
    result = yield
    case = item.stash.get(CASE, None)
    if case is not None:
        __tracebackhide__ = True
        case.finish()
    return result


def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> None:
    """Keep the two sides of a comparison that fails: what was expected (right) and what came (left)."""
    if op == "==" and SESSION in config.stash:
        config.stash[SESSION].compared = (right, left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the case's name for the verdict, and to a failure the traffic that led to it."""
    from harness.plugin.story import note

    report = yield
    session = item.config.stash.get(SESSION, None)
    if session is None:
        return report
    inside, role = "suites" in item.path.parts[:-1], role_of(item)
    if not inside and role is None:
        return report
    case = item.stash.get(CASE, None)
    name = case.name if case is not None else case_name(item, session.root)
    said = {"suite": name.suite, "module": name.module, "case": name.case, "recorded": case.recorded if case else []}
    if role is not None and not inside:  # below `suites` the folder tells it
        said["role"] = role
    if case is not None and call.when == "call" and report.passed:
        said["shown"] = sorted(case.shown)
    note(session, item, call, report, case, said)
    session.compared = None  # the next failure has sides of its own, or none
    report.user_properties.append((PROPERTY, said))
    if report.failed and case is not None and case.servers and call.when == "call":
        report.sections.append(("Traffic (-> client, <- server)", case.traffic()))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """See to it that pytest-xdist can send what a failure says, whatever the subject said, and sends it as one value."""
    from harness.plugin.encodable import encodable, packed

    found: dict[str, Any] | None = yield
    if found is not None and SESSION in config.stash and hasattr(config, "workerinput"):
        return packed(found)
    return encodable(found)  # type: ignore[no-any-return]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> Generator[None, Any, Any]:
    """Open what a worker of pytest-xdist has packed."""
    from harness.plugin.encodable import unpack

    unpack(data)
    return (yield)


class Collector:
    """Collects the verdict in the process that prints it (the controller, when pytest-xdist distributes)."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.run: pytest.Session | None = None
        self._last: str | None = None  # where the report is, until it is said
        self._waits = os.environ.pop(LAST_WORDS, "") != ""  # not for the runs that this one's cases may start

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist where stories go."""
        if self.session.tells:
            node.workerinput[STORIES] = str(self.session.need_spool().folder)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module of a suite that cannot be collected is a failure: its cases have not been verified."""
        path = Path(report.nodeid.partition("::")[0])
        if report.failed and "suites" in path.parts[:-1]:
            said = asdict(name_of_node(f"{path}::(collection)", self.session.root))
            clean = self.session.taker().clean
            self.session.hold()
            self.session.verdict.add(report.nodeid, said, "failed", 0.0, clean(_message(report)), clean(report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in one phase of a case."""
        verdict = self.session.verdict
        said = dict(report.user_properties).get(PROPERTY)
        if not isinstance(said, dict):
            if not report.failed or (verdict.case_of(report.nodeid) is None and "suites" not in report.nodeid.split("/")[:-1]):
                return
            said = asdict(name_of_node(report.nodeid, self.session.root))  # a worker died in it
        if report.outcome not in ("passed", "failed", "skipped"):
            return  # another plugin runs it again
        self.session.hold()
        known = getattr(report, "wasxfail", None) if report.skipped else None
        outcome = report.outcome if known is None else "known"
        if report.passed:
            verdict.add(report.nodeid, said, "passed", report.duration)
        else:
            clean = self.session.taker().clean
            message = (known or "").removeprefix("known: ") or _message(report)
            verdict.add(report.nodeid, said, outcome, report.duration, clean(message), clean(_details(report)))
        if said.get("shown"):
            self.session.coverage().add("{suite}/{module}/{case}".format(**said), said["shown"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run of cases of which none was verified is not green."""
        self.run = session
        verdict = self.session.verdict
        verdict.seconds = time.monotonic() - self.session.started
        verdict.interrupted = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
        verdict.stale = getattr(session.config.pluginmanager.get_plugin("codex-replay-baseline-gate"), "stale", [])
        if verdict.cases and verdict.word == "nothing verified" and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
        """Print the verdict table and say where the report is, below all that pytest and other plugins have to say."""
        result = yield
        verdict = self.session.verdict
        if not verdict.cases:
            return result
        out = terminalreporter
        out.section("codex-replay")
        for line in verdict.table():
            out.write_line(line)
        for line in verdict.coverage.table() if verdict.coverage is not None else ():
            out.write_line(line)
        for path in sorted(path for case in verdict.cases.values() for path in case["recorded"]):
            out.write_line(f"recorded {path}")
        self._last = self._write(out)
        if not self._waits:
            self._end(out)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Under `codex-replay run`, end with the verdict and the report, below pytest's own closing line."""
        out = config.pluginmanager.get_plugin("terminalreporter")
        if out is not None:
            self._end(out)

    def _end(self, out: pytest.TerminalReporter) -> None:
        if self._last is not None:
            good = self.session.verdict.word == "verified"
            out.write_line(self.session.verdict.sentence(), bold=True, green=good, red=not good)
            out.write_line(self._last)
            self._last = None

    def _write(self, out: pytest.TerminalReporter) -> str:
        """Write the report and return where it is, or why it is not."""
        from harness.plugin.report import Reporter

        folder = self.session.report_folder
        try:
            path, *others = Reporter(out.config, folder, self.session.began).write(self.session.verdict, self.session.spool)
        except OSError as error:
            run = self.run
            if self.session.settings.report is not None and run is not None and run.exitstatus == pytest.ExitCode.OK:
                run.exitstatus = pytest.ExitCode.TESTS_FAILED  # it was asked for, and whoever waits for it must hear of it
            return f"The report cannot be written to {folder} ({error.strerror}); give --report DIR."
        out.write_line(f"Beside the report: {', '.join(sorted(each.name for each in others))}")
        progress = out.config.pluginmanager.get_plugin("codex-replay-progress")
        if isinstance(progress, Progress):
            progress.tell(report=str(path), verdict=self.session.verdict.word)
        instead = f" (another run holds {self.session.instead_of})" if self.session.instead_of is not None else ""
        return f"Report: {path}{instead}"


def _details(report: pytest.TestReport) -> str:
    return "\n".join([report.longreprtext, *(f"--- {name}\n{content}" for name, content in report.sections)])


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash is not None else ("" if report.longrepr is None else str(report.longrepr))
