"""The `lite_client` fixture: run a lite client, and record its requests to the backend and to the token URL.

`--lite-client` names the client: `reference`, or the command line of a program that follows docs/lite-client.md. In each
run, the client gets a folder with an auth.json, and a session of the fake Responses backend with the script of the case.
Each check of the suite has the mark `@pytest.mark.spec(id, statements...)`: a stable name, and the statements of the
specification that the check asserts. The report of a failure shows the cited statements next to the traffic.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from codex_replay.core.text.last_words import last_words
from codex_replay.core.text.truncate import shortened
from codex_replay.plugin.base.ledger import Request, request_of
from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.base.subjects import SubjectOption, usage_errors
from codex_replay.plugin.reporting.spec import section_of, spec_of
from codex_replay.plugin.reporting.trace import trace_frames_of
from codex_replay.plugin.reporting.trace_frames import ledger_frames
from codex_replay.shell.process.programs import program
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from codex_replay.shell.http.backend_process import BackendProcess, BackendSession

#: The default limit of a client's run, in seconds (`--wait`).
WAIT = 20.0
OPTION = SubjectOption("--lite-client", "reference, or a whole command line", ("reference",))
#: The status with which the fake answers what no turn of the script is left for: a client that asked once more than was meant.
UNSCRIPTED = 501
#: The marks of a crash, which are not a message to a user.
CRASHES = ("Traceback (most recent call last)", "panicked at", "goroutine 1 [running]", "UnhandledPromiseRejection", "\n    at ")
#: The login that a run gets when the case names none.
LOGIN: dict[str, Any] = {
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {
        "access_token": "access-1",
        "refresh_token": "refresh-1",
        "account_id": "account-1",
        "id_token": {"raw_jwt": "e30.e30.e30", "chatgpt_account_id": "account-1"},
    },
    "last_refresh": "2026-01-01T00:00:00Z",
}


class Run:
    """One completed run of the client: its exit `status`, `stdout`, `stderr` and `requests`.

    A negative `status` is the signal that killed the client.
    """

    def __init__(self, file: Path, status: int, stdout: bytes, stderr: str, requests: list[Request], unused: list[int]) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.requests = requests
        self.auth_bytes = file.read_bytes() if file.exists() else b""
        self._unused = unused

    @property
    def turns(self) -> list[Request]:
        """The requests of the client to the model."""
        return [request for request in self.requests if urlsplit(request.path).path.endswith("/responses")]

    @property
    def refreshes(self) -> list[Request]:
        """The requests of the client to the token URL."""
        return [request for request in self.requests if urlsplit(request.path).path == "/oauth/token"]

    @property
    def auth(self) -> Any:
        """The content of the client's auth.json after the run."""
        return json.loads(self.auth_bytes)

    def text(self) -> str:
        """Return the final text; raises `SubjectFailure` unless the run succeeded and requested every turn of the script."""
        __tracebackhide__ = True
        if wrong := [r.sentence for r in self.requests if r.sentence and r.status not in (None, 401)]:
            raise SubjectFailure(f"The client sent a request that the backend refuses: {wrong[0]}\n{self._summary()}")
        if self.status != 0:
            raise SubjectFailure(f"The client exited with status {self.status} {self._after()}\n{self._summary()}")
        if self._unused:
            raise SubjectFailure(f"The client never asked for these turns of the script: {self._unused}\n{self._summary()}")
        try:
            text = self.stdout.decode()
        except UnicodeDecodeError:
            raise SubjectFailure(f"The client's stdout is not UTF-8.\n{self._summary()}") from None
        return text.removesuffix("\n").removesuffix("\r")

    def failure(self, *, asked: bool = True) -> str:
        """Return the error message that the client wrote to stderr.

        Raises `SubjectFailure` unless the client failed, and failed for the reason that the case tests.

        A client fails for another reason if its request breaks a rule, so that the backend refuses the request, or if it
        sends no request. `asked` is False if the client must fail without any request.
        """
        __tracebackhide__ = True
        if wrong := [r.sentence for r in self.requests if r.sentence and r.status not in (None, 401, UNSCRIPTED)]:
            raise SubjectFailure(f"The client sent a request that the backend refuses: {wrong[0]}\n{self._summary()}")
        if self.status == 0:
            raise SubjectFailure(f"The client exited with status 0, but produced no answer.\n{self._summary()}")
        if self.status < 0:
            raise SubjectFailure(f"The client was killed by signal {-self.status}.\n{self._summary()}")
        if not self.stderr.strip():
            raise SubjectFailure(f"The client failed without a message on stderr.\n{self._summary()}")
        if any(noise in self.stderr for noise in CRASHES):
            raise SubjectFailure(f"The client crashed with a traceback; it should print an error message.\n{self._summary()}")
        if asked and not self.turns:
            raise SubjectFailure(f"The client exited with status {self.status} {self._after()}\n{self._summary()}")
        return self.stderr

    def progress(self) -> str:
        """Return the beginning of a sentence: the client's last request, and the turns of the script that it never requested."""
        last = f"The last request of the client was {self.requests[-1].line}" if self.requests else "The client sent no request"
        left = f", and these turns of the script were never requested: {self._unused}" if self._unused else ""
        return last + left

    def report_on(self) -> str:
        """Return a readable description of the run: its requests and answers, and the output of the client."""
        asked = [f"{each.line}\n    {shortened(json.dumps(each.body, ensure_ascii=False), 1500)}" for each in self.requests]
        return "\n".join([*asked, *self._ended(500, shortened(self.stderr, 2000))])

    def _summary(self) -> str:
        """Return a short description of the client's run, without bodies; the middle of a long stderr is omitted.

        The failure report also contains the complete description.
        """
        long = len(self.stderr) > 700
        stderr = f"{self.stderr[:200]}\n[...]\n{self.stderr[-500:]}" if long else self.stderr
        return "\n".join([*(each.line for each in self.requests), *self._ended(200, stderr)])

    def _ended(self, most: int, stderr: str) -> list[str]:
        return [f"exit status {self.status}", f"stdout: {shortened(repr(self.stdout), most)}", f"stderr: {stderr}"]

    def _after(self) -> str:
        """Return where in the run an unexpected failure occurred, and the client's last line on stderr."""
        if not self.turns:
            when = "before it asked the model"
        elif self.requests[-1].status != 200:
            when = f"after {self.requests[-1].line}"
        else:
            when = "although every request was answered 200"
        return when + last_words(self.stderr.splitlines())


