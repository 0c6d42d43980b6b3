"""The `proxy` fixture: ask a proxy over HTTP, and see what it said to its app-server.

    @pytest.mark.model("Hello.")
    def test_it(proxy: Proxy) -> None:
        done = proxy.responses({"input": proxy.prompt("Hi")})
        assert done.params("newConversation")["model"] == "gpt-5.2"

`--proxy` names the subject (docs/proxy.md). What the model says stands beside the case, as `@pytest.mark.model(*items)`: the
scripts of all cases become one, in which the marker of each case's prompt chooses its turn, so that cases with the same
environment share a process. Each check bears `@pytest.mark.spec(id, where, line)`.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin.options import proxy_table, settings_of
from harness.plugin.proxy_http import Event, Exchange, exchange
from harness.plugin.proxy_process import PROFILE, PROFILES, Pool, RunningProxy
from harness.plugin.proxy_report import tell
from harness.plugin.proxy_subject import BadProxy, ProxySubject, parse_proxy
from harness.shell.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from harness.shell.backend_process import BackendProcess

__all__ = ["Event", "Exchange", "Proxy", "SubjectFailure"]

#: How long one answer may take, in seconds, unless `--wait` says otherwise.
WAIT, WAIT_LIVE = 10.0, 30.0
FIELDS, UNCLAIMED = "codex-replay-proxy-fields", "codex-replay-proxy-unclaimed"


class Proxy:
    """What the fixture is. `exchanges` holds all that was asked, in order."""

    def __init__(self, pool: Pool, marker: str, profile: str, wait: float, attached: bool) -> None:
        self.marker = marker
        self.profile = profile
        self.exchanges: list[Exchange] = []
        self._pool = pool
        self._wait = wait
        self._attached = attached
        self.running: RunningProxy | None = None

    def prompt(self, text: str = "Hello") -> str:
        """Return a prompt with the marker in it by which the model knows the case."""
        return f"{text} {self.marker}"

    def process(self, env: Mapping[str, str] | None = None, script: Any = None) -> RunningProxy:
        """Return the process with this environment, started if there is none; `script` gives it one of its own."""
        __tracebackhide__ = True
        if self._attached and (env or script is not None):
            pytest.skip("not verified: a proxy that is attached to by its URL cannot be given an environment; give a command")
        given = {PROFILE: self.profile, **(env or {})}
        if why := self._pool.broken(given, script):
            # The case that found it so has told all that is known, and has shown where.
            pytest.fail(f"{why} (An earlier case tells the whole.)", pytrace=False)
        self.running = self._pool.get(given, script)
        return self.running

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str | None] | None = None,
        script: Any = None,
        ok: bool = False,
        stop_after: int | None = None,
    ) -> Exchange:
        """Ask, and return the answer with what passed on the JSON-RPC seam meanwhile.

        `headers` add to the bearer and take away what is None. Raises `SubjectFailure` when the answer does not end in its
        time and, with `ok`, when it is no success.
        """
        __tracebackhide__ = True
        running = self.process(env, script)
        running.wire.update()
        given: dict[str, str | None] = {"Authorization": f"Bearer {running.key}", **(headers or {})}
        sent = {name: value for name, value in given.items() if value is not None}
        done = exchange(running.url, method, path, body, sent, self._wait, stop_after)
        done.frames = running.wire.update()
        self.exchanges.append(done)
        if done.problem:
            raise SubjectFailure(f"{method} {path}: {done.problem}.")
        if ok and not 200 <= done.status < 300:
            raise SubjectFailure(f"{method} {path} must succeed, but was answered {done.status}: {done.body[:500]!r}")
        return done

    def chat(self, body: Mapping[str, Any] | None = None, **given: Any) -> Exchange:
        """POST /v1/chat/completions; without `messages` the prompt is the case's own. It must succeed unless ok=False."""
        __tracebackhide__ = True
        full = {"model": "gpt-5.2", "messages": [{"role": "user", "content": self.prompt()}], **(body or {})}
        return self.ask("POST", "/v1/chat/completions", full, **{"ok": True, **given})

    def responses(self, body: Mapping[str, Any] | None = None, **given: Any) -> Exchange:
        """POST /v1/responses; without `input` the prompt is the case's own. It must succeed unless ok=False."""
        __tracebackhide__ = True
        full = {"model": "gpt-5.2", "input": self.prompt(), **(body or {})}
        return self.ask("POST", "/v1/responses", full, **{"ok": True, **given})

    def post(self, endpoint: str, body: Mapping[str, Any] | None = None, **given: Any) -> Exchange:
        """Ask `endpoint`, "chat" or "responses"."""
        __tracebackhide__ = True
        return self.chat(body, **given) if endpoint == "chat" else self.responses(body, **given)

    def model_calls(self) -> list[Any]:
        """Return the requests that the model got for this case, bodies and all (of the fake's ledgers, or of the backend)."""
        running = self.running or self.process()
        if running.upstream is not None:
            entries = [entry for entry in running.upstream.ledger() if str(entry["path"]).endswith("/responses")]
            return [entry for entry in entries if self.marker in str(entry.get("body"))]
        return running.wire.model_calls(self.marker)

    def eventually(self, sent: Callable[[list[Any]], bool], seconds: float = 5.0, what: str = "What was waited for") -> list[Any]:
        """Wait until the frames that passed since the last request make `sent` true; return them.

        Raises `SubjectFailure`, a sentence about `what` and what the proxy has sent instead.
        """
        __tracebackhide__ = True
        assert self.running is not None
        last = self.exchanges[-1]
        deadline = time.monotonic() + seconds
        while not sent(last.frames):
            if time.monotonic() > deadline:
                told = [
                    str(f.value["method"]) for f in last.frames if f.sender == "client" and f.kind in ("request", "notification")
                ]
                raise SubjectFailure(
                    f"{what} did not pass on the JSON-RPC seam within {seconds:g} s after {last.method} {last.path}. "
                    f"The proxy sent: {', '.join(told) or 'nothing'}."
                )
            time.sleep(0.02)
            last.frames += self.running.wire.update()
        return last.frames


