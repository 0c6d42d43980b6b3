"""The pytest plugin, run on small suites: verdicts, exit statuses, options."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from codex_replay.plugin.base.option_table import PROFILES
from tests.plugin.app_server.miniature import ALONE, GOOD, MINIATURE, report, run, subject

pytest_plugins = ["pytester"]


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


def test_only_a_racy_case_may_leave_a_turn_that_is_always_there(suite: pytest.Pytester) -> None:
    spare = '[{"items": ["Unused."], "times": "always"}]'
    starts = {"racy": f'{spare}, racy="either"', "racy_once": '["Unused."], racy="either"', "always": spare}
    case = "def test_{}(app_server):\n    app_server({}).initialize()\n"
    suite.makepyfile(test_it="".join(case.format(name, given) for name, given in starts.items()))
    run(suite).assert_outcomes(passed=1, failed=2)
    passed, once, always = report(suite)["cases"]
    assert passed["outcome"] == "passed"
    for failed in (once, always):
        assert "The server never asked for these turns of the script: [0]" in failed["message"]


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
