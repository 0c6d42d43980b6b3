"""The product outside its checkout: the wheel, built from the sdist, in an empty environment, run from empty folders.

`make wheel-test` runs this. It installs requirements.lock with its hashes (from the package index) and then the wheel alone. Each
test that something works has a neighbour in which the installation is broken and that is told.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.wheel.environment import FOREIGN_TEST, INITIALIZE, Installed, good, install, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(sys.executable, wheel, tmp_path_factory.mktemp("installed"))


def test_the_packaged_suites_are_verified_from_an_empty_folder(installed: Installed, tmp_path: Path) -> None:
    out = good(installed("codex-replay", "run", "-n", "2", cwd=tmp_path))
    assert "VERIFIED" in out
    report = json.loads((tmp_path / "reports" / "all-fake" / "report.json").read_text())
    assert report["verdict"] == "verified"
    suites = {path.name for path in (ROOT / "suites").iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert {case["suite"] for case in report["cases"]} == suites
    assert len(report["cases"]) > 1000
    assert not any(case["outcome"] == "failed" for case in report["cases"])
    assert {path.name for path in tmp_path.iterdir()} <= {"reports"}


def test_a_cassette_that_is_not_there_turns_it_red(installed: Installed, tmp_path: Path) -> None:
    archive = installed.package / "codex_replay" / "packaged" / "cassettes.wheel.zip"
    away = archive.with_name("away")
    archive.rename(away)
    with ZipFile(away) as whole, ZipFile(archive, "w") as part:
        for name in whole.namelist():
            if "/test_handshake/" not in name:
                part.writestr(name, whole.read(name))
    try:
        done = installed("codex-replay", "run", "app_server/test_handshake.py", cwd=tmp_path)
    finally:
        away.replace(archive)
    assert done.returncode == 1, done.stdout
    assert "test_handshake" in done.stdout


def test_a_packaged_cassette_is_shown_and_never_recorded_over(installed: Installed, tmp_path: Path) -> None:
    archive = installed.package / "codex_replay" / "packaged" / "cassettes.wheel.zip"
    path = archive / "app_server" / "test_v2" / "text_turn.ndjson"
    assert "turn/completed" in good(installed("codex-replay", "cassette", "show", path, cwd=tmp_path))
    fake = installed.venv / "bin" / "fake-codex"
    words = ["app_server/test_handshake.py", "--app-server", f"{fake} app-server", "--record", "all"]
    done = installed("codex-replay", "run", *words, cwd=tmp_path)
    assert done.returncode != 0
    assert "name a folder with --cassettes" in done.stdout


def test_no_suites_at_all_is_a_sentence(installed: Installed, tmp_path: Path) -> None:
    folder = installed.package / "codex_replay" / "packaged" / "suites"
    away = folder.with_name("away")
    folder.rename(away)
    try:
        done = installed("codex-replay", "run", cwd=tmp_path)
    finally:
        away.rename(folder)
    assert done.returncode == 4
    assert "install codex-replay again" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_project_of_the_users_own_gives_the_settings(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        "[tool.codex-replay]\nreport = 'out'\n[tool.pytest.ini_options]\naddopts = '--no-such'\n"
    )
    good(installed("codex-replay", "run", "schema/test_counts.py", cwd=tmp_path / "below"))
    assert (tmp_path / "out" / "report.json").is_file()
    (tmp_path / "pyproject.toml").write_text("[tool.codex-replay]\nreprot = 'out'\n")
    done = installed("codex-replay", "run", "schema/test_counts.py", cwd=tmp_path)
    assert (done.returncode, "did you mean 'report'" in done.stderr) == (4, True), done.stdout + done.stderr


def test_the_packaged_bundles_are_those_of_the_checkout(installed: Installed, tmp_path: Path) -> None:
    words = ["drift", "0.92.0", "0.169.0", "--json"]
    here = run(Path(sys.executable).with_name("codex-replay"), *words, cwd=tmp_path)
    assert json.loads(installed("codex-replay", *words, cwd=tmp_path).stdout) == json.loads(here.stdout)
    cassette = sorted((ROOT / "harness/codex_replay/protocol/data/0.169.0/cassettes").rglob("*.ndjson"))[0]
    good(installed("codex-replay", "cassette", "lint", cassette, cwd=tmp_path))
    assert "schema files of 0.169.0, all hashes match" in installed("codex-replay", "doctor", cwd=tmp_path).stdout


def test_a_gate_is_made_for_a_client_and_run(installed: Installed, tmp_path: Path) -> None:
    client = f"{installed.venv / 'bin' / 'python'} -m codex_replay.reference.lite_client"
    good(installed("codex-replay", "init", "lite", client, cwd=tmp_path))
    assert "VERIFIED" in good(installed("codex-replay", "run", "-k", "test_headers", cwd=tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    done = installed("codex-replay", "init", "lite", f"{client} --no-such", cwd=other)
    assert (done.returncode, list(other.iterdir())) == (1, []), done.stdout + done.stderr


def test_a_folder_that_is_called_as_a_suite_is_not_taken_for_it(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "schema").mkdir()
    out = good(installed("codex-replay", "run", "schema", "-k", "test_counts", cwd=tmp_path))
    assert "VERIFIED" in out


def test_fake_codex_starts_by_path_by_name_and_by_link(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "codex").symlink_to(installed.venv / "bin" / "fake-codex")
    for argv in (
        [installed.venv / "bin" / "fake-codex"],
        ["fake-codex"],
        ["sh", "-c", "exec fake-codex app-server"],
        [tmp_path / "codex"],
    ):
        argv = argv if argv[0] == "sh" else [*argv, "app-server"]
        done = run(*argv, cwd=tmp_path, env=installed.env, input=INITIALIZE)
        assert json.loads(done.stdout)["id"] == 1, done.stderr


def test_the_fixtures_work_in_a_foreign_project(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(FOREIGN_TEST % INITIALIZE)
    out = good(installed("pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path))
    assert "2 passed" in out


def test_it_adds_no_package_called_suites(installed: Installed, tmp_path: Path) -> None:
    done = installed("python", "-c", "import suites", cwd=tmp_path)
    assert "No module named 'suites'" in done.stderr


def test_every_verb_has_its_help(installed: Installed, tmp_path: Path) -> None:
    table = good(installed("codex-replay", "--help", cwd=tmp_path)).split("Commands:")[1]
    verbs = re.findall(r"^  (\w[\w-]*)  ", table, re.M)
    assert {"run", "record", "replay", "cassette", "codex", "schema", "serve"} <= set(verbs)
    for verb in verbs:
        assert "Usage:" in good(installed("codex-replay", verb, "--help", cwd=tmp_path))


def test_the_doctor_finds_it_well_and_a_changed_file_ill(installed: Installed, tmp_path: Path) -> None:
    good(installed("codex-replay", "doctor", "--json", cwd=tmp_path))
    path = installed.package / "codex_replay" / "protocol" / "data" / "0.92.0" / "turn.json"
    text = path.read_text()
    path.write_text(text + " ")
    try:
        done = installed("codex-replay", "doctor", "--json", cwd=tmp_path)
    finally:
        path.write_text(text)
    assert done.returncode == 1
    assert [check["name"] for check in json.loads(done.stdout)["checks"] if check["status"] == "broken"] == ["files"]
