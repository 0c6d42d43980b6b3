"""The proxy suite behind a later Codex: the proxy learns what the version asks of it, and cases about v1 are not for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from codex_replay.plugin.base.checking import all_of, has_conversations, keeps_experimental
from codex_replay.plugin.proxy.fields import unknown_members

pytest_plugins = ["pytester"]
LATER = "0.169.0"
CASES = """
import pytest

@pytest.mark.model({"type": "function_call", "name": "sum", "arguments": "{}", "call_id": "call_1"})
def test_tool(proxy):
    tools = [{"type": "function", "function": {"name": "sum", "parameters": {"type": "object"}}}]
    done = proxy.chat({"tools": tools})
    assert done.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "sum"
    assert proxy.violations("valid") == proxy.violations("known") == []

@pytest.mark.proxy_profile("as-specified")
def test_conversation(proxy):
    proxy.chat()
"""


def run(pytester: pytest.Pytester, *more: str, env: dict[str, str] | None = None) -> pytest.RunResult:
    """Run the cases on the reference proxy, with variables of its own if there are any."""
    pytester.makepyfile(test_it=CASES)
    text = f"[tool.codex-replay.proxy.mine]\ncommand = {json.dumps(f'{sys.executable} -P -m codex_replay.reference.proxy')}\n"
    text += "".join(f"env.{name} = {json.dumps(value)}\n" for name, value in (env or {}).items())
    Path(pytester.path, "pyproject.toml").write_text("[tool.pytest.ini_options]\n" + text, encoding="utf-8")
    return pytester.runpytest_subprocess("-p", "codex_replay.suites", "--proxy", "mine", "-rs", "-p", "no:cacheprovider", *more)


def test_the_proxy_asks_for_the_capability_where_there_is_one(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--app-server", f"fake@{LATER}")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([f"*not for Codex {LATER}: it has no v1, and the profile as-specified tests v1 calls"])


def test_a_proxy_without_the_capability_is_refused_in_the_servers_words(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--app-server", f"fake@{LATER}", "-k", "tool", env={"PROXY_EXPERIMENTAL_API": "false"})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*requires experimentalApi capability*"])


def test_the_default_version_has_v1_and_no_capability(pytester: pytest.Pytester) -> None:
    run(pytester).assert_outcomes(passed=2)
    result = run(pytester, "-k", "tool", env={"PROXY_EXPERIMENTAL_API": "true"})
    result.assert_outcomes(failed=1)  # 0.92 knows neither the member nor the form of the tool


def test_what_a_version_has() -> None:
    versions = ("0.92.0", LATER, "0.1.0")
    assert [has_conversations(each) for each in versions] == [True, False, True]
    assert [keeps_experimental(each) for each in versions] == [False, True, False]
    assert all_of("0.1.0") is all_of("0.92.0")


def test_members_are_judged_by_the_version() -> None:
    call = {
        "method": "initialize",
        "params": {"clientInfo": {"name": "a", "version": "1"}, "capabilities": {"experimentalApi": True}},
    }
    assert (unknown_members(call), unknown_members(call, LATER)) == (["initialize.params.capabilities"], [])
