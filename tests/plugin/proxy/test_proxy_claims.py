"""Which cases a proxy gets: by profile, by what it claims, and by the dialect of its tool calls."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from codex_replay.plugin.proxy.subject import CAPABILITIES, capabilities_of
from tests.plugin.proxy.runs import run
from tests.strength.proxy_variants import command

pytest_plugins = ["pytester"]


def test_profiles_choose_cases(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.proxy_profile("as-specified")
        def test_one(proxy):
            assert proxy.responses().calls("newConversation")

        @pytest.mark.proxy_profile("works-on-0.92")
        def test_two(proxy):
            proxy.responses()
        """
    )
    run(suite).assert_outcomes(passed=2)
    result = run(suite, "--profile", "as-specified")
    result.assert_outcomes(passed=1, deselected=1)
    assert "newConversation.dynamicTools" in result.stdout.str()


@pytest.mark.parametrize("profile", ["as-specified", "works-on-0.92"])
def test_who_sends_other_calls_than_the_specification_has_is_told_of_the_other_profile(
    suite: pytest.Pytester, profile: str
) -> None:
    suite.makepyfile(
        test_it="import pytest\n@pytest.mark.proxy_profile('as-specified')\ndef test_it(proxy):\n    proxy.responses()\n"
    )
    command = f"env PROXY_PROFILE={profile} {sys.executable} -P -m codex_replay.reference.proxy"
    shown = run(suite, "--profile", "as-specified", "--proxy", command).stdout.str()
    hint = "turn/start. Run with --profile speaks-v2."
    assert (hint in shown) == (profile == "works-on-0.92")


def test_a_capability_that_is_not_claimed_is_told(suite: pytest.Pytester) -> None:
    suite.path.joinpath("pyproject.toml").write_text(
        "[tool.pytest.ini_options]\n[tool.codex-replay.proxy.small]\ncapabilities = ['chat', 'responses']\n"
        f"command = {json.dumps(f'{sys.executable} -P -m codex_replay.reference.proxy')}\n"
    )
    suite.makepyfile(test_it="import pytest\n@pytest.mark.needs('models')\ndef test_it(proxy):\n    pass\n")
    result = run(suite, "-rs")
    result.assert_outcomes(skipped=1)
    assert "not verified: small does not declare the capability models" in result.stdout.str()


def test_a_case_of_an_endpoint_that_is_not_claimed_does_not_run(suite: pytest.Pytester) -> None:
    claim(suite, ["chat"])
    source = """
        import pytest
        @pytest.mark.parametrize("endpoint", ["chat", "responses"])
        def test_it(proxy, endpoint):
            assert endpoint == "chat" and proxy.process().url
        """
    suite.makepyfile(test_it=source)
    result = run(suite, "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    assert "not verified: small does not declare the capability responses" in result.stdout.str()


#: The reference without one route.
WITHOUT = """
import sys
from codex_replay.reference.proxy import app
from codex_replay.reference.proxy.__main__ import main

class App(app.App):
    def __init__(self, *args):
        super().__init__(*args)
        del self._routes["POST", sys.argv[1]]

main.__globals__["App"] = App
sys.exit(main([]))
"""


def claim(suite: pytest.Pytester, claimed: list[str], argv: tuple[str, ...] = ("-m", "codex_replay.reference.proxy")) -> None:
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n[tool.codex-replay.proxy.small]\ncapabilities = {claimed}\n"
        f"command = {json.dumps(shlex.join([sys.executable, '-P', *argv]))}\n"
    )


@pytest.mark.parametrize(("missing", "route"), [("chat", "/v1/chat/completions"), ("responses", "/v1/responses")])
@pytest.mark.parametrize("claimed", [True, False], ids=["claims-it", "does-not"])
def test_a_proxy_of_one_endpoint_gets_no_case_of_the_other(
    suite: pytest.Pytester, missing: str, route: str, claimed: bool
) -> None:
    claim(suite, [name for name in CAPABILITIES if claimed or name != missing], ("-c", WITHOUT, route))
    module = Path(__file__).parents[3] / "suites" / "proxy" / "replies" / "test_behaviour.py"
    here = ["-c", str(suite.path / "pyproject.toml"), "--rootdir", str(suite.path)]
    found = run(suite, *here, str(module), "-k", "dies or disconnect or many or goes_away or one_model").parseoutcomes()
    assert found.get("passed", 0) >= 5
    assert found.get("failed" if claimed else "skipped", 0) >= 5
    assert found.get("skipped" if claimed else "failed", 0) == 0


