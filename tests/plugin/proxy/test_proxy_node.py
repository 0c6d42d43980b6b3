"""A proxy in another language: it passes the profile as-specified, and of five planted mistakes the suite finds just those."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from tests.support.suite_run import ONE_PROCESS, run_elsewhere

ROOT = Path(__file__).resolve().parents[3]
PROXY = ROOT / "tests" / "miniatures" / "proxies" / "small_proxy.mjs"
EXAMPLES = ROOT / "docs" / "examples"
#: Each defect, and the checks that are there for it.
DEFECTS = {
    "one-spelling": {"turn-choices"},
    "line-changed": {"instructions-line", "instructions-fixed", "instructions-layout"},
    "zero-is-nothing": {"message-sampling"},
    "first-closing-tag": {"tool-calls-stream", "tool-calls-whole", "tool-calls-xml"},
    "ids-again": {"envelope-id"},
}

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")


#: Cases of all the checks that the five defects are found by, each once at least, and the modules that have them.
CHOSEN = "line-14 or fixed_block or layout or sampling or closing-tag-in-a-string or test_ids or test_choices"
MODULES = [
    *(f"proxy/requests/test_{name}.py" for name in ("envelope", "instructions", "user_message", "user_turn")),
    "proxy/replies/test_tool_calls.py",
]


def project(folder: Path, *defects: str) -> list[str]:
    """Make a project with the small proxy in it; return the options that the example gives to the action."""
    example = yaml.safe_load((EXAMPLES / "github-actions-proxy.yml").read_text(encoding="utf-8"))
    given = dict(example["jobs"]["contract"]["steps"][-1]["with"])
    assert given == {"suites": "proxy", "proxy": "node server.js", "baseline": "known.yaml"}
    shutil.copy(PROXY, folder / "small_proxy.mjs")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    planted = json.dumps(",".join(defects))
    (folder / "server.js").write_text(f"process.argv[2] = {planted}\nawait import('./small_proxy.mjs')\n", encoding="utf-8")
    return [f"--proxy={given['proxy']}", "--profile=as-specified", "--report=contract"]


def test_without_a_defect_it_passes_the_checks_that_the_defects_fail(tmp_path: Path) -> None:
    """The whole gate below shows that it passes the others."""
    (tmp_path / "known.yaml").write_text("[]\n", encoding="utf-8")
    result = run_elsewhere(tmp_path, MODULES, *project(tmp_path), "--baseline=known.yaml", "-k", CHOSEN)
    assert result.returncode == 0, result.stdout[-3000:]


def test_the_gate_is_green_with_the_five_defects_listed_and_they_are_all_there_is(tmp_path: Path) -> None:
    """Green says both: nothing that is not listed fails, and every line of the list has a case that does."""
    shutil.copy(EXAMPLES / "proxy-known.yaml", tmp_path / "known.yaml")
    program = str(Path(sys.executable).with_name("codex-replay"))
    argv = [program, "run", "proxy", *project(tmp_path, *DEFECTS), "--baseline=known.yaml", "--plain"]
    env = {**os.environ, **ONE_PROCESS}
    result = subprocess.run(argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:]
    listed = {line["check"].partition("[")[0] for line in yaml.safe_load((tmp_path / "known.yaml").read_text(encoding="utf-8"))}
    assert all(any(fnmatchcase(check, name) for name in listed) for checks in DEFECTS.values() for check in checks)
    known = re.search(r"^(\d+) known failures\. \S+ lists 8 checks in \d+ entries, 0 of them stale\.$", result.stdout, re.M)
    assert known, result.stdout[-3000:]
    assert int(known[1]) >= len(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_turns_just_its_own_checks_red(tmp_path: Path, defect: str) -> None:
    """Without a list of known failures, which would rerun each new failure."""
    result = run_elsewhere(tmp_path, MODULES, *project(tmp_path, defect), "-k", CHOSEN, "--no-early-stop")
    assert result.returncode == 1, result.stdout[-3000:]
    cases = json.loads((tmp_path / "contract" / "report.json").read_text(encoding="utf-8"))["cases"]
    failed = [case for case in cases if case["outcome"] == "failed"]
    assert {case["spec"]["check"] for case in failed} == DEFECTS[defect], "\n".join(case["id"] for case in failed)
