"""action.yml and the pre-commit hook: their structure, and their scripts, run here as GitHub and pre-commit would run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
CASSETTE = "cassettes/app_server/test_v2/text_turn.ndjson"
WORKFLOWS = sorted((ROOT / "docs" / "examples").glob("github-actions-*.yml"))


def interpolated(action: dict[str, Any]) -> list[str]:
    """Name the steps in which an expression is a part of a script, where a value could become code."""
    return [step["name"] for step in action["runs"]["steps"] if "${{" in step.get("run", "")]


def unused(action: dict[str, Any]) -> list[str]:
    """Name the inputs that no step reads, and those that are read and not declared."""
    read = set(re.findall(r"inputs\.([a-z-]+)", json.dumps([action["runs"]["steps"], action["outputs"]])))
    return sorted(read ^ set(action["inputs"]))


def test_no_input_is_a_part_of_a_script() -> None:
    assert interpolated(ACTION) == []
    assert interpolated({"runs": {"steps": [{"name": "wrong", "run": "echo ${{ inputs.suites }}"}]}}) == ["wrong"]


def test_every_input_is_declared_and_used() -> None:
    assert unused(ACTION) == []
    assert unused({**ACTION, "inputs": {**ACTION["inputs"], "spare": {}}}) == ["spare"]
    assert all(about["description"] and isinstance(about["default"], str) for about in ACTION["inputs"].values())


def test_it_is_a_composite_action_whose_scripts_name_their_shell() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(step.get("shell") == "bash" for step in STEPS.values() if "run" in step)
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in STEPS.values() if "uses" in step)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_example_workflows_give_inputs_that_exist(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    ours = [step for job in workflow["jobs"].values() for step in job["steps"] if "/codex-replay@" in step.get("uses", "")]
    assert ours
    assert {name for step in ours for name in step["with"]} <= set(ACTION["inputs"])


def step(name: str, cwd: Path, inputs: dict[str, str], path: Path = BIN) -> subprocess.CompletedProcess[str]:
    """Run a step's script as the runner does: `bash --noprofile --norc -eo pipefail`, its expressions filled in from `inputs`."""
    given = {**{key: about["default"] for key, about in ACTION["inputs"].items()}, **inputs}
    values = {**{f"inputs.{key}": value for key, value in given.items()}, "github.action_path": str(ROOT)}
    values["steps.run.outputs.verdict"] = inputs.get("verdict", "")
    env = {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text) for key, text in STEPS[name]["env"].items()}
    env |= {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "HOME": str(cwd), "CI": "true", "GITHUB_ACTIONS": "true"}
    env |= {"GITHUB_OUTPUT": str(cwd / "output"), "GITHUB_STEP_SUMMARY": str(cwd / "summary")}
    (cwd / "script.sh").write_text(STEPS[name]["run"])
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "script.sh"]
    return subprocess.run(
        bash, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False
    )


def test_the_run_gives_its_verdict_and_its_report(tmp_path: Path) -> None:
    done = step(
        "Run the suites",
        tmp_path,
        {"suites": "schema/test_counts.py\n schema/test_tools.py ", "jobs": "1", "report": "my report"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == "verdict=verified\n"
    report = json.loads((tmp_path / "my report" / "report.json").read_text())
    assert {case["module"] for case in report["cases"]} == {"test_counts", "test_tools"}


def test_a_run_that_fails_says_so_and_fails_the_step(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_mine.py").write_text("def test_it(): assert not 'well'\n")
    done = step("Run the suites", tmp_path, {"suites": "suites/test_mine.py", "jobs": "1"})
    assert done.returncode == 1
    assert (tmp_path / "output").read_text() == "verdict=failed\n"


@pytest.mark.parametrize("hostile", ["$(touch pwned)", "`touch pwned`", "schema; touch pwned", '"; touch pwned; "', "--pdb", "*"])
def test_a_hostile_input_is_nothing_but_a_name(tmp_path: Path, hostile: str) -> None:
    (tmp_path / "a-file").touch()
    done = step("Run the suites", tmp_path, {"suites": hostile, "jobs": "1"})
    assert done.returncode == 4, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == "verdict=usage\n"
    assert "There is no suite" in done.stderr
    assert not (tmp_path / "pwned").exists()


def test_every_subject_goes_to_its_option(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex-replay").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n')
    (tmp_path / "bin" / "codex-replay").chmod(0o755)
    keys = ("app-server", "backend", "proxy", "lite-client", "editor-client", "profile", "baseline")
    step("Run the suites", tmp_path, {key: f"my {key}" for key in keys} | {"suites": "proxy"}, path=tmp_path / "bin")
    expected = [
        "run",
        "--plain",
        "-n",
        "2",
        "--report=codex-replay-report",
        *(f"--{key}=my {key}" for key in keys),
        "--",
        "proxy",
    ]
    assert (tmp_path / "arguments").read_text().splitlines() == expected


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, [f"python -m pip install --disable-pip-version-check {ROOT}", "codex-replay doctor"]),
        (
            {"package": "codex-replay==0.1", "codex": "0.92.0"},
            [
                "python -m pip install --disable-pip-version-check codex-replay==0.1",
                "codex-replay codex install -- 0.92.0",
                "codex-replay doctor",
            ],
        ),
    ],
)
def test_the_install_step_installs_what_it_was_asked_for(tmp_path: Path, inputs: dict[str, str], expected: list[str]) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("python", "codex-replay"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@" >> said\n')
        (tmp_path / "bin" / name).chmod(0o755)
    done = step("Install codex-replay", tmp_path, inputs, path=tmp_path / "bin")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "said").read_text().splitlines() == expected


def test_the_summary_is_the_reports_or_a_line(tmp_path: Path) -> None:
    assert step("Show the summary", tmp_path, {"verdict": "usage"}).returncode == 0
    (tmp_path / "codex-replay-report").mkdir()
    (tmp_path / "codex-replay-report" / "summary.md").write_text("# Verified\n")
    step("Show the summary", tmp_path, {"verdict": "verified"})
    said = (tmp_path / "summary").read_text().splitlines()
    assert said == ["codex-replay: usage; the job's log has the table.", "# Verified"]


def hook(*names: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the hook as pre-commit does: its entry and the names of the staged files that its pattern finds."""
    chosen = [name for name in names if re.search(HOOK["files"], name)]
    assert chosen
    env = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [*shlex.split(HOOK["entry"]), *chosen]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False
    )


def test_the_hook_passes_sound_cassettes_and_looks_at_nothing_else() -> None:
    done = hook(CASSETTE, "README.md", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(HOOK["files"], "data.ndjson") is None


def test_the_hook_refuses_a_secret_and_a_cassette_that_is_cut(tmp_path: Path) -> None:
    (tmp_path / "cassettes").mkdir()
    lines = (ROOT / CASSETTE).read_text().splitlines(keepends=True)
    (tmp_path / "cassettes" / "cut.ndjson").write_text("".join(lines[:5]) + lines[5][:20])
    secret = "sk-" + "A1b2C3d4" * 4
    (tmp_path / "cassettes" / "secret.ndjson").write_text("".join(lines).replace("Say hello.", f"Say {secret}"))
    done = hook("cassettes/cut.ndjson", "cassettes/secret.ndjson", cwd=tmp_path)
    assert done.returncode != 0
    assert "cut.ndjson" in done.stdout + done.stderr
    assert "secret.ndjson" in done.stdout + done.stderr


def test_the_hook_is_written_as_pre_commit_wants_it() -> None:
    assert {"id", "name", "entry", "language", "files"} <= set(HOOK)
    assert HOOK["language"] == "python"
