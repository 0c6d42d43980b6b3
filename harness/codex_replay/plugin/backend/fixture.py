"""The `backend` fixture: requests to the backend that `--backend` names.

If the user gives the backend as a command, the harness starts it.

With `--backend fake` (the default), the fake backend is started as a program. With `--backend fake:CMD`, CMD is started: a
program with the same control API as the fake backend. With `--backend URL`, the backend already runs: requests go to
URL/responses, with the login of `--backend-auth FILE`.

A case with the marker `both_transports` runs twice, over HTTP and over a WebSocket. For a backend that is given as a URL, the
WebSocket run needs the option `--backend-websocket`.

Requests to a backend on another host may cost money, so the user must allow them with `--backend-cost-ok`. Each check has the
mark `@pytest.mark.spec(id, statements...)`: a stable name, and the statements of the specification that it asserts.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import pytest

from codex_replay.core.text.error_text import error_text
from codex_replay.core.wire.loopback import is_loopback
from codex_replay.plugin.backend.conversation import LOGIN, Backend, credentials
from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.base.subjects import SubjectOption, usage_errors
from codex_replay.plugin.reporting.trace import trace_frames_of
from codex_replay.plugin.reporting.trace_frames import answer_frames, request_frame

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from codex_replay.report.data import Frame
    from codex_replay.shell.http.backend_process import BackendProcess

#: The default limit of one answer, in seconds (`--wait`).
WAIT, WAIT_LIVE = 10.0, 120.0
OPTION = SubjectOption("--backend", "fake, fake:COMMAND, or a URL", ("fake",), fake=True, url=True, command=False)


def read_login(path: Path) -> dict[str, Any]:
    """Return the login in the file auth.json: its API key, or its tokens if it has no key.

    Raises `pytest.UsageError` if the file cannot be read, or has no login.
    """
    try:
        value = json.loads(path.read_bytes())
        if value.get("OPENAI_API_KEY"):
            return {"api_key": value["OPENAI_API_KEY"]}
        tokens = value["tokens"]
        account = tokens.get("account_id") or tokens["id_token"]["chatgpt_account_id"]
        return {"access_token": tokens["access_token"], "account_id": account}
    except OSError as error:
        raise pytest.UsageError(f"--backend-auth {path}: the file cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise pytest.UsageError(
            f"--backend-auth {path}: this is not an auth.json with an OPENAI_API_KEY, or with tokens and an account."
        ) from None


def parse_backend(text: str) -> tuple[str, ...] | str:
    """Return the value of `--backend`: a command (empty for the fake backend), or a URL.

    Raises `pytest.UsageError` for any other value.
    """
    with usage_errors():
        choice = OPTION.parse(text)
    return choice.value if choice.kind == "url" else choice.argv


def pytest_configure(config: pytest.Config) -> None:
    """Check the backend options before pytest collects cases."""
    config.addinivalue_line("markers", "keeps_state: the case needs a backend that stores responses or conversations")
    config.addinivalue_line("markers", "both_transports: the case runs over HTTP and over a WebSocket")
    config.addinivalue_line("markers", "http_only: the case, in a module for both transports, is about HTTP itself")
    config.addinivalue_line("markers", "websocket_only: the case is about the WebSocket itself")
    subject = parse_backend(settings_of(config).backend or "fake")
    if isinstance(subject, str) and not is_loopback(subject) and not config.getoption("backend_cost_ok"):
        raise pytest.UsageError(
            f"--backend {subject}: every check sends one to three small requests to {urlsplit(subject).hostname}, on the "
            "account of --backend-auth, which may cost money. To allow the requests, add --backend-cost-ok."
        )
    if config.getoption("backend_auth"):
        read_login(Path(config.getoption("backend_auth")))


def speaks_websocket(config: pytest.Config) -> bool:
    """Return True if the backend under test accepts WebSocket connections.

    A program with the control API must accept WebSocket connections. For a backend that is given as a URL, the option
    `--backend-websocket` decides.
    """
    subject = parse_backend(settings_of(config).backend or "fake")
    return not isinstance(subject, str) or bool(config.getoption("backend_websocket"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the cases for both transports twice, over HTTP and over a WebSocket.

    The WebSocket run of a case has a different name than the case; the name of the HTTP run does not change.
    """
    if "backend_transport" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker
    transports = ["websocket"] if mark("websocket_only") else ["http"]
    if mark("both_transports") and not mark("http_only"):
        transports.append("websocket")
    if not speaks_websocket(metafunc.config) and "http" in transports:
        transports = ["http"]
    hidden = {"websocket"} if mark("websocket_only") else {"http"}
    given = [pytest.param(each, id=pytest.HIDDEN_PARAM if each in hidden else each) for each in transports]
    metafunc.parametrize("backend_transport", given, scope="function")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line with the name of the backend under test; no line for the default, the fake backend."""
    subject = parse_backend(settings_of(config).backend or "fake")
    if not isinstance(subject, str):
        return None
    transports = (
        "" if config.getoption("backend_websocket") else ", over HTTP alone (--backend-websocket tests its WebSocket, too)"
    )
    return f"codex-replay backend: requests go to the real {subject}, which may cost money{transports}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the requests and answers of a case to its failure report."""
    report = yield
    backend = getattr(item, "funcargs", {}).get("backend")
    if report.failed and report.when == "call" and isinstance(backend, Backend) and backend.answers:
        report.sections.append(("What the backend answered", "\n\n".join(answer.report_on() for answer in backend.answers)))
    return report


