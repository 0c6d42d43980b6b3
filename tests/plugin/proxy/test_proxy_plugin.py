"""The `proxy` fixture: what `--proxy` may name, how subjects are started, judged and ended, and what a failure shows."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.base.subjects import BadSubject
from codex_replay.plugin.proxy.fields import fields, table
from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.process import free_port
from codex_replay.plugin.proxy.script import for_proxies, marker_of
from codex_replay.plugin.proxy.subject import CAPABILITIES, capabilities_of, parse_proxy
from codex_replay.plugin.proxy.vectors import load_vectors
from codex_replay.plugin.proxy.wire import Wire, WireFrame
from tests.reference.proxy_driver import running
from tests.strength.proxy_variants import command
from tests.support.processes import left_over

pytest_plugins = ["pytester"]
LEAN = ["-p", "no:cacheprovider"]
ALONE = [*LEAN, "-p", "no:xdist"]
PROXIES = Path(__file__).parents[2] / "miniatures" / "proxies"
CASE = """
    import pytest

    @pytest.mark.model("Hello there.")
    @pytest.mark.parametrize("endpoint", ["chat", "responses"])
    def test_it(proxy, endpoint):
        done = proxy.post(endpoint)
        assert "Hello there." in str(done.json)
        assert len(proxy.model_calls()) == 1
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(test_it=CASE)
    pytester.path.joinpath("bad_proxy.py").write_bytes((PROXIES / "bad_proxy.py").read_bytes())
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    result = suite.runpytest_inprocess(*ALONE, *options)
    assert left_over(suite.path) == []
    return result


def test_the_reference_is_started_asked_and_ended(suite: pytest.Pytester) -> None:
    result = run(suite)
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("never", "The proxy was not ready within 5 s: GET /v1/models gave no complete answer"),
        ("exits", "The proxy ended (status 3) before it answered GET /v1/models: no database."),
        ("http10", "The proxy answers with HTTP/1.0; it must speak HTTP/1.1."),
        ("always500", "The proxy was not ready within 5 s: GET /v1/models gave status 500."),
        ("deaf", "The proxy was not ready within 1 s: GET /v1/models gave a refused connection: no server listens at http://"),
        ("garbage", "The proxy was not ready within 5 s: GET /v1/models gave the connection failed (BadStatusLine"),
        ("post500", "POST /v1/chat/completions must succeed, but was answered 500"),
        ("hangs", "POST /v1/responses: no complete answer within 1 s."),
        ("drips", "POST /v1/responses: no complete answer within 1 s."),
        ("children", "assert 'Hello there.' in"),
        ("stubborn", "assert 'Hello there.' in"),
        ("starting", "assert 'Hello there.' in"),  # /readyz is 503 at first, though the list of models is there
        ("noget", "assert 'Hello there.' in"),  # 501 is an answer: there is no such route
        ("nomodels", "assert 'Hello there.' in"),  # /readyz is 200, though the list of models is broken
        ("busy", "assert 'Hello there.' in"),  # asked again after retry-after-ms
    ],
)
def test_a_bad_proxy_gets_a_verdict_in_time(suite: pytest.Pytester, way: str, sentence: str) -> None:
    """The sentence stands in every case, though only one has waited; and nothing of the proxy is left."""
    seconds = next((found for found in (1, 5) if f"within {found} s: GET" in sentence), 30)
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n[tool.codex-replay.proxy.bad]\nready_seconds = {seconds}\n"
        f"command = {json.dumps(f'{sys.executable} {suite.path}/bad_proxy.py {way}')}\n"
    )
    result = run(suite, "--wait", "1")
    result.assert_outcomes(failed=2)
    text = result.stdout.str().replace("\nE   ", "\n")
    for part in sentence.split("*"):
        assert part in text


