"""The suite run on one version and kept: under which key, and that nothing of it is left when it is ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from codex_replay.cli.drift import behaviour as drift_behaviour
from codex_replay.cli.drift.command import command as drift
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.protocol.behaviour.findings import outcome
from codex_replay.report.page.build import drift_html
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.codex import suite_run
from codex_replay.shell.codex.suite_run import CannotRun, Run, folders, kept, key, load, nodes, parts

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60.0

#: A command that starts a grandchild in a session of its own, whose parent is gone, and one that ignores TERM; then it hangs.
BROOD = """
import os, signal, subprocess, sys, time
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
start = f"subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True, stdout=subprocess.DEVNULL)"
middle = f"import subprocess, sys; print({start}.pid)"
orphan = int(subprocess.run([sys.executable, "-c", middle], stdout=subprocess.PIPE).stdout)
stubborn = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
with open(sys.argv[1] + ".draft", "w") as file:
    file.write(f"{os.getpid()} {orphan} {stubborn.pid}")
os.replace(sys.argv[1] + ".draft", sys.argv[1])
time.sleep(600)
"""


def until(true: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + SECONDS
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} within {SECONDS:g} s"
        time.sleep(0.05)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has taken the status of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def pids(path: Path) -> list[int]:
    until(path.exists, "the command says whom it has started")
    found = [int(pid) for pid in path.read_text().split()]
    assert all(alive(pid) for pid in found)
    return found


linux = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who runs")


@linux
@pytest.mark.parametrize("end", ["stdin", "SIGTERM", "SIGINT", "SIGHUP"])
def test_the_guard_leaves_nothing(tmp_path: Path, end: str) -> None:
    """Neither what has a session of its own, nor what its parent has left behind, nor what ignores TERM."""
    argv = [sys.executable, "-m", "codex_replay.shell.process.guard", sys.executable, "-c", BROOD, str(tmp_path / "pids")]
    guard = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    try:
        brood = pids(tmp_path / "pids")
        if end == "stdin":
            assert guard.stdin is not None
            guard.stdin.close()
            guard.stdin = None
        else:
            guard.send_signal(getattr(signal, end))
        guard.communicate(timeout=SECONDS)
    finally:
        if guard.poll() is None:  # to kill it would leave the others
            guard.terminate()
            guard.communicate()
    assert [pid for pid in brood if alive(pid)] == []
    assert guard.returncode == 128 + signal.SIGTERM


@linux
def test_the_guard_ends_what_a_finished_command_has_left(tmp_path: Path) -> None:
    code = BROOD.replace("time.sleep(600)\n", "sys.exit(3)\n") if BROOD.endswith("time.sleep(600)\n") else ""
    assert code
    argv = [sys.executable, "-m", "codex_replay.shell.process.guard", sys.executable, "-c", code, str(tmp_path / "pids")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=ROOT) as guard:
        assert guard.wait(SECONDS) == 3
    brood = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(brood) == 3
    assert [pid for pid in brood if alive(pid)] == []


#: The whole of drift --behaviour, with the brood in the place of pytest and no binary asked for.
WHOLE = """
import sys
import click
from codex_replay.cli.drift import behaviour as drift_behaviour
from codex_replay.shell.codex import suite_run as behaviour
drift_behaviour.ensure = lambda *of: None
behaviour._pytest = lambda run, draft, scratch: [sys.executable, "-c", sys.argv[1], sys.argv[2]]
try:
    sys.exit(drift_behaviour.run("0.92.0", "0.116.0", True))
except click.ClickException as error:
    error.show()
    sys.exit(error.exit_code)
"""


@linux
@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT"])
def test_an_interrupt_leaves_no_process_and_no_half_run(tmp_path: Path, end: str) -> None:
    env = {**os.environ, "CODEX_REPLAY_CACHE": str(tmp_path / "cache")}
    argv = [sys.executable, "-c", WHOLE, BROOD, str(tmp_path / "pids")]
    # What pytest is started by may ignore INT, and that would be inherited; a user's shell does not.
    command = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=env,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # type: ignore[arg-type, return-value]
    )
    try:
        brood = pids(tmp_path / "pids")
        command.send_signal(getattr(signal, end))
        out, err = command.communicate(timeout=SECONDS)
    finally:
        if command.poll() is None:
            command.kill()
            command.communicate()
    assert (command.returncode, out) == (2, b"")
    assert b"The comparison was interrupted" in err
    assert b"Traceback" not in err
    until(lambda: not any(alive(pid) for pid in brood), "all that was started has ended")
    assert [path.name for path in (tmp_path / "cache" / "behaviour").iterdir()] == []


# ------------------------------------------------------------------ the key


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A copy of all that takes part in a run, by name."""
    root = tmp_path_factory.mktemp("parts")
    found = {}
    for name, folder in folders(ROOT / "suites"):
        found[name] = root / name
        shutil.copytree(folder, found[name], ignore=shutil.ignore_patterns("__pycache__"))
    return found


