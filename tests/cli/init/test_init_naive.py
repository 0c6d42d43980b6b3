"""`codex-replay init proxy` with the first version of a user's proxy: each message names the true cause."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from codex_replay.cli.io.console import progress
from tests.cli.init.test_init import COMMAND, PYTHON, ROOT, found, run

NAIVE = f"{PYTHON} {ROOT / 'tests' / 'miniatures' / 'proxies' / 'naive_proxy.py'}"
CHOSEN = "test_choices or test_models or test_bad_requests or test_cors"


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A folder in which `init` ran, with a few cases of the suite, and the output of `init`."""
    folder = tmp_path_factory.mktemp("naive")
    (folder / ".git").mkdir()
    done = run(folder, "init", "proxy", NAIVE, chosen=CHOSEN)
    assert done.returncode == 0, done.stderr
    return folder, done


def report_of(folder: Path) -> Path:
    (report,) = (folder / "reports").iterdir()
    return report


def test_the_report_of_the_first_run_has_the_steps_and_the_command_of_the_user(
    tried: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = tried
    report = report_of(folder)
    data = json.loads((report / "report.json").read_text())
    steps = [line.partition(". ")[2] for line in done.stdout.partition("Do this next\n")[2].splitlines()]
    assert steps[0].startswith("Look at the report: "), done.stdout
    assert data["next"] == steps[1:]
    assert data["next"][0].startswith("Fix the "), data["next"]
    assert data["command"] == "codex-replay run"
    summary = (report / "summary.md").read_text()
    assert "known-proxy.yaml" in summary
    for name in ("report.json", "summary.md", "report.html"):
        text = (report / name).read_text()
        assert "codex-replay-init-" not in text, name
        assert "without --update-baseline" not in text, name


def test_what_the_machine_makes_is_to_be_ignored_by_git(tried: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = tried
    assert ". Add reports/ to .gitignore.\n" in done.stdout, done.stdout


def test_a_server_without_get_is_up(tried: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = tried
    assert "(/readyz 501, /healthz 501, /v1/models 501)" in done.stdout


def test_a_proxy_without_keys_is_asked_with_a_prompt(tried: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _, done = tried
    assert "  key          not needed (POST /v1/chat/completions without a key is answered 200)\n" in done.stdout, done.stdout


def test_no_page_of_html_is_quoted(tried: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = tried
    table = (folder / "codex-replay.toml").read_text()
    assert "# not capable of models: GET /v1/models is answered 501: an HTML page\n" in table
    assert "DOCTYPE" not in table + done.stdout


def test_a_dry_run_gives_each_reason_once(tmp_path: Path) -> None:
    done = run(tmp_path, "init", "proxy", NAIVE, "--dry-run")
    shown, _, files = done.stdout.partition("\nFiles ")
    assert "  not capable  responses, stream, models, " in shown, shown
    assert "is answered 501" not in shown.partition("  not capable")[2]
    assert "# not capable of models: GET /v1/models is answered 501: an HTML page\n" in files


def test_an_answer_that_never_ends_is_explained_with_the_stderr_of_its_request(tmp_path: Path) -> None:
    wrong = found(tmp_path, "proxy", f"{NAIVE} no-length", "--wait", "3", status=1)["wrong"]
    assert wrong.startswith(
        "The proxy serves no request: POST /v1/chat/completions failed, no complete answer within 3 s. Status 200 and "
    )
    assert " bytes had come. The answer has neither Content-Length nor Transfer-Encoding: chunked, so a client waits " in wrong
    assert "KeyError" not in wrong, "that was another request"
    assert '"POST /v1/chat/completions HTTP/1.1" 200' in wrong


def test_the_verdict_of_an_update_says_that_every_failure_is_listed(
    tried: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder, _ = tried
    known = (folder / "known-proxy.yaml").read_bytes()
    done = run(folder, "run", "--update-baseline", "--report", str(tmp_path / "report"), chosen=CHOSEN)
    assert (folder / "known-proxy.yaml").read_bytes() == known
    assert done.returncode == 1, "pytest's status for failed cases"
    (verdict,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED: ")]
    assert ", all listed in known-proxy.yaml now, " in verdict
    assert " need an undeclared capability); proxy " in verdict
    assert "\nSKIPPED [" not in done.stdout
    assert done.stdout.partition("\nSkipped:\n")[2].startswith("4 cases: naive0 does not declare the capability ")
    summary = (tmp_path / "report" / "summary.md").read_text()
    assert "does not declare the capability cors\n" in summary.partition("### Skipped: ")[2]


def test_one_listed_case_still_fails(tried: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    folder, _ = tried
    (step,) = [step for step in json.loads((report_of(folder) / "report.json").read_text())["next"] if "Rerun one" in step]
    program, *words = shlex.split(step.partition(": ")[2])
    assert program == "codex-replay"
    done = run(folder, *words)
    assert done.returncode == 5, done.stdout
    assert "NOTHING VERIFIED: no case passed; 1 case still fails, as listed in the baseline; proxy " in done.stdout


def test_pytest_lists_the_skipped_cases_if_the_user_asks_for_them(
    tried: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder, _ = tried
    env = {**os.environ, "PYTEST_ADDOPTS": "-rs -k test_cors"}
    words = [COMMAND, "run", "-n", "1", "--report", str(tmp_path / "report")]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert "\nSKIPPED [" in done.stdout, done.stdout


def test_the_reruns_of_failed_cases_are_announced(tried: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    assert re.search(r"\ncodex-replay: rerunning \d+ failed cases, each for as long as the full time limit\n", tried[1].stderr)


def test_without_a_terminal_the_progress_is_a_line_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seconds, lines in ((0.0, "codex-replay: cases: 2 (50 %)\ncodex-replay: cases: 4 (100 %)\n"), (60.0, "")):
        monkeypatch.setattr("codex_replay.cli.io.console.EVERY", seconds)
        with progress("cases", 4) as shown:
            shown.step(2)
            shown.step(2)
        assert capsys.readouterr().err == lines
