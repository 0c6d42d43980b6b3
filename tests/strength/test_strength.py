"""The measurement of the proxy suite on broken proxies, and what counts as a kill. `make strength` measures the whole suite."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from codex_replay.cli.main import main
from tests.strength.fork import Told
from tests.strength.proxy_variants import table
from tests.strength.report import Result, Strength, lines

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "tests.strength.proxy_variants"]
MINI = """
    import time
    import pytest

    CALLS = ["newConversation", "sendUserTurn", "sendUserMessage"]
    pytestmark = [pytest.mark.proxy_profile("as-specified"), pytest.mark.model("Hi.")]

    @pytest.mark.spec("jsonrpc", "PAY-01")
    @pytest.mark.parametrize("endpoint", ["chat", "responses"])
    def test_jsonrpc(proxy, endpoint):
        assert {call.get("jsonrpc") for call in proxy.post(endpoint).calls(*CALLS)} == {"2.0"}

    @pytest.mark.spec("served", "PAY-01")
    def test_served(proxy):
        assert proxy.chat().status == 200

    @pytest.mark.spec("always-red", "PAY-01")
    def test_always_red(proxy):
        assert proxy.chat().status == 201

    @pytest.mark.spec("slow", "PAY-01")
    def test_slow(proxy):
        proxy.chat()
        open("begun", "w").close()
        time.sleep(60)
"""
CONFTEST = """
    from tests.strength import plugin as strength

    def rows():
        return [strength.Row(*row) for row in {rows!r}]

    strength.TABLE = rows()
"""


def specs() -> set[str]:
    """The ids of all checks of the suite for proxies, read from its sources."""
    found = set()
    for path in (ROOT / "suites" / "proxy").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
                assert isinstance(node.args[0], ast.Constant), f"{path.name}: the id of a check must be a plain text"
                found.add(str(node.args[0].value))
    return found


# -- the table -------------------------------------------------------------------------------------------------------------


def test_every_line_of_the_table_has_a_patch_and_every_patch_a_line() -> None:
    code = "from tests.strength.proxy_variants import __main__ as m; import json; m.load(); print(json.dumps(sorted(m.PATCHES)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == sorted(row.name for row in table.TABLE)


def test_there_are_enough_of_them_and_no_two_are_one() -> None:
    assert len(table.TABLE) >= 150
    assert len({row.name for row in table.TABLE}) == len(table.TABLE)
    assert len({(row.profile, row.wrong) for row in table.TABLE}) == len(table.TABLE)


def test_the_table_names_checks_that_exist_and_every_check_is_named() -> None:
    named = {check.partition("[")[0] for row in table.TABLE for check in row.hit_by}
    assert named - specs() == set()
    assert specs() - named == set(), "a check without a broken variant is not known to bite"


@pytest.mark.parametrize("line", ["a | S | b", "a | X | b | c", "a | S | | c", "a"])
def test_a_line_that_is_none_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="no line of the table"):
        table.read(line)


def test_the_program_lists_the_table_and_knows_no_other_name() -> None:
    listed = subprocess.run([*PROGRAM, "--list", "--json"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert [row["name"] for row in json.loads(listed.stdout)] == [row.name for row in table.TABLE]
    told = subprocess.run([*PROGRAM, "--list"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert len(told.stdout.splitlines()) == len(table.TABLE)
    other = subprocess.run([*PROGRAM, "no-jsonrcp"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (other.returncode, other.stderr.strip()) == (2, "There is no variant 'no-jsonrcp'; did you mean no-jsonrpc?")


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder outside the checkout, in which pytest finds the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return pytester


# -- a measurement ---------------------------------------------------------------------------------------------------------


def measure(pytester: pytest.Pytester, *options: str, **rows: tuple[str, ...]) -> tuple[int, dict[str, object], str]:
    """Measure the small suite with these variants (name: checks); return the status, the result and what was printed."""
    prepare(pytester, rows)
    result = pytester.runpytest_subprocess(*LEAN, *PLUGIN, "--strength-report", "found.json", *options)
    found = pytester.path / "found.json"
    report = json.loads(found.read_text())["strength"] if found.exists() else {}
    assert left_over(pytester.path) == []
    return int(result.ret), report, result.stdout.str() + result.stderr.str()


PLUGIN = ["-p", "tests.strength.plugin"]
LEAN = ["-p", "no:cacheprovider"]


def prepare(pytester: pytest.Pytester, rows: dict[str, tuple[str, ...]]) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(test_it=MINI)
    pytester.makeconftest(
        CONFTEST.format(rows=[(n.replace("_", "-"), "as-specified", f"{n} is wrong", c) for n, c in rows.items()])
    )


def left_over(folder: Path) -> list[str]:
    """The processes that know this folder by their command or their environment (Linux; empty elsewhere)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            known = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in known and int(entry.name) != os.getpid():
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def test_a_variant_that_its_check_sees_is_killed(pytester: pytest.Pytester) -> None:
    status, found, printed = measure(pytester, "-k", "jsonrpc", jsonrpc_1=("jsonrpc[resp*]",), no_jsonrpc=("jsonrpc",))
    assert status == 0
    assert found["kills"] == {"jsonrpc-1": ["jsonrpc"], "no-jsonrpc": ["jsonrpc"]}
    numbers = [found[key] for key in ("variants", "killed", "checks", "checks_that_kill", "survivors", "idle_checks")]
    assert numbers == [2, 2, 1, 1, [], []]
    assert "jsonrpc  kills jsonrpc-1, no-jsonrpc" in printed
    assert "STRONG: 2 of 2 variants killed, 1 of 1 checks kill." in printed


