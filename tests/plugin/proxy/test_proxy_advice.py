"""What a run advises the author of a proxy whose profile, capabilities or readiness settings are wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.plugin.proxy.advice import LEAST, missing_capabilities, not_ready, wrong_profile
from codex_replay.plugin.proxy.subject import ProxySubject
from tests.support.suite_run import PYTEST

ROOT = Path(__file__).resolve().parents[3]
NEW, TURN = ["newConversation", "model", "value", True, True, True], ["turn/start", "input", "value", False, True, True]
SUBJECT = ProxySubject("mine", ("mine",), capabilities=("chat", "models", "title-intercept"))
READY = "The proxy was not ready within 20 s: GET /v1/models gave status 500."


@pytest.mark.parametrize(
    ("rows", "advised"),
    [
        ({"as-specified": [TURN]}, True),
        ({"as-specified": [TURN, NEW]}, False),
        ({"works-on-0.92": [TURN]}, False),
        ({"as-specified": []}, False),
    ],
    ids=["other-calls", "both", "other-profile", "nothing"],
)
def test_a_proxy_with_other_calls_is_advised_to_take_the_other_profile(
    rows: dict[str, list[list[object]]], advised: bool
) -> None:
    found = wrong_profile(rows)
    assert bool(found) is advised
    assert all(line.endswith("it sends turn/start. Run with --profile works-on-0.92.") for line in found)


@pytest.mark.parametrize(
    ("results", "advised"),
    [
        ([(["models"], False)] * LEAST + [([], True)], True),
        ([(["models"], False)] * LEAST + [(["models"], True), ([], True)], False),
        ([(["models"], False)] * (LEAST - 1) + [([], True)], False),
        ([(["models"], False)] * LEAST + [([], False)], False),
    ],
    ids=["missing", "one-passed", "too-few", "nothing-passed"],
)
def test_a_capability_is_missing_if_only_its_cases_fail(results: list[tuple[list[str], bool]], advised: bool) -> None:
    found = missing_capabilities(SUBJECT, results)
    assert bool(found) is advised
    assert all('capabilities = ["chat", "title-intercept"] into' in line for line in found)


def test_the_advice_names_the_table_and_its_file() -> None:
    table = "[tool.codex-replay.proxy.mine] of codex-replay.toml"
    (missing,) = missing_capabilities(SUBJECT, [(["models"], False)] * LEAST + [([], True)], table)
    (slow,) = not_ready(SUBJECT, [READY], table)
    assert f" into {table}; otherwise " in missing
    assert slow.endswith(f"in {table}.")


def test_readiness_settings_are_named_for_a_proxy_that_was_not_ready() -> None:
    (line,) = not_ready(SUBJECT, ["Other.", READY])
    assert "(now /v1/models)" in line
    assert "more than 20" in line
    assert not_ready(SUBJECT, ["Other."]) == []
    assert not_ready(ProxySubject("u", url="http://127.0.0.1:9"), [READY]) == [
        "Start the proxy before the run, or correct the URL http://127.0.0.1:9."
    ]


def test_the_advice_stands_below_the_verdict_and_in_the_report(tmp_path: Path) -> None:
    """The reference proxy with the other profile's calls, whatever the case asks for."""
    proxy = f"env PROXY_PROFILE=works-on-0.92 {sys.executable} -m codex_replay.reference.proxy"
    words = ["suites/proxy/requests/test_user_turn.py", "-k", "no_effort", "--proxy", proxy, "--report", str(tmp_path)]
    done = subprocess.run([*PYTEST, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout
    advice = "The proxy sends none of the calls of the profile as-specified "
    advice += "(newConversation, sendUserTurn, sendUserMessage); it sends "
    assert said.index("FAILED: 2 of 2 cases") < said.index(f"Do this next:\n  1. {advice}")
    assert json.loads((tmp_path / "report.json").read_text())["next"][0].endswith("Run with --profile speaks-v2.")
    assert "1. The proxy sends none of the calls of the profile as-specified" in (tmp_path / "summary.md").read_text()
