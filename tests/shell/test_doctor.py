"""`codex-replay doctor` finds what is broken, names it, and tells how to mend it: each check on an environment in which it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.shell import doctor
from codex_replay.shell.files import version_data

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "python",
    "packages",
    "files",
    "bundle",
    "suites",
    "fake-codex",
    "PATH",
    "plugin",
    "node",
    "npm",
    "cache",
    "codex",
    "chromium",
    "namespaces",
]


def run(*argv: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(cwd), **environment}
    program = [str(BIN / "codex-replay"), "doctor", *argv]
    return subprocess.run(
        program, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180, check=False
    )


def checks(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, str | None]]:
    said = json.loads(done.stdout)
    assert said["doctor"] == 1
    assert said["well"] is (done.returncode == 0)
    return {check["name"]: check for check in said["checks"]}


def test_here_all_that_the_fakes_need_is_there(tmp_path: Path) -> None:
    done = run("--json", cwd=tmp_path)
    found = checks(done)
    assert list(found) == NAMES
    assert done.returncode == 0, done.stdout
    assert {name for name, check in found.items() if check["need"] == "always" and check["status"] != "ok"} == set()
    assert all((check["mend"] is None) is (check["status"] == "ok") for check in found.values())


def test_what_only_the_real_codex_needs_counts_when_it_is_asked_for(tmp_path: Path) -> None:
    env = {"CODEX_REPLAY_CACHE": str(tmp_path / "empty")}
    assert checks(run("--json", cwd=tmp_path, **env))["codex"]["status"] == "absent"
    done = run("--real", "--json", cwd=tmp_path, **env)
    assert done.returncode == 1
    assert checks(done)["codex"] == {
        "name": "codex",
        "need": "real",
        "status": "broken",
        "said": "0.92.0 is not installed.",
        "mend": "codex-replay codex install 0.92.0",
    }


def test_for_people_it_is_a_line_each_and_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:codex_replay\n")
    done = run(cwd=tmp_path)
    assert done.returncode == 1
    assert "BROKEN plugin      pytest does not load the codex-replay plugin.\n" in done.stdout
    assert "fix: remove `-p no:codex_replay`" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of 15 checks failed: plugin."
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("ini", "environment", "mend"),
    [
        ("", {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, "unset PYTEST_DISABLE_PLUGIN_AUTOLOAD"),
        ("[pytest]\naddopts = --no-such-option\n", {}, "fix that"),
        ("[pytest]\naddopts = -p no:codex_replay\n", {}, "remove `-p no:codex_replay`"),
    ],
)
def test_a_plugin_that_is_not_loaded(
    tmp_path: Path, ini: str, environment: dict[str, str], mend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another's plugin in a folder of such a name is not ours, though pytest tells where it lies.
    place = tmp_path / "codex-replay-mine"
    (place / "beside-1.0.dist-info").mkdir(parents=True)
    (place / "beside-1.0.dist-info" / "METADATA").write_text("Name: beside\nVersion: 1.0\n")
    (place / "beside-1.0.dist-info" / "entry_points.txt").write_text("[pytest11]\nbeside = beside\n")
    (place / "beside.py").touch()
    (place / "pytest.ini").write_text(ini)
    monkeypatch.setenv("PYTHONPATH", str(place))
    monkeypatch.chdir(place)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = doctor.plugin()
    assert not found.well
    assert (found.mend or "").startswith(mend)


def test_no_npm_and_no_fake_codex_on_the_path(tmp_path: Path) -> None:
    found = checks(run("--real", "--json", cwd=tmp_path, PATH=str(tmp_path)))
    assert {name for name in ("PATH", "node", "npm", "chromium", "namespaces") if found[name]["status"] == "ok"} == set()
    assert found["npm"]["status"] == "broken"
    assert found["fake-codex"]["status"] == "ok"


def test_a_fake_codex_that_is_not_there_not_executable_or_wrong(tmp_path: Path) -> None:
    path = tmp_path / "fake-codex"
    assert f"there is no {path}" in doctor.fake_codex(path).said
    path.write_text("#!/bin/sh\necho no such interpreter >&2\nexit 3\n")
    path.chmod(0o644)
    assert doctor.fake_codex(path).mend == f"chmod +x {path}"
    path.chmod(0o755)
    assert doctor.fake_codex(path).said.endswith("does not answer initialize: no such interpreter")
    path.write_text("#!/no/such/interpreter\n")
    assert "does not start" in doctor.fake_codex(path).said
    assert doctor.fake_codex(BIN / "fake-codex").well


def test_another_environments_fake_codex_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake-codex").write_text("#!/bin/sh\n")
    (tmp_path / "fake-codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "another environment" in doctor.on_path().said
    monkeypatch.setenv("PATH", str(BIN))
    assert doctor.on_path().well


def test_a_bundle_of_which_a_byte_was_changed_or_a_file_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "schema"
    shutil.copytree(version_data.schema_folder("0.92.0"), folder)
    assert doctor.bundle(folder=str(folder)).well
    with (folder / "ClientNotification.json").open("ab") as file:
        file.write(b" ")
    assert "schema files of 0.92.0 is missing or changed: ClientNotification.json" in doctor.bundle(folder=str(folder)).said
    (folder / "ApplyPatchApprovalParams.json").unlink()
    assert "schema files of 0.92.0 are missing or changed: " in doctor.bundle(folder=str(folder)).said


def test_an_experimental_bundle_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.bundle("0.169.0").well
    (tmp_path / "empty").mkdir()
    real = version_data.schema_folder
    monkeypatch.setattr(
        version_data, "schema_folder", lambda v, experimental=False: str(tmp_path / "empty") if experimental else real(v)
    )
    assert "The primary file of bundle 0.169.0 cannot be read" in doctor.bundle("0.169.0").said


def test_suites_or_cassettes_that_are_not_there(tmp_path: Path) -> None:
    assert doctor.suites_there(ROOT / "suites").well
    assert not doctor.suites_there(tmp_path / "suites").well
    (tmp_path / "suites" / "mine").mkdir(parents=True)
    (tmp_path / "suites" / "mine" / "__init__.py").touch()
    assert not doctor.suites_there(tmp_path / "suites").well  # no cassettes


def distribution(site: Path, *, requires: str = "", record: str = "") -> None:
    info = site / "some_thing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: some-thing\nVersion: 1.0\n{requires}")
    (info / "RECORD").write_text(record)


def test_a_package_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.packages().well
    distribution(
        tmp_path, requires="Requires-Dist: click>=8\nRequires-Dist: no-such-package>=1\nRequires-Dist: nor-this; extra == 'dev'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = doctor.packages("some-thing")
    assert (found.said, found.mend) == ("not installed: no-such-package.", "pip install no-such-package")
    assert not doctor.packages("never-heard-of").well


def test_a_file_of_the_installation_that_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("a")
    digest = "ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs"  # of "a"
    distribution(tmp_path, record=f"a.txt,sha256={digest},1\ngone.txt,sha256={digest},1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor.files("some-thing").said == "gone.txt is missing."
    (tmp_path / "gone.txt").write_text("a")
    assert doctor.files("some-thing").well
    (tmp_path / "a.txt").write_text("b")
    assert doctor.files("some-thing").said == "a.txt has changed."
    assert not doctor.files("never-heard-of").well


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "file" / "cache"))
    found = doctor.cache()
    assert not found.well
    assert "CODEX_REPLAY_CACHE" in (found.mend or "")
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "not" / "yet"))
    assert doctor.cache().well
    assert not (tmp_path / "not").exists()


def test_a_codex_that_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codex_replay.shell.codex.cache import MANIFEST, Manifest, place_of, sha256_of, this_platform

    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path))
    place = place_of("0.92.0")
    place.mkdir(parents=True)
    (place / "codex").write_text("#!/bin/sh\n")
    (place / "codex").chmod(0o755)
    about = {"version": "0.92.0", "package": "p", "integrity": "i", "triple": this_platform()[0], "binary": "codex"}
    size, digest = (place / "codex").stat().st_size, sha256_of(place / "codex")
    (place / MANIFEST).write_bytes(Manifest(**about, files={"codex": (size, digest)}).encode())
    assert doctor.codexes().well
    assert "0.98.0 is not installed (0.92.0 is)" in doctor.codexes("0.98.0").said
    (place / "codex").write_text("#!/bin/SH\n")
    found = doctor.codexes()
    assert (found.well, found.mend) == (False, "codex-replay codex install 0.92.0")
    assert "damaged" in found.said
