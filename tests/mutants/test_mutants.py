"""The generator changes what it says, the judge finds what a check finds, and a seeded sample of the mutants is found."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.wire import WireFrame
from tests.mutants import plugin, table
from tests.mutants.judge import Judge
from tests.mutants.operators import changes, kind, other_name, text_changes
from tests.mutants.recording import Recording
from tests.mutants.sites import Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("value", [None, True, 7, "low", [1, 2], {"a": 1}], ids=kind)
def test_each_change_changes_the_member_or_its_place(value: Any) -> None:
    names = changes(value, member=True, ordered=True)
    assert {"is missing", "has another name"} < names.keys()
    for name, change in names.items():
        parent = {"theValue": copy.deepcopy(value), "other": 1}
        change(parent, "theValue")
        assert json.dumps(parent) != json.dumps({"theValue": value, "other": 1}), name


def test_each_change_of_an_array_and_of_its_element() -> None:
    found = []
    for change in changes([1, 2], member=True, ordered=False).values():
        parent: dict[str, Any] = {"a": [1, 2]}
        change(parent, "a")
        found.append(parent.get("a"))
    assert all(wanted in found for wanted in ([2, 1], [1], [2], [1, 2, 2], [1, 2, None], [[1, 2]], None))
    assert {"is missing", "comes twice"} < changes(1, member=False, ordered=False).keys()


@pytest.mark.parametrize(("name", "other"), [("topP", "top_p"), ("top_p", "topP"), ("model", "Model")])
def test_the_other_spelling_of_a_name(name: str, other: str) -> None:
    assert other_name(name) == other


def test_a_twin_is_replaced_and_not_overwritten() -> None:
    parent = {"topP": 1, "top_p": 1}
    changes(1, member=True, ordered=False)["has another name"](parent, "topP")
    assert parent == {"top_p": 1, "topPX": 1}


def test_each_line_word_and_blank_line_of_a_text_is_changed() -> None:
    text = "One line.\n\n- two\nThree"
    found = {name: change(text) for name, change in text_changes(text.split("\n")).items()}
    assert {name for name, changed in found.items() if changed == text} == {"the line 'Three' comes after the next"}
    assert len(found) > 35
    assert "One\n\n- two\nThree" in found.values()
    assert "One line.\n- two\nThree" in found.values()
    assert "One line.\n\ntwo\nThree" in found.values()
    assert "One line.\n\nThree\n- two" in found.values()
    assert text_changes(["Another line"])["the line 'Another line' is missing"](text) == text


# -- the judge, on a suite of two cases --------------------------------------------------------------------------------------


def frame(**value: Any) -> WireFrame:
    raw = json.dumps(value, separators=(",", ":"))
    return WireFrame(1.0, "1", "client", json.dumps(raw).encode())


CALL = {"jsonrpc": "2.0", "id": 2, "method": "newConversation", "params": {"model": "gpt", "cwd": None}}


def recording() -> Recording:
    done = Exchange("POST", "/v1/responses", None, 200, headers=[("Content-Type", "application/json")], body=b'{"text":"Hi."}')
    done.frames = [frame(**CALL)]
    return Recording([done], profile="as-specified")


def item(check: str, function: Any) -> Any:
    return SimpleNamespace(
        nodeid=check,
        name=check,
        obj=function,
        get_closest_marker=lambda name: SimpleNamespace(args=[check]),
        _fixtureinfo=SimpleNamespace(argnames=("proxy",)),
    )


def judged(*functions: Any) -> dict[str, Any]:
    items = [item(function.__name__, function) for function in functions]
    recordings = {each.nodeid: recording() for each in items}
    judge = Judge(items, recordings)
    return {mutant.id: judge.kill(mutant) for mutant in plugin.mutants(recordings)}


def asks_for_the_model(proxy: Any) -> None:
    assert proxy.ask("POST", "/v1/responses").params("newConversation")["model"] == "gpt"


def asks_for_the_text(proxy: Any) -> None:
    assert proxy.ask("POST", "/v1/responses").json["text"] == "Hi."


def test_a_check_kills_the_mutants_of_what_it_asserts() -> None:
    found = judged(asks_for_the_model, asks_for_the_text)
    wrong = found["calls: newConversation.params.model (a text) is longer"]
    assert wrong[0] == "asks_for_the_model"
    assert found["answers: POST /v1/responses whole text (a text) is missing"][0] == "asks_for_the_text"
    assert found["calls: newConversation.params.cwd (null) is a text"] == 2
    assert found["calls: newConversation has an unknown null member in params"] == 2
    assert found["calls: newConversation is omitted"][0] == "asks_for_the_model"
    assert found["answers: POST /v1/responses whole status is 200"] == 0


def test_a_case_that_is_red_on_the_recording_judges_nothing() -> None:
    def is_always_red(proxy: Any) -> None:
        raise AssertionError

    def needs_the_process(proxy: Any) -> None:
        proxy.process()

    items = [item(function.__name__, function) for function in (is_always_red, needs_the_process)]
    judge = Judge(items, {each.nodeid: recording() for each in items})
    assert judge.left_out == ["is_always_red", "needs_the_process"]


# -- the table and the figures -----------------------------------------------------------------------------------------------


def test_a_row_of_the_table_needs_a_reason() -> None:
    assert table.read("# a note\n\ncalls: a[].b * | PAY-06\n") == [table.Row("calls: a[].b *", "PAY-06")]
    with pytest.raises(ValueError, match="Add a statement or a reason"):
        table.read("calls: a |\n")
    assert table.load()


def test_the_figures_and_the_rows_that_allow_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [table.Row("calls: b *", "PAY-06"), table.Row("calls: z *", "PAY-06")]
    monkeypatch.setattr(plugin, "load", lambda: rows)
    chosen = [Mutant("calls", site, "is missing", lambda done: done, "x") for site in "abcd"]
    verdicts = {chosen[0].id: ["a-check", "a case", "why"], chosen[1].id: 3, chosen[2].id: 1, chosen[3].id: 0}
    found = plugin.result(chosen, verdicts, 4)
    assert (found["mutants"], found["killed"], found["allowed"], found["survivors"]) == (3, 1, 1, ["calls: c is missing"])
    assert (found["stale"], found["kills"]) == (["calls: z *"], {"a-check": ["calls: a is missing"]})


def test_a_sample_of_the_mutants_is_found(tmp_path: Path) -> None:
    """`make mutants` judges all; this is a part of the payloads' mutants, judged by the cases of the modules about payloads."""
    report = tmp_path / "mutants.json"
    names = "envelope environment input instructions new_conversation tools_payload user_message user_turn"
    modules = ["suites/proxy/replies/test_models.py", *(f"suites/proxy/requests/test_{name}.py" for name in names.split())]
    options = ["-p", "tests.mutants.plugin", "--mutants", "calls*", "--mutants", "instructions*", "--mutants-sample", "1500"]
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *modules,
        "-q",
        "-p",
        "no:hypothesispytest",
        *options,
        "--mutants-report",
        str(report),
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["killed"] > 1300
    assert found["allowed"] < 0.05 * found["mutants"]