@pytest.fixture
def counted(suite: pytest.Pytester) -> str:
    """A proxy that writes a line for each of its starts, and ends when $WHAT has a word in it: `broken`, for one."""
    path = suite.path / "counted.sh"
    path.write_text(
        f"#!/bin/sh\necho start >> {suite.path}/starts\n"
        'if [ "${WHAT-$1}" = broken ]; then echo no database >&2; exit 3; fi\n'
        f"exec {sys.executable} -m codex_replay.reference.proxy\n"
    )
    path.chmod(0o755)
    suite.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.parametrize("env", [{}, {"A": "1"}, {"A": "2"}, {}], ids=str)
        def test_plain_first(proxy, env):
            proxy.responses(env=env)

        @pytest.mark.parametrize("env", [{"WHAT": "broken"}, {}, {"WHAT": "broken"}, {"A": "2"}], ids=str)
        def test_special_first(proxy, env):
            proxy.responses(env=env)
        """
    )
    return str(path)


def test_one_that_hangs_is_waited_for_briefly_after_some_cases(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    server = (
        "import http.server, os, time\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    def do_GET(self):\n"
        "        self.send_response(200)\n"
        "        self.send_header('Content-Length', '0')\n"
        "        self.end_headers()\n"
        "    def do_POST(self):\n"
        "        time.sleep(9)\n"
        "http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()\n"
    )
    (suite.path / "server.py").write_text(server)
    monkeypatch.setattr("codex_replay.plugin.proxy.fixture.WAIT", 1.0)
    suite.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.parametrize("n", range(5))
        def test_hangs(proxy, n):
            proxy.responses()
        """
    )
    text = run(suite, "--proxy", f"{sys.executable} server.py").stdout.str()
    assert text.count("no complete answer within 1 s") >= 3
    assert text.count("no complete answer within 0.3 s") >= 2


STUCK = """
    import pytest

    RUNS = {"type": "function_call", "name": "shell_command", "arguments": {"command": "touch x"}, "call_id": "call_7"}
    FAILS = {"status": 500, "error": {"message": "oops"}, "times": "always"}

    @pytest.mark.parametrize("n", range(5))
    @pytest.mark.model(turns=[{"items": [RUNS]}, {"items": ["So be it."]}])
    def test_approval(proxy, n):
        proxy.responses(env={"PROXY_APPROVAL_POLICY": "untrusted"})

    @pytest.mark.parametrize("n", range(5))
    @pytest.mark.model(turns=[FAILS])
    def test_fault(proxy, n):
        proxy.responses(ok=False, within=0.9)
"""


@pytest.mark.parametrize(
    ("variant", "case", "sentence", "seconds"),
    [
        (
            "approvals-not-answered",
            "approval",
            "did not answer the app-server's request item/commandExecution/requestApproval",
            1.0,
        ),
        (
            "faults-wait-for-an-idle-timeout",
            "fault",
            "must end within 0.9 s after the app-server had reported the failed turn",
            0.9,
        ),
    ],
)
def test_what_only_the_proxy_can_end_is_given_up_by_the_frames(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variant: str, case: str, sentence: str, seconds: float
) -> None:
    """The answer of a proxy that is stuck is not awaited until the limit, and after some cases of one cause for less."""
    monkeypatch.setattr("codex_replay.plugin.proxy.no_end.REACTION", 1.0)
    monkeypatch.setattr("codex_replay.plugin.proxy.no_end.LEAST_REACTION", 0.0)
    suite.makepyfile(test_it=STUCK)
    text = run(suite, "--proxy", shlex.join(command(variant)), "-k", case).stdout.str().replace("\nE   ", "\n")
    assert text.count(sentence) >= 5
    waited = [float(found) for found in re.findall(r"^    .*no complete answer within ([\d.]+) s\.", text, re.M)]
    assert len(waited) == 5
    assert all(limit >= seconds for limit in waited[:2])
    assert min(waited) < seconds


