"""The `editor_client` fixture: start an editor, which then starts the server that the case has chosen.

`--editor-client` names the editor: `reference`, or the command line of a program that follows docs/editor-client.md. In the
command line, `{codex}` is replaced by the path of the codex that the editor must start. The `codex` of the editor is a
small program in the folder of the case. The small program replaces itself with the server, in the environment of the case,
without the editor's environment variables.

`editor_client(script=[...])` starts the app-server that `--app-server` names (the scripted fake or the real Codex), behind
a tap that records the messages. `editor_client(server=[...])` starts the byte server, which sends the bytes that the case
lists.

Each check has the mark `@pytest.mark.spec(id, statements...)`: a stable name, and the statements of the specification that it
asserts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.plugin.base.launcher import write_launcher
from codex_replay.plugin.base.options import settings_of
from codex_replay.plugin.base.places import shared_file
from codex_replay.plugin.base.subjects import SubjectOption, fill, parse_app_server, usage_errors
from codex_replay.plugin.editor_client.editor import Editor, Turn
from codex_replay.plugin.reporting.alone import is_alone
from codex_replay.plugin.reporting.trace import trace_frames_of
from codex_replay.plugin.reporting.trace_frames import rpc_frames, wire_lines
from codex_replay.protocol.data_tables import has
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.codex.shell_tools import for_version, shell_tool
from codex_replay.shell.process.patience import Patience
from codex_replay.shell.process.programs import program
from codex_replay.shell.rpc.client import SubjectFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from codex_replay.plugin.base.subjects import Subject
    from codex_replay.report.data import Frame
    from codex_replay.shell.http.backend_process import BackendProcess, BackendSession

__all__ = ["Editor", "EditorClient", "SubjectFailure", "Turn"]

#: The default limit of a wait for one report, in seconds (`--wait`).
WAIT, WAIT_LIVE = 10.0, 30.0
OPTION = SubjectOption(
    "--editor-client",
    "reference, or a command line with {codex} in it",
    ("reference",),
    must_hold=("{codex}", "which becomes the path of the codex to start; see docs/editor-client.md"),
)
#: Bytes in a piece where lines are split.
SPLIT = "7"
#: A Codex that asks before commands and changes, and may do anything once it is allowed to. If the editor opens its threads
#: with workspace-write, the Codex still asks before a change outside the project, also in a project below /tmp.
ASKS: Mapping[str, Any] = {
    "approval_policy": "on-request",
    "sandbox_mode": "read-only",
    "sandbox_workspace_write": {"exclude_slash_tmp": True, "exclude_tmpdir_env_var": True},
}


class EditorClient:
    """The value of the `editor_client` fixture; a call starts the editor."""

    def __init__(
        self, command: str, subject: Subject, folder: Path, wait: float, backend: Callable[[], BackendProcess], name: str
    ) -> None:
        self.command = command
        self.subject = subject
        self.folder = folder
        self.editors: list[Editor] = []
        self._wait = wait
        self._backend = backend
        self._name = name

    def __call__(
        self,
        script: object = None,
        *,
        server: Sequence[Any] | None = None,
        codex: str | None = None,
        config: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        fault: str | None = None,
    ) -> Editor:
        """Start the editor under test.

        `script` has the replies of the model (docs/scripts.md); the app-server under test uses them. `server` is a list of
        steps for the byte server, or one such list for each start of the server. `codex` is the path of another codex for
        the editor; it cannot be combined with `script` or `server`. `config` is added to the app-server's config.toml
        (default: `ASKS`), and `env` to the environment of the app-server. `fault` names an error that fake-codex makes on
        purpose (docs/fake-codex.md). With `fault`, fake-codex always serves the script, even if `--app-server` names a real
        server, because a real server cannot make an error on request. fake-codex then imitates the version of that server
        (0.92.0 if fake-codex cannot imitate that version).
        """
        __tracebackhide__ = True
        root = self.folder / f"editor{len(self.editors) + 1}"
        project, home = root / "my project", root / "editor home"
        for folder in (project, home, root / "gates"):
            folder.mkdir(parents=True)
        upstream = None
        if codex is None and server is not None:
            codex = self._byte_server(root, server)
        elif codex is None:
            codex, upstream = self._app_server(root, script, config or {}, env or {}, fault)
        kept = {name: value for name in ("PATH", "SYSTEMROOT", "TMPDIR") if (value := os.environ.get(name))}
        given = {**kept, "HOME": str(home), "LANG": "C.UTF-8"}
        argv = editor_argv(self.command, codex)
        ledger = root / "ledger.ndjson"
        version = self.subject.version
        editor = Editor(argv, env=given, project=project, ledger_path=ledger, wait=self._wait, version=version, upstream=upstream)
        self.editors.append(editor)
        return editor

    def _byte_server(self, root: Path, steps: Sequence[Any]) -> str:
        runs = [list(run) for run in steps] if steps and isinstance(steps[0], list) else [list(steps)]
        (root / "steps.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
        for step in (step for run in runs for step in run):
            if "gate" in step:
                os.mkfifo(root / "gates" / step["gate"])
        return write_launcher(root / "codex", [*program("codex_fakes.stdio.byte_server"), str(root)], {})

    def _app_server(
        self, root: Path, script: object, config: Mapping[str, Any], env: Mapping[str, str], fault: str | None
    ) -> tuple[str, BackendSession | None]:
        from codex_replay.shell.codex.home import HermeticHome

        subject = self.subject
        if fault is not None:
            subject = parse_app_server(f"fake@{subject.version if has('turn', subject.version) else DEFAULT}")
        script = for_version(script if script is not None else [], subject.version)
        argv = subject.argv[:-1] if subject.argv[-1] == "app-server" else subject.argv
        upstream, added, url = None, dict(env), "http://127.0.0.1:9"
        if fault is not None:
            added["FAKE_CODEX_FAULT"] = fault
        if subject.live:
            upstream = self._backend().session(f"{self._name}.{len(self.editors) + 1}", script)
            url = upstream.url
        else:
            (root / "script.json").write_text(json.dumps(script), encoding="utf-8")
            added["FAKE_CODEX_SCRIPT"] = str(root / "script.json")
        patching = shell_tool(subject.version).get("model")  # the model must have the tool apply_patch
        model = {} if patching is None else {"model": patching}
        environ = {**HermeticHome(root, url, version=subject.version, extra_config={**ASKS, **model, **config}).env, **added}
        # The tap hands on whole lines, so a fault that splits them must be the tap's own.
        piece = [SPLIT] if fault is not None and fault.startswith("split-bytes") else []
        tap = [*program("codex_replay.shell.rpc.wire_tap"), str(root / "ledger.ndjson"), *piece, "--"]
        return write_launcher(root / "codex", [*tap, *argv], environ), upstream


def editor_argv(command: str, codex: str) -> list[str]:
    """Return the command line of an editor; raises `pytest.UsageError` if `command` is invalid."""
    with usage_errors():
        choice = OPTION.parse(command)
    if choice.kind == "name":  # `python -m codex_replay.reference.editor_client` is the same program, but starts later
        return [*program("codex_replay.reference.editor_client.__main__"), codex]
    # The editor runs in a folder of its own, so what is relative to this one must be made absolute.
    rest = [os.path.abspath(word) if os.path.exists(word) else word for word in choice.argv[1:]]
    return [choice.argv[0], *(fill(word, {"{codex}": codex}) for word in rest)]


def editor_frames(client: EditorClient) -> Iterator[Frame]:
    """Return as frames the messages between the editors of a case and their servers."""
    starts = 0
    for editor in client.editors:
        ledger = editor.ledger()
        yield from rpc_frames(wire_lines(ledger, starts))
        starts += sum("run" in entry for entry in ledger)


def pytest_configure(config: pytest.Config) -> None:
    """Check the option `--editor-client` before pytest collects cases."""
    editor_argv(settings_of(config).editor_client, "codex")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the editor's messages to the user and to its server to a failure report."""
    report = yield
    client = getattr(item, "funcargs", {}).get("editor_client")
    if report.failed and report.when == "call" and isinstance(client, EditorClient):
        for number, editor in enumerate(client.editors, 1):
            report.sections.append((f"Editor {number}", editor.traffic(60)))
            if message := editor.last_stderr():
                report.sections.append((f"Editor {number}: stderr at its exit, after the failure", message))
    return report


