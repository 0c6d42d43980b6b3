"""Reports of several runs joined into one, and the folders that cannot be."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.main import main
from codex_replay.report import data
from codex_replay.report.files import write_all
from codex_replay.report.merge import Part, merge
from codex_replay.report.traces import read_traces


def case(name: str, outcome: str = "passed", **given: Any) -> data.Case:
    base: dict[str, Any] = {
        "id": f"proxy/m/{name}",
        "suite": "proxy",
        "module": "m",
        "case": name,
        "nodeid": f"m.py::test_{name}",
    }
    base |= {"title": name, "spec": None, "outcome": outcome, "seconds": 0.5, "message": f"{name} {outcome}", "details": ""}
    base |= {"expected": None, "actual": None, "recorded": [], "again": "pytest x", "story": f"proxy/m/{name}"}
    return {**base, **given}  # type: ignore[return-value]


def report_of(*cases: data.Case, **given: Any) -> data.Report:
    base: dict[str, Any] = {"report": 2, "verdict": data.verdict(cases), "subject": {"proxy": "node a.js"}, "codex": "0.92.0"}
    base |= {"profile": "default", "profiles": ["default"], "record": "none", "validated": True, "command": "pytest a"}
    return {**base, "started": "2026-01-02T00:00:00Z", "seconds": 1.5, "cases": list(cases), **given}  # type: ignore[return-value]


def story(name: str, text: str) -> data.Trace:
    frame: Any = {"n": 1, "t": 0.0, "seam": "rpc", "from": "client", "conn": None, "kind": "request", "what": "x", "text": text}
    frame |= {"mark": None, "expected": None, "paths": [], "bound": [], "masked": []}
    return {"case": name, "source": "this run", "cassette": None, "truncated": False, "frames": [frame]}


def put(folder: Path, report: data.Report) -> Path:
    write_all(folder, report, (story(one["story"], folder.name) for one in report["cases"] if one["story"]))
    return folder


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, words)])


def read(folder: Path) -> tuple[data.Report, dict[str, str]]:
    report = data.read_report(folder)
    jsonschema.Draft202012Validator(data.schema()).validate(report)
    traces = {one["case"]: one["frames"][0]["text"] for one in read_traces(folder)}
    assert set(traces) == {one["story"] for one in report["cases"] if one["story"]}
    return report, traces


def test_shards_are_joined_and_of_one_case_the_worst_counts(tmp_path: Path) -> None:
    a = put(tmp_path / "a", report_of(case("both"), case("a"), case("k", "known"), coverage={"event": {"x": {"case": None}}}))
    b = put(
        tmp_path / "b",
        report_of(case("both", "failed"), case("b", "skipped"), case("k"), coverage={"event": {"x": {"case": "c"}}}),
    )
    result = run("merge", a, b, "--out", tmp_path / "out")
    assert result.exit_code == 1, result.output
    assert "FAILED: 4 cases of 2 runs, 1 passed, 1 failed, 1 known, 1 skipped." in result.output
    report, traces = read(tmp_path / "out")
    found = {one["case"]: one for one in report["cases"]}
    assert (report["verdict"], report["seconds"], report["started"]) == ("failed", 3.0, "2026-01-02T00:00:00Z")
    assert [one["name"] for one in report["runs"]] == ["a", "b"]
    assert (found["both"]["outcome"], found["both"]["run"]) == ("failed", 1)
    assert [(one["run"], one["outcome"]) for one in found["both"]["told"]] == [(0, "passed"), (1, "failed")]
    assert "told" not in found["a"]
    assert traces == {"proxy/m/both": "b", "proxy/m/a": "a", "proxy/m/k": "a", "proxy/m/b": "b"}
    assert report["coverage"] == {"event": {"x": {"case": "c"}}}
    names = ["junit.xml", "report.html", "report.json", "stories.ndjson", "summary.md"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names


def test_cases_of_other_subjects_and_profiles_stay_apart(tmp_path: Path) -> None:
    parts = [
        Part(tmp_path / "a", report_of(case("x"))),
        Part(tmp_path / "b", report_of(case("x", "failed"), profile="works-on-0.92", profiles=["works-on-0.92"])),
        Part(tmp_path / "c", report_of(case("x"), subject={"proxy": "node b.js"})),
    ]
    joined = merge(parts, "merge")
    jsonschema.Draft202012Validator(data.schema()).validate(joined)
    assert {one["id"]: one["outcome"] for one in joined["cases"]} == {
        "proxy/m/x (node a.js, profile default)": "passed",
        "proxy/m/x (node a.js, profile works-on-0.92)": "failed",
        "proxy/m/x (node b.js, profile default)": "passed",
    }
    assert joined["subject"] == {"proxy": "node a.js, node b.js"}
    assert joined["profiles"] == ["default", "works-on-0.92"]
    assert parts[1].traces == {"proxy/m/x": "proxy/m/x (node a.js, profile works-on-0.92)"}


def test_joining_joined_reports_says_the_same_as_joining_all_at_once(tmp_path: Path) -> None:
    """In any order of the runs: the same cases with the same outcomes, and every run told once."""
    chance = random.Random(92)
    for _ in range(50):
        reports = []
        for _ in range(4):
            profile = chance.choice(["p", "q"])
            cases = [case(name, chance.choice(data.OUTCOMES)) for name in "abc" if chance.random() < 0.7]
            reports.append(report_of(*cases, profile=profile, profiles=[profile]))
        flat = merge([Part(tmp_path / str(i), report) for i, report in enumerate(reports)], "m")
        first = merge([Part(tmp_path / str(i), report) for i, report in enumerate(reports[:2])], "m")
        deep = merge([Part(tmp_path / "f", first), Part(tmp_path / "2", reports[2]), Part(tmp_path / "3", reports[3])], "m")
        assert shape(flat) == shape(deep)
        back = merge([Part(tmp_path / str(i), report) for i, report in enumerate(reversed(reports))], "m")
        assert {name: told[0] for name, told in shape(flat).items()} == {name: told[0] for name, told in shape(back).items()}


def test_the_second_of_two_cases_of_one_name_is_joined_with_itself(tmp_path: Path) -> None:
    def shard(subject: str, outcome: str) -> data.Report:
        return report_of(case("a"), case("a#2", outcome, case="a"), subject={"proxy": subject})

    reports = [shard("node a.js", "passed"), shard("node b.js", "passed"), shard("node a.js", "failed")]
    parts = [Part(tmp_path / str(i), report) for i, report in enumerate(reports)]
    flat, first = merge(parts, "m"), merge(parts[:2], "m")
    assert shape(flat)["proxy/m/a#2 (node a.js)"] == ("failed", [(0, "passed"), (2, "failed")])
    assert shape(merge([Part(tmp_path / "f", first), parts[2]], "m")) == shape(flat)


def shape(report: data.Report) -> dict[str, tuple[str, list[tuple[int, str]]]]:
    return {
        one["id"]: (one["outcome"], [(told["run"], told["outcome"]) for told in one.get("told", [])]) for one in report["cases"]
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "it has no report.json"),
        ('{"report": 1, "verdict": "verified"}', "has report format 1; this version reads format 2"),
        ('{"report": 3}', "has report format 3"),
        ('{"report": 2, "verdict": "verif', "is incomplete or not JSON"),
        ('{"report": 2, "verdict": "verified"}', "is damaged: it: "),
        ("[1]", "is not a report of codex-replay"),
        ('{"cases": []}', "is not a report of codex-replay"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str | None, words: str) -> None:
    good = put(tmp_path / "good", report_of(case("a")))
    bad = tmp_path / "bad"
    bad.mkdir()
    if text is not None:
        (bad / "report.json").write_text(text)
    result = run("merge", good, bad, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert words in result.output.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_broken_stories_are_refused(tmp_path: Path) -> None:
    good = put(tmp_path / "good", report_of(case("a")))
    path = good / "stories.ndjson"
    path.write_bytes(path.read_bytes()[:-20])
    result = run("merge", good, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "stories.ndjson, line 1: the line is incomplete" in result.output
    assert not (tmp_path / "out" / "report.json").exists()


def test_reports_that_would_be_counted_twice_or_overwritten(tmp_path: Path) -> None:
    good = put(tmp_path / "good", report_of(case("a")))
    assert run("merge", good, good, "--out", tmp_path / "out").exit_code == 2
    assert run("merge", good, tmp_path / "no", "--out", tmp_path / "out").exit_code == 2
    result = run("merge", good, "--out", good)
    assert result.exit_code == 2
    assert "would be overwritten" in result.output
    assert data.read_report(good)["verdict"] == "verified"


def test_cases_of_ones_own_on_two_proxies_are_two_cases(tmp_path: Path) -> None:
    """Their folder does not tell the role; a subject of another role than the app-server tells them apart all the same."""
    own = {"id": "tests/m/a", "suite": "tests", "story": None}
    folders = [
        put(tmp_path / name, report_of(case("a", **own), subject={"proxy": f"node {name}.js"})) for name in ("one", "other")
    ]
    assert run("merge", *folders, "--out", tmp_path / "out").exit_code == 0
    ids = [each["id"] for each in read(tmp_path / "out")[0]["cases"]]
    assert ids == ["tests/m/a (node one.js)", "tests/m/a (node other.js)"]


def test_json_and_the_results_of_other_commands(tmp_path: Path) -> None:
    good = put(tmp_path / "good", report_of(case("a")))
    (tmp_path / "s.json").write_text('{"strength": {"variants": 3, "killed": 2}}')
    result = run("merge", good, "--out", tmp_path / "out", "--json", "--strength", tmp_path / "s.json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert (said["verdict"], said["sums"]["passed"], said["runs"]) == ("verified", 1, 1)
    assert read(tmp_path / "out")[0]["strength"] == {"strength": {"variants": 3, "killed": 2}}
    assert "2 of 3 broken variants" in (tmp_path / "out" / "summary.md").read_text()
    (tmp_path / "odd.json").write_text('{"a": NaN, "b": [1e999]}')
    assert run("merge", good, "--out", tmp_path / "odd", "--drift", tmp_path / "odd.json").exit_code == 0
    text = (tmp_path / "odd" / "report.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["drift"] == {"a": "nan", "b": ["inf"]}
    for bad in ("[", "[" * 100_000):
        (tmp_path / "bad.json").write_text(bad)
        assert run("merge", good, "--out", tmp_path / "o", "--drift", tmp_path / "bad.json").exit_code == 2


def fields_of(proxy: str, profile: str, **row: Any) -> dict[str, Any]:
    whole = {"method": "newConversation", "field": "model", "specified": True, "valid": True, "known": None, "value": 2, **row}
    return {"proxy-fields": 1, "proxy": proxy, "profiles": {profile: [whole]}}


def test_the_fields_that_a_proxy_sent_are_added_up(tmp_path: Path) -> None:
    told = [fields_of("a", "p"), fields_of("a", "p", valid=False, value=3, known=True), fields_of("a", "q"), fields_of("b", "p")]
    folders = [put(tmp_path / str(i), report_of(case(f"c{i}"), proxy_fields=each)) for i, each in enumerate(told)]
    assert run("merge", *folders, "--out", tmp_path / "all").exit_code == 0
    found = read(tmp_path / "all")[0]["proxy_fields"]
    assert found == {**fields_of("a", "p", valid=False, value=5, known=True), "profiles": found["profiles"]}
    assert found["profiles"] == {
        **fields_of("a", "p", valid=False, value=5, known=True)["profiles"], **fields_of("a", "q")["profiles"]
    }  # fmt: skip


def test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    result = run("open")
    assert result.exit_code == 2
    assert "run `codex-replay run` first" in result.output
    put(tmp_path / "reports" / "old", report_of(case("a")))
    os.utime(tmp_path / "reports" / "old" / "report.json", (1, 1))
    put(tmp_path / "reports" / "new", report_of(case("a")))
    page = tmp_path / "reports" / "new" / "report.html"
    assert json.loads(run("open", "--json").stdout)["page"] == str(page.resolve())
    many = [case(f"c{i}") for i in range(202)]
    put(tmp_path / "reports" / "many", report_of(*many))
    large = tmp_path / "reports" / "many" / "report.html"
    small = large.stat().st_size
    assert run("open", tmp_path / "reports" / "many", "--full", "--json").exit_code == 0
    os.utime(large.with_name("report.json"), (1, 1))
    assert 'id="s201">' in large.read_text()
    assert large.stat().st_size > small
    page.with_name("stories.ndjson").write_text('{"case":')
    page.unlink()
    result = run("open")
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (2, True)
    assert "stories.ndjson, line 1: the line is incomplete" in result.output
    put(tmp_path / "reports" / "new", report_of(case("a")))
    if sys.platform == "linux":
        assert run("open").stdout.strip() == str(page.resolve())
    shown = tmp_path / "shown"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {shown}\n')
    browser.chmod(0o755)
    program = str(Path(sys.executable).with_name("codex-replay"))
    environ = {**os.environ, "BROWSER": f"{browser} %s"}
    done = subprocess.run([program, "report", "open", "reports/old"], env=environ, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert shown.read_text().strip() == (tmp_path / "reports" / "old" / "report.html").resolve().as_uri()
