"""The pytest plugin, run on small suites: verdicts, exit statuses, recording, replaying, and no process left behind."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from codex_replay.plugin.base.option_table import PROFILES
from tests.support.processes import left_over
from tests.support.suite_run import ONE_PROCESS

pytest_plugins = ["pytester"]

MINIATURE = Path(__file__).parents[2] / "miniatures" / "server.py"
# Other plugins of this environment have no part in it.
ALONE = [word for name in ("xdist", "cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
GOOD = """
    def test_hello(app_server):
        server = app_server()
        assert server.initialize() == {"userAgent": "miniature/1"}
        assert server.request("turn/start", {}) == {}
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a copy of the miniature server, whose path no other process has in its command line."""
    pytester.path.joinpath("server.py").write_bytes(MINIATURE.read_bytes())
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    return pytester


def subject(suite: pytest.Pytester, way: str = "") -> str:
    return f"{sys.executable} -I {suite.path / 'server.py'} {way}".strip()


def run(suite: pytest.Pytester, *options: str, way: str = "") -> pytest.RunResult:
    """Run on the miniature server, in this process; nothing of it may be left."""
    if not any(option.startswith("--app-server") for option in options):
        options = ("--app-server", subject(suite, way), *options)
    result = suite.runpytest_inprocess(*ALONE, *options)
    assert left_over(suite.path / "server.py") == []
    return result


def report(suite: pytest.Pytester) -> dict:
    (path,) = suite.path.glob("reports/*/report.json")
    return json.loads(path.read_text())


# ------------------------------------------------------------------------------------------------------------ verdicts


def test_a_good_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    result = run(suite)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["suite *module *cases *passed *failed *skipped *time", "*test_it * 1 * 1 * 0 * 0 *", "VERIFIED: 1 case; *"]
    )
    result.stdout.fnmatch_lines(["Report: *report.json"])
    said = report(suite)
    assert (said["report"], said["verdict"]) == (2, "verified")
    assert said["subject"] == {"app-server": subject(suite)}
    (case,) = said["cases"]
    assert (case["module"], case["case"], case["outcome"], case["message"]) == ("test_it", "hello", "passed", "")
    assert case["seconds"] > 0


def test_a_bad_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD + '\n        assert server.request("a", {}) == "b\\x07\\n", "words"\n')
    result = run(suite)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*Traffic (-> client, <- server)*", "*-> initialize", "*<- result of request 0", "FAILED: 1 of 1 case; *"]
    )
    assert report(suite)["cases"][0]["message"].startswith("words")
    (junit,) = suite.path.glob("reports/*/junit.xml")
    root = ElementTree.parse(junit).getroot()
    assert root.get("failures") == "1"
    assert root.find("testsuite/testcase/failure") is not None


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("die-at-start", "exited with status 3"),
        ("die-in-turn", "exited with status 101"),
        ("crash-in-turn", "was ended by signal 11"),
        ("hang", "did not come within 1 s"),
        ("deaf", "did not come within 1 s"),
        ("close-stdout", "is still running, but has closed its stdout"),
        ("ignore-sigterm", "still running 1 s after its stdin ended"),
    ],
)
def test_a_broken_server_fails_its_case(suite: pytest.Pytester, way: str, words: str) -> None:
    # A server has its time to start and to die; what it never does is not waited for as long.
    short = "\n        server.timeout = 1"
    hangs, stays = (
        GOOD.replace('\n        assert server.request("turn', f'{short}\n        assert server.request("turn'),
        GOOD + short,
    )
    suite.makepyfile(test_it={"hang": hangs, "ignore-sigterm": stays}.get(way, GOOD))
    result = run(suite, "--wait", "1" if way == "deaf" else "60", way=way)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()
    if way == "die-in-turn":
        assert "panicked at core.rs:1" in result.stdout.str()


@pytest.mark.parametrize("way", ["flood-stderr", "garbage", "child-holds-stdout", "escaped-child"])
def test_an_odd_server_leaves_nothing(suite: pytest.Pytester, way: str) -> None:
    suite.makepyfile(test_it=GOOD)
    assert run(suite, way=way).ret == 0


def test_the_exit_status_of_a_server_is_looked_at(suite: pytest.Pytester) -> None:
    suite.path.joinpath("server.py").write_text(MINIATURE.read_text() + "    raise SystemExit(7)\n")
    suite.makepyfile(test_it=GOOD)
    result = run(suite)
    result.assert_outcomes(failed=1)
    assert "did not exit cleanly when its stdin ended. The server exited with status 7" in result.stdout.str()


def test_nothing_verified_is_not_green(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="import pytest\n@pytest.mark.skip(reason='later')\ndef test_hello(app_server): app_server()\n")
    result = run(suite)
    assert result.ret == 5
    result.stdout.fnmatch_lines(["NOTHING VERIFIED: *"])
    assert report(suite)["cases"][0]["message"] == "Skipped: later"


def test_a_case_that_starts_no_server_has_verified_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="def test_hello(app_server): pass\n")
    result = run(suite)
    assert result.ret == 1
    assert "started no server, so it did not verify anything" in result.stdout.str()


def test_a_run_without_cases_is_left_alone(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="def test_other(): pass\n")
    result = run(suite)
    assert result.ret == 0
    assert "codex-replay" not in result.stdout.str().split("collected", 1)[1]
    assert not suite.path.joinpath("reports").exists()


def test_profiles(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="import pytest\n@pytest.mark.profile('spec')\n" + GOOD.strip().replace("\n    ", "\n"))
    assert run(suite).ret == 5
    assert run(suite, "--profile", "spec").ret == 0


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_profile_that_no_case_names_is_refused(suite: pytest.Pytester, workers: tuple[str, ...]) -> None:
    good = GOOD.strip().replace("\n    ", "\n")
    suite.makepyfile(test_it=f"import pytest\n{good}\n@pytest.mark.profile('spec')\n{good.replace('hello', 'other')}")
    alone = ALONE if not workers else ALONE[2:]
    for profile, status in (("nope", 4), ("spec", 0)):
        result = suite.runpytest_subprocess(*alone, *workers, "--app-server", subject(suite), "--profile", profile)
        assert result.ret == status
        if status:
            assert "VERIFIED" not in result.stdout.str()
            said = "nope: there is no such profile. The profiles are default, as-specified, works-on-0.92, speaks-v2, spec."
            assert said in " ".join(result.errlines[-3:])
    assert run(suite, "test_it.py::test_hello", "--profile", "spec").ret == 0, "the mark may be on a case that was not chosen"
    assert run(suite, "test_it.py::test_hello", "--profile", "nope").ret == 4


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_of_the_suites_is_known_whatever_was_selected(suite: pytest.Pytester, profile: str) -> None:
    """A module whose cases are all of one profile may run in another that has them, too."""
    good = GOOD.strip().replace("\n    ", "\n")
    suite.makepyfile(test_it=f"import pytest\npytestmark = pytest.mark.proxy_profile('works-on-0.92')\n{good}")
    result = run(suite, "test_it.py", "--profile", profile)
    assert "there is no such profile" not in result.stderr.str()
    assert result.ret == (5 if profile == "as-specified" else 0)


def test_a_profile_is_nothing_to_a_run_without_cases(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="def test_other(): pass\n")
    assert run(suite, "--profile", "own").ret == 0


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nope", "a\0b"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(suite: pytest.Pytester, place: str) -> None:
    suite.makepyfile(test_it=GOOD)
    suite.path.joinpath("file").write_text("")
    result = run(suite, "--report", place)
    assert result.ret == 4
    assert "no report can be written there (" in result.stderr.str()
    assert "VERIFIED" not in result.stdout.str()
    assert suite.path.joinpath("file").read_text() == ""


def test_looking_whether_a_report_can_be_written_leaves_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="def test_other(): pass\n")
    assert run(suite, "--report", "out").ret == 0
    assert not suite.path.joinpath("out").exists()


@pytest.mark.parametrize(("how", "jobs"), [("--plain", "2"), ("--json", "1")])
def test_the_verdict_and_the_report_are_the_last_words(suite: pytest.Pytester, how: str, jobs: str) -> None:
    suite.makepyfile(test_it=GOOD + GOOD.replace("test_hello", "test_other").replace("== {}", "== 5"))
    command = codex_replay("test_it.py", "--app-server", subject(suite), "-n", jobs, how)
    done = subprocess.run(command, cwd=suite.path, capture_output=True, text=True, timeout=120, check=False)
    lines = (done.stdout if how == "--plain" else done.stderr).splitlines()
    assert lines[-6].startswith("FAILED: 1 of 2 cases; "), done.stdout
    assert lines[-5].startswith("No frame was validated: ")
    assert lines[-4] == "Do this next:"
    assert lines[-1].startswith("Report: ")
    assert lines[-1].endswith("report.json")


def test_under_pytest_the_verdict_stands_below_the_list_of_failures(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD + GOOD.replace("test_hello", "test_other").replace("== {}", "== 5"))
    lines = run(suite).outlines
    assert lines[-7].startswith("FAILED: 1 of 2 cases; ")
    assert lines[-2].startswith("Report: ")
    assert "1 failed, 1 passed" in lines[-1]


def test_a_report_that_cannot_be_written_any_more(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD + "\n        import shutil\n        shutil.rmtree('out')\n        open('out', 'w').close()\n")
    result = run(suite, "--report", "out")
    assert "The report cannot be written to" in result.stdout.str()
    assert result.ret == 1  # it was asked for


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--profile", "as-specifed"), "did you mean 'as-specified'?"),
        (("--cassettes", "nowhere"), "nowhere: there is no such folder"),
    ],
)
def test_a_slip_in_an_option_is_no_green_run(suite: pytest.Pytester, options: tuple[str, str], says: str) -> None:
    suite.makepyfile(test_it=GOOD)
    result = run(suite, *options)
    assert result.ret == 4
    assert says in result.stderr.str() + result.stdout.str()


def test_the_two_sides_of_a_failure_are_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    text = """
        import pytest
        @pytest.fixture
        def broken(): assert False, "its fixture"
        def test_first(): assert {"said": 1} == {"said": 2}
        def test_second(broken): pass
        def test_third():
            try:
                assert {"asked": 1} == {"asked": 2}
            except AssertionError:
                pass
            assert not "whole", "another thing"
        """
    pytester.mkpydir("suites")
    pytester.makepyfile(**{"suites/test_it": text})
    # A process of its own: in this one another package `suites` may be loaded already.
    assert pytester.runpytest_subprocess("-p", "no:cacheprovider", "--report", "out").ret == 1
    first, *others = json.loads((pytester.path / "out" / "report.json").read_bytes())["cases"]
    assert (first["expected"], first["actual"]) == ('{\n "said": 2\n}', '{\n "said": 1\n}')
    assert [(case["outcome"], case["expected"], case["actual"]) for case in others] == [("failed", None, None)] * 2


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_has_no_form_in_utf_8_fails_its_case_alone(pytester: pytest.Pytester, workers: str) -> None:
    pytest.importorskip("xdist")
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    text = r"""
        import json
        HALF = json.loads('"' + chr(92) + 'ud800 of a pair"')
        def test_compared(): assert {"said": HALF} == {"said": "all"}
        def test_told(): raise AssertionError(HALF)
        def test_good(): pass
        """
    pytester.mkpydir("suites")
    pytester.makepyfile(**{"suites/test_it": text})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", workers, "--report", "out")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=2)
    cases = {case["case"]: case for case in json.loads((pytester.path / "out" / "report.json").read_bytes())["cases"]}
    assert {name: case["outcome"] for name, case in cases.items()} == {"compared": "failed", "told": "failed", "good": "passed"}
    assert "\\ud800 of a pair" in cases["told"]["message"]
    assert "\\ud800 of a pair" in cases["compared"]["actual"]


def test_cases_are_collected_from_workers(suite: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    suite.makepyfile(test_it=GOOD + GOOD.replace("test_hello", "test_again"))
    result = suite.runpytest_subprocess("-n", "2", "--app-server", subject(suite))
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*test_it * 2 * 2 * 0 * 0 *", "VERIFIED: 2 cases; *"])


# --------------------------------------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--record", "all", "--app-server", "fake"], "only a real app-server can be recorded, not fake"),
        (["--record", "some"], "the modes are none, new, all"),
        (["--app-server", "codex@9.9.9"], "run `codex-replay codex install 9.9.9` first"),
        (["--app-server", "codex@latest"], "codex@latest"),
        (["--app-server", "no-such-program app-server"], "there is no such program; give fake, fake@VERSION, codex@VERSION"),
        (["--app-server", "fake:"], "the command line is empty"),
        (["--app-server", "a 'b"], "this is not a command line"),
        (["--wait", "soon"], "--wait soon: give a number of seconds above 0"),
        (["--wait", "nan"], "--wait nan: give a number of seconds above 0"),
        (["--wait", "inf"], "--wait inf: give a number of seconds above 0"),
        (["--wait", "0"], "--wait 0: give a number of seconds above 0"),
        (["--wait=-1"], "--wait -1: give a number of seconds above 0"),
        (["--backend", "nowhere"], "give fake, fake:COMMAND, or a URL"),
        (["--validate", "maybe"], "use yes or no"),
    ],
)
def test_usage(suite: pytest.Pytester, options: list[str], words: str) -> None:
    suite.makepyfile(test_it=GOOD)
    result = run(suite, *options)
    assert result.ret == 4
    assert words in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_settings_from_pyproject(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    suite.makepyprojecttoml(
        f"[tool.pytest.ini_options]\n[tool.codex-replay]\napp-server = '{subject(suite)}'\nreport = 'out'\nwait = 5\n"
    )
    result = suite.runpytest_inprocess(*ALONE)
    assert result.ret == 0
    assert suite.path.joinpath("out", "report.json").exists()


def test_an_unknown_setting(suite: pytest.Pytester) -> None:
    suite.makepyprojecttoml("[tool.codex-replay]\napp-servr = 'fake'\n")
    result = suite.runpytest_inprocess(*ALONE)
    assert result.ret == 4
    assert "has no key 'app-servr'; did you mean 'app-server'?" in result.stderr.str()


# ---------------------------------------------------------------------------------------------------- record and replay


def cassettes(suite: pytest.Pytester) -> dict[str, bytes]:
    return {
        str(path.relative_to(suite.path)): path.read_bytes()
        for path in suite.path.rglob("*.ndjson")
        if path.name != "stories.ndjson"
    }


RECORDED = """
    import pytest

    @pytest.mark.parametrize("word", ["a", "b c"])
    def test_hello(app_server, word):
        server = app_server(bad_input=True)
        server.initialize()
        assert server.request("turn/start", {"word": word, "cwd": server.work}) == {}
        app_server().initialize()