def marker_of(nodeid: str) -> str:
    """Return the word by which the model knows a case: letters and digits, the same in every run."""
    return f"case-{hashlib.sha256(nodeid.encode()).hexdigest()[:12]};"


def script_of(items: list[pytest.Item]) -> dict[str, Any]:
    """Return one script for all cases: what `@pytest.mark.model` says, by the marker of the case's prompt.

    Whatever a proxy asks beyond that (the turn and the message of one request make up to two model calls) gets an empty reply.
    """
    turns: list[dict[str, Any]] = []
    for item in items:
        mark = item.get_closest_marker("model")
        if mark is not None and "proxy" in getattr(item, "fixturenames", ()):
            marker = marker_of(item.nodeid)
            own = mark.kwargs.get("turns") or [{"items": list(mark.args)}]
            turns += [{"match": marker, **turn} for turn in own]
            turns.append({"match": marker, "items": [], "times": "always"})
    turns.append({"items": ["Hello."], "times": "always"})
    return {"turns": turns}


def pytest_configure(config: pytest.Config) -> None:
    """Check the option before anything is collected."""
    config.addinivalue_line("markers", "model(*items, turns=None): what the model says to this case's marker (docs/scripts.md)")
    config.addinivalue_line("markers", "proxy_profile(*names): the case holds a proxy to these profiles only")
    config.addinivalue_line("markers", "needs(*capabilities): the case is for proxies that can do this")
    _subject(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Fields(config), "codex-replay-proxy-collector")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Name the proxy in the verdict as what it is: without `--proxy` it may be the one of the table."""
    from harness.plugin.session import SESSION

    if found := session.config.stash.get(SESSION, None):
        found.verdict.others["proxy"] = _subject(session.config).name


def _subject(config: pytest.Config) -> ProxySubject:
    try:
        return parse_proxy(settings_of(config).proxy, proxy_table(config))
    except BadProxy as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of the other profile when `--profile` names one of the proxy's."""
    profile = settings_of(config).profile
    if profile not in PROFILES:
        return
    out = [item for item in items if (mark := item.get_closest_marker("proxy_profile")) and profile not in mark.args]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beside a failure both seams on one timeline; tell of a case what fields it saw."""
    report = yield
    proxy = getattr(item, "funcargs", {}).get("proxy")
    if report.when == "call" and isinstance(proxy, Proxy):
        from harness.plugin.proxy_fields import fields

        report.user_properties.append((FIELDS, {proxy.profile: fields(proxy.exchanges)}))
        if report.failed and proxy.exchanges:
            stderr = proxy.running.process.stderr_tail(15) if proxy.running and proxy.running.process else []
            report.sections.append(("HTTP and JSON-RPC", tell(proxy.exchanges, stderr)))
    return report


class Fields:
    """Collects what the proxy sent, in the process that ends the run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows: dict[str, list[list[Any]]] = {}
        self.unclaimed: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in the fields of one case, or what the proxy would have to be capable of for it to be judged."""
        for name, found in report.user_properties:
            if name == UNCLAIMED and report.when == "setup":
                self.unclaimed[str(found)] = self.unclaimed.get(str(found), 0) + 1
            if name == FIELDS and isinstance(found, dict):
                for profile, rows in ((profile, rows) for profile, rows in found.items() if rows):
                    self.rows.setdefault(profile, []).extend(rows)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the three verdicts on every field that the proxy sent, profile by profile, and write them for machines."""
        from harness.plugin.proxy_fields import OTHER_METHODS, SPECIFIED, table, write
        from harness.plugin.session import SESSION

        out = terminalreporter
        if self.unclaimed:
            cases = ", ".join(f"{count} for {name}" for name, count in sorted(self.unclaimed.items()))
            out.section("not judged")
            out.write_line(f"{_subject(self.config).name} does not claim to be capable of what these cases need: {cases}.")
        for profile in sorted(self.rows):
            out.section(f"what the proxy sends to app-server, field by field ({profile})")
            for line in table(self.rows[profile]):
                out.write_line(line)
            if profile == "as-specified" and not any(row[0] in SPECIFIED for row in self.rows[profile]):
                out.write_line(OTHER_METHODS.format(", ".join(SPECIFIED)))
        session = self.config.stash.get(SESSION, None)
        if self.rows and session is not None:
            with contextlib.suppress(OSError):  # the verdict has said already that the folder cannot be written to
                out.write_line(f"Fields: {write(self.rows, session.report_folder, _subject(self.config).name)}")