@pytest.mark.parametrize("missing", ["chat", "responses", "stream"])
def test_a_case_of_an_endpoint_that_is_not_claimed_is_not_judged(suite: pytest.Pytester, missing: str) -> None:
    """The request itself shows what it needs: no case has to say so, and none can forget to."""
    claim(suite, [name for name in CAPABILITIES if name != missing])
    suite.makepyfile(
        test_it="""
        def test_chat(proxy):
            assert proxy.chat().status == 200
        def test_responses(proxy):
            assert proxy.responses().status == 200
        def test_stream(proxy):
            assert proxy.chat({"stream": False}).status == 200
            assert proxy.responses({"stream": True}).status == 200
        def test_raw(proxy):
            assert proxy.ask("POST", "/v1/chat/completions?x=1", b"{").status == 400
        """
    )
    result = run(suite, "-rs")
    skipped = {"chat": 3, "responses": 2, "stream": 1}[missing]
    result.assert_outcomes(passed=4 - skipped, skipped=skipped)
    shown = result.stdout.str()
    assert f"not verified: small does not declare the capability {missing}" in shown
    many = "1 case" if skipped == 1 else f"{skipped} cases"
    assert f"Skipped:\n{many}: small does not declare the capability {missing}\n" in shown
    need = "needs" if skipped == 1 else "need"
    assert f", {skipped} skipped ({skipped} {need} an undeclared capability); " in shown


@pytest.mark.parametrize("able", ["text-tools", "native-tools", ""])
def test_a_request_with_tools_is_for_proxies_that_find_calls(suite: pytest.Pytester, able: str) -> None:
    """Which kind of calls the proxy finds does not matter, if it only has to pass the tools on."""
    claim(suite, ["chat", "responses", *([able] if able else [])])
    suite.makepyfile(
        test_it="""
        TOOLS = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
        def test_tools(proxy):
            assert proxy.responses({"tools": TOOLS}).status == 200
        def test_none(proxy):
            assert proxy.responses({"tools": []}).status == 200
        """
    )
    result = run(suite, "-rs")
    result.assert_outcomes(passed=2 if able else 1, skipped=0 if able else 1)
    if not able:
        assert "Skipped:\n1 case: small does not declare the capability text-tools, native-tools\n" in result.stdout.str()


def test_every_capability_has_a_case() -> None:
    """One that no case needs would be a word without meaning."""
    source = "".join(path.read_text() for path in (Path(__file__).parents[3] / "suites" / "proxy").rglob("*.py"))
    by_mark = {name for name in CAPABILITIES if re.search(rf'needs\([^)]*"{name}"', source)}
    by_request = {*capabilities_of("/v1/chat/completions", {"stream": True}), *capabilities_of("/v1/responses", {})}
    assert by_mark | by_request == set(CAPABILITIES)


@pytest.mark.parametrize("claimed", [True, False], ids=["claims-it", "does-not"])
def test_who_finds_no_calls_in_a_text_says_so_and_is_not_judged_by_them(suite: pytest.Pytester, claimed: bool) -> None:
    """Its native calls are judged all the same. Skipped is neither passed nor failed, and counted in the verdict."""
    able = [name for name in CAPABILITIES if name != "text-tools" or claimed]
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n[tool.codex-replay.proxy.natively]\ncapabilities = {able}\n"
        f"command = {json.dumps(shlex.join(command('calls-not-looked-for')))}\n"
    )
    suite.makepyfile(test_it="def test_else(proxy):\n    assert False\n")
    shape = Path(__file__).parents[3] / "suites" / "proxy" / "replies" / "test_responses_shape.py"
    here = ["-c", str(suite.path / "pyproject.toml"), "--rootdir", str(suite.path)]
    result = run(suite, *here, str(shape), "test_it.py", "-k", "call or else")
    shown = result.stdout.str()
    if claimed:
        result.assert_outcomes(passed=4, failed=3)
        assert "Skipped:" not in shown
    else:
        result.assert_outcomes(passed=3, skipped=3, failed=1)
        assert "Skipped:\n3 cases: natively does not declare the capability text-tools\n" in shown
        assert "FAILED: 1 of 7 cases, 3 skipped (3 need an undeclared capability); proxy natively" in shown


def test_a_proxy_of_another_dialect_gets_no_case_of_tool_call(suite: pytest.Pytester) -> None:
    """Its own dialect is judged; the cases in which the model writes `<tool_call>` are skipped by that name."""
    suite.path.joinpath("pyproject.toml").write_text(
        "[tool.pytest.ini_options]\n[tool.codex-replay.proxy.other]\ntool_calls = ['use_tool']\n"
        f"command = {json.dumps(shlex.join(command('calls-not-looked-for')))}\n"
    )
    replies = Path(__file__).parents[3] / "suites" / "proxy" / "replies"
    here = ["-c", str(suite.path / "pyproject.toml"), "--rootdir", str(suite.path), "-rs", "--profile", "works-on-0.92"]
    cases = [str(replies / name) for name in ("test_tool_calls.py", "test_dialects.py")]
    result = run(suite, *here, *cases, "-k", "finish_reason or use_tool-one or use_tool-plain")
    result.assert_outcomes(passed=10, skipped=2)
    assert "not verified: other does not declare the capability tool_calls tool_call" in result.stdout.str()