"""


def test_record_and_replay(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=RECORDED)
    result = run(suite, "--record", "new")
    assert result.ret == 0
    first = cassettes(suite)
    names = [f"cassettes/tests/test_it/hello-{word}.ndjson" for word in ("a.2", "a", "b_c.2", "b_c")]
    assert sorted(first) == names
    result.stdout.fnmatch_lines(["recorded *hello-a.ndjson", "recorded *hello-b_c.ndjson"])
    assert b'"cwd":"/home/user/work"' in first[names[1]]
    assert str(suite.path).encode() not in b"".join(first.values())
    assert run(suite, "--app-server", "fake", "--validate", "no").ret == 0
    again = run(suite, "--record", "all")
    assert again.ret == 0
    assert "recorded" not in again.stdout.str()
    assert cassettes(suite) == first


def test_a_failed_case_leaves_its_cassette_alone(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    first = cassettes(suite)
    suite.makepyfile(test_it=GOOD.replace("turn/start", "turn/begin") + "\n        assert False\n")
    assert run(suite, "--record", "all").ret == 1
    assert cassettes(suite) == first


def test_recording_again_shows_what_has_changed(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    first = cassettes(suite)
    suite.makepyfile(test_it=GOOD.replace("turn/start", "turn/begin"))
    assert run(suite, "--record", "new").ret == 0
    assert cassettes(suite) == first
    assert run(suite, "--record", "all").ret == 0
    assert cassettes(suite) != first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"turn/start", {}', '"turn/start", {"more": 1}'), "differs at params.more"),
        (('"turn/start", {}', '"thread/list", {}'), "no recorded frame matches"),
        (('assert server.request("turn/start", {}) == {}', "pass"), "never came from the client: turn/start"),
    ],
)
def test_another_conversation_than_the_recorded_one(suite: pytest.Pytester, change: tuple[str, str], words: str) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    suite.makepyfile(test_it=GOOD.replace(*change))
    result = run(suite, "--app-server", "fake")
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()


def test_no_recording(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    result = run(suite, "--app-server", "fake")
    assert result.ret == 1
    assert "There is no recording of tests/test_it/hello" in result.stdout.str()


def test_a_broken_cassette(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    (path,) = suite.path.joinpath("cassettes").rglob("*.ndjson")
    path.write_bytes(b"not a cassette\n")
    result = run(suite, "--app-server", "fake")
    assert result.ret == 1
    assert "this is not a cassette header" in result.stdout.str()


def test_a_line_too_long_for_a_cassette(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD.replace('"turn/start", {}', '"turn/start", {"x": "y" * 300_000}'))
    result = run(suite, "--record", "all")
    assert result.ret == 1
    assert "start the server with cut=SIZE" in result.stdout.str()
    assert cassettes(suite) == {}


def test_what_the_case_itself_does_wrong_is_blamed_on_the_harness(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        def test_hello(app_server):
            server = app_server(bad_input=BAD)
            server.initialize()
            server.request("account/read", {"nonsense": 1})
        """.replace("BAD", "False")
    )
    source = Path(__file__).parents[3] / "cassettes/app_server/test_handshake/initialized_is_not_answered.ndjson"
    target = suite.path / "cassettes/tests/test_it/hello.ndjson"
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes().replace(b'"account/read","params":{}', b'"account/read","params":{"nonsense":1}'))
    result = run(suite, "--app-server", "fake")
    assert result.ret == 1
    assert "The case itself sends messages that the protocol does not have (harness)" in result.stdout.str()
    assert "nonsense" in result.stdout.str()
    path = suite.path / "test_it.py"
    path.write_text(path.read_text().replace("bad_input=False", "bad_input=True"))
    assert run(suite, "--app-server", "fake").ret == 0


