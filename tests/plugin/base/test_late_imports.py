"""A run of suites loads what it needs, at the first need: each worker of pytest-xdist starts from the beginning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LATE = {"yaml.loader", "http.client", "codex_replay.core.redact.redactor"}


def loaded(*plugins: str) -> set[str]:
    """Return what the start of a run of a suite loads of `LATE`; further pytest plugins may be given."""
    more = [word for name in plugins for word in ("-p", name)]
    options = ["-p", "no:cacheprovider", *more, "--collect-only", "-q", "suites/lite_client/test_headers.py"]
    argv = [sys.executable, "-X", "importtime", "-m", "pytest", *options]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert "lite_client/test_headers.py" in done.stdout, done.stdout + done.stderr
    return LATE & {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_the_start_of_a_run_loads_no_yaml_no_http_and_no_redactor() -> None:
    assert loaded() == set()


def test_what_is_loaded_early_is_seen() -> None:
    assert loaded("codex_replay.plugin.reporting.terminal", "urllib.request", "yaml") == LATE
