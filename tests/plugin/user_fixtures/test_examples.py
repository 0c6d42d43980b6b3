"""The examples of the documentation, as a user runs them; and what is said where the agent differs from its recording."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.fixture
def agent(pytester: pytest.Pytester) -> pytest.Pytester:
    for name in ("agent.py", "test_agent.py", "agent.ndjson"):
        shutil.copy(EXAMPLES / name, pytester.path)
    return pytester


def test_the_agent_is_tested_in_three_ways(agent: pytest.Pytester) -> None:
    agent.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)


def test_an_agent_that_forgets_the_output_fails_all_three(agent: pytest.Pytester) -> None:
    source = agent.path / "agent.py"
    source.write_text(source.read_text().replace("str(a + b)", "str(a - b)"))
    result = agent.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(['*contains "3"*'])


def test_an_agent_that_stops_early_did_not_play_its_recording(agent: pytest.Pytester) -> None:
    source = agent.path / "agent.py"
    source.write_text(
        source.read_text().replace(
            "        if not calls:\n            return output[-1]",
            '        return "It is 3."\n        if 0:\n            return output[-1]',
        )
    )
    result = agent.runpytest_subprocess("-p", "no:cacheprovider", "-k", "builder or recording")
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*No request used turns[[]1[]] of the script.*"])
    result.stdout.fnmatch_lines(["*The client never sent the request in frame * of *agent.ndjson*"])


def test_the_page_shows_the_examples() -> None:
    page = (EXAMPLES.parent / "fixtures.md").read_text()
    for name in ("agent.py", "test_agent.py"):
        assert f"examples/{name}" in page
    functions = (EXAMPLES / "test_agent.py").read_text().partition("def ")[2]
    assert functions in page