def test_a_turn_that_goes_on_behind_a_green_case_does_not_reach_the_next(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        import pytest

        USED = []

        @pytest.mark.model("First.", {"type": "wait", "ms": 5000}, "Second.")
        def test_green(proxy):
            proxy.responses()
            USED.append(proxy.running.process.pid)

        @pytest.mark.model("Hi.")
        def test_next(proxy):
            proxy.responses()
            assert proxy.running.process.pid not in USED
        """
    )
    argv = ["env", "PROXY_DEFECTS=first-message", sys.executable, str(PROXIES / "loop_proxy.py")]
    run(suite, "--proxy", shlex.join(argv)).assert_outcomes(passed=2)


def test_two_submissions_that_the_server_joins_leave_no_turn_behind(suite: pytest.Pytester) -> None:
    """A red case retires the process only if a turn goes on: starting another one takes longer than most cases."""
    suite.makepyfile(
        test_it="""
        import pytest

        USED = set()

        @pytest.mark.parametrize("n", range(3))
        @pytest.mark.model("Hi.")
        def test_red(proxy, n):
            done = proxy.responses()
            USED.add(proxy.running.process.pid)
            assert len(done.calls("turn/start", "sendUserMessage")) == 1

        def test_one_process():
            assert len(USED) == 1
        """
    )
    run(suite, "--proxy", shlex.join(command("prompt-in-turn-and-message"))).assert_outcomes(passed=1, failed=3)


def test_the_limit_of_an_answer_does_not_count_the_silence_of_the_model(suite: pytest.Pytester) -> None:
    """A short limit, of `--wait` or after timeouts, must not make a case with a slow model red."""
    suite.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.model(turns=[{"items": ["At last."], "first_delay_ms": 2500, "times": "always"}])
        def test_slow(proxy):
            assert "At last." in str(proxy.responses().json)
        """
    )
    run(suite, "--wait", "2").assert_outcomes(passed=1)


def test_one_that_does_not_start_is_started_once_and_told_whole_once(suite: pytest.Pytester, counted: str) -> None:
    """With a hundred environments, each with twenty seconds to get ready, a run would else take half an hour."""
    result = run(suite, "--proxy", f"{counted} broken", "-k", "plain_first")
    result.assert_outcomes(failed=4)
    assert (suite.path / "starts").read_text().split() == ["start"]
    text = result.stdout.str()
    assert "The stderr of the proxy" not in text
    told = "The proxy ended (status 3) before it answered GET /v1/models: no database. (An earlier case has the details.)\n"
    assert text.count(f"\n{told}") == 3
    assert f"4 cases: {told.partition(' (')[0]} (" in text
    assert (
        "Fix the one cause of every failure: The proxy ended (status 3) before it answered GET /v1/models: no database.\n" in text
    )
    assert "in start" not in text  # where the harness starts it is of no help


def test_one_that_does_not_start_in_a_special_environment_is_judged_in_others(suite: pytest.Pytester, counted: str) -> None:
    result = run(suite, "--proxy", counted, "-k", "special_first")
    result.assert_outcomes(failed=2, passed=2)
    assert (suite.path / "starts").read_text().split() == ["start"] * 3


def test_a_failure_shows_both_seams(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=CASE.replace("== 1", "== 2"))
    result = run(suite, "-k", "chat")
    result.assert_outcomes(failed=1)
    shown = result.stdout.str()
    shown = shown[shown.index("HTTP and JSON-RPC") :]
    order = ["> POST /v1/chat/completions", '"method":"initialize"', "Hello there.", "< 200"]
    assert [shown.index(word) for word in order] == sorted(shown.index(word) for word in order)


def test_the_app_server_can_write_in_fragments(suite: pytest.Pytester) -> None:
    """The tap cuts what the server says, and takes it down whole; the proxy is told nothing of it."""
    suite.makepyfile(
        test_it="""
        import os, subprocess

        def test_it(proxy):
            done = proxy.chat(env={"CODEX_REPLAY_PIECE": "37"})
            assert done.json["choices"][0]["message"]["content"] == "Hello."
            assert "CODEX_REPLAY_PIECE" not in proxy.running.env
            codex = subprocess.Popen([proxy.running.folder / "codex", "app-server"], stdin=-1, stdout=-1)
            codex.stdin.write(b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"a","version":"1"}}}\\n')
            codex.stdin.flush()
            first = os.read(codex.stdout.fileno(), 37)
            assert first.startswith(b'{"id":1,') and len(first) == 37
            line = first + codex.stdout.readline()
            codex.stdin.close()
            codex.stdout.close()
            codex.wait(20)
            ledger = (proxy.running.folder / f"wire.{codex.pid}").read_text()
            assert line.decode().strip().replace('"', '\\\\"') in ledger
        """
    )
    run(suite).assert_outcomes(passed=1)


