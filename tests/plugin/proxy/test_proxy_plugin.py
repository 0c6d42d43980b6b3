"""The `proxy` fixture: how subjects are started, judged and ended, and what a failure shows."""

from __future__ import annotations

import json
import re
import shlex
import sys

import pytest

from codex_replay.plugin.proxy.no_end import FAILED, UNANSWERED
from codex_replay.plugin.proxy.script import for_proxies
from codex_replay.shell.process.patience import PART, Patience
from tests.plugin.proxy.runs import CASE, PROXIES, run
from tests.strength.proxy_variants import command

pytest_plugins = ["pytester"]


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
    monkeypatch.setattr("codex_replay.plugin.proxy.fixture.WAIT", 60.0)  # a busy machine may need seconds until the turn ends
    limits: list[float] = []
    part = Patience.part

    def noted(self: Patience, default: float, cause: str, least: float = 0.0) -> float:
        limit = part(self, default, cause, least)
        if cause in (UNANSWERED, FAILED):
            limits.append(limit)
        return limit

    monkeypatch.setattr(Patience, "part", noted)
    monkeypatch.setattr("codex_replay.plugin.proxy.no_end.LEAST_REACTION", 0.0)
    suite.makepyfile(test_it=STUCK)
    text = run(suite, "--proxy", shlex.join(command(variant)), "-k", case).stdout.str().replace("\nE   ", "\n")
    assert text.count(sentence) >= 5
    waited = [float(found) for found in re.findall(r"^    .*no complete answer within ([\d.]+) s\.", text, re.M)]
    assert len(waited) == 5
    assert all(limit >= seconds for limit in waited[:2])
    assert list(dict.fromkeys(limits)) == [seconds, seconds * PART], "the first waits are the longer ones"


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
