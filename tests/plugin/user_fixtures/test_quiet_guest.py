"""A run that uses none of the fixtures: the plugin that is installed into it changes nothing and imports next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Writes what a run is like, and in what it differs from a run without the plugin.
CONFTEST = """
import json, os, signal, sys

def pytest_sessionfinish(session):
    config = session.config
    told = {
        "modules": sorted(sys.modules),
        "handlers": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "options": sorted(vars(config.option)),
        "markers": config.getini("markers"),
        "plugins": sorted(name for name, one in config.pluginmanager.list_name_plugin() if one and not name.isdigit()),
        "warnings": [str(one) for one in config.getini("filterwarnings")],
        "environment": {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
    }
    with open(os.environ["TOLD"] + getattr(config, "workerinput", {}).get("workerid", ""), "w") as file:
        json.dump(told, file)
"""
STRICT = ["-W", "error", "--strict-markers", "--strict-config", "-p", "no:cacheprovider"]
#: pytest-asyncio warns of its own accord where no configuration answers its question.
QUIET = ["-p", "no:asyncio", "-p", "no:hypothesispytest", "-p", "no:syrupy"]
BOTH = """
import json, subprocess, urllib.request

def test_both(fake_codex, codex_backend):
    fake_codex.script(["Hello."])
    line = '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"me","version":"1"}}}\\\\n'
    subprocess.run(fake_codex.command, input=line, capture_output=True, text=True, timeout=60)
    assert fake_codex.methods == ["initialize"]
    with urllib.request.urlopen(codex_backend.url + "/v1/models", timeout=60) as answer:
        assert answer.status == 200
    assert len(codex_backend.requests) == 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one empty test, which no run may write into."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_empty.py").write_text("def test_empty():\n    pass\n")
    return folder


def run(folder: Path, *options: str) -> str:
    """Run pytest as its users do, in a folder that cannot be written; return what it printed."""
    command = [str(Path(sys.executable).with_name("pytest")), *STRICT, *QUIET, *options]
    before = sorted(folder.iterdir())
    folder.chmod(0o555)
    env = {**os.environ, "TOLD": str(folder.parent / "told"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(folder.iterdir()) == before  # root may write anywhere
    return done.stdout


def told(folder: Path, worker: str = "") -> dict[str, object]:
    return json.loads((folder.parent / f"told{worker}").read_text())  # type: ignore[no-any-return]


def ours(module: str) -> bool:
    return module.split(".")[0] in ("codex_replay", "codex_fakes")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_run_is_the_same_with_it_as_without_it(project: Path, workers: tuple[str, ...]) -> None:
    found = []
    for options in ((), ("-p", "no:codex_replay")):
        run(project, *workers, *options)
        found.append(told(project, "gw0" if workers else ""))
    with_it, without = found
    assert {name for name in with_it if with_it[name] != without[name]} == {"modules", "plugins"}
    assert set(with_it["plugins"]) - set(without["plugins"]) == {"codex_replay"}  # type: ignore[call-overload]


def test_it_imports_a_handful_of_modules_and_none_of_others(project: Path) -> None:
    run(project, "-p", "no:codex_replay")
    before = told(project)["modules"]
    run(project)
    more = sorted(set(told(project)["modules"]) - set(before))  # type: ignore[call-overload]
    assert [module for module in more if not ours(module)] == []
    assert len(more) <= 15, more


def test_the_suites_plugin_is_seen_by_this_test(project: Path) -> None:
    """The broken subject of the two tests above: the plugin that no run must load by itself."""
    run(project, "-p", "no:codex_replay")
    without = told(project)
    run(project, "-p", "codex_replay.suites")
    with_it = told(project)
    assert {"handlers", "options", "markers"} <= {name for name in with_it if with_it[name] != without[name]}
    assert len(set(with_it["modules"]) - set(without["modules"])) > 30  # type: ignore[call-overload]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_fixtures_work_in_a_strict_run_and_write_no_report(project: Path, workers: tuple[str, ...]) -> None:
    (project / "test_both.py").write_text(BOTH.replace("\\\\n", "\\n"))
    out = run(project, *workers)
    assert "2 passed" in out
    assert "VERIFIED" not in out


def test_no_verdict_and_no_option_without_the_suites_plugin(project: Path) -> None:
    out = run(project, "--help")
    assert "codex" not in out
