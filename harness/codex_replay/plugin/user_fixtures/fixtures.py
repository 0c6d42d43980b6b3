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

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    from codex_replay.plugin.user_fixtures.judge import judge

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

    judge(request.node, failed_itself, "fake_codex", fake.headline, fake.complaints, notes)


@pytest.fixture
def codex_backend(request: pytest.FixtureRequest, _codex_backend_process: BackendProcess) -> Iterator[CodexBackend]:
    """A fake Responses backend: call `codex_backend.script(["Hello."])`, then give `codex_backend.url` to a client."""
    from codex_replay.plugin.reporting.trace import trace_frames_of
    from codex_replay.plugin.reporting.trace_frames import ledger_frames
    from codex_replay.plugin.user_fixtures.codex_backend import CodexBackend, readable_name
    from codex_replay.plugin.user_fixtures.judge import judge

    session = _codex_backend_process.session(readable_name(request.node.name))
    backend = CodexBackend(session)
    if "fake_codex" not in request.fixturenames:  # a test has one trace
        trace_frames_of(request.node, lambda: ledger_frames(backend.requests))
    failed = request.session.testsfailed
    yield backend
    try:
        failed_itself = request.session.testsfailed != failed
        judge(request.node, failed_itself, "codex_backend", backend.headline, backend.complaints, lambda: backend.notes)
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
