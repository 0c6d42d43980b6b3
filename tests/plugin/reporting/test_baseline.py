"""The baseline: known failures pass, stale lines fail, unmatched lines are usage errors; alone and with pytest-xdist."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.plugin.reporting.baseline_file import UNEXPLAINED, parse

pytest_plugins = ["pytester"]


ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]


SUITE = """
    import pytest

    @pytest.mark.spec("good-one", "PAY-01")
    def test_good():
        pass

    @pytest.mark.parametrize("n", [1, 2, 3])
    @pytest.mark.spec("bad-some", "PAY-01")
    def test_some(n):
        assert n == 2

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.spec("bad-all", "PAY-01")
    def test_all(n):
        assert False
"""


def runner(pytester: pytest.Pytester, distributed: bool):
    """Return what runs the suite on a baseline with this text (None: the file as it stands)."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(test_it=SUITE)

    def runs(text: str | None, *options: str) -> pytest.RunResult:
        if text is not None:
            pytester.path.joinpath("known.yaml").write_text(text, encoding="utf-8")
        if distributed:
            return pytester.runpytest_subprocess(*ALONE, "-n", "2", "--baseline", "known.yaml", *options)
        return pytester.runpytest_inprocess(*ALONE, "-p", "no:xdist", "--baseline", "known.yaml", *options)

    return runs


@pytest.fixture
def run(pytester: pytest.Pytester):
    return runner(pytester, distributed=False)


@pytest.fixture(params=[False, True], ids=["alone", "xdist"])
def run_both(request: pytest.FixtureRequest, pytester: pytest.Pytester):
    return runner(pytester, request.param)


KNOWN = """
- {check: "bad-some[1]", reason: one is wrong}
- {check: "bad-some[3]", reason: three is wrong}
- {check: bad-all, reason: all are wrong}
"""


def test_known_failures_pass(run_both) -> None:
    result = run_both(KNOWN)
    assert result.ret == 0
    result.assert_outcomes(passed=2, xfailed=4)
    result.stdout.fnmatch_lines(["4 known failures. known.yaml lists 3 checks in 3 entries, 0 of them stale."])


def test_known_failures_are_one_line(run) -> None:
    """A green log of CI does not list them; -v does."""
    said = run(KNOWN, "-ra").stdout.str()
    assert "XFAIL" not in said.replace("4 xfailed", "")
    assert "4 xfailed" in said
    assert run(KNOWN, "-ra", "-v").stdout.str().count("\nXFAIL ") == 4


def test_a_failure_that_is_not_listed_fails(run) -> None:
    result = run("- {check: bad-all, reason: x}\n")
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=2, xfailed=2)


def test_globs_and_case_names(run) -> None:
    assert run('- {check: "*/test_it/some-?", reason: x}\n- {check: "bad-a*", reason: y}\n').ret == 0


def test_a_line_of_one_case_that_passes_is_stale(run) -> None:
    result = run(KNOWN + "- {check: good-one, reason: not any more}\n")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1, xfailed=4)
    result.stdout.fnmatch_lines(["*Stale: 'good-one' passes now; remove its line from *known.yaml, or add --update-baseline."])


def test_a_line_of_many_cases_is_stale_when_all_pass(run) -> None:
    result = run(KNOWN + '- {check: "*-2", reason: x}\n- {check: "*some-2*", reason: x}\n')
    assert result.ret == 1
    result = run(KNOWN + '- {check: "*good*", reason: x}\n')
    assert result.ret == 1


def test_one_case_of_a_line_does_not_make_it_stale(run_both) -> None:
    """`test_some[2]` passes, but the line also means the cases 1 and 3, which were not run."""
    some = "- {check: bad-some, reason: two are wrong}\n- {check: bad-all, reason: all are wrong}\n"
    result = run_both(some, "test_it.py::test_some[2]")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["'bad-some': 1 case passes now, 2 other cases did not run. If the others pass, too, the line is stale."]
    )
    run_both(None, "test_it.py::test_some[2]", "--update-baseline")
    assert "bad-some" in Path("known.yaml").read_text(), "--update-baseline keeps it"
    selected = run_both(some, "-k", "test_some and 2")
    assert selected.ret == 0
    whole = run_both("- {check: good-one, reason: not any more}\n", "test_it.py::test_good")
    assert whole.ret == 1, "all cases of the line ran"