class LiteClient:
    """The value of the `lite_client` fixture; a call runs the client.

    All runs of one case share a folder and a session of the fake backend.
    """

    def __init__(self, argv: tuple[str, ...], cwd: Path, folder: Path, session: BackendSession, wait: float) -> None:
        self.argv = argv
        self.cwd = cwd
        self.folder = folder
        self.runs: list[Run] = []
        self._session = session
        self._wait = wait
        self._seen = 0
        (folder / "home").mkdir()

    def __call__(
        self,
        prompt: str = "Hello",
        *,
        script: object = None,
        auth: object = None,
        tools: object = None,
        schema: object = None,
        base: str = "/backend-api/codex",
        token_url: str = "/oauth/token",
        at_home: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Run the client on a prompt, and return the result; raises `SubjectFailure` if the client does not end in time.

        `script` has the replies of the model (docs/scripts.md); with None, the session keeps its script. `auth` is the
        content of auth.json: a JSON value, or bytes that are written unchanged (b"" for no file). If `auth` is None, the
        login of the previous run is kept; in the first run, None means `LOGIN`. `tools` and `schema` are the values for the
        environment variables LITE_TOOLS and LITE_OUTPUT_SCHEMA. `base` and `token_url` are complete URLs, or paths on the
        fake backend. With `at_home`, the login is written to ~/.codex/auth.json, and LITE_AUTH_FILE is not set. `env` has
        additional environment variables for the client.
        """
        __tracebackhide__ = True
        if script is not None:
            self._session.script(script)
        path = self.folder / "home" / ".codex" / "auth.json" if at_home else self.folder / "auth.json"
        path.parent.mkdir(exist_ok=True)
        if auth is not None or not self.runs:
            _write(path, LOGIN if auth is None else auth)
        given = {"LITE_BASE_URL": self._at(base), "LITE_TOKEN_URL": self._at(token_url), "LITE_TIMEOUT": "10"}
        if not at_home:
            given["LITE_AUTH_FILE"] = str(path)
        for name, content in (("LITE_TOOLS", tools), ("LITE_OUTPUT_SCHEMA", schema)):
            if content is not None:
                given[name] = str(_write(self.folder / f"{name.lower()}.json", content))
        run = self._run(prompt, path, {**given, **(env or {})})
        self.runs.append(run)
        return run

    def _at(self, where: str) -> str:
        return where if "://" in where else self._session.url + where

    def _run(self, prompt: str, file: Path, given: Mapping[str, str]) -> Run:
        __tracebackhide__ = True
        kept = {name: value for name in ("PATH", "SYSTEMROOT", "TMPDIR") if (value := os.environ.get(name))}
        env = {**kept, "HOME": str(self.folder / "home"), "LANG": "C.UTF-8", "NO_PROXY": "*", **given}
        status, stdout, stderr = self.execute([*self.argv, prompt], env, str(self.cwd), self._wait)
        ledger = self._session.ledger()[self._seen :]
        self._seen += len(ledger)
        requests = [request_of(entry, self._session.url) for entry in ledger]
        run = Run(file, -9 if status is None else status, stdout, stderr, requests, self._session.unused_turns())
        if status is None:
            raise SubjectFailure(
                f"{run.progress()}: the client did not exit within {self._wait:g} s (LITE_TIMEOUT was shorter).\n"
                f"{run.report_on()}"
            )
        return run

    @staticmethod
    def execute(argv: list[str], env: Mapping[str, str], cwd: str, seconds: float) -> tuple[int | None, bytes, str]:
        """Run a command with a time limit; return its exit status, stdout and stderr.

        The exit status is None if the command took too long and was killed.
        """
        __tracebackhide__ = True
        from codex_replay.shell.process.subject import CannotStart, Process

        stdout: list[bytes] = []
        try:
            process = Process(argv, env=env, cwd=cwd, on_stdout=stdout.append)
        except CannotStart as error:
            raise SubjectFailure(f"--lite-client: {error}") from None
        try:
            process.close_stdin()
            status = process.wait(seconds)
        finally:
            process.stop(grace=0.2)
        return status, b"".join(stdout), "\n".join(process.stderr_tail(1000))


def _write(path: Path, content: object) -> Path:
    data = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
    if data:
        path.write_bytes(data)
    else:
        path.unlink(missing_ok=True)
    return path


def parse_lite_client(text: str, *, packages: bool = False) -> tuple[str, ...]:
    """Return the command that `--lite-client` names; raises `pytest.UsageError` if `text` is invalid.

    The reference client starts faster without access to installed packages. The reference client needs installed packages only
    for a WebSocket: then set `packages` to True.
    """
    with usage_errors():
        choice = OPTION.parse(text)
    # `python -m codex_replay.reference.lite_client` is the same program, but starts later.
    return choice.argv or tuple(program("codex_replay.reference.lite_client.__main__", packages=packages))


def pytest_configure(config: pytest.Config) -> None:
    """Check the option `--lite-client` before pytest collects cases."""
    config.addinivalue_line("markers", "spec(id, *statements): the statements of the contract that the case asserts")
    config.addinivalue_line("markers", "lite_websocket: the case is for clients that speak WebSocket")
    parse_lite_client(settings_of(config).lite_client)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the WebSocket cases unless an option declares that the client can use a WebSocket."""
    if item.get_closest_marker("lite_websocket") is None:
        return
    subject = settings_of(item.config).lite_client
    if subject != "reference" and not item.config.getoption("lite_websocket"):
        pytest.skip(f"not verified on {subject}: give --lite-websocket if it speaks WebSocket")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the cited statements of the specification to a failed case and, for a lite client, the runs of the client."""
    report = yield
    mark = item.get_closest_marker("spec")
    if mark is not None:
        report.user_properties.append(("check", mark.args[0]))
    # What is not a statement is shown of a marked check only: a docstring may name any source.
    if report.failed and (found := spec_of(item, item.name)) is not None and (mark is not None or "links" in found):
        report.sections.append((f"Spec: {found['check']}", section_of(found)))
    client = getattr(item, "funcargs", {}).get("lite_client")
    if report.failed and report.when == "call" and isinstance(client, LiteClient) and client.runs:
        report.sections.append(("The client's runs", "\n\n".join(run.report_on() for run in client.runs)))
    return report


@pytest.fixture(scope="session")
def lite_client_backend(request: pytest.FixtureRequest) -> Iterator[Callable[[], BackendProcess]]:
    """Return the fake Responses backend of the run; start the backend at its first use."""
    from codex_replay.plugin.reporting.session import SESSION
    from codex_replay.shell.http.backend_process import BackendProcess

    shared = request.config.stash.get(SESSION, None)
    if shared is not None:
        yield shared.backend
        return
    with BackendProcess() as process:
        yield lambda: process


@pytest.fixture
def lite_client_command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The command of the client under test."""
    websocket = request.node.get_closest_marker("lite_websocket") is not None
    return parse_lite_client(settings_of(request.config).lite_client, packages=websocket)


@pytest.fixture
def lite_client(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    lite_client_backend: Callable[[], BackendProcess],
    lite_client_command: tuple[str, ...],
) -> Iterator[LiteClient]:
    """Run the lite client that `--lite-client` names: `run = lite_client("Hello", script=[{"items": ["Hi"]}])`."""
    session = lite_client_backend().session(f"lite:{request.node.nodeid}", {"turns": []})
    wait = settings_of(request.config).wait or WAIT
    client = LiteClient(lite_client_command, request.config.invocation_params.dir, tmp_path, session, wait)
    trace_frames_of(request.node, lambda: ledger_frames([asked for run in client.runs for asked in run.requests]))
    yield client
    session.close()
