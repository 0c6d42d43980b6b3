"""A proxy in another language: it passes the profile as-specified, and of five planted mistakes the suite finds just those."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROXY = "tests/miniatures/proxies/small_proxy.mjs"
#: Each defect, and the checks that are there for it.
DEFECTS = {
    "one-spelling": {"turn-choices"},
    "line-changed": {"instructions-line", "instructions-fixed"},
    "zero-is-nothing": {"message-sampling"},
    "first-closing-tag": {"tool-calls-stream", "tool-calls-whole", "tool-calls-xml"},
    "ids-again": {"envelope-id"},
}

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")


def judge(tmp_path: Path, *defects: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the profile on the small proxy; return the run and the checks that failed, as --update-baseline names them."""
    known = tmp_path / "known.yaml"
    command = f"node {PROXY} {','.join(defects)}".strip()
    options = ["--profile", "as-specified", "--proxy", command, "--baseline", str(known), "--report", str(tmp_path / "report")]
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "suites/proxy", *options]
    first = subprocess.run([*argv, "--update-baseline"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    return first, [line["check"] for line in yaml.safe_load(known.read_text(encoding="utf-8"))]


def test_it_passes_every_check_of_the_profile(tmp_path: Path) -> None:
    result, failed = judge(tmp_path)
    assert failed == []
    assert result.returncode == 0, result.stdout[-3000:]


def test_the_suite_finds_the_five_defects_and_nothing_else(tmp_path: Path) -> None:
    result, failed = judge(tmp_path, *DEFECTS)
    assert result.returncode == 1
    found = {check.partition("[")[0] for check in failed}
    assert {defect for defect, checks in DEFECTS.items() if checks & found} == set(DEFECTS)
    assert found == set().union(*DEFECTS.values()), "\n".join(failed)
    lines = [check for check in failed if check.startswith("instructions-line")]
    assert len(lines) == 2, "one line is wrong, on either endpoint"
    assert lines[0].partition("line-14")[1], lines