@pytest.mark.parametrize(
    "left_out",
    [
        ["--deselect", "test_it.py::test_it[responses]"],
        ["-m", "not elsewhere"],
        ["-k", "chat"],
        ["test_it.py::test_it[chat]"],
        [],
    ],
)
def test_what_leaves_cases_out_is_not_complete(pytester: pytest.Pytester, left_out: list[str]) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nmarkers = ['elsewhere: not here']\n")
    pytester.makeconftest(CONFTEST.format(rows=[("no-jsonrpc", "as-specified", "It is wrong.", ("jsonrpc",))]))
    pytester.makepyfile(
        test_it="""
            import pytest

            @pytest.mark.proxy_profile("as-specified")
            @pytest.mark.model("Hi.")
            @pytest.mark.spec("jsonrpc", "PAY-01")
            @pytest.mark.parametrize("endpoint", ["chat", pytest.param("responses", marks=pytest.mark.elsewhere)])
            def test_it(proxy, endpoint):
                calls = proxy.post(endpoint).calls("newConversation", "sendUserTurn", "sendUserMessage")
                assert {call.get("jsonrpc") for call in calls} == {"2.0"}
        """
    )
    result = pytester.runpytest_subprocess(*LEAN, *PLUGIN, "--strength-report", "found.json", *left_out)
    found = json.loads((pytester.path / "found.json").read_text())["strength"]
    assert (found["kills"], found["complete"]) == ({"no-jsonrpc": ["jsonrpc"]}, not left_out), result.stdout.str()
    assert bool(list(pytester.path.glob("reports/*/strength.json"))) is (not left_out)


def test_the_table_does_not_decide_the_verdict(pytester: pytest.Pytester) -> None:
    """What its checks do not see survives, whoever else sees it; what kills nothing is idle."""
    status, found, printed = measure(
        pytester, "-k", "jsonrpc or served", jsonrpc_1=("served",), one_field_more=("served", "jsonrpc")
    )
    assert status == 1
    assert found["survivors"] == ["jsonrpc-1", "one-field-more"]
    assert found["idle_checks"] == ["jsonrpc", "served"]
    assert found["reasons"] == {
        "jsonrpc-1": "served did not see it; jsonrpc did, and its line does not say so",
        "one-field-more": "no check saw it, not even served, jsonrpc",
    }
    assert "WEAK: 0 of 2 variants killed, 0 of 2 checks kill." in printed


def test_a_program_that_does_not_start_is_not_killed(pytester: pytest.Pytester) -> None:
    status, found, printed = measure(pytester, "-k", "jsonrpc", no_such_variant=("jsonrpc",))
    assert (status, found["survivors"]) == (1, ["no-such-variant"])
    assert "once more, because they did not run to their end: no-such-variant" in printed
    assert "NOT KILLED  no-such-variant (no_such_variant is wrong): it is not wrong but broken, in jsonrpc:" in printed


def test_a_check_that_is_red_on_the_honest_proxy_kills_nobody(pytester: pytest.Pytester) -> None:
    status, found, _ = measure(
        pytester, "-k", "always or jsonrpc", jsonrpc_1=("always-red", "jsonrpc"), one_field_more=("always-red",)
    )
    assert status == 1
    assert (found["survivors"], found["idle_checks"]) == (["one-field-more"], ["always-red"])
    assert found["kills"] == {"jsonrpc-1": ["jsonrpc"]}


