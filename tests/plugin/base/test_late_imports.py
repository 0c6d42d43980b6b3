"""A run of suites loads what it needs, at the first need: each worker of pytest-xdist starts from the beginning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LATE = {"yaml", "http.client", "codex_replay.core.redact.redactor"}


def loaded(*late: str) -> set[str]:
    """Return what the start of a run of a suite loads of `LATE`, in a process that has `late` at its beginning."""
    code = "".join(f"import {name}\n" for name in late) + "import sys, pytest\npytest.main(sys.argv[1:])\nprint(*sys.modules)"
    options = ["-p", "no:cacheprovider", "--collect-only", "-q", "suites/lite_client/test_headers.py"]
    done = subprocess.run([sys.executable, "-c", code, *options], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert "lite_client/test_headers.py::" in done.stdout, done.stdout + done.stderr
    return LATE & set(done.stdout.splitlines()[-1].split())


def test_the_start_of_a_run_loads_no_yaml_no_http_and_no_redactor() -> None:
    assert loaded() == set()


def test_what_is_loaded_early_is_seen() -> None:
    assert loaded("codex_replay.plugin.reporting.terminal", "http.client") == LATE - {"yaml"}