def test_an_update_says_what_is_new(run) -> None:
    said = run("- {check: bad-all, reason: all are wrong}\n", "--update-baseline").stdout
    said.fnmatch_lines(["New in the baseline: 'bad-some[[]1]', 'bad-some[[]3]'.", "2 entries still need a reason*"])


def test_racy_lines_may_pass(run) -> None:
    result = run(KNOWN + "- {check: good-one, reason: sometimes, racy: 1/20}\n")
    assert result.ret == 0
    result.assert_outcomes(passed=2, xfailed=4)


def test_an_unmatched_line_is_a_usage_error(run_both) -> None:
    result = run_both(KNOWN + "- {check: bad-nothing, reason: x}\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "this run has no check 'bad-nothing'" in result.errlines[-1] or "bad-nothing" in result.errlines[-2]
    assert result.stdout.str().count("bad-some") == 0, "no case is run"


@pytest.mark.parametrize("options", [("-n", "2"), ("-p", "no:xdist")], ids=["xdist", "alone"])
@pytest.mark.parametrize("body", ["pass", "assert False"])
def test_a_run_with_an_unmatched_line_is_never_verified(pytester: pytest.Pytester, options: tuple[str, str], body: str) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.mkdir("suites").joinpath("test_it.py").write_text(f"def test_case():\n    {body}\n", encoding="utf-8")
    pytester.path.joinpath("known.yaml").write_text("- {check: nothing, reason: x}\n", encoding="utf-8")
    result = pytester.runpytest_subprocess(*ALONE, *options, "--baseline", "known.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "VERIFIED" not in result.stdout.str()
    assert "this run has no check 'nothing'" in " ".join(result.errlines[-3:])
    assert not pytester.path.joinpath("reports").exists()


def test_lines_of_what_is_not_asked_for_by_name_are_left_alone(run) -> None:
    """A shard, or one case that is looked at again, may have the list of the whole suite."""
    both = KNOWN + "- {check: of-another-module, reason: x}\n"
    result = run(both, "test_it.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["4 known failures. known.yaml lists 4 checks in * entries, 0 of them stale."])
    assert run(both, "test_it.py::test_all").ret == 0
    assert run(both.replace("bad-all", "bad-nothing"), "test_it.py").ret == 1, "and a failure that is not listed fails"
    assert run(both, ".").ret == pytest.ExitCode.USAGE_ERROR, "a folder is the whole of it"


def test_of_many_lines_a_few_are_named(run) -> None:
    rows = "".join(f"- {{check: bad-{i}, reason: REASON}}\n" for i in range(100))
    for reason in (UNEXPLAINED, "x"):
        said = run(rows.replace("REASON", repr(reason))).stderr.str()
        assert "'bad-3', 'bad-4' and 95 more" in said
        assert "'bad-5'" not in said


def test_a_list_that_is_not_there_is_told_with_what_makes_it(run) -> None:
    result = run(None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "(No such file or directory); --update-baseline creates it from the failures." in result.stderr.str()


def test_a_reason_that_nobody_has_given_is_a_usage_error(run, pytester: pytest.Pytester) -> None:
    path = pytester.path / "known.yaml"
    assert run(None, "--update-baseline").ret == 1
    result = run(None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = result.stderr.str()
    assert "3 checks in 3 entries have no reason yet: 'bad-all', 'bad-some[1]', 'bad-some[3]'. " in message
    assert message.rstrip().endswith("or all cases without the list: --baseline /dev/null.")
    without = run(None, "--baseline", "/dev/null")
    without.assert_outcomes(passed=2, failed=4)
    for part in (["-k", "some"], ["test_it.py"], ["test_it.py::test_all"]):
        assert run(None, *part).ret in (0, 5), "a part of the cases may be looked at before every reason is written"
    assert run(None, "--update-baseline").ret == 1, "the run that writes them may go on"
    assert run(path.read_text(encoding="utf-8").replace(UNEXPLAINED, "ticket 12")).ret == 0


def test_a_known_failure_that_is_named_alone_is_shown(run) -> None:
    """Whoever runs one case again wants to see how it fails; a whole run counts it only."""
    shown = run(KNOWN, "test_it.py::test_all[1]")
    shown.assert_outcomes(xfailed=1)
    shown.stdout.fnmatch_lines(["*test_it.py::test_all[[]1[]] (known: all are wrong)*", "*assert False*"])
    assert "assert False" not in run(KNOWN).stdout.str()


def test_update_and_run_again(run_both, pytester: pytest.Pytester) -> None:
    path = pytester.path / "known.yaml"
    result = run_both(None, "--update-baseline")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*known.yaml lists 3 checks in 3 entries now.", "3 entries still need a reason: write the reason in place of *"]
    )
    lines = parse(path.read_text(encoding="utf-8"), "it")
    assert [line.check for line in lines] == ["bad-all", "bad-some[1]", "bad-some[3]"]
    path.write_text(KNOWN + "- {check: good-one, reason: x}\n", encoding="utf-8")
    run_both(None, "--update-baseline")
    assert parse(path.read_text(encoding="utf-8"), "it") == parse(KNOWN, "it")


def test_failures_of_one_cause_are_one_entry_with_one_reason(run, pytester: pytest.Pytester) -> None:
    """Messages that differ in values alone have one cause; an entry that stays keeps its checks together."""
    path = pytester.path / "known.yaml"
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
        @pytest.mark.spec("slow", "PAY-01")
        def test_slow(n):
            assert n == 3, f"no end within {n} s"

        @pytest.mark.spec("field", "PAY-01")
        def test_field():
            pytest.fail("the field is missing")
        """
    )
    assert run(None, "--update-baseline").ret == 1
    text = path.read_text(encoding="utf-8")
    assert text.count("reason:") == text.count("cause:") == 2
    lines = parse(text, "it")
    assert [line.check for line in lines] == ["slow[1]", "slow[2]", "slow[4]", "slow[5]", "field"]
    assert [line.entry for line in lines] == [0, 0, 0, 0, 1]
    assert "no end within" in lines[0].cause
    path.write_text(text.replace(UNEXPLAINED, "the end is lost, ticket 7"), encoding="utf-8")
    assert run(None).ret == 0
    run(None, "--update-baseline")
    assert path.read_text(encoding="utf-8") == text.replace(UNEXPLAINED, "the end is lost, ticket 7")


def test_cases_of_one_check_with_other_causes_are_other_entries(run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.parametrize("n", ["a", "b", "c"])
        @pytest.mark.spec("mixed", "PAY-01")
        def test_mixed(n):
            pytest.fail("the route is missing" if n == "a" else "the field is missing")
        """
    )
    assert run(None, "--update-baseline").ret == 1
    lines = parse((pytester.path / "known.yaml").read_text(encoding="utf-8"), "it")
    assert [(line.check, line.cause, line.entry) for line in lines] == [
        ("mixed[b]", "the field is missing", 0),
        ("mixed[c]", "the field is missing", 0),
        ("mixed[a]", "the route is missing", 1),
    ]


def test_entries_are_dropped_whose_cases_all_lack_a_capability(run_both, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        def lacking(request):
            request.node.user_properties.append(("codex-replay-proxy-unclaimed", "responses"))
            pytest.skip("not declared")

        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.spec("all-lack", "PAY-01")
        def test_all(request, n):
            lacking(request)

        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.spec("one-lacks", "PAY-01")
        def test_one(request, n):
            if n == 1:
                lacking(request)
            assert False

        @pytest.mark.spec("late", "PAY-01")
        def test_late():
            pytest.skip("not declared")

        @pytest.mark.spec("other-skip", "PAY-01")
        def test_other():
            pytest.skip("no node here")
        """
    )
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item):
            report = yield
            if item.name == "test_late" and report.skipped:
                report.user_properties.append(("codex-replay-proxy-unclaimed", "responses"))
            return report
        """
    )
    text = "".join(f"- {{check: {name}, reason: x}}\n" for name in ("all-lack", "late", "one-lacks", "other-skip"))
    path = pytester.path / "known.yaml"
    run_both(text, "--update-baseline", "-k", "all or one")
    assert [line.check for line in parse(path.read_text(encoding="utf-8"), "it")] == [
        "all-lack",
        "late",
        "one-lacks",
        "other-skip",
    ]
    result = run_both(text, "--update-baseline")
    assert [line.check for line in parse(path.read_text(encoding="utf-8"), "it")] == ["one-lacks", "other-skip"]
    result.stdout.fnmatch_lines(
        [
            "2 entries were dropped from the baseline: every case was skipped, because the program under test does not declare a "
            "capability."
        ]
    )


def test_what_does_not_run_is_kept(run, pytester: pytest.Pytester) -> None:
    assert run(KNOWN, "-k", "good").ret == 0
    run(KNOWN, "-k", "good", "--update-baseline")
    assert parse((pytester.path / "known.yaml").read_text(encoding="utf-8"), "it") == parse(KNOWN, "it")


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "RuntimeError('planted')"], ids=["interrupted", "internal-error"])
def test_a_run_that_does_not_reach_its_end_updates_nothing(pytester: pytest.Pytester, raised: str) -> None:
    runner(pytester, distributed=False)
    pytester.makeconftest(f"""
        def pytest_runtest_logstart(nodeid):
            if "test_all[2]" in nodeid:
                raise {raised}
    """)
    old = "- {check: bad-some, reason: mine}\n"
    pytester.path.joinpath("known.yaml").write_text(old, encoding="utf-8")
    result = pytester.runpytest_subprocess(*ALONE, "-p", "no:xdist", "--baseline", "known.yaml", "--update-baseline")
    assert pytester.path.joinpath("known.yaml").read_text(encoding="utf-8") == old
    if raised == "KeyboardInterrupt":  # pytest prints no summary after an internal error
        result.stdout.fnmatch_lines(["*known.yaml was not updated: the run was interrupted."])
    result.stdout.no_fnmatch_line("*Run the gate*")


def test_lines_of_the_other_profile_are_neither_stale_nor_unmatched(run, pytester: pytest.Pytester) -> None:
    """One list can hold both profiles of the proxy suite; a run of one judges its own lines alone."""
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.proxy_profile("as-specified")
        @pytest.mark.spec("payload", "PAY-01")
        def test_payload():
            assert False

        @pytest.mark.proxy_profile("works-on-0.92")
        @pytest.mark.spec("answer", "PAY-01")
        def test_answer():
            assert False
        """
    )
    both = "- {check: payload, reason: x}\n- {check: answer, reason: y}\n"
    run(both).assert_outcomes(xfailed=2)
    for profile in ("as-specified", "works-on-0.92"):
        result = run(both, "--profile", profile)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["1 known failure. known.yaml lists 2 checks in * entries, 0 of them stale."])
        run(both, "--profile", profile, "--update-baseline")
        assert len(parse((pytester.path / "known.yaml").read_text(encoding="utf-8"), "it")) == 2, "the other's line is kept"
        assert run(both + "- {check: nothing, reason: z}\n", "--profile", profile).ret == pytest.ExitCode.USAGE_ERROR


def test_racy_and_stale_lines_with_workers(run_both) -> None:
    text = KNOWN + "- {check: good-one, reason: sometimes, racy: 1/20}\n"
    assert run_both(text).ret == 0
    assert run_both(KNOWN + '- {check: "*good*", reason: no more}\n- {check: "*/good", reason: no more}\n').ret == 1


def test_a_bad_file_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.path.joinpath("known.yaml").write_text("- 1\n", encoding="utf-8")
    assert pytester.runpytest_inprocess(*ALONE, "--baseline", "known.yaml").ret == pytest.ExitCode.USAGE_ERROR
    assert pytester.runpytest_inprocess(*ALONE, "--baseline", "none.yaml").ret == pytest.ExitCode.USAGE_ERROR
    assert pytester.runpytest_inprocess(*ALONE, "--update-baseline").ret == pytest.ExitCode.USAGE_ERROR