def test_cases_with_one_environment_share_a_process(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        import pytest
        pids = []

        @pytest.mark.parametrize("flag", ["a", "a", "b", "a"])
        def test_it(proxy, flag):
            proxy.responses(env={"FLAG": flag})
            pids.append(proxy.running.process.pid)

        def test_then():
            assert pids[0] == pids[1] == pids[3] != pids[2]
        """
    )
    run(suite).assert_outcomes(passed=5)


def test_the_model_takes_its_time_and_repeats_the_reply_of_one_request(suite: pytest.Pytester) -> None:
    """A request that asks the model twice leaves the next one its reply; a call is not repeated; a turn may have its prompt."""
    suite.makepyfile(
        test_it="""
        import pytest

        CALL = {"type": "function_call", "name": "shell_command", "arguments": {"command": "ls"}, "call_id": "call_1"}

        def replies(proxy, *texts):
            return [proxy.responses({"input": proxy.prompt(text)}).json["output"] for text in texts]

        @pytest.mark.model("Hello there.")
        def test_the_only_turn_repeats(proxy):
            first, second, third = replies(proxy, "a", "b", "c")
            assert "Hello there." in str(first) and "Hello there." in str(third)

        @pytest.mark.model(turns=[{"match": "to fail", "status": 400, "error": {"message": "no"}, "times": "always"},
                                  {"match": "to work", "items": ["Good."], "times": "always"}])
        def test_a_turn_has_its_prompt(proxy):
            assert proxy.responses({"input": proxy.prompt("to fail")}, ok=False).status >= 400
            assert "Good." in str(replies(proxy, "to work"))

        @pytest.mark.model(CALL)
        def test_a_call_is_made_once(proxy):
            replies(proxy, "a")
            assert len(proxy.model_calls()) <= 2

        @pytest.mark.model("Later.")
        def test_it_takes_its_time(proxy):
            done = proxy.responses()
            begun = next(frame.t for frame in done.frames if '"turn/start"' in frame.raw or '"sendUserTurn"' in frame.raw)
            said = next(frame.t for frame in done.frames if "Later." in frame.raw)
            assert said - begun >= 0.3
        """
    )
    row = {"command": f"{sys.executable} -m codex_replay.reference.proxy", "model_ms": 300}
    suite.makepyprojecttoml(
        "[tool.pytest.ini_options]\n[tool.codex-replay.proxy.mine]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items())
    )
    run(suite).assert_outcomes(passed=4)


def test_a_turn_that_sets_its_own_time_keeps_it() -> None:
    turns = [{"items": ["a"]}]
    assert for_proxies(turns, 20)["defaults"] == {"first_delay_ms": 20}
    assert for_proxies({"turns": turns, "defaults": {"first_delay_ms": 1}}, 20)["defaults"] == {"first_delay_ms": 1}


def test_a_turn_that_repeats_answers_the_same_message_once() -> None:
    """A prompt that is submitted twice is one model call or two; chance decides, and the text of the answer is the same."""
    first, empty = {"repeated": False}, {"items": [], "usage": {"input_tokens": 0, "output_tokens": 0}, "times": "always"}
    always = {"items": ["a"], "times": "always"}
    assert for_proxies([{**always, "match": "x;"}], 20)["turns"] == [{**always, "match": {**first, "prompt": "x;"}}, empty]
    assert for_proxies([always], 20)["turns"] == [{**always, "match": first}, empty]
    in_order = [{"items": ["a"]}, {"items": ["b"], "times": "always"}]
    assert for_proxies(in_order, 20)["turns"] == [*in_order, empty]


def test_a_proxy_that_died_is_started_again(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        import os, signal, pytest

        def test_kills(proxy):
            proxy.responses()
            os.kill(proxy.running.process.pid, signal.SIGKILL)
            assert proxy.running.process.exited.wait(5)

        def test_goes_on(proxy):
            proxy.responses()
        """
    )
    run(suite).assert_outcomes(passed=2)


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


