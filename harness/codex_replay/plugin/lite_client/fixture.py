"""The `lite_client` fixture: run a lite client by its command, and see what it asked of the backend and of the token URL.

`--lite-client` names the subject: `reference`, or a command line that keeps to docs/lite-client.md. Every run gets a folder with
its auth.json and a session of the fake Responses backend with the case's script; `Run` is what came of it. Each check of the
suite bears `@pytest.mark.spec(id, where, line)`: a name that stays, the section of the specification, and the line it holds a
client to; a failure shows them beside the traffic.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from harness.core.brief import shortened
from harness.plugin import unread
from harness.plugin.asked import Request, request_of
from harness.plugin.commands import BadCommand, command_of
from harness.plugin.options import settings_of
from harness.plugin.programs import program
from harness.shell.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from harness.shell.backend_process import BackendProcess, BackendSession

#: How long a client may take, in seconds, unless `--wait` says otherwise.
WAIT = 20.0
#: The status with which the fake answers what no turn of the script is left for: a client that asked once more than was meant.
UNSCRIPTED = 501
#: What is no message to a user but the noise of a program that fell over.
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
    """One run of the client, ended: `status` (negative: the signal it died by), `stdout`, `stderr` and all its `requests`."""

    def __init__(self, folder: Path, status: int, stdout: bytes, stderr: str, requests: list[Request], unused: list[int]) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.requests = requests
        self.auth_bytes = (folder / "auth.json").read_bytes() if (folder / "auth.json").exists() else b""
        self._unused = unused

    @property
    def turns(self) -> list[Request]:
        """The requests to the model."""
        return [request for request in self.requests if urlsplit(request.path).path.endswith("/responses")]

    @property
    def refreshes(self) -> list[Request]:
        """The requests to the token URL."""
        return [request for request in self.requests if urlsplit(request.path).path == "/oauth/token"]

    @property
    def auth(self) -> Any:
        """The content of auth.json after the run."""
        return json.loads(self.auth_bytes)

    def text(self) -> str:
        """Return the final text; raises `SubjectFailure` unless the run succeeded and asked for every turn of the script."""
        __tracebackhide__ = True
        if wrong := [r.sentence for r in self.requests if r.sentence and r.status not in (None, 401)]:
            raise SubjectFailure(f"The client sent what the backend refuses: {wrong[0]}\n{self._brief()}")
        if self.status != 0:
            raise SubjectFailure(f"The client failed (exit status {self.status}), {self._after()}.\n{self._brief()}")
        if self._unused:
            raise SubjectFailure(f"The client never asked for these turns of the script: {self._unused}\n{self._brief()}")
        try:
            text = self.stdout.decode()
        except UnicodeDecodeError:
            raise SubjectFailure(f"The client's stdout is not UTF-8.\n{self._brief()}") from None
        return text.removesuffix("\n").removesuffix("\r")

    def failure(self, *, asked: bool = True) -> str:
        """Return the message on stderr; raises `SubjectFailure` unless the run failed as a program should, for the case's reason.

        A request that breaks a rule is refused before the case's own trouble can come, and where none is sent it cannot come
        either: that the client fails then says nothing of what the case is about. `asked` is False where no request is to come.
        """
        __tracebackhide__ = True
        if wrong := [r.sentence for r in self.requests if r.sentence and r.status not in (None, 401, UNSCRIPTED)]:
            raise SubjectFailure(f"The client sent what the backend refuses: {wrong[0]}\n{self._brief()}")
        if self.status == 0:
            raise SubjectFailure(f"The client ended with status 0, but could not answer.\n{self._brief()}")
        if self.status < 0:
            raise SubjectFailure(f"The client died by signal {-self.status}.\n{self._brief()}")
        if not self.stderr.strip():
            raise SubjectFailure(f"The client failed without a message on stderr.\n{self._brief()}")
        if any(noise in self.stderr for noise in CRASHES):
            raise SubjectFailure(f"The client fell over instead of saying what went wrong.\n{self._brief()}")
        if asked and not self.turns:
            failed = f"The client failed (exit status {self.status})"
            raise SubjectFailure(f"{failed}, and had asked the model nothing.\n{self._brief()}")
        return self.stderr

    def tell(self) -> str:
        """Return the run for people: what was asked and answered, and what the client said."""
        asked = [f"{each.line}\n    {shortened(json.dumps(each.body, ensure_ascii=False), 1500)}" for each in self.requests]
        return "\n".join([*asked, *self._ended(500, shortened(self.stderr, 2000))])

    def _brief(self) -> str:
        """The same in short, since a failure shows the whole below: no bodies, and of a long stderr its two ends."""
        long = len(self.stderr) > 700
        stderr = f"{self.stderr[:200]}\n[...]\n{self.stderr[-500:]}" if long else self.stderr
        return "\n".join([*(each.line for each in self.requests), *self._ended(200, stderr)])

    def _ended(self, most: int, stderr: str) -> list[str]:
        return [f"exit status {self.status}", f"stdout: {shortened(repr(self.stdout), most)}", f"stderr: {stderr}"]

    def _after(self) -> str:
        """What a failure that the case did not mean came after."""
        if not self.requests:
            return "and had asked the backend nothing"
        return (
            f"after {self.requests[-1].line}" if self.requests[-1].status != 200 else "though nothing was wrong with the answers"
        )


class LiteClient:
    """What the `lite_client` fixture is: call it to run the client. Runs of one case share a folder and a session."""

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
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Run the client on a prompt and return what came of it; raises `SubjectFailure` when it does not end in its time.

        `script` is what the model says (docs/scripts.md); None leaves the session as it is. `auth` is the content of auth.json
        (values, or bytes as they stand, b"" for no file); None is the login of before, at first `LOGIN`. `tools` and `schema`
        are the contents of LITE_TOOLS and LITE_OUTPUT_SCHEMA. `base` and `token_url` are whole URLs or paths at the backend.
        `env` adds to the environment.
        """
        __tracebackhide__ = True
        if script is not None:
            self._session.script(script)
        path = self.folder / "auth.json"
        if auth is not None or not self.runs:
            _write(path, LOGIN if auth is None else auth)
        given = {
            "LITE_BASE_URL": self._at(base),
            "LITE_TOKEN_URL": self._at(token_url),
            "LITE_AUTH_FILE": str(path),
            "LITE_TIMEOUT": "10",
        }
        for name, content in (("LITE_TOOLS", tools), ("LITE_OUTPUT_SCHEMA", schema)):
            if content is not None:
                given[name] = str(_write(self.folder / f"{name.lower()}.json", content))
        run = self._run(prompt, {**given, **(env or {})})
        self.runs.append(run)
        return run

    def _at(self, where: str) -> str:
        return where if "://" in where else self._session.url + where

    def _run(self, prompt: str, given: Mapping[str, str]) -> Run:
        __tracebackhide__ = True
        kept = {name: value for name in ("PATH", "SYSTEMROOT", "TMPDIR") if (value := os.environ.get(name))}
        env = {**kept, "HOME": str(self.folder / "home"), "LANG": "C.UTF-8", "NO_PROXY": "*", **given}
        status, stdout, stderr = self.execute([*self.argv, prompt], env, str(self.cwd), self._wait)
        ledger = self._session.ledger()[self._seen :]
        self._seen += len(ledger)
        requests = [request_of(entry, self._session.url) for entry in ledger]
        run = Run(self.folder, -9 if status is None else status, stdout, stderr, requests, self._session.unused_turns())
        if status is None:
            raise SubjectFailure(f"The client did not end within {self._wait:g} s (LITE_TIMEOUT was shorter).\n{run.tell()}")
        return run

    @staticmethod
    def execute(argv: list[str], env: Mapping[str, str], cwd: str, seconds: float) -> tuple[int | None, bytes, str]:
        """Run a command to its end, at most so long: its status (None: it had to be ended), stdout and stderr."""
        __tracebackhide__ = True
        from harness.shell.process import CannotStart, Process

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


