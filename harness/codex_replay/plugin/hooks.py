"""The pytest hooks: thin functions that call the objects of the other modules.

A test is a case if it is below a folder `suites`, or if it uses a codex-replay fixture for subjects or fakes. In a run
without cases, the hooks have no effect.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.plugin.base.for_versions import MARKERS, skip_for_version
from codex_replay.plugin.base.key_errors import report_on as tell_key_error
from codex_replay.plugin.base.naming import case_name, cassette_folder, check_names, read_only, role_of
from codex_replay.plugin.base.options import check_profile, check_report, settings_of
from codex_replay.plugin.base.places import installed_id
from codex_replay.plugin.base.progress import VARIABLE, Progress
from codex_replay.plugin.base.shard import Shard, shard_of
from codex_replay.plugin.base.signals import follow_controller, restore_in_children
from codex_replay.plugin.reporting.collector import Collector
from codex_replay.plugin.reporting.early_stop import EarlyStop, WorkerStop
from codex_replay.plugin.reporting.failure_limit import FailureLimit
from codex_replay.plugin.reporting.session import SESSION, TRACES, Session
from codex_replay.plugin.reporting.spec import wrong_citation
from codex_replay.plugin.reporting.trace import TRACE_SOURCE

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from codex_replay.plugin.app_server.start import AppServer

#: The name of the entry point in pyproject.toml, and so of the plugin with the users' fixtures.
USER_FIXTURES = "codex_replay"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options, and load the fixtures of all subjects."""
    from codex_replay.plugin.backend import fixture as backend
    from codex_replay.plugin.base.late_options import add_options_late
    from codex_replay.plugin.editor_client import fixture as editor_client
    from codex_replay.plugin.lite_client import fixture as lite_client
    from codex_replay.plugin.proxy import fixture as proxy
    from codex_replay.plugin.reporting import baseline

    add_options_late(parser, pluginmanager)
    pluginmanager.register(lite_client, "codex-replay-lite-client")
    pluginmanager.register(backend, "codex-replay-backend-subject")
    pluginmanager.register(editor_client, "codex-replay-editor-client")
    pluginmanager.register(proxy, "codex-replay-proxy")
    pluginmanager.register(baseline, "codex-replay-baseline")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before pytest collects cases, and install signal handlers, so that a terminated run leaves no process."""
    from codex_replay.plugin.base.subjects import BadSubject, parse_app_server, running_elsewhere
    from codex_replay.plugin.reporting.spool import Spool
    from codex_replay.plugin.user_fixtures import fixtures

    plugins = config.pluginmanager
    if not (plugins.has_plugin(USER_FIXTURES) or plugins.is_blocked(USER_FIXTURES)):  # pytest must not load any by itself
        plugins.register(fixtures, USER_FIXTURES)
    config.addinivalue_line("markers", "profile(*names): the case belongs to these profiles only")
    config.addinivalue_line("markers", "live_only(reason): no recording can show it; skipped with this reason on a fake")
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.addinivalue_line("markers", "expects_failure: the case passes if the subject fails, for whatever reason")
    settings = settings_of(config)
    try:
        subject = parse_app_server(settings.app_server)
    except BadSubject as error:
        if settings.app_server == "fake":  # whoever only has this plugin installed must not be bothered by it
            return
        raise pytest.UsageError(str(error)) from None
    if problem := running_elsewhere(settings.app_server):
        raise pytest.UsageError(problem)
    if settings.record != "none" and not subject.live:
        raise pytest.UsageError(
            f"--record {settings.record}: only a real app-server can be recorded, not {subject.name}; "
            "add --app-server codex@VERSION."
        )
    if (shard := shard_of(config)) is not None:
        config.pluginmanager.register(Shard(*shard), "codex-replay-shard")
    config.stash[SESSION] = session = Session(config, settings, subject)
    given = getattr(config, "workerinput", {})
    if TRACES in given:
        session.spool = Spool(Path(given[TRACES]))
        config.pluginmanager.register(WorkerStop(session.spool.folder), "codex-replay-early-stop")
    if not hasattr(config, "workerinput"):  # with pytest-xdist the controller collects
        if settings.report is not None:
            session.folder_lock = check_report(settings.report)
        config.pluginmanager.register(Collector(session), "codex-replay-collector")
        config.pluginmanager.register(FailureLimit(config, session), "codex-replay-failure-limit")
        if not config.getoption("no_early_stop"):
            config.pluginmanager.register(EarlyStop(session), "codex-replay-early-stop")
        if os.environ.get(VARIABLE, "").isdigit():
            config.pluginmanager.register(Progress(int(os.environ[VARIABLE])), "codex-replay-progress")
    if threading.current_thread() is threading.main_thread():
        restore_in_children()
        if hasattr(config, "workerinput"):
            from codex_replay.shell.process.subject import stop_all

            follow_controller(stop_all)


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_main() -> Generator[None, Any, None]:
    """Remove secrets and control characters from a usage error; the error may quote options and files."""
    outcome = yield
    error = outcome.excinfo[1] if outcome.excinfo else None
    if isinstance(error, pytest.UsageError):
        from codex_replay.plugin.reporting.terminal import escape_error  # with the redactor

        escape_error(error)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """If pytest runs with Python's option `-P`, start the workers of pytest-xdist with `-P`, too."""
    for spec in specs if sys.flags.safe_path else ():
        if spec.popen and not spec.python:
            spec.python = f"{shlex.quote(sys.executable)} -P"


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the programs that several cases of the run have used."""
    if SESSION in config.stash:
        session = config.stash[SESSION]
        session.close()
        if session.spool is not None:
            session.spool.remove()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Give a module of an installed suite a name that a user can type on a command line."""
    name = installed_id(module_path, parent.config.rootpath)
    return None if name is None else pytest.Module.from_parent(parent, path=module_path, nodeid=name)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-k` choose a case by the name of its check, which reports and baselines show."""
    if SESSION in item.config.stash:
        item.extra_keyword_matches.update(check_names(item))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of other profiles; refuse an unknown profile, or a `spec` marker that cites an unknown statement."""
    if SESSION not in config.stash:
        return
    profile = config.stash[SESSION].settings.profile
    cases = any("suites" in item.path.parts[:-1] or role_of(item) is not None for item in items)
    wrong_marker = skip_for_version(items, config.stash[SESSION].subject.version)
    if wrong := wrong_marker or wrong_citation(items) or (check_profile(config, items, profile) if cases else None):
        from codex_replay.plugin.reporting.baseline import refuse

        refuse(config, items, wrong)
        return
    out = [item for item in items if any(profile not in mark.args for mark in item.iter_markers("profile"))]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture
def app_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """Start the app-server under test: `server = app_server(script=[...])`."""
    from codex_replay.plugin.app_server.case import CASE, Case
    from codex_replay.plugin.app_server.start import AppServer
    from codex_replay.plugin.app_server.trace import case_trace

    if SESSION not in request.config.stash:
        raise pytest.UsageError(
            "There is no fake-codex in this environment; install codex-replay with pip, or give --app-server."
        )
    session = request.config.stash[SESSION]
    live_only = request.node.get_closest_marker("live_only")
    if live_only is not None and not session.subject.live:
        pytest.skip(f"live only, not verified on {session.subject.name}: {live_only.args[0]}")
    name, subject = case_name(request.node, session.root), session.subject
    settings = session.settings if live_only is None else replace(session.settings, record="none")
    cassettes = session.settings.cassettes or cassette_folder(request.node.path, session.root, subject.version)
    if subject.live and settings.record != "none" and read_only(cassettes):
        raise pytest.UsageError(f"--record: the cassettes in {cassettes} are read-only; name a folder with --cassettes DIR.")
    start = AppServer(name, settings, subject, cassettes, lambda: tmp_path_factory.mktemp("case"), session.backend)
    case = Case(name, settings, subject, start)
    request.node.stash[CASE] = case
    request.node.stash[TRACE_SOURCE] = partial(case_trace, case)
    yield case.start
    case.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """At the end of the test function, check the servers of the case, so that a failed check fails the test."""
    from codex_replay.plugin.app_server.case import CASE

    if SESSION in item.config.stash:
        item.config.stash[SESSION].compared = None
    result = yield
    case = item.stash.get(CASE, None)
    if case is not None:
        __tracebackhide__ = True
        case.finish()
    return result


def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> None:
    """Store the two sides of a failed comparison: the expected value (right) and the actual value (left)."""
    if op == "==" and SESSION in config.stash:
        config.stash[SESSION].compared = (right, left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the name of the case to pytest's report; after a failure, also add the traffic of the case."""
    from codex_replay.plugin.app_server.case import CASE
    from codex_replay.plugin.reporting.message import explain
    from codex_replay.plugin.reporting.phase import keep_trace, phase_result
    from codex_replay.plugin.reporting.spec import title_of

    report = yield
    session = item.config.stash.get(SESSION, None)
    if session is None:
        return report
    inside, role = "suites" in item.path.parts[:-1], role_of(item)
    if not inside and role is None:
        return report
    case = item.stash.get(CASE, None)
    name = case.name if case is not None else case_name(item, session.root)
    if inside and report.failed and call.excinfo is not None:
        tell_key_error(report, call)
        explain(report, call.excinfo.value, title_of(item, name.case), session.compared)
    shown = sorted(case.shown) if case is not None and call.when == "call" and report.passed else ()
    recorded = case.recorded if case is not None else ()
    # Below `suites` the folder decides the role.
    result = phase_result(session, item, call, report, name, role=None if inside else role, recorded=recorded, shown=shown)
    keep_trace(session, item, report)
    session.compared = None  # the next failure has sides of its own, or none
    result.attach(report)
    if report.failed and case is not None and case.servers and call.when == "call":
        report.sections.append(("Traffic (-> client, <- server)", case.traffic()))
    if report.when == "teardown":  # pytest keeps its items to the end of the run, and they should not keep every frame
        if CASE in item.stash:
            del item.stash[CASE]
        if TRACE_SOURCE in item.stash:
            del item.stash[TRACE_SOURCE]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """Make pytest's report encodable for pytest-xdist, and send the report as one value."""
    from codex_replay.plugin.base.encodable import encodable, packed

    found: dict[str, Any] | None = yield
    if found is not None and SESSION in config.stash and hasattr(config, "workerinput"):
        return packed(found)
    return encodable(found)  # type: ignore[no-any-return]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> Generator[None, Any, Any]:
    """Unpack the report that a worker of pytest-xdist has sent as one value."""
    from codex_replay.plugin.base.encodable import unpack

    unpack(data)
    return (yield)