#: The reference that sends something all the while between the events of its streams.
KEEPS_ALIVE = """
import sys
from codex_replay.reference.proxy.__main__ import main
from tests.strength.proxy_variants.wrong_http import keeps_alive

keeps_alive(sys.argv[1].encode().decode("unicode_escape").encode(), 0.02)
sys.exit(main([]))
"""


@pytest.mark.parametrize("said", [r": ping\n\n", r"data: ping\n\n", r"data:\n\n"])
def test_comments_of_a_silent_stream_are_accepted_and_events_are_not(suite: pytest.Pytester, said: str) -> None:
    root = Path(__file__).parents[3]
    argv = ["env", f"PYTHONPATH={root}", sys.executable, "-P", "-c", KEEPS_ALIVE, said]
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n[tool.codex-replay.proxy.awake]\ncommand = {json.dumps(shlex.join(argv))}\n"
    )
    here = ["-c", str(suite.path / "pyproject.toml"), "--rootdir", str(suite.path), "--profile", "works-on-0.92"]
    cases = [str(root / "suites" / "proxy" / "replies" / name) for name in ("test_service.py", "test_types.py")]
    result = run(suite, *here, *cases, "-k", "silent_stream or (types_of_chat and stream)")
    found, shown = result.parseoutcomes(), result.stdout.str()
    if said.startswith(":"):
        assert (found.get("failed", 0), found["passed"] >= 4) == (0, True), shown
    else:
        assert found["failed"] >= 2
        assert "To keep a connection alive, send a comment" in shown


def test_of_a_url_where_nobody_listens_it_is_said_so(suite: pytest.Pytester) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    suite.path.joinpath("pyproject.toml").write_text(
        f'[tool.pytest.ini_options]\n[tool.codex-replay.proxy.away]\nready_seconds = 1\nurl = "{url}"\n'
    )
    result = run(suite)
    result.assert_outcomes(failed=2)
    sentence = f"within 1 s: GET /v1/models gave a refused connection: no server listens at {url}. Start the proxy before the run"
    assert sentence in result.stdout.str()


def test_a_proxy_that_runs_is_attached_to_and_left_alone(suite: pytest.Pytester) -> None:
    """What needs an environment is skipped with its reason; what looks at the other seam fails."""
    with running(suite.path, PROXY_PROFILE="works-on-0.92", PROXY_API_KEY="sk-mine") as found:
        suite.path.joinpath("pyproject.toml").write_text(
            "[tool.pytest.ini_options]\n[tool.codex-replay.proxy.there]\nkey = 'sk-mine'\n"
            f"url = 'http://127.0.0.1:{found.port}/v1'\nready = '/health'\n"
        )
        suite.makepyfile(
            test_it="""
            def test_answers(proxy):
                assert proxy.chat().json["choices"][0]["message"]["content"] == "Hello."

            def test_payload(proxy):
                proxy.responses().params("newConversation")

            def test_environment(proxy):
                proxy.chat(env={"PROXY_SANDBOX_MODE": "read-only"})
            """
        )
        result = suite.runpytest_inprocess(*ALONE, "-rs")
        result.assert_outcomes(passed=1, failed=1, skipped=1)
        shown = result.stdout.str()
        assert "not verified: the environment of a proxy that is given as a URL cannot be set" in shown
        assert "The proxy must send newConversation once for this request, but sent it 0 times." in shown
        assert found.process.poll() is None


# -- the parts -------------------------------------------------------------------------------------------------------------


def test_a_name_of_the_table_is_the_default_when_it_is_the_only_one() -> None:
    rows: dict[str, Any] = {"mine": {"url": "http://127.0.0.1:1/v1/", "key": "k"}}
    found = parse_proxy(None, rows)
    assert (found.name, found.url, found.key) == ("mine", "http://127.0.0.1:1", "k")
    assert parse_proxy("reference", rows).name == "reference"
    assert parse_proxy(None, {**rows, "other": {"command": "true"}}).name == "reference"