def backend_frames(backend: Backend) -> Iterator[Frame]:
    """Return as frames the requests of a case to a backend, and the responses."""
    start = backend.said[0].started if backend.said else 0.0
    for conn, one in enumerate(backend.said, 1):
        yield request_frame(one.started - start, conn, one.method, one.path, one.headers.items(), one.body)
        if one.answer is not None:
            yield from answer_frames(one.ended - start, conn, one.answer.status, one.answer.headers, one.answer.body)


def close_all(backend: Backend) -> None:
    """Close the WebSockets that a case opened."""
    if backend.sockets:
        from codex_replay.plugin.backend.websocket import sockets_closed

        sockets_closed(backend.sockets)


class Programs:
    """Start the backend under test when a case first uses it. If a case needs another command, end the running program first.

    If a backend does not start, or cannot be reached, all later cases fail at once, because a hundred cases must not wait
    for the same error.
    """

    def __init__(self) -> None:
        self._command: tuple[str, ...] | None = None
        self._process: BackendProcess | None = None
        self._broken: dict[tuple[str, ...] | str, str] = {}
        self._reached: set[str] = set()

    def get(self, command: tuple[str, ...]) -> BackendProcess:
        """Return the running program of a command; fail the case if the program does not start."""
        from codex_replay.shell.http.backend_process import BackendError, BackendProcess

        if self._process is None or command != self._command:
            self._tried(command)
            self.close()
            try:
                self._process, self._command = BackendProcess(command=command or None), command
            except (BackendError, OSError) as error:
                self._fail(command, error_text(error))
        return self._process

    def reach(self, url: str, seconds: float) -> None:
        """Fail the case unless a server listens at the URL."""
        if url in self._reached:
            return
        self._tried(url)
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((parts.hostname or "", port), seconds).close()
        except (OSError, ValueError) as error:
            why = f"within {seconds:g} s" if isinstance(error, TimeoutError) else f"({error_text(error)})"
            self._fail(url, f"--backend {url} cannot be reached {why}: check that it runs.")
        self._reached.add(url)

    def _tried(self, subject: tuple[str, ...] | str) -> None:
        if why := self._broken.get(subject):
            pytest.fail(f"Not retried. {why.splitlines()[0]}", pytrace=False)

    def _fail(self, subject: tuple[str, ...] | str, why: str) -> NoReturn:
        self._broken[subject] = why
        pytest.fail(why, pytrace=False)  # the sentence is enough, without lines of the harness

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.close()
            self._process = None


@pytest.fixture(scope="session")
def backend_programs() -> Iterator[Programs]:
    """The interface of a fixture that runs the program under test."""
    programs = Programs()
    yield programs
    programs.close()


@pytest.fixture
def backend_subject(request: pytest.FixtureRequest) -> tuple[str, ...] | str:
    """The command of the backend under test (empty for the fake backend), or its URL."""
    return parse_backend(settings_of(request.config).backend or "fake")


@pytest.fixture
def backend_transport() -> str:
    """The transport for the requests of a case: "http" or "websocket"."""
    return "http"


@pytest.fixture
def backend(
    request: pytest.FixtureRequest,
    backend_programs: Programs,
    backend_subject: tuple[str, ...] | str,
    backend_transport: str,
) -> Iterator[Backend]:
    """Send requests to the backend that `--backend` names: `answer = backend.ask({...})`."""
    settings = settings_of(request.config)
    if isinstance(backend_subject, str):
        if backend_transport == "websocket" and not speaks_websocket(request.config):
            pytest.skip(f"not verified on {backend_subject}: --backend-websocket tests its WebSocket")
        auth = request.config.getoption("backend_auth")
        login = read_login(Path(auth)) if auth else LOGIN
        backend_programs.reach(backend_subject, settings.wait or WAIT)
        limit = settings.wait or WAIT_LIVE
        backend = Backend(backend_subject, backend_subject, None, credentials(login), limit, backend_transport)
        trace_frames_of(request.node, lambda: backend_frames(backend))
        yield backend
        close_all(backend)
        return
    session = backend_programs.get(backend_subject).session(f"backend:{request.node.nodeid}", {"turns": []})
    backend = Backend("fake", session.url, session, credentials(LOGIN), settings.wait or WAIT, backend_transport)
    trace_frames_of(request.node, lambda: backend_frames(backend))
    yield backend
    close_all(backend)
    session.close()