def parse_lite_client(text: str) -> tuple[str, ...]:
    """Return the command that `--lite-client` names; raises `pytest.UsageError` with a sentence."""
    if text == "reference":
        return tuple(program("harness.reference.lite_client.__main__"))  # `python -m harness.reference.lite_client`, but sooner
    try:
        return command_of(f"--lite-client {text}", text, "reference, or a whole command line")
    except BadCommand as error:
        raise pytest.UsageError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Check the option before anything is collected."""
    config.addinivalue_line("markers", "spec(id, where, line): the line of the specification that the case holds a subject to")
    parse_lite_client(settings_of(config).lite_client)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beside a failure the line of the specification and, for a lite client, its runs."""
    report = yield
    mark = item.get_closest_marker("spec")
    if mark is not None:
        report.user_properties.append(("check", mark.args[0]))
        if report.failed:
            report.sections.append((f"Spec: {mark.args[0]}", f"{mark.args[1]}: {mark.args[2]}"))
    client = getattr(item, "funcargs", {}).get("lite_client")
    if report.failed and report.when == "call" and isinstance(client, LiteClient) and client.runs:
        unread.tell(report, call)
        report.sections.append(("The client's runs", "\n\n".join(run.tell() for run in client.runs)))
    return report


@pytest.fixture(scope="session")
def lite_client_backend(request: pytest.FixtureRequest) -> Iterator[Callable[[], BackendProcess]]:
    """Start the fake Responses backend at first use, or share the one that the run has already."""
    from harness.plugin.session import SESSION
    from harness.shell.backend_process import BackendProcess

    shared = request.config.stash.get(SESSION, None)
    if shared is not None:
        yield shared.backend
        return
    with BackendProcess() as process:
        yield lambda: process


@pytest.fixture
def lite_client_command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The command of the client under test."""
    return parse_lite_client(settings_of(request.config).lite_client)


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
    yield LiteClient(lite_client_command, request.config.invocation_params.dir, tmp_path, session, wait)
    session.close()
