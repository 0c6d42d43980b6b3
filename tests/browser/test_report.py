"""The report's page as its reader has it: what it shows, and how it is found by mouse, by keyboard, on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import Browser
from selenium.webdriver.common.keys import Keys

from tests.report.report_sample import case, everything, report

ROOT = Path(__file__).resolve().parents[2]
Show = Callable[..., Path]
RED = "app_server/test_turns/red"


# ---------------------------------------------------------------------------------------------------------- the overview


def test_the_verdict_stands_at_the_top(browser: Browser, show: Show) -> None:
    show(everything())
    assert browser.texts("h1") == ["Failed"]
    assert browser.texts(".verdict p")[1] == "65 cases of app-server fake (Codex 0.92.0), profile default."
    assert browser.texts(".tile") == ["1 \u2715 failed", "1 ! known", "1 \u2013 skipped", "62 \u2713 passed"]
    assert browser.js("return document.querySelector('.verdict').getBoundingClientRect().top") < 60


@pytest.mark.parametrize(("outcome", "word"), [("passed", "Verified"), ("skipped", "Nothing verified")])
def test_each_verdict_has_its_word(browser: Browser, show: Show, outcome: str, word: str) -> None:
    show((report([case("one", outcome=outcome)]), []))
    assert browser.texts("h1") == [word]


def test_verdicts_stand_by_suite_and_module_and_by_document_and_section(browser: Browser, show: Show) -> None:
    show(everything())
    browser.open_all()
    assert [[row[0].strip("\u25b8 "), *row[2:-1]] for row in browser.rows(".suites tbody tr")] == [
        ["app_server", "61", "1", "0", "0"],
        ["test_turns", "1", "1", "0", "0"],
        ["test_0", "20", "0", "0", "0"],
        ["test_1", "20", "0", "0", "0"],
        ["test_2", "20", "0", "0", "0"],
        ["proxy", "0", "0", "1", "0"],
        ["test_turns", "0", "0", "1", "0"],
        ["backend", "1", "0", "0", "1"],
        ["test_turns", "1", "0", "0", "1"],
    ]
    assert [[row[0].strip("\u25b8 "), *row[2:-1]] for row in browser.rows(".documents tbody tr")] == [
        ["App-server payloads", "62", "1", "1", "0"],
        ["PAY-55", "62", "1", "1", "0"],
    ]


def test_coverage_strength_and_drift_are_there_when_the_data_are(browser: Browser, show: Show) -> None:
    show(everything())
    assert [browser.texts(f".{part} > summary") for part in ("coverage", "strength", "drift")] == [
        ["Protocol shown 1 of 2 (50 %)"],
        ["Strength 1 of 2 (50 %) broken variants caught"],
        ["Drift 0.92.0 → 0.105.0, 2 breaking, 1 additive"],
    ]
    browser.open_all()
    assert browser.texts(".names li") == ["\u25cb fuzzy not seen needs an account", f"\u2713 initialize {RED}"]
    assert browser.rows(".strength tbody tr") == [
        ["adds-one", "it adds one", "NOTHING: no check saw it"],
        ["drops-a-field", "it drops a field", "check-red"],
    ]
    assert browser.texts(".drift .said") == ["From 0.92.0 to 0.105.0, 2 changes break clients. 1 change adds something new."]
    show((report([case("one")]), []))
    assert browser.texts(".coverage, .strength, .drift, .runs") == []


def test_the_fields_of_a_proxy_are_in_the_page(browser: Browser, show: Show) -> None:
    row = {
        "method": "initialize",
        "field": "clientInfo",
        "specified": None,
        "valid": True,
        "known": True,
        "value": 1200,
        "null": 0,
        "omitted": 3,
    }
    rows = [row, {**row, "method": "sendUserTurn", "field": "tools", "specified": True, "known": False, "value": 0, "null": 2}]
    found = {"proxy-fields": 1, "proxy": "node server.js", "profiles": {"as-specified": rows}}
    show((report([case("one")], proxy_fields=found), []))
    assert browser.texts(".fields > summary") == ["Fields that the proxy sends 2 fields, 1 of them not known to Codex"]
    browser.open_all()
    assert browser.rows(".fields tbody tr") == [
        ["initialize.clientInfo", "-", "yes", "yes", "1,200", "", "3"],
        ["sendUserTurn.tools", "yes", "yes", "no", "", "2", "3"],
    ]


def test_an_object_in_a_table_keeps_its_words(browser: Browser, show: Show) -> None:
    """Beside a long command the subject of a run has words and not a column of letters."""
    command = "pytest " + "path/to/site-packages/codex_replay/packaged/suites/proxy/replies/test_auth.py " * 6
    run = {"name": "a", "command": command, "started": "2026-11-22T11:45:13Z", "seconds": 2.3, "verdict": "failed"}
    run |= {"subject": {"proxy": "node server.js"}, "codex": "0.92.0", "profile": "works-on-0.92", "cases": 32}
    show((report([case("one")], runs=[run]), []))
    assert browser.js("return document.querySelector('.runs dd').getClientRects()[0].height") < 40


def test_a_joined_report_tells_its_runs(browser: Browser, show: Show) -> None:
    runs = [{"name": "linux", "cases": 1}, {"name": "macos", "cases": 1}]
    told = [
        {"run": 0, "outcome": "passed", "seconds": 1.0, "message": ""},
        {"run": 1, "outcome": "failed", "seconds": 2.0, "message": "no"},
    ]
    show((report([case("one", outcome="failed", message="no", run=1, told=told)], runs=runs), []))
    assert browser.rows(".runs tbody tr") == [["linux", "1"], ["macos", "1"]]
    browser.case("app_server/test_turns/one")
    assert browser.texts(".told li") == ["\u2713 passed linux 1.00 s", "\u2715 failed macos 2.00 s no"]


def test_an_interrupted_run_and_a_stale_baseline_are_said(browser: Browser, show: Show) -> None:
    show((report([case("one")], interrupted=True, stale=["message-limit"]), []))
    assert browser.texts(".notice") == [
        "The run was interrupted; the other cases did not run.",
        "The baseline is stale: message-limit passes now. Remove its entry.",
    ]


def test_a_report_without_cases_says_so(browser: Browser, show: Show) -> None:
    show((report([]), []))
    assert browser.texts(".empty") == ["No case was run."]


# -------------------------------------------------------------------------------------------------------- finding a case


def titles(browser: Browser) -> list[str]:
    return browser.texts(".case .title")


def search(browser: Browser, text: str, count: str) -> None:
    browser.js("const e = document.getElementById('search'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))", text)
    browser.wait("document.querySelector('.list .count').textContent === arguments[0]", count)


def test_failed_cases_stand_above_the_fold_and_the_others_are_folded(browser: Browser, show: Show) -> None:
    next_steps = [
        "Fix the most common cause (1 of 1 failed case): the turn failed",
        "Rerun one of these cases: pytest 'a b' --app-server fake",
    ]
    sample, stories = everything()
    browser.emulate(width=1400, height=1000)
    show(({**sample, "next": next_steps}, stories))
    assert titles(browser) == ["The case red ends well"]
    assert browser.js("return document.querySelector('.case').getBoundingClientRect().bottom") < 1000
    assert browser.texts(".next li") == [
        "Fix the most common cause (1 of 1 failed case): the turn failed",
        "Rerun one of these cases: pytest 'a b' --app-server fake Copy",
    ]
    assert browser.texts(".part h3") == [
        "\u25b8 \u2715 failed 1",
        "\u25b8 ! known 1",
        "\u25b8 \u2013 skipped 1",
        "\u25b8 \u2713 passed 62",
    ]
    for part in ("known", "skipped", "passed"):
        browser.click(f".part.{part} .fold")
    assert titles(browser)[:4] == [f"The case {name} ends well" for name in ("red", "listed", "live", "good_0")]
    browser.click(".part.failed .fold")
    assert titles(browser)[0] == "The case listed ends well"
    assert browser.js("return document.activeElement.matches('.part.failed .fold')")


def test_without_failed_cases_the_tables_stand_first_and_known_ones_are_folded(browser: Browser, show: Show) -> None:
    show((report([case("listed", outcome="known"), case("good")]), []))
    assert titles(browser) == ["The case good ends well"]
    top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    assert browser.js(top, ".suites") < browser.js(top, ".list")


def test_of_many_failed_cases_the_first_are_shown(browser: Browser, show: Show) -> None:
    show((report([case(f"red_{i}", outcome="failed", message=f"m{i}") for i in range(60)]), []))
    assert len(titles(browser)) == 20
    browser.case("app_server/test_turns/red_40")
    browser.keys(Keys.ESCAPE)
    browser.wait("document.activeElement.matches('.case a')")
    assert browser.js("return document.activeElement.querySelector('.title').textContent") == "The case red_40 ends well"
    show((report([case(f"red_{i}", outcome="failed", message=f"m{i}") for i in range(60)]), []))
    browser.click(".rest-of")
    assert len(titles(browser)) == 50  # a block of a list that is made as it is looked at


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("good_17", ["good_17"]),
        ("the turn FAILED", ["red"]),
        ("check-listed", ["listed"]),
        ("backend lost", ["lost"]),
        ("no such", []),
    ],
    ids=["name", "message", "check", "two words", "nothing"],
)
def test_cases_are_found_by_text(browser: Browser, show: Show, text: str, found: list[str]) -> None:
    show(everything())
    search(browser, text, f"{len(found)} of 65 cases")
    assert titles(browser) == [f"The case {name} ends well" for name in found]
    assert browser.texts(".list .empty") == ([] if found else ["No case matches. Change the search or the filters."])


def test_cases_are_found_by_suite_and_by_verdict(browser: Browser, show: Show) -> None:
    show(everything())
    choose = (
        "const e = document.querySelectorAll('.list select')[arguments[0]];"
        "e.value = arguments[1]; e.dispatchEvent(new Event('change'))"
    )
    browser.js(choose, 1, "backend")
    assert browser.texts(".list .count") == ["2 of 65 cases"]
    browser.js(choose, 0, "skipped")
    assert titles(browser) == ["The case live ends well"]


def test_a_row_of_the_tables_chooses_its_cases(browser: Browser, show: Show) -> None:
    show(everything())
    browser.open_all()
    browser.click(".suites .inner .link", 1)
    assert browser.texts(".list .count") == ["20 of 65 cases"]
    assert browser.texts(".chips button") == ["module: test_0 \u2715"]
    browser.click(".chips button")
    assert browser.texts(".list .count") == ["62 of 65 cases"]
    browser.click(".documents .inner .link")
    assert browser.texts(".list .count") == ["64 of 65 cases"]
    browser.click(".tile")
    assert titles(browser) == ["The case red ends well"]


# ---------------------------------------------------------------------------------------------- what several failed cases say


def test_what_several_failed_cases_say_leads_to_them(browser: Browser, show: Show) -> None:
    refused = [case(f"f{i}", outcome="failed", message="The header is required.\nexit status 1") for i in range(4)]
    show((report([case("green"), *refused, case("alone", outcome="failed", message="Something else.")]), []))
    assert browser.texts(".alike li") == ["4 cases The header is required."]
    browser.click(".alike button")
    assert browser.texts(".count") == ["4 of 6 cases"]
    browser.click("button.chip")
    assert browser.texts(".count") == ["6 cases"]
    show((report([case("green")]), []))
    assert browser.texts(".alike") == []


def test_what_differs_in_a_value_alone_leads_to_all_of_it(browser: Browser, show: Show) -> None:
    many = [case(f"f{i}", outcome="failed", message=f"The answer was {i} and not 200.") for i in range(40)]
    show((report([case("green"), *many, case("alone", outcome="failed", message="Something else.")]), []))
    assert browser.texts(".alike li") == ["40 cases The answer was \u2026 and not 200."]
    browser.click(".alike button")
    assert browser.texts(".count") == ["40 of 42 cases"]