def test_a_variant_that_takes_too_long_is_ended(pytester: pytest.Pytester) -> None:
    status, found, _ = measure(pytester, "-k", "slow", "--variant-seconds", "3", jsonrpc_1=("slow",))
    assert (status, found["survivors"]) == (1, ["jsonrpc-1"])
    assert found["reasons"] == {"jsonrpc-1": "it did not come to an end within 3 s"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_it_leaves_no_process(pytester: pytest.Pytester, number: signal.Signals) -> None:
    prepare(pytester, {"jsonrpc_1": ("slow",), "no_jsonrpc": ("slow",)})
    argv = [sys.executable, "-m", "pytest", *LEAN, *PLUGIN, "-k", "slow"]
    child = subprocess.Popen(argv, cwd=pytester.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (pytester.path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(number)
    printed, _ = child.communicate(timeout=60)
    assert (pytester.path / "begun").exists(), printed.decode()
    assert child.returncode == 2, printed.decode()
    assert left_over(pytester.path) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--proxy", "node x.js"], "leave out --proxy"),
        (["--profile", "as-specified"], "leave out --profile"),
        (["--variants", "x*"], "--variants x*: there is no such variant"),
        (["-k", "nothing"], "A measurement needs cases of the suite for proxies; none was selected."),
        (["--strength-jobs", "-1"], "give a number of variants"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(pytester: pytest.Pytester, options: list[str], sentence: str) -> None:
    prepare(pytester, {"jsonrpc_1": ("jsonrpc",)})
    result = pytester.runpytest_subprocess(*LEAN, *PLUGIN, *options)
    assert int(result.ret) == 4
    assert sentence in result.stdout.str() + result.stderr.str()


def test_a_measurement_of_one_check_of_the_suite(tmp_path: Path) -> None:
    """As `make strength` runs it, from the root of the checkout."""
    report = tmp_path / "found.json"
    argv = [sys.executable, "-m", "pytest", "suites/proxy", *PLUGIN, "--strength-report", str(report), "-k", "test_jsonrpc"]
    done = subprocess.run([*argv, "--variants", "no-such-*"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, report.exists()) == (4, False)
    assert "--variants no-such-*: there is no such variant" in done.stderr
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    found = json.loads(report.read_text())["strength"]
    assert (found["survivors"], found["idle_checks"], found["checks"]) == ([], [], 1)
    assert "no-jsonrpc" in found["kills"]
    assert found["complete"] is False
    assert done.returncode == 0
    done = subprocess.run([*argv, "--variants", "no-jsonr*"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert json.loads(report.read_text())["strength"]["variants"] == 1


@pytest.mark.parametrize("option", ["--strength", "--variants=no-*"])
def test_the_product_has_no_such_option(option: str) -> None:
    result = CliRunner().invoke(main, ["run", "proxy", option])
    assert (result.exit_code, f"No such option '{option.partition('=')[0]}'" in result.output) == (4, True), result.output


# -- what is told of it ----------------------------------------------------------------------------------------------------


def told(check: str, outcome: str, why: str = "") -> Told:
    return Told(check, f"case of {check}", None, outcome, why)


def test_reds_elsewhere_and_blind_checks_are_told() -> None:
    found = Strength(["a", "b", "c"])
    found.results = [Result("x", "It is wrong.", ["a", "b"], [told("a", "red"), told("b", "green"), told("c", "red")], None, 1.0)]
    found.settle({("case of a", None), ("case of c", None)}, [])
    assert found.kills == {"x": ["a", "c"]}
    assert found.idle == ["b"]
    assert lines(found) == ["a  kills x", "c  kills x", "x names b, which did not see it", "KILLS NOTHING  b"]


def test_a_crash_spoils_what_was_red() -> None:
    result = Result("x", "It is wrong.", ["a"], [told("a", "red"), told("b", "crash", "it has ended (status 1)")], None, 1.0)
    assert result.killers == []
    assert result.incomplete
    assert result.reason == "it is not wrong but broken, in b: it has ended (status 1)"


def test_a_run_of_the_honest_proxy_that_breaks_is_no_strength() -> None:
    found = Strength(["a"])
    found.results = [Result("x", "It is wrong.", ["a"], [told("a", "red")], None, 1.0)]
    found.settle({("case of a", None)}, ["its run failed (status 1)"])
    assert found.sentence().startswith("WEAK")
    assert lines(found)[-1] == "THE HONEST PROXY  its run failed (status 1)"