@pytest.fixture(scope="session")
def proxy_subject(request: pytest.FixtureRequest) -> ProxySubject:
    """The proxy under test."""
    return _subject(request.config)


@pytest.fixture(scope="session")
def proxy_pool(
    request: pytest.FixtureRequest,
    proxy_subject: ProxySubject,
    tmp_path_factory: pytest.TempPathFactory,
    lite_client_backend: Callable[[], BackendProcess],
) -> Iterator[Pool]:
    """The processes of the run."""
    from harness.plugin.subjects import BadSubject, parse_app_server

    try:
        app_server = parse_app_server(settings_of(request.config).app_server)
    except BadSubject as error:
        raise pytest.UsageError(str(error)) from None
    shared = script_of(request.session.items)
    cwd = str(request.config.invocation_params.dir)

    def start(env: Mapping[str, str], script: Any) -> RunningProxy:
        __tracebackhide__ = True
        folder: Path = tmp_path_factory.mktemp("proxy")
        said = shared if script is None else script
        return RunningProxy(proxy_subject, app_server, folder, env, said, cwd, lite_client_backend)

    pool = Pool(start)
    yield pool
    pool.close()


@pytest.fixture
def proxy(request: pytest.FixtureRequest, proxy_subject: ProxySubject, proxy_pool: Pool) -> Proxy:
    """Ask the proxy that `--proxy` names."""
    settings = settings_of(request.config)
    needed = [each for mark in request.node.iter_markers("needs") for each in mark.args]
    if lacking := [each for each in dict.fromkeys(needed) if each not in proxy_subject.capabilities]:
        request.node.user_properties.append((UNCLAIMED, ", ".join(lacking)))
        pytest.skip(f"not verified: {proxy_subject.name} does not claim to be capable of {', '.join(lacking)}")
    mark = request.node.get_closest_marker("proxy_profile")
    profile = mark.args[0] if mark else PROFILES[1]
    if mark and settings.profile in mark.args:
        profile = settings.profile
    live = settings.app_server not in ("fake",) and not settings.app_server.startswith("fake:")
    wait = settings.wait or (WAIT_LIVE if live else WAIT)
    return Proxy(proxy_pool, marker_of(request.node.nodeid), profile, wait, proxy_subject.url is not None)