@pytest.mark.parametrize(
    ("text", "rows", "sentence"),
    [
        ("no-such-program x", {}, "there is no such program"),
        (f"{shlex.quote(__file__)} x", {}, "test_proxy_plugin.py is a file, but not executable; put its interpreter before it"),
        ("'", {}, "this is not a command line"),
        ("m", {"m": {}}, "must have either a command or a url"),
        ("m", {"m": {"comand": "true"}}, "did you mean 'command'"),
        ("m", {"m": {"command": "true", "url": "x"}}, "must have either a command or a url"),
        ("m", {"m": {"command": "true", "ping": "x"}}, "has no key 'ping'"),
        ("m", {"m": {"command": "true", "env": {"A": 1}}}, "env must be a table of strings"),
        ("m", {"m": {"command": "true", "capabilities": ["magic"]}}, "capabilities must be a list of:"),
        ("m", {"m": {"command": "true", "ready_seconds": "x"}}, "ready_seconds must be a number"),
        ("m", {"m": {"command": "true", "ready": 1}}, "ready must be a string"),
    ],
)
def test_what_is_no_proxy_is_said(text: str, rows: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSubject, match=sentence):
        parse_proxy(text, rows)


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, [("Retry-After", "2")], 2.0),
        (503, [("retry-after", "0.5")], 0.5),
        (503, [("retry-after-ms", "250")], 0.25),
        (429, [("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")], 0.0),
        (429, [("Retry-After", "soon")], None),
        (429, [], None),
        (500, [("Retry-After", "2")], None),
    ],
)
def test_when_a_busy_proxy_wants_to_be_asked_again(status: int, headers: list[tuple[str, str]], seconds: float | None) -> None:
    assert Exchange("POST", "/", None, status=status, headers=headers).retry_after == seconds


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_a_number_of_clients_that_is_none_is_a_sentence(suite: pytest.Pytester, given: str) -> None:
    result = suite.runpytest_inprocess(*ALONE, f"--clients={given}")
    result.stderr.fnmatch_lines([f"*--clients {given}: give a number, 1 or more."])


def test_the_clients_of_a_run_go_before_those_of_the_table(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="def test_it(proxy):\n    assert proxy.clients == 3")
    run(suite, "--clients", "3").assert_outcomes(passed=1)


def test_markers_tell_cases_apart() -> None:
    assert marker_of("a[1]") != marker_of("a[2]")
    assert marker_of("a[1]") == marker_of("a[1]")