@pytest.fixture
def editor_client_command(request: pytest.FixtureRequest) -> str:
    """Return the command of the editor under test, as the user gave it."""
    return str(settings_of(request.config).editor_client)


@pytest.fixture(scope="session")
def editor_patience(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Patience:
    """The time limit of one report; the limit becomes shorter if the editor hangs in several cases."""
    shared = shared_file(pytestconfig, tmp_path_factory, "editor-waits")
    return Patience(settings_of(pytestconfig).wait, alone=is_alone(), shared=shared)


@pytest.fixture
def editor_client(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    lite_client_backend: Callable[[], BackendProcess],
    editor_client_command: str,
    editor_patience: Patience,
) -> Iterator[EditorClient]:
    """Start the editor that `--editor-client` names: `editor = editor_client(script=["Hi"]); editor.turn("Hello").text`."""
    settings = settings_of(request.config)
    with usage_errors():
        subject = parse_app_server(settings.app_server)
    wait = editor_patience.limit(WAIT_LIVE if subject.live else WAIT)
    client = EditorClient(editor_client_command, subject, tmp_path, wait, lite_client_backend, f"editor:{request.node.nodeid}")
    trace_frames_of(request.node, lambda: editor_frames(client))
    yield client
    editor_patience.count(any(editor.timed_out for editor in client.editors))
    for editor in client.editors:
        editor.stop()
        if editor.upstream is not None:
            editor.upstream.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many statements of the editor's documentation were compared with a server, and which of them are wrong."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    found = {reported["id"]: reported for report in reports for key, reported in report.user_properties if key == "statement"}
    if not found:
        return
    terminalreporter.section("where the document and the server differ")
    for name, reported in found.items():
        if not reported["holds"]:
            terminalreporter.write_line(f"{name}: {reported['where']}: {reported['says']}")
            terminalreporter.write_line(f"    the server: {reported['does'] or 'does not'}")
    agree = sorted(name for name, reported in found.items() if reported["holds"])
    terminalreporter.write_line(
        f"The documentation and the server agree on {len(agree)} of {len(found)} statements: {', '.join(agree)}."
    )