# ----------------------------------------------------------------------------------------------- when the run is ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_ended_run_leaves_no_process(suite: pytest.Pytester, number: int) -> None:
    suite.makepyfile(
        test_it="""
        def test_hello(app_server, capfd):
            server = app_server()
            server.initialize()
            with capfd.disabled():
                print("server is up", flush=True)
            server.notification("what never comes")
        """
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "--wait", "60"]
    command += ["--app-server", subject(suite, "ignore-sigterm")]
    with subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        assert any(b"server is up" in line for line in child.stdout)
        assert left_over(suite.path) != [] or not Path("/proc/self/cmdline").exists()
        child.send_signal(number)
        rest = child.stdout.read()
        status = child.wait(60)
    assert left_over(suite.path / "server.py") == []
    assert status == (2 if number == signal.SIGINT else 143), rest.decode()


# ---------------------------------------------------------------------------------------------------- codex-replay run


def codex_replay(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from codex_replay.cli.main import main; main()", "run", *arguments]


def test_the_command(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    command = codex_replay("test_it.py", "--app-server", subject(suite), "-n", "1", "-k", "hello", "--report", "out")
    done = subprocess.run(command, cwd=suite.path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFIED: 1 case" in done.stdout
    assert suite.path.joinpath("out", "report.json").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "sentences"),
    [
        (["no-such-suite"], 4, ["There is no suite 'no-such-suite'. The suites are app_server"]),
        ([""], 4, ["A SUITE argument is empty"]),
        (["app_server", "--record", "all"], 4, ["only a real app-server can be recorded"]),
        (["app_server", "-k", "no-such-case"], 5, ["deselected", "NOTHING VERIFIED: no case was selected."]),
    ],
)
def test_usage_of_the_command(tmp_path: Path, arguments: list[str], status: int, sentences: list[str]) -> None:
    done = subprocess.run(
        codex_replay(*arguments, "-n", "1"), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert [words for words in sentences if words not in done.stdout + done.stderr] == []
    assert done.returncode == status


def test_a_failed_case_of_an_installed_suite_can_be_named_again(tmp_path: Path) -> None:
    """The suites lie outside the folder in which the run is started, and one module of them is the whole run."""

    def fails(name: str) -> tuple[str, dict]:
        command = codex_replay(name, "--proxy", "false", "-k", "terminator", "--report", "out")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("FAILED suites/")][:1]
        return line.split()[1], json.loads((tmp_path / "out" / "report.json").read_text())["cases"][0]

    name, case = fails("proxy/test_chat_shape.py")
    assert name == case["nodeid"]
    again, _ = fails(name)
    assert again == name
    whole = json.loads((tmp_path / "out" / "report.json").read_text())["command"]
    assert whole.startswith(f"codex-replay run {name.removeprefix('suites/')} --proxy=false --report=out -n 2 -k")
    # The report may be read on another machine: nothing in the command is a folder of this one.
    words = shlex.split(case["again"])
    assert words[:3] == ["codex-replay", "run", name.removeprefix("suites/")]
    assert not [word for word in words if word.startswith(("/", ".."))], case["again"]
    env = {**os.environ, **ONE_PROCESS}
    done = subprocess.run(codex_replay(*words[2:]), cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1, case["again"]
    found = json.loads((tmp_path / "out" / "again" / "report.json").read_text())["cases"]
    assert [each["nodeid"] for each in found] == [name]
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing else is left in somebody's project"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGINT, {"verdict": "failed", "exit": 2, "report": "report.json"}),
        (signal.SIGTERM, {"verdict": "failed", "exit": 143, "report": "report.json"}),
    ],
)
def test_an_ended_command_ends_its_run_and_says_what_came_of_it(suite: pytest.Pytester, number: int, expected: object) -> None:
    """An interrupt goes to the whole group, as from a terminal; a TERM to the command alone, as from a CI."""
    suite.makepyfile(
        test_it="""
        import sys
        def test_hello(app_server, capfd):
            server = app_server()
            server.initialize()
            with capfd.disabled():
                print("server is up", file=sys.stderr, flush=True)
            server.notification("what never comes")
        """
    )
    options = ["--app-server", subject(suite, "ignore-sigterm"), "-n", "1", "--wait", "60", "--report", "out", "--json"]
    with subprocess.Popen(
        codex_replay("test_it.py", *options),
        cwd=suite.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert any(b"server is up" in line for line in child.stderr)
        if number == signal.SIGINT:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
        said, _ = child.communicate(timeout=60)
    assert left_over(suite.path / "server.py") == []
    found = json.loads(said)
    assert {**found, "report": found["report"] and Path(found["report"]).name} == expected
    assert child.returncode == found["exit"]


def test_the_live_display(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD + GOOD.replace("test_hello", "test_other").replace("== {}", "== 5"))
    master, slave = pty.openpty()
    command = codex_replay("test_it.py", "--app-server", subject(suite), "-n", "1")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, cwd=suite.path, stdout=slave, stderr=slave, env=environment) as child:
        os.close(slave)
        seen = b""
        while select.select([master], [], [], 120)[0]:
            try:
                data = os.read(master, 1 << 16)
            except OSError:  # Linux: the other side is closed
                break
            if not data:
                break
            seen += data
        status = child.wait(60)
    os.close(master)
    text = seen.decode()
    assert status == 1, text
    assert "2/2" in text
    assert "FAILED test_it.py::test_other" in text
    assert "FAILED: 1 of 2 cases" in text
