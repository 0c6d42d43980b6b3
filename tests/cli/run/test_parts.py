"""What `codex-replay run` makes of the configuration of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codex_replay.cli.io.suite_names import BadUse
from codex_replay.cli.main import main
from codex_replay.cli.run.parts import JOBS, JOBS_OF_A_PROXY, Part, default_jobs, only_ours, parts
from codex_replay.plugin.base.configuration import Configuration
from codex_replay.plugin.base.places import installed_suites

HERE = Path("/project")
PROXY = {"mine": {"command": "node a.js", "profile": "works-on-0.92", "baseline": "known.yaml"}}
EDITOR = {"vim": {"command": "vim {codex}"}}
CHOSEN = {"profile": "works-on-0.92", "baseline": "known.yaml"}


def planned(suites: list[str], table: dict[str, Any], here: Path = HERE, **given: str) -> list[Part]:
    own = Configuration(HERE / "pyproject.toml", table)
    return parts(suites, {name.replace("_", "-"): value for name, value in given.items()}, own, here)


def test_without_configuration_every_suite_runs_in_one_part() -> None:
    assert parts([], {}, Configuration(), HERE) == [Part(())]
    assert parts(["schema", "proxy"], {}, Configuration(), HERE) == [Part(("schema", "proxy"))]


def test_without_suites_those_of_the_configured_subjects_run() -> None:
    assert planned([], {"proxy": PROXY}) == [Part(("proxy",), CHOSEN)]
    assert planned([], {"editor-client": EDITOR}) == [Part(("editor_client",))]
    assert planned([], {"lite-client": "node client.js", "report": "out"}) == [Part(("lite_client",))]
    assert planned([], {"report": "out"}) == [Part(())]


@pytest.mark.parametrize("name", ["proxy", "suites/proxy", "./suites/proxy", "proxy/test_auth.py", "proxy/test_auth.py::test_x"])
def test_a_part_of_a_suite_has_the_options_of_its_subject(name: str) -> None:
    assert planned([name], {"proxy": PROXY}) == [Part((name,), CHOSEN)]


def test_options_of_the_command_line_win() -> None:
    assert planned(["proxy"], {"proxy": PROXY}, profile="default", baseline="b.yaml") == [Part(("proxy",))]
    assert planned(["proxy"], {"proxy": PROXY}, proxy="reference") == [Part(("proxy",))]


def test_the_baseline_is_beside_the_configuration() -> None:
    assert planned(["proxy"], {"proxy": PROXY}, HERE / "below")[0].options["baseline"] == "../known.yaml"


def test_subjects_that_differ_in_their_options_run_apart_and_a_named_report_has_a_folder_for_each() -> None:
    both = {"proxy": PROXY, "editor-client": EDITOR}
    assert planned([], both) == [
        Part(("proxy",), CHOSEN),
        Part(("editor_client",)),
    ]
    assert [part.options["report"] for part in planned([], both, report="out")] == ["out/proxy", "out/editor_client"]
    assert planned([], {"lite-client": EDITOR, "editor-client": EDITOR}) == [Part(("editor_client", "lite_client"))]


def test_of_several_subjects_one_must_be_named() -> None:
    two = {"proxy": {**PROXY, "other": {"command": "true"}}}
    with pytest.raises(BadUse, match=r"more than one \[tool.codex-replay.proxy\]; name one of them with --proxy: mine, other\."):
        planned([], two)
    assert planned([], two, proxy="mine") == [Part(("proxy",), CHOSEN)]
    assert planned(["schema"], two) == [Part(("schema",))]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.codex-replay", "pyproject.toml is not TOML"),
        ("[tool.codex-replay]\nbaselin = 'x'\n", "[tool.codex-replay] has no key 'baselin'; did you mean 'baseline'?"),
    ],
)
def test_a_wrong_configuration_is_a_usage_error(
    text: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["run", "schema"])
    assert done.exit_code == 4
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("suites", "proxy", "jobs"),
    [
        ((), "node a.js", JOBS),
        (("proxy",), "node a.js", JOBS_OF_A_PROXY),
        (("./suites/proxy/",), None, JOBS_OF_A_PROXY),
        (("proxy/test_auth.py",), "node a.js", JOBS),
        (("proxy", "schema"), "node a.js", JOBS),
        (("backend",), None, JOBS),
        (("proxy",), "http://127.0.0.1:8787", JOBS),
        (("proxy",), "there", JOBS),
    ],
)
def test_more_cases_run_at_a_time_if_the_run_starts_a_proxy(
    monkeypatch: pytest.MonkeyPatch, suites: tuple[str, ...], proxy: str | None, jobs: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    own = Configuration(HERE / "pyproject.toml", {"proxy": {"there": {"url": "http://127.0.0.1:8787"}}})

    assert default_jobs(Part(suites), {"proxy": proxy}, own if proxy == "there" else Configuration()) == jobs
    assert default_jobs(Part(("proxy",)), {}, own) == JOBS


def test_a_machine_with_one_core_runs_two_cases_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert default_jobs(Part(("proxy",)), {"proxy": "node a.js"}, Configuration()) == JOBS


@pytest.mark.parametrize(
    ("suites", "given", "table", "expected"),
    [
        ((), {}, {}, True),
        (("proxy/test_models.py",), {}, {}, True),
        (("schema",), {}, {}, False),
        ((), {"proxy": "node server.js"}, {}, False),
        ((), {}, {"lite-client": {"mine": {"command": "node client.js"}}}, False),
    ],
)
def test_a_run_that_tests_no_program_of_the_user_is_known(
    suites: tuple[str, ...], given: dict[str, str], table: dict[str, Any], expected: bool, tmp_path: Path
) -> None:
    assert only_ours(suites, given, Configuration(tmp_path / "pyproject.toml", table), tmp_path) is expected
    assert not only_ours(suites, given, Configuration(None, table), installed_suites().parent)