@pytest.fixture
def part(copied: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Return a file of the copy by its name; what it held is put back."""
    monkeypatch.setattr(suite_run, "folders", lambda suites: list(copied.items()))
    before: dict[Path, bytes | None] = {}

    def find(label: str) -> Path:
        name = max((name for name in copied if label.startswith(f"{name}/")), key=len)
        path = copied[name] / label.removeprefix(f"{name}/")
        before.setdefault(path, path.read_bytes() if path.exists() else None)
        return path

    yield find
    for path, data in before.items():
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)


RUN = Run(ROOT / "suites", "0.92.0")

#: One file of each kind that takes part in a run.
KINDS = [
    "suites/app_server/conversation/test_v2.py",
    "suites/app_server/expected.py",
    "suites/app_server/README.md",
    "suites/proxy/developer-instructions.txt",
    "codex_replay/core/redact/redactor.py",
    "codex_replay/core/cassette/cassette.schema.json",
    "codex_replay/protocol/script/script.py",
    "codex_replay/protocol/data/0.92.0/normalise.json",
    "codex_replay/protocol/data/0.92.0/schema/ClientRequest.json",
    "codex_replay/plugin/app_server/kept_runs.py",
    "codex_replay/plugin/app_server/case.py",
    "codex_replay/shell/process/subject.py",
    "codex_replay/shell/codex/home.py",
    "codex_replay/shell/process/guard.py",
    "codex_fakes/backend/server.py",
]


@pytest.mark.parametrize("label", KINDS)
def test_a_changed_file_gives_another_key(part: Callable[[str], Path], label: str) -> None:
    before = key(RUN)
    path = part(label)
    path.write_bytes(path.read_bytes() + b" ")
    assert key(RUN) != before


def test_every_kind_of_file_that_takes_part_is_tried() -> None:
    there = {(label.split("/")[0], Path(label).suffix) for label, _ in parts(ROOT / "suites")}
    tried = {(label.split("/")[0], Path(label).suffix) for label in KINDS}
    # Vendored beside the tables, and read by nobody in a run: hashes, notices, vectors; and what finds the installed suites.
    assert {kind for kind in there - tried if kind[1] not in (".sha256", ".md", ".ndjson", ".ini", "")} == set()


def test_the_parts_are_found_outside_the_checkout(tmp_path: Path) -> None:
    """By the names of the installed packages, and not by the folders of the checkout."""
    code = (
        "import pathlib, sys; from codex_replay.shell.codex import suite_run;"
        "print(*{name.split('/')[0] for name, _ in suite_run.parts(pathlib.Path(sys.argv[1]))})"
    )
    argv = [sys.executable, "-P", "-c", code, str(ROOT / "suites")]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (set(done.stdout.split()), done.stderr) == ({"suites", "codex_replay", "codex_fakes"}, "")


def test_a_new_and_a_renamed_file_give_other_keys(part: Callable[[str], Path]) -> None:
    before = key(RUN)
    part("suites/app_server/test_new.py").write_bytes(b"")
    new = key(RUN)
    part("suites/app_server/test_new.py").unlink()
    part("suites/app_server/test_newer.py").write_bytes(b"")
    renamed = key(RUN)
    part("suites/app_server/test_new.py").write_bytes(b"")
    assert len({before, new, renamed, key(RUN)}) == 4


def test_what_only_compares_does_not_change_the_key(part: Callable[[str], Path]) -> None:
    before = key(RUN)
    path = part("codex_replay/protocol/behaviour/case.py")
    path.write_bytes(path.read_bytes() + b" ")
    assert key(RUN) == before


def test_the_binary_and_what_was_asked_for_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [Run(RUN.suites, "0.93.0"), Run(RUN.suites, "0.92.0", 2), Run(RUN.suites, "0.92.0", chosen="a")]
    others += [Run(RUN.suites, "0.92.0", nodes=("a::b",)), Run(RUN.suites, "0.92.0", wait=1.0)]
    keys = {key(run) for run in (RUN, *others)}
    assert len(keys) == 6

    class Changed:
        sha256 = "0" * 64

    monkeypatch.setattr(suite_run, "read_manifest", lambda place: Changed())
    assert key(RUN) not in keys


# ------------------------------------------------------------------ keeping


def leave(draft: Path, case: str, **said: Any) -> None:
    """Leave a case as the plugin does."""
    place = draft / "cases" / "app_server" / "test_x"
    place.mkdir(parents=True, exist_ok=True)
    with CassetteWriter(place / f"{case}.1.ndjson", Header("0.92.0", "unknown", case, {"rpc": "recorded"})) as writer:
        writer.write(Frame(1, 0.0, "rpc", "client", "msg", b'{"method":"initialized"}\n'))
        writer.write(Frame(2, 0.1, "rpc", "server", "msg", b'{"method":"hello"}\n'))
    value = {"case": f"app_server/test_x/{case}", "node": f"app_server/test_x.py::{case}", "outcome": "passed", "early": False}
    (place / f"{case}.json").write_text(json.dumps({**value, "sentence": "", "servers": [0.2], **said}))


def test_a_run_is_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path))
    made: list[list[str]] = []

    def guarded(argv: list[str], output: Path, tick: Callable[[], None]) -> tuple[int, bytes]:
        made.append(argv)
        leave(output.parent, "a")
        (output.parent / "collected.json").write_text('{"cases": 1}')
        tick()
        return 0, b""

    steps: list[tuple[int, int | None]] = []
    monkeypatch.setattr(suite_run, "_guarded", guarded)
    run = Run(ROOT / "suites", "0.92.0", chosen="a and b")
    place = kept(run, lambda done, total: steps.append((done, total)))
    assert kept(run) == place
    assert len(made) == 1
    assert steps == [(1, 1)]
    assert made[0][-2:] == ["-k", "a and b"]
    (case,) = load(place, "0.92.0").values()
    assert (case.case, case.outcome, [said.label for said in case.servers[0].said]) == (
        "app_server/test_x/a",
        "passed",
        ["hello"],
    )
    assert str(ROOT / "suites" / "app_server") in made[0]
    assert nodes(place, ["app_server/test_x/a", "app_server/test_x/unknown"]) == ("app_server/test_x.py::a",)
    kept(Run(ROOT / "suites", "0.92.0", nodes=("app_server/test_x.py::a",)))
    assert str(ROOT / "suites" / "app_server" / "test_x.py::a") in made[1]


def test_what_cannot_be_read_is_lost_and_not_compared(tmp_path: Path) -> None:
    leave(tmp_path, "a")
    leave(tmp_path, "b", lost="The http seam could not be kept: full.")
    cassette = tmp_path / "cases" / "app_server" / "test_x" / "a.1.ndjson"
    cassette.write_bytes(b"no cassette\n" + cassette.read_bytes())
    found = load(tmp_path, "0.92.0")
    assert {each.outcome for each in found.values()} == {"lost"}
    told = outcome(found, found, found, ("0.92.0", "0.93.0"))
    assert told["totals"]["not_compared"] == 2
    assert told["not_compared"][1]["why"] == "lost on 0.92.0: The http seam could not be kept: full."


@pytest.mark.parametrize(
    ("status", "leaves", "sentence"),
    [
        (4, True, "The suite could not be run on Codex 0.92.0: pytest ended with status 4. Last output: out of order"),
        (5, False, "The suite could not be run on Codex 0.92.0: no case matches. Last output: out of order"),
        (0, False, "The suite could not be run on Codex 0.92.0: pytest ended with status 0. Last output: out of order"),
    ],
)
def test_a_run_that_went_wrong_is_a_sentence_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, leaves: bool, sentence: str
) -> None:
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path))

    def guarded(argv: list[str], output: Path, tick: Callable[[], None]) -> tuple[int, bytes]:
        if leaves:
            leave(output.parent, "a")
        return status, b"out of\norder\n"

    monkeypatch.setattr(suite_run, "_guarded", guarded)
    with pytest.raises(CannotRun) as caught:
        kept(Run(ROOT / "suites", "0.92.0"))
    assert str(caught.value) == sentence
    if status == 5:
        with pytest.raises(CannotRun, match=r"^No case of the suite matches -k 'nonesuch'\. Use words of case names"):
            kept(Run(ROOT / "suites", "0.92.0", chosen="nonesuch"))
    assert list((tmp_path / "behaviour").iterdir()) == []


# ------------------------------------------------------------------ the command


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_where_there_is_no_terminal_a_line_tells_the_counts_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with drift_behaviour._Display(clock) as display:
        display.stage("Running")
        for done, now in ((0, 1.0), (3, 29.0), (5, 30.0), (6, 31.0), (9, 61.0)):
            clock.now = now
            display.show(done, None if now == 30.0 else 20)
        display.stage("Reading", 2)
        display.step()
        clock.now = 91.0
        display.step()
    said = ["Running ...", "Running: 5 cases done", "Running: 9 of 20 cases done", "Reading ...", "Reading: 2 of 2 cases done"]
    assert capsys.readouterr().err.splitlines() == said


def test_an_expression_narrows_both_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Run] = []

    def kept(run: Run, step: object) -> Path:
        asked.append(run)
        return tmp_path

    monkeypatch.setattr(drift_behaviour, "ensure", lambda *of: None)
    monkeypatch.setattr(drift_behaviour, "kept", kept)
    done = CliRunner().invoke(drift, ["--behaviour", "0.92.0", "0.116.0", "-k", "test_turns and not v1"])
    assert [(run.version, run.number, run.chosen) for run in asked] == [
        ("0.92.0", 1, "test_turns and not v1"),
        ("0.92.0", 2, "test_turns and not v1"),
        ("0.116.0", 1, "test_turns and not v1"),
    ]
    assert "Running the cases of -k 'test_turns and not v1' on 0.92.0 ..." in done.stderr
    assert "Only the cases of -k 'test_turns and not v1' were run. 0 of 0 cases compared" in done.stdout
    refused = CliRunner().invoke(drift, ["0.92.0", "0.92.0", "-k", "x"])
    assert (refused.exit_code, "only --behaviour runs cases" in refused.stderr) == (2, True)


def found(*, changed: bool) -> dict[str, Any]:
    from tests.protocol.behaviour.test_behaviour import compared, talk, unheard

    after = talk()
    if changed:
        unheard(after)
    return compared(after)


@pytest.mark.parametrize(("changed", "status"), [(False, 0), (True, 1)])
def test_the_status_says_whether_anything_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changed: bool, status: int
) -> None:
    value = found(changed=changed)
    monkeypatch.setattr(drift_behaviour, "ensure", lambda *of: None)
    monkeypatch.setattr(drift_behaviour, "_compare", lambda *of: value)
    files = {"markdown": str(tmp_path / "a.md"), "html": str(tmp_path / "a.html")}
    assert drift_behaviour.run("0.92.0", "0.116.0", True, **files) == status
    assert json.loads(capsys.readouterr().out) == value
    assert (tmp_path / "a.md").read_text().startswith("# Changes in behaviour from Codex 0.92.0 to 0.116.0\n")
    assert (tmp_path / "a.html").read_text("ascii") == drift_html(value)
    assert drift_behaviour.run("0.92.0", "0.116.0", False) == status
    shown = capsys.readouterr().out
    assert "1 of 1 cases compared" in shown
    assert ("dynamic tool response was invalid" in shown) is changed
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("versions", "options", "sentence"),
    [
        (("0.92.0", "0.116.0"), {"cassettes": "."}, "--cassettes is only for the comparison of schemas"),
        (("bundle.json", "0.116.0"), {}, "needs two versions with installable binaries, and bundle.json is not a version"),
        (("0.92.0", "0.116.0"), {"chosen": "a and"}, "-k 'a and' is not an expression: expected"),
        (("0.92.0", "0.116.0"), {"chosen": "("}, "-k '(' is not an expression: expected"),
        (
            ("0.116.0", "0.140.0"),
            {},
            "There is no normalise table for Codex 0.116.0 (`codex-replay codex add 0.116.0` makes it): two runs of Codex",
        ),
        (("0.92.0", "../some/bundle"), {}, "needs two versions with installable binaries, and ../some/bundle is not a version"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(versions: tuple[str, str], options: dict[str, str], sentence: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        drift_behaviour.run(*versions, True, **options)
    assert caught.value.exit_code == 2
    assert sentence in caught.value.message


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(drift_behaviour, "ensure", lambda *of: None)
    monkeypatch.setattr(drift_behaviour, "_compare", lambda *of: found(changed=True))
    (tmp_path / "file").write_text("")
    with pytest.raises(click.ClickException, match=r"cannot be written"):
        drift_behaviour.run("0.92.0", "0.116.0", True, **{form: str(tmp_path / "file" / "a")})


@pytest.mark.parametrize("pair", [("0.92.0", "0.116.0"), ("0.116.0", "0.92.0")])
def test_one_table_normalises_every_run_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pair: tuple[str, str]
) -> None:
    used = []
    monkeypatch.setattr(drift_behaviour, "ensure", lambda *of: None)
    monkeypatch.setattr(drift_behaviour, "kept", lambda *of: Path())
    monkeypatch.setattr(drift_behaviour, "nodes", lambda *of: ("a",))
    monkeypatch.setattr(drift_behaviour, "load", lambda folder, version, step=None: used.append(version) or {})
    monkeypatch.setattr(drift_behaviour, "outcome", lambda *of, **more: found(changed=False))
    drift_behaviour.run(*pair, True)
    assert used == ["0.92.0"] * 4
    told = f"codex-replay: The runs are of Codex {pair[0]} and Codex {pair[1]}; both are normalised with the table of 0.92.0.\n"
    assert told in capsys.readouterr().err
