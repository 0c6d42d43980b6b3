"""The wheel beside the most used pytest plugins, in a project whose packages have the names of our source roots."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wheel.environment import FOREIGN_TEST, GUESTS, INITIALIZE, Installed, good, install_beside_guests

STRICT = ["-p", "no:cacheprovider", "--strict-markers", "--strict-config"]
PACKAGES = ("harness", "fake_server", "suites", "reports")


@pytest.fixture(scope="module")
def crowded(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the wheel and all the other plugins."""
    return install_beside_guests(wheel, tmp_path_factory.mktemp("crowded"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an empty test and packages of its own that have the names of ours."""
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"NAME = {name!r}\n")
    (tmp_path / "test_empty.py").write_text("def test_empty():\n    pass\n")
    return tmp_path


def test_all_the_other_plugins_are_there(crowded: Installed, project: Path) -> None:
    wanted = [line.partition("==")[0] for line in GUESTS.read_text().splitlines() if not line.startswith("#")]
    listed = crowded("pytest", "-VV", cwd=project).stdout.lower().replace("_", "-")
    assert [name for name in wanted if f"{name}-" not in listed] == []
    assert len(wanted) >= 20


@pytest.mark.parametrize("more", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_an_empty_test_passes_beside_them(crowded: Installed, project: Path, more: list[str]) -> None:
    assert "1 passed" in good(crowded("pytest", *STRICT, *more, "test_empty.py", cwd=project))


def test_profile_is_the_other_plugins(crowded: Installed, project: Path) -> None:
    good(crowded("pytest", *STRICT, "--profile", "test_empty.py", cwd=project))


@pytest.mark.parametrize("more", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_the_fixtures_work_beside_them(crowded: Installed, project: Path, more: list[str]) -> None:
    names = f"import {', '.join(PACKAGES)}\n\ndef test_own():\n    assert harness.NAME == 'harness'\n"
    (project / "test_mine.py").write_text(FOREIGN_TEST % INITIALIZE + names)
    assert "3 passed" in good(crowded("pytest", *STRICT, *more, "test_mine.py", cwd=project))


def test_the_installed_suites_run_beside_them(crowded: Installed, project: Path) -> None:
    assert "VERIFIED" in good(crowded("codex-replay", "run", "schema", cwd=project))


def test_a_case_of_the_projects_own_is_told_which_plugin_to_turn_off(crowded: Installed, project: Path) -> None:
    (project / "test_case.py").write_text("def test_it(app_server):\n    app_server(script=[]).initialize()\n")
    done = crowded("pytest", "-p", "codex_replay.suites", "test_case.py", "--record", "none", cwd=project)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "`-p no:profiling`" in done.stderr
    assert "Traceback" not in done.stderr
    done = crowded("pytest", "-p", "codex_replay.suites", "-p", "no:profiling", "--fixtures", "test_case.py", cwd=project)
    assert re.search("^app_server", good(done), re.M)


def test_nothing_generic_of_ours_is_installed(crowded: Installed, installed_names: set[str]) -> None:
    assert installed_names == {"codex_replay", "codex_fakes"}


@pytest.fixture
def installed_names(crowded: Installed) -> set[str]:
    """The top-level names that the wheel's list of files has in site-packages."""
    (record,) = crowded.package.glob("codex_replay-*.dist-info/RECORD")
    first = {line.partition("/")[0] for line in record.read_text().splitlines()}
    return {name for name in first if name != ".." and not name.endswith(".dist-info")}
