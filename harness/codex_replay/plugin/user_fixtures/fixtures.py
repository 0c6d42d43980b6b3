"""The pytest plugin with the fixtures `fake_codex`, `codex_backend` and `codex_snapshot`.

Every pytest run loads this plugin if codex-replay is installed.

The plugin adds no options and no hooks to pytest. To keep other runs fast, each fixture imports the modules that it needs
when a test first uses the fixture.

Example:

    def test_my_client(fake_codex: FakeCodex) -> None:
        fake_codex.script(["Hello."])
        assert my_client(fake_codex.command).ask("Hi") == "Hello."
        assert fake_codex.methods == ["initialize", "initialized", "thread/start", "turn/start"]
        assert len(fake_codex.model_calls) == 1
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codex_replay.plugin.user_fixtures.codex_backend import CodexBackend
    from codex_replay.plugin.user_fixtures.fake_codex import FakeCodex
    from codex_replay.report.data import Frame
    from codex_replay.shell.http.backend_process import BackendProcess


@pytest.fixture
def fake_codex(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCodex]:
    """A replacement for `codex`: call `fake_codex.script(["Hello."])`, then give `fake_codex.command` to a client."""
    from codex_replay.plugin.base.subjects import BadSubject, parse_app_server
    from codex_replay.plugin.reporting.trace import trace_frames_of
    from codex_replay.plugin.reporting.trace_frames import request_frame, rpc_frames, wire_lines
    from codex_replay.plugin.user_fixtures.fake_codex import FakeCodex, unknown_tools

    try:
        program = parse_app_server("fake").argv[0]
    except BadSubject as error:
        raise pytest.UsageError(str(error)) from None
    fake = FakeCodex(tmp_path_factory.mktemp("fake_codex"), program)

    def frames() -> Iterator[Frame]:
        yield from rpc_frames(wire_lines(fake.wire(), 0))
        for conn, call in enumerate(fake.model_calls, 1):
            yield request_frame(None, conn, "POST", "/responses", (), call.body)

    trace_frames_of(request.node, frames)
    failed = request.session.testsfailed
    yield fake
    failed_itself = request.session.testsfailed != failed
    refuse = ' (to refuse it, use cassette(path, match="exact"))'

    def notes() -> list[str]:
        return [*(note + refuse for note in fake.notes), *unknown_tools(fake.model_calls, fake.conversation.codex)]

    _judge(request.node, failed_itself, "fake_codex", fake.headline, fake.complaints, notes)


@pytest.fixture
def codex_backend(request: pytest.FixtureRequest, _codex_backend_process: BackendProcess) -> Iterator[CodexBackend]:
    """A fake Responses backend: call `codex_backend.script(["Hello."])`, then give `codex_backend.url` to a client."""
    from codex_replay.plugin.reporting.trace import trace_frames_of
    from codex_replay.plugin.reporting.trace_frames import ledger_frames
    from codex_replay.plugin.user_fixtures.codex_backend import CodexBackend, readable_name

    session = _codex_backend_process.session(readable_name(request.node.name))
    backend = CodexBackend(session)
    if "fake_codex" not in request.fixturenames:  # a test has one trace
        trace_frames_of(request.node, lambda: ledger_frames(backend.requests))
    failed = request.session.testsfailed
    yield backend
    try:
        failed_itself = request.session.testsfailed != failed
        _judge(request.node, failed_itself, "codex_backend", backend.headline, backend.complaints, lambda: backend.notes)
    finally:
        backend.close()


@pytest.fixture(scope="session")
def _codex_backend_process() -> Iterator[BackendProcess]:
    """Start at first use the backend process for all tests of a run; each test has a separate session in this process."""
    from codex_replay.shell.http.backend_process import BackendProcess

    with BackendProcess() as process:
        yield process


@pytest.fixture
def codex_snapshot(request: pytest.FixtureRequest) -> Any:
    """Compare a conversation with its snapshot: `assert fake_codex.conversation == codex_snapshot` (needs syrupy)."""
    try:
        from codex_replay.snapshot import ConversationSnapshot
    except ImportError as error:
        raise pytest.UsageError(str(error)) from None
    return request.getfixturevalue("snapshot").use_extension(ConversationSnapshot)


def _judge(
    item: pytest.Item,
    failed: bool,
    fixture: str,
    headline: str,
    complaints: Sequence[str],
    notes: Callable[[], list[str]] = list,
) -> None:
    """Fail a test that passed so far, but whose client did not follow the script or the recording.

    `complaints` are the differences that fail the test; `notes` returns the differences that do not fail the test. If the
    test has `failed` already, add complaints and notes to its report, in a section named after the fixture, below the
    captured output. A complaint that is already part of the test's error is not repeated.
    """
    __tracebackhide__ = True
    raised = getattr(sys, "last_value", None)  # also of a test that was expected to fail
    failed = failed or raised is not None
    if not failed and not complaints:
        return
    untold = [line for line in complaints if _sentence(line) not in str(raised)] if failed else []
    if section := _first(untold) + _first([f"note: {note}" for note in notes()]):
        item.add_report_section("teardown", fixture, "\n".join(section))
    if not failed:
        report = "\n    ".join(_first(complaints))
        pytest.fail(f"{headline}:\n    {report}", pytrace=False)


def _sentence(complaint: str) -> str:
    """Return a complaint without the request line before it and the number of retries behind it."""
    method, _, rest = complaint.partition(" /")
    return rest.partition(": ")[2].partition(" (")[0] if method.isupper() else complaint


def _first(lines: Sequence[str], most: int = 5) -> list[str]:
    return [*lines[:most], *([f"... and {len(lines) - most} more"] if len(lines) > most else [])]
