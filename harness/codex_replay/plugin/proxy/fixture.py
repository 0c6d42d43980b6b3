"""The `proxy` fixture: send HTTP requests to a proxy, and see the messages between the proxy and its app-server.

`--proxy` names the proxy under test (docs/proxy.md). The marker `@pytest.mark.model(*items)` of a case sets the reply of
the model. The replies of all cases are joined to one script. The prompt of each case contains a unique word, which selects
the reply for the case. Cases with the same environment variables can therefore share one proxy process. Each check has the
mark `@pytest.mark.spec(id, statements...)`: a stable name, and the statements of the specification that it asserts.

Example:

    @pytest.mark.model("Hello.")
    def test_it(proxy: Proxy) -> None:
        done = proxy.responses({"input": proxy.prompt("Hi")})
        assert done.params("newConversation")["model"] == "gpt-5.2"
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.plugin.base.checking import has_bundle, has_conversations
from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.base.places import shared_file
from codex_replay.plugin.base.subjects import parse_app_server, usage_errors
from codex_replay.plugin.proxy.collector import FIELDS, NEEDS, Fields, needs_of, subject_of
from codex_replay.plugin.proxy.fields import fields
from codex_replay.plugin.proxy.http import Event, Exchange, exchange
from codex_replay.plugin.proxy.no_end import Watch, no_end, refused_submission
from codex_replay.plugin.proxy.process import PROFILE, PROFILES, Pool, RunningProxy, profile_in
from codex_replay.plugin.proxy.script import for_proxies, marker_of, profile_of, script_of, silence
from codex_replay.plugin.proxy.subject import ProxySubject, capabilities_of, not_claimed, tools_of
from codex_replay.plugin.proxy.timeline import proxy_frames, report_on
from codex_replay.plugin.proxy.violations import Kind, violations
from codex_replay.plugin.reporting.alone import is_alone
from codex_replay.plugin.reporting.session import UNCLAIMED
from codex_replay.plugin.reporting.trace import trace_frames_of
from codex_replay.protocol.versions import DEFAULT
from codex_replay.report.group_failures import EARLIER
from codex_replay.shell.codex.shell_tools import for_version
from codex_replay.shell.process.patience import Patience
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from codex_replay.shell.http.backend_process import BackendProcess

__all__ = ["Event", "Exchange", "Proxy", "SubjectFailure"]

#: The default limit of one answer, in seconds (`--wait`).
WAIT, WAIT_LIVE = 10.0, 30.0
#: How long a busy proxy is asked again if the request need not succeed, in seconds.
BUSY = 4.0


class Proxy:
    """The value of the `proxy` fixture: it sends requests to the proxy.

    `exchanges` lists all requests with their answers, in order.
    """

    def __init__(
        self,
        pool: Pool,
        marker: str,
        profile: str,
        wait: float,
        subject: ProxySubject,
        version: str = DEFAULT,
        patience: Patience | None = None,
    ) -> None:
        self.marker = marker
        self.clients = subject.clients  # how many it bears at once
        self.able = subject.capabilities
        self.profile = profile
        #: The capabilities that the requests of this case need, and those of them that the proxy does not claim.
        self.needs: list[str] = []
        self.unclaimed: list[str] = []
        self._subject, self.version = subject, version
        self.exchanges: list[Exchange] = []
        self._pool = pool
        self._wait = wait
        self.patience = patience or Patience(None, alone=False)
        self.timed_out = False  # a request had no complete answer within the limit
        self.running: RunningProxy | None = None
        #: Before this case used a process: the number of its frames, and of its bytes on stderr.
        self._from: dict[RunningProxy, tuple[int, int]] = {}

    @property
    def attached(self) -> bool:
        """Return True if `--proxy` is the URL of a running proxy: then the messages of its app-server cannot be seen."""
        return self._subject.url is not None

    def prompt(self, text: str = "Hello") -> str:
        """Return a prompt with the unique word by which the scripted model recognises the case."""
        return f"{text} {self.marker}"

    def process(self, env: Mapping[str, str] | None = None, script: Any = None) -> RunningProxy:
        """Return the proxy process with the environment variables `env`; start the process if it does not run.

        If `script` is given, no other case uses the process.
        """
        __tracebackhide__ = True
        if self.attached and (env or script is not None):
            pytest.skip("not verified: the environment of a proxy that is given as a URL cannot be set; give a command")
        given = {PROFILE: self.profile, **(env or {})}
        if why := self._pool.broken(given, script):
            # The case that found it has already reported all details.
            pytest.fail(f"{why}{EARLIER}", pytrace=False)
        self.running = self._pool.get(given, script)
        process = self.running.process
        self._from.setdefault(self.running, (len(self.running.wire.frames), process.stderr_bytes if process is not None else 0))
        return self.running

    def stderr(self) -> list[str]:
        """Return the last lines that the proxy has written to stderr during the current case."""
        if self.running is None or self.running.process is None:
            return []
        return self.running.process.stderr_tail(15, since=self._from[self.running][1])

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
        stop_after: str | None = None,
        within: float | None = None,
    ) -> Exchange:
        """Send a request; return the answer, and the JSON-RPC messages between the proxy and its app-server during the request.

        `within` is for a request whose turn fails: the maximum time, in seconds, between the end of the turn and the
        end of the answer. With `stop_after`, the client hangs up once the answer has this text. `headers` are added to
        the Authorization header; a header with the value None is removed. Raises `SubjectFailure` if the answer does
        not end in time. If `ok` is True, also raises `SubjectFailure` for an answer that is not a success. If the proxy
        is busy (429 or 503 with Retry-After), send the request again after the time in Retry-After, as real clients do.
        If `ok` is True, the retries after a busy answer end after the time limit of one answer, otherwise after a few
        seconds. After the proxy has sent a message to its app-server, there is no retry, because the 429 or 503 may
        then come from a fault of the model.
        """
        __tracebackhide__ = True
        self._claimed([*capabilities_of(path, body), *tools_of(self._subject.capabilities, body)])
        running = self.process(env, script)
        running.wire.update()
        given: dict[str, str | None] = {"Authorization": f"Bearer {running.key}", **(headers or {})}
        sent = {name: value for name, value in given.items() if value is not None}
        began = time.monotonic()
        deadline = began + self._wait
        while True:
            watch = Watch(running.wire, self.patience, within)
            hopeless = None if self.attached else watch.hopeless
            done = exchange(running.url, method, path, body, sent, self._wait, stop_after, hopeless)
            done.frames = watch.frames()
            self.exchanges.append(done)
            pause = done.retry_after
            if pause is None or not (ok or self._busy(done)):
                break
            if time.monotonic() + pause > (deadline if ok else min(deadline, began + BUSY)):
                break
            time.sleep(max(pause, 0.05))
        if done.problem:
            gone = {frame.child for frame in done.frames if not frame.child_runs()}
            if done.silent:
                watch.given_up()
                self.timed_out = self.timed_out or not watch.cause
                self._pool.retire(running)  # what it still does must not reach another case
            raise SubjectFailure(watch.late + no_end(done, attached=self.attached, gone=gone))
        if ok and not 200 <= done.status < 300:
            busy = "" if done.retry_after is None else f". The proxy was still busy after {self._wait:g} s of retries."
            refused = "" if self.attached else refused_submission(done.frames)
            raise SubjectFailure(
                f"{refused}{method} {path} must succeed, but was answered {done.answered}: {done.shown(500)}{busy}"
            )
        return done

    def _busy(self, done: Exchange) -> bool:
        """Return True if the proxy refused a request without a call to its app-server."""
        return not self.attached and not [call for call in done.calls() if call["method"] != "initialize"]

    def _claimed(self, needed: list[str]) -> None:
        """Skip the case if the proxy lacks, by its configuration, a capability that the request needs."""
        self.needs += [each for each in needed if each not in self.needs]
        if lacking := [each for each in needed if each not in self._subject.capabilities]:
            self.unclaimed = lacking
            pytest.skip(not_claimed(self._subject, lacking))

    def chat(self, body: Mapping[str, Any] | None = None, **given: Any) -> Exchange:
        """POST /v1/chat/completions; without `messages`, the request has the prompt of the case.

        The request must succeed, unless `ok` is False.
        """
        __tracebackhide__ = True
        full = {"model": "gpt-5.2", "messages": [{"role": "user", "content": self.prompt()}], **(body or {})}
        return self.ask("POST", "/v1/chat/completions", full, **{"ok": True, **given})

    def responses(self, body: Mapping[str, Any] | None = None, **given: Any) -> Exchange:
        """POST /v1/responses; without `input`, the request has the prompt of the case.

        The request must succeed, unless `ok` is False.
        """
        __tracebackhide__ = True
        full = {"model": "gpt-5.2", "input": self.prompt(), **(body or {})}
        return self.ask("POST", "/v1/responses", full, **{"ok": True, **given})

    def post(self, endpoint: str, body: Mapping[str, Any] | None = None, **given: Any) -> Exchange:
        """Send a request to `endpoint`, "chat" or "responses"."""
        __tracebackhide__ = True
        return self.chat(body, **given) if endpoint == "chat" else self.responses(body, **given)

    def handshakes(self) -> Iterator[dict[str, Any]]:
        """Yield the `initialize` request of each app-server that the proxy process started before the last request."""
        for frame in (self.running or self.process()).wire.frames:
            if frame.sender == "client" and frame.kind == "request" and frame.value["method"] == "initialize":
                yield frame.value

    def model_calls(self) -> list[Any]:
        """Return the requests to the model in a case, as the fake codex or the fake backend recorded them."""
        running = self.running or self.process()
        if running.upstream is not None:
            entries = [entry for entry in running.upstream.ledger() if str(entry["path"]).endswith("/responses")]
            return [entry for entry in entries if self.marker in str(entry.get("body"))]
        return running.wire.model_calls(self.marker)

    def violations(self, kind: Kind) -> list[str]:
        """Return a sentence for each fault in the messages that the proxy wrote to its app-servers during this case and in their
        handshakes.

        If `kind` is "valid", invalid messages are faults; if `kind` is "known", unknown members are faults.

        The JSON schemas of the Codex version under test decide whether a message is valid. Without the schemas of the Codex
        version under test, skip the case.
        """
        running = self.running or self.process()
        if not has_bundle(self.version):
            pytest.skip(
                f"not verified: there is no bundle of Codex {self.version}; codex-replay codex add {self.version} makes it"
            )
        running.wire.update()
        return violations(running.wire.frames, kind, self.version, since=self._from[running][0])

    def leave(self) -> None:
        """Record the turns of the case that has ended; the pool stops using the proxy process if one of these turns still runs.

        Messages of a turn that still runs must not reach another case. For a proxy that is given as a URL, do nothing: the
        harness sees no messages of its app-server, and did not start its process.
        """
        for running, (frames, _) in self._from.items() if not self.attached else ():
            running.leave(frames)

    def eventually(self, sent: Callable[[list[Any]], bool], seconds: float = 5.0, what: str = "What was waited for") -> list[Any]:
        """Wait until the function `sent` returns true for the frames since the last request; return these frames.

        Raises `SubjectFailure` after `seconds`; the error names the expectation (`what`) and the messages that the proxy
        sent.
        """
        __tracebackhide__ = True
        assert self.running is not None
        last = self.exchanges[-1]
        seconds = self.patience.part(seconds, what)
        if not self.running.wire.until(sent, seconds, last.frames):
            self.patience.count(True, what)
            named = (f for f in last.frames if f.sender == "client" and f.kind in ("request", "notification"))
            raise SubjectFailure(
                f"{what} did not come on the JSON-RPC seam within {seconds:g} s after {last.method} {last.path}. "
                f"The proxy sent: {', '.join(str(f.value['method']) for f in named) or 'nothing'}."
            )
        return last.frames


def pytest_configure(config: pytest.Config) -> None:
    """Check the option `--proxy` before pytest collects cases."""
    config.addinivalue_line("markers", "model(*items, turns=None): the model's reply to this case's marker (docs/scripts.md)")
    config.addinivalue_line("markers", "proxy_profile(*names): the case runs in these profiles only")
    config.addinivalue_line("markers", "needs(*names): the case is for proxies with these capabilities and dialects of calls")
    subject_of(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Fields(config), "codex-replay-proxy-collector")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Add the name of the proxy (from `--proxy`, otherwise from the configuration) to the verdict."""
    from codex_replay.plugin.reporting.session import SESSION

    if found := session.config.stash.get(SESSION, None):
        found.verdict.others["proxy"] = subject_of(session.config).name
        if isinstance(fields := session.config.pluginmanager.get_plugin("codex-replay-proxy-collector"), Fields):
            found.advisers.append(fields.advice)
            found.additions.append(fields.for_report)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """If `--profile` names a profile of proxies, leave out the cases of the other profile."""
    profile = settings_of(config).profile
    if profile not in PROFILES:
        return
    out = [item for item in items if (mark := item.get_closest_marker("proxy_profile")) and not profile_in(profile, mark.args)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a timeline of the HTTP and JSON-RPC messages to a failed case, and report the fields that the proxy sent."""
    report = yield
    proxy = getattr(item, "funcargs", {}).get("proxy")
    if report.when == "call" and isinstance(proxy, Proxy):
        report.user_properties.append((FIELDS, {proxy.profile: fields(proxy.exchanges, proxy.version)}))
        report.user_properties.append((NEEDS, [*needs_of(item), *proxy.needs]))
        if proxy.unclaimed:
            report.user_properties.append((UNCLAIMED, ", ".join(proxy.unclaimed)))
        if report.failed and proxy.exchanges:
            report.sections.append(("HTTP and JSON-RPC", report_on(proxy.exchanges, proxy.stderr())))
        if report.failed or proxy.profile != PROFILES[0]:  # as specified, a request is two turns, and may end with the first
            proxy.leave()
    return report


@pytest.fixture(scope="session")
def proxy_subject(request: pytest.FixtureRequest) -> ProxySubject:
    """The proxy under test."""
    return subject_of(request.config)


@pytest.fixture(scope="session")
def proxy_pool(
    request: pytest.FixtureRequest,
    proxy_subject: ProxySubject,
    tmp_path_factory: pytest.TempPathFactory,
    lite_client_backend: Callable[[], BackendProcess],
) -> Iterator[Pool]:
    """Return the pool of proxy processes for the run."""
    with usage_errors():
        app_server = parse_app_server(settings_of(request.config).app_server)
    shared = script_of(request.session.items, settings_of(request.config).profile)
    cwd = str(request.config.invocation_params.dir)

    def start(env: Mapping[str, str], script: Any) -> RunningProxy:
        __tracebackhide__ = True
        script = for_version(shared if script is None else script, app_server.version)
        message = for_proxies(script, proxy_subject.model_ms)
        return RunningProxy(proxy_subject, app_server, tmp_path_factory.mktemp("proxy"), env, message, cwd, lite_client_backend)

    pool = Pool(start)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def proxy_patience(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Patience:
    """The time limit of one answer; the limit becomes shorter if the proxy hangs in several cases."""
    shared = shared_file(pytestconfig, tmp_path_factory, "proxy-waits")
    return Patience(settings_of(pytestconfig).wait, alone=is_alone(), shared=shared)


@pytest.fixture
def proxy(
    request: pytest.FixtureRequest, proxy_subject: ProxySubject, proxy_pool: Pool, proxy_patience: Patience
) -> Iterator[Proxy]:
    """Send requests to the proxy that `--proxy` names."""
    settings = settings_of(request.config)
    if lacking := [each for each in needs_of(request.node) if each not in proxy_subject.able]:
        request.node.user_properties.append((UNCLAIMED, ", ".join(lacking)))
        pytest.skip(not_claimed(proxy_subject, lacking))
    if is_alone():
        proxy_pool.close()  # nothing that an earlier case has left in a process reaches this one
    profile = profile_of(request.node, settings.profile)
    with usage_errors():
        app_server = parse_app_server(settings.app_server)
    if profile == PROFILES[0] and not has_conversations(app_server.version):
        pytest.skip(f"not for Codex {app_server.version}: it has no v1, and the profile {profile} tests v1 calls")
    wait = proxy_patience.limit(WAIT_LIVE if app_server.live else WAIT) + silence(request.node)
    proxy = Proxy(proxy_pool, marker_of(request.node.nodeid), profile, wait, proxy_subject, app_server.version, proxy_patience)
    trace_frames_of(request.node, lambda: proxy_frames(proxy.exchanges))
    yield proxy
    proxy_patience.count(proxy.timed_out)
