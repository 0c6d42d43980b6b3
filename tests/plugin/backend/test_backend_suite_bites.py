"""The backend suite bites: a broken backend for every rule and every other promise, and every check turned red by one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from codex_fakes.backend.rules.table import RULES
from codex_replay.shell.http.backend_process import BackendProcess
from tests.miniatures.backends import broken
from tests.miniatures.backends.matrix import TABLE
from tests.miniatures.matrix import FINE, cover, sample
from tests.support.suite_run import checks_of, run_suite, spec_marks


@pytest.fixture(scope="module")
def checks() -> set[str]:
    """The names of all checks of the suite."""
    return checks_of("backend")


def test_there_is_a_broken_backend_for_every_rule() -> None:
    assert sorted(f"rule-{rule.id}" for rule in RULES if f"rule-{rule.id}" not in broken.VARIANTS) == []


def test_every_check_is_turned_red_by_a_variant_and_every_variant_turns_one_red(checks: set[str]) -> None:
    TABLE.must_be_whole(checks)


def test_the_fake_passes_where_the_variants_fail(checks: set[str], tmp_path: Path) -> None:
    """With a check of each module. (That the fake passes every check is for the suite to show: `make conformance`.)"""
    assert TABLE.run({FINE: sample(checks)}, tmp_path, "--wait", "60") == {}


def test_the_table_is_true(tmp_path: Path) -> None:
    """A pair for each check and each variant is tried anew."""
    chosen = cover(TABLE.read())
    assert TABLE.run(chosen, tmp_path) == chosen


def test_a_pair_that_is_not_red_is_noticed(tmp_path: Path) -> None:
    pairs = {"wrong-total": ["test_auth::test_an_api_key_is_taken", "test_stream::test_completed_has_the_usage"]}
    assert TABLE.run(pairs, tmp_path) == {"wrong-total": ["test_stream::test_completed_has_the_usage"]}


def test_every_check_has_a_name_a_source_and_a_docstring() -> None:
    names = []
    sources = r"(openai 3\.52\.0, |RFC \d+, |known behaviour of the real service$|the error object)"
    for check, mark in spec_marks("backend"):
        name, *identifiers = mark.args
        source = mark.kwargs.get("source", "")
        names.append(name)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name), f"{check}: {name} is no stable name"
        assert identifiers or source, check
        assert not source or (re.match(sources, source) and mark.kwargs["says"]), (check, source)
    assert sorted(names) == sorted(set(names))


def test_a_failure_shows_the_spec_and_what_was_answered(tmp_path: Path) -> None:
    command = f"fake:{sys.executable} tests/miniatures/backends/broken.py rule-output-without-call"
    done = run_suite(tmp_path, "--backend", command, "suites/backend/test_edge_cases.py", "-k", "3_an_output or 5_a_large")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 2 passed" in done.stdout  # over HTTP, and over a WebSocket
    assert "Spec: edge-3-output-without-call" in done.stdout
    assert "LITE-65: Edge case 3: a `function_call_output` without its `function_call` gives 400." in done.stdout
    assert "POST /backend-api/codex/responses -> 200" in done.stdout
    assert "response.create -> 200" in done.stdout


def test_a_backend_behind_a_url_is_asked_and_what_it_cannot_be_told_is_skipped(tmp_path: Path) -> None:
    with BackendProcess() as process:
        done = run_suite(tmp_path, "--backend", process.url + "/backend-api/codex", "suites/backend", "-rfs")
        ledger = process.ledger()
    assert done.returncode == 1  # it takes any token and any account, for nobody told it which are good
    failed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    assert sorted(failed) == ["test_a_token_that_nobody_issued", "test_another_account"]
    assert "the case must control the backend, and a URL has no control API" in done.stdout
    assert (
        "which may cost money" in run_suite(tmp_path, "--backend", process.url, "--collect-only", "suites/backend", "-v").stdout
    )
    assert {entry["path"] for entry in ledger} <= {"/backend-api/codex/responses", "/backend-api/codex/respond"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["https://example.invalid/v1"], "sends one to three small requests to example.invalid"),
        (["nonsense"], "give fake, fake:COMMAND, or a URL"),
        (["fake:no-such-program-anywhere"], "there is no such program"),
        (["http://127.0.0.1:9", "--backend-auth", "/nowhere.json"], "the file cannot be read"),
        (["http://127.0.0.1:9", "--backend-auth", "pyproject.toml"], "this is not an auth.json"),
    ],
)
def test_a_subject_that_cannot_be_asked_is_a_sentence(tmp_path: Path, options: list[str], why: str) -> None:
    done = run_suite(tmp_path, "--backend", options[0], *options[1:], "suites/backend")
    assert done.returncode == 4
    assert why in done.stderr