def test_the_ledgers_of_several_children_are_one_timeline(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    (tmp_path / "wire.7").write_text(
        '{"t":1,"run":0}\n{"t":1,"got":"{\\"id\\":1,\\"method\\":\\"a\\"}"}\n{"t":3,"said":"x"}\n{"t":4,"go'
    )
    (tmp_path / "wire.8").write_text('{"t":2,"said":"{\\"id\\":1,\\"result\\":{}}"}\n')
    assert [(f.child, f.sender, f.kind) for f in wire.update()] == [
        ("7", "client", "request"),
        ("8", "server", "response"),
        ("7", "server", "other"),
    ]
    assert wire.update() == []
    with open(tmp_path / "wire.7", "a") as file:
        file.write('t":"{}"}\n')
    assert [frame.t for frame in wire.update()] == [4]


def test_the_table_of_fields_tells_the_three_verdicts() -> None:
    rows = [
        ["newConversation", "", "call", True, True, True],
        ["newConversation", "", "call", True, True, True],
        ["newConversation", "model", "value", True, True, True],
        ["newConversation", "config", "null", True, True, True],
        ["newConversation", "mode1", "value", False, False, False],
        ["thread/start", "", "call", False, True, True],
        ["thread/start", "model", "value", False, True, True],
    ]
    lines = {line.split()[0]: line.split()[1:] for line in table(rows)}
    assert lines["newConversation.model"] == ["yes", "yes", "yes", "value", "1x,", "omitted", "1x"]
    assert lines["newConversation.config"] == ["yes", "yes", "yes", "null", "1x,", "omitted", "1x"]
    assert lines["newConversation.mode1"] == ["no", "no", "no", "value", "1x,", "omitted", "1x"]
    assert lines["newConversation.cwd"] == ["yes", "-", "-", "omitted", "2x"]
    assert lines["thread/start.model"] == ["-", "yes", "yes", "value", "1x"]
    assert lines["sendUserTurn.model"] == ["yes", "-", "-"]


def test_every_field_gets_its_verdicts() -> None:
    calls = [
        {"method": "initialize", "params": {"clientInfo": {}}},
        {
            "method": "newConversation",
            "params": {"model": "m", "config": None, "dynamicTools": [], "sandbox": "no-such", "extra": 1},
        },
        {"method": "sendUserMessage", "params": {"conversationId": 5, "items": []}},
        {"method": "thread/start", "params": {"model": "m", "reasoning": {}}},
        {"method": "no/such", "params": {"a": 1}},
    ]
    frames = [WireFrame(0.0, "1", "client", json.dumps(json.dumps({"id": 1, **call})).encode()) for call in calls]
    rows = {(row[0], row[1]): row[2:] for row in fields([Exchange("POST", "/", None, frames=frames)]) if row[1]}
    assert rows == {
        ("initialize", "clientInfo"): ["value", False, False, True],
        ("newConversation", "model"): ["value", True, True, True],
        ("newConversation", "config"): ["null", True, True, True],
        ("newConversation", "dynamicTools"): ["value", True, True, False],
        ("newConversation", "sandbox"): ["value", True, False, True],
        ("newConversation", "extra"): ["value", False, True, False],
        ("sendUserMessage", "conversationId"): ["value", True, False, True],
        ("sendUserMessage", "items"): ["value", True, True, True],
        ("thread/start", "model"): ["value", False, True, True],
        ("thread/start", "reasoning"): ["value", False, True, False],
        ("no/such", "a"): ["value", False, False, False],
    }


@pytest.mark.parametrize("distributed", [False, True], ids=["alone", "xdist"])
def test_both_profiles_are_reported(suite: pytest.Pytester, distributed: bool) -> None:
    """On the terminal and as JSON, the rows of a case that failed too."""
    suite.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.proxy_profile("as-specified")
        def test_one(proxy):
            assert proxy.responses().calls("thread/start")

        @pytest.mark.proxy_profile("works-on-0.92")
        def test_two(proxy):
            proxy.responses()
        """
    )
    folder = suite.path / "told"
    options = [*LEAN, "-n", "2"] if distributed else ALONE
    result = suite.runpytest_subprocess(*options, "--report", str(folder))
    result.assert_outcomes(passed=1, failed=1)
    shown = result.stdout.str()
    assert shown.index("Fields that the proxy sends to app-server (as-specified)") < shown.index(
        "Fields that the proxy sends to app-server (works-on-0.92)"
    )
    told = json.loads((folder / "proxy-fields.json").read_text(encoding="utf-8"))
    assert told["proxy"] == "reference"
    rows = {p: {(row["method"], row["field"]): row for row in found} for p, found in told["profiles"].items()}
    assert list(rows) == ["as-specified", "works-on-0.92"]
    assert rows["as-specified"]["newConversation", "model"] == {
        "method": "newConversation",
        "field": "model",
        "specified": True,
        "valid": True,
        "known": True,
        "value": 1,
        "null": 0,
        "omitted": 0,
        "calls": 1,
    }
    assert rows["works-on-0.92"]["thread/start", "ephemeral"]["specified"] is None
    assert ("newConversation", "model") not in rows["works-on-0.92"], "nothing of those calls came"
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["proxy_fields"] == told
    if not distributed:  # the handshake of a process is seen by the first case alone
        assert rows["as-specified"]["initialize", "clientInfo"]["value"] == 1


def test_the_vectors_are_plain_and_named_once() -> None:
    vectors = load_vectors()
    assert len({vector.id for vector in vectors}) == len(vectors)
    for vector in vectors:
        assert vector.why.endswith(".")
        assert "".join(vector.chunks(7)) == vector.text
        assert not any("${" in name for outcome in vector.outcomes for name, _ in outcome.calls)
