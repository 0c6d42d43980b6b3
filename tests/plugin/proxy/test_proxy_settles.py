"""Chance does not decide a case: neither the end of an earlier turn, nor whether the app-server joins two submissions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROXY = ROOT / "tests" / "miniatures" / "proxies" / "turn_proxy.mjs"
#: A case whose turn goes on after the answer with the call.
GOES_ON = """
import pytest
from suites.proxy.expected import native, tool
from suites.proxy.failures import settle


@pytest.mark.model(native())
@pytest.mark.proxy_profile("works-on-0.92")
def test_it(proxy):
    done = proxy.responses({"tools": [tool("responses")]})
    settle(proxy)
    assert any('"turn/completed"' in frame.raw for frame in done.frames)
"""
COUNTED = "a_stream_that_codex_repeats or one_request_is_one_model_call"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")


def run(folder: Path, *words: str, defects: str, model_ms: int) -> str:
    """Run the cases on the proxy with these defects; return the output."""
    (folder / "pyproject.toml").write_text(
        f'[tool.codex-replay.proxy.mine]\ncommand = "env PROXY_DEFECTS={defects} node {PROXY}"\n'
        f'tool_calls = ["tool_call", "use_tool"]\nmodel_ms = {model_ms}\n',
        encoding="utf-8",
    )
    argv = [str(Path(sys.executable).with_name("codex-replay")), "run", *words, "--proxy=mine", "--profile=works-on-0.92"]
    argv += ["--plain", "-n", "1", "--no-early-stop", "--report", "out"]
    env = {name: value for name, value in os.environ.items() if name != "CI"} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300).stdout


def test_a_case_waits_until_the_turn_of_an_answered_request_has_ended(tmp_path: Path) -> None:
    """The proxy does not interrupt the turn of a call, and the turn ends 400 ms after the answer."""
    (tmp_path / "test_it.py").write_text(GOES_ON, encoding="utf-8")
    found = run(tmp_path, "test_it.py", defects="no-interrupt", model_ms=400)
    assert "= 1 passed" in found, found[-3000:]


def test_each_submission_counts_though_the_app_server_may_join_two(tmp_path: Path) -> None:
    found = run(tmp_path, "proxy", "-k", COUNTED, defects="two-calls", model_ms=20)
    assert "The number of requests to the model for one request of the client must be 1, but it is 2." in found
    assert "= 8 failed" in found, found[-3000:]
