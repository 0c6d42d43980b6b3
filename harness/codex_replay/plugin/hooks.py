"""The pytest hooks: thin, over the objects of the other modules.

A test is a case when it stands below a folder `suites` or uses one of our fixtures that have a subject or are a fake; a run
without cases is left alone.
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.collector import Collector
from harness.plugin.naming import case_name, cassette_folder, role_of
from harness.plugin.options import add_options, check_profile, check_report, settings_of
from harness.plugin.places import installed_id
from harness.plugin.progress import VARIABLE, Progress
from harness.plugin.session import CASE, PROPERTY, SESSION, SPOOLS, STORIES, Session
from harness.plugin.terse import Terse

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from harness.plugin.app_server import AppServer


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
    from harness.plugin.spool import Spool
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
        config.pluginmanager.register(Terse(config, session), "codex-replay-terse")
        if os.environ.get(VARIABLE, "").isdigit():
            config.pluginmanager.register(Progress(int(os.environ[VARIABLE])), "codex-replay-progress")
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: object) -> None:
    from harness.shell.process import stop_all

    stop_all()
    for spool in SPOOLS:
        spool.remove()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the run shared."""
    if SESSION in config.stash:
        session = config.stash[SESSION]
        session.close()
        if session.spool in SPOOLS:
            SPOOLS.remove(session.spool)
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
    from harness.plugin.app_server import AppServer
    from harness.plugin.run import Case

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
    cassettes = session.settings.cassettes or cassette_folder(request.node.path, session.root)
    start = AppServer(name, settings, subject, cassettes, lambda: tmp_path_factory.mktemp("case"), session.backend)
    case = Case(name, settings, subject, start)
    request.node.stash[CASE] = case
    yield case.start
    case.close()


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
