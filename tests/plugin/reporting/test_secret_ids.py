"""The id of a case, and a text of several lines, may hold a secret: neither the report nor the terminal shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from codex_replay.core.redact.redactor import Redactor
from codex_replay.plugin.base.naming import name_of_node

KEY_LINE = "MIIEowIBAAKCAQEA7bqT" * 3
SECRETS = ["Tr0ub4dor9x", "Zx9kVq2Lw7", KEY_LINE]
SUITE = f"""
import pytest
@pytest.mark.parametrize("text", ["curl --proxy-user ann:{SECRETS[0]} -x h", "<password>{SECRETS[1]}</password>"], ids=str)
def test_ids(text, codex_backend):
    print("-----BEGIN RSA PRIVATE KEY-----\\n{KEY_LINE}\\n-----END RSA PRIVATE KEY-----")
    raise AssertionError("-----BEGIN RSA PRIVATE KEY-----\\n{KEY_LINE}\\n-----END RSA PRIVATE KEY-----")
"""


def test_no_secret_of_an_id_or_of_many_lines_is_shown(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_p.py").write_text(SUITE)
    argv = [sys.executable, "-m", "pytest", "-vv", "--tb=short", "-p", "codex_replay.suites", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*argv, "--report", "out", "suites"], cwd=tmp_path, capture_output=True, text=True, timeout=100, env={"PATH": os.defpath}
    )
    assert "2 failed" in done.stdout, done.stdout + done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len({case["id"] for case in report["cases"]}) == 2
    shown = {"terminal": done.stdout + done.stderr, **{file.name: file.read_text() for file in (tmp_path / "out").iterdir()}}
    for where, text in shown.items():
        for secret in SECRETS:
            assert secret not in text, (where, secret)
    assert "redacted-private-key-1" in done.stdout


def test_ids_that_differ_in_their_secrets_only_keep_apart(tmp_path: Path) -> None:
    """Their cassettes have names of their own, too."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_p.py").write_text(
        "import pytest\nfrom pathlib import Path\nfrom codex_replay.plugin.base.naming import case_name\n"
        "@pytest.mark.parametrize('key', ['api_key=a7', 'api_key=b8'])\n"
        "def test_p(key, request): print('NAME', case_name(request.node, Path('.')))\n"
    )
    argv = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", "suites"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=100, env={"PATH": os.defpath})
    names = [line.partition("NAME ")[2] for line in done.stdout.splitlines() if "NAME " in line]
    assert len(set(names)) == 2, done.stdout
    assert not any("a7" in name or "b8" in name for name in names), names


def test_the_name_of_a_plain_id_is_as_before() -> None:
    assert name_of_node("suites/x/test_y.py::test_z[0.92.0-a b=c/d]", Path()).case == "z-0.92.0-a_b_c_d"


def test_the_name_of_an_id_with_a_secret_does_not_depend_on_the_ids_before() -> None:
    names = [name_of_node(f"suites/x/test_y.py::test_z[api_key={key}]", Path()).case for key in ("a7", "b8", "a7")]
    assert names == ["z-api_key_redacted-key-1"] * 3


def test_the_redactors_of_a_run_share_the_index_of_the_triggers() -> None:
    first, other = Redactor(homes=False)._triggers, Redactor(literals={"bluebird": "x"})._triggers
    assert (first._long is other._long, first._starts is other._starts) == (True, True)
