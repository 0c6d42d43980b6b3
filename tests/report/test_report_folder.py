"""Two runs at once in one folder: each has its report, and none the other's place. With real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_replay.plugin.base.folder_lock import LOCK, lock_folder, lock_free_folder
from codex_replay.plugin.reporting.session import suites_of
from codex_replay.report.files import remove_all
from tests.support.forked import fork
from tests.support.suite_run import guest

MINIATURE = Path(__file__).parents[1] / "miniatures" / "server.py"
PLUGINS = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
CASE = """
import os, socket

def test_it(app_server):
    if "WAIT_FOR" in os.environ:
        with socket.create_connection(("127.0.0.1", int(os.environ["WAIT_FOR"])), 60) as waiting:
            waiting.recv(1)
    app_server().initialize()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one case, which waits to be told when WAIT_FOR says of whom."""
    (tmp_path / "server.py").write_bytes(MINIATURE.read_bytes())
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(CASE, encoding="utf-8")
    return tmp_path


def start(project: Path, *options: str, wait_for: int | None = None) -> subprocess.Popen[str]:
    options = ("-p", "codex_replay.suites", *PLUGINS, "--basetemp", str(project / f"tmp-{wait_for or 0}"), *options)
    options += ("--app-server", f"{sys.executable} -I {project / 'server.py'}")
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "CODEX_REPLAY_"))}
    env |= {"WAIT_FOR": str(wait_for)} if wait_for else {}
    main = guest(project, options)
    return fork(main, env, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # type: ignore[return-value]


def run(project: Path, *options: str) -> tuple[int, str]:
    process = start(project, *options)
    said, _ = process.communicate(timeout=120)
    return process.returncode, said


@contextmanager
def waiting(project: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run that stands in its first case until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(120)
        process = start(project, *options, wait_for=listener.getsockname()[1])
        try:
            case, _ = listener.accept()
            with case:
                yield process
                if process.poll() is None:
                    case.sendall(b".")
                    process.said = process.communicate(timeout=120)[0]  # type: ignore[attr-defined]
        finally:
            process.kill()
            process.communicate()


def reports(project: Path) -> list[str]:
    """The names of the folders with a whole report in them; nothing else may be in the way."""
    assert list(project.rglob(LOCK)) == []
    found = sorted(path.parent for path in project.rglob("report.json"))
    for folder in found:
        assert [case["outcome"] for case in json.loads((folder / "report.json").read_bytes())["cases"]] == ["passed"]
        assert (folder / "report.html").exists()
    return [str(folder.relative_to(project)) for folder in found]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_the_later_of_two_runs_takes_a_folder_of_its_own_and_says_so(project: Path, workers: tuple[str, ...]) -> None:
    with waiting(project, *workers) as first:
        status, said = run(project, *workers)
    assert (status, first.returncode) == (0, 0)
    usual, other = reports(project)
    assert other == f"{usual}-2"
    (line,) = [line for line in said.splitlines() if line.startswith("Report: ")]
    assert line == f"Report: {project / other / 'report.json'} (another run uses {project / usual})"
    assert f"Report: {project / usual / 'report.json'}\n" in first.said  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_folder_that_was_asked_for_is_refused_before_the_run_while_another_run_holds_it(
    project: Path, workers: tuple[str, ...]
) -> None:
    with waiting(project, *workers, "--report", "mine"):
        status, said = run(project, *workers, "--report", "mine")
        assert status == 4
        said_of = f"--report {project / 'mine'}: another run writes its report there; wait until it ends, or name another folder."
        assert said_of in said
        assert "collected" not in said
    assert reports(project) == ["mine"]
    assert run(project, *workers, "--report", "mine")[0] == 0


def test_a_run_that_was_killed_leaves_nothing_in_the_way(project: Path) -> None:
    with waiting(project) as first:
        first.send_signal(signal.SIGKILL)
        first.wait(timeout=60)
    assert len(list(project.rglob(LOCK))) == 1  # it could not take it away
    status, said = run(project)
    assert status == 0
    assert "another run" not in said
    (folder,) = reports(project)
    assert not folder.endswith("-2")


def test_the_verdict_of_an_older_run_is_not_left_for_that_of_one_that_was_killed(project: Path) -> None:
    assert run(project, "--report", "mine")[0] == 0
    (project / "mine" / "notes.txt").write_text("of the user", encoding="utf-8")
    with waiting(project, "--report", "mine") as second:
        second.send_signal(signal.SIGKILL)
        second.wait(timeout=60)
    assert sorted(path.name for path in (project / "mine").iterdir()) == [LOCK, "notes.txt"]


def test_a_run_without_cases_makes_no_folder(project: Path) -> None:
    (project / "test_it.py").write_text("def test_plain(): pass\n", encoding="utf-8")
    assert run(project, "--report", "mine")[0] == 0
    assert not (project / "mine").exists()
    assert not (project / "reports").exists()


def test_what_is_held_is_free_again_when_it_is_released(tmp_path: Path) -> None:
    first = lock_free_folder(tmp_path / "fake")
    second, third = lock_free_folder(tmp_path / "fake"), lock_free_folder(tmp_path / "fake")
    assert [held.folder.name for held in (first, second, third)] == ["fake", "fake-2", "fake-3"]
    assert lock_folder(tmp_path / "fake") is None
    second.release()
    (third.folder / "report.json").write_text("{}", encoding="utf-8")
    third.release()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fake", "fake-3"]  # what is empty has gone
    assert lock_free_folder(tmp_path / "fake").folder.name == "fake-2"
    assert [path.name for path in third.folder.iterdir()] == ["report.json"]


def test_where_nothing_can_be_put_no_folder_is_held(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="exists"):
        lock_folder(tmp_path / "file")


@pytest.mark.parametrize(
    ("args", "suites"),
    [
        (["suites/proxy"], ["proxy"]),
        (["/usr/lib/codex_replay/packaged/suites/proxy/replies/test_auth.py::test_x[a/b]"], ["proxy"]),
        (["./suites/schema/", "suites/proxy/requests", "suites/proxy"], ["schema", "proxy"]),
        (["suites"], []),
        (["tests", "suites/"], []),
        (["tests/mine", "test_suites.py"], None),
        ([], None),
    ],
)
def test_the_suites_of_a_run_are_those_of_its_arguments(args: list[str], suites: list[str] | None) -> None:
    assert suites_of(args) == suites


def test_the_drafts_of_a_killed_run_are_removed_with_its_report(tmp_path: Path) -> None:
    for name in ("report.json", ".report.json.12.draft", ".stories.ndjson.12.draft", "notes.txt"):
        (tmp_path / name).touch()
    remove_all(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
