"""The report's page as its reader has it: what it shows, and how it is found by mouse, by keyboard, on a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browsing import Browser
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from codex_replay.report.cassette_trace import cassette_trace
from codex_replay.report.page.build import write_cassette_html
from tests.report.report_sample import case, conversation, everything, frame, report, story

ROOT = Path(__file__).resolve().parents[2]
Show = Callable[..., Path]
RED = "app_server/test_turns/red"


# ---------------------------------------------------------------------------------------------------------- the overview


def test_the_verdict_stands_at_the_top(browser: Browser, show: Show) -> None:
    show(everything())
    assert browser.texts("h1") == ["Failed"]
    assert browser.texts(".verdict p")[1] == (
        "65 cases: 1 failed, 1 known to fail, 1 skipped, 62 passed. app-server fake (Codex 0.92.0), profile default."
    )
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
    assert browser.texts(".drift .said") == ["From 0.92.0 to 0.105.0, 2 changes break clients, 1 adds to what there is."]
    show((report([case("one")]), []))
    assert browser.texts(".coverage, .strength, .drift, .runs") == []


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
        "The baseline is stale: message-limit passes now. Remove the line.",
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


def test_the_worst_stands_first(browser: Browser, show: Show) -> None:
    show(everything())
    assert titles(browser)[:4] == [f"The case {name} ends well" for name in ("red", "listed", "live", "good_0")]


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
    assert browser.texts(".list .empty") == ([] if found else ["No case is like that."])


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


# -------------------------------------------------------------------------------------------------------------- one case


def test_a_case_tells_all_of_itself(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    assert browser.texts("h1") == ["The case red ends well"]
    assert browser.texts(".case-head .badge, .case-head .id") == ["\u2715 failed", RED]
    assert browser.texts(".rest > .message") == ["AssertionError: the turn failed"]
    assert browser.texts("blockquote, .spec .muted") == [
        "A turn that was started ends.",
        "check-red App-server payloads, PAY-55 (docs/contract/payloads.md#pay-55)",
    ]
    assert browser.texts(".command code") == ["pytest 'suites/app_server/test_turns.py::test_red' --app-server fake"]
    assert browser.texts(".details")[0].startswith("E the turn failed E the turn failed")
    assert browser.texts(".story .about") == [
        "The traffic of this run, compared with cassettes/app_server/test_turns/red.ndjson."
    ]
    assert "The case red ends well" in browser.driver.title


def test_expected_stands_beside_actual_with_the_difference_marked(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    pairs = "section > .compare"
    # The number as it was sent, and a line that is the same on both sides.
    assert browser.texts(f"{pairs} .same .side") == ["{", "{", '"n": 1.50', '"n": 1.50', "}", "}"]
    assert browser.texts(f"{pairs} .differs .side") == [
        '\u2212 expected: "status": "completed",',
        '+ actual: "status": "failed",',
    ]
    assert browser.texts(f"{pairs} .differs b") == ["complet", "fai"]


def test_the_command_is_copied(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    browser.driver.find_element("css selector", ".case-view .command .copy").click()
    browser.wait("document.querySelector('.case-view .copy').textContent === 'Copied'")
    assert browser.texts("#said") == ["Copied"]
    browser.js("document.querySelector('.story input').focus()")
    ActionChains(browser.driver).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
    browser.wait("document.querySelector('.story input').value.length > 0")
    assert browser.js("return document.querySelector('.story input').value") == (
        "pytest 'suites/app_server/test_turns.py::test_red' --app-server fake"
    )


def test_the_timeline_is_a_sequence_diagram_of_both_seams(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    assert browser.texts(".lanes span") == ["client", "app-server", "backend"]
    arrows = browser.js(
        "const place = e => { const box = e.getBoundingClientRect(); return [box.left, box.right]; };"
        "return [...document.querySelectorAll('.arrow')].map(e => [...place(e), e.className.includes(' right')])"
    )
    lanes = browser.js("return [...document.querySelectorAll('.lifelines i')].map(e => e.getBoundingClientRect().left)")
    between = [(0, 1, True), (0, 1, False), (1, 2, True), (1, 2, False), *[(0, 1, False)] * 4]
    for (left, right, forward), (one, other, expected) in zip(arrows, between, strict=True):
        assert abs(left - lanes[one]) < 4
        assert abs(right - lanes[other]) < 4
        assert forward is expected
    assert browser.texts(".frame .mark") == ["different", "missing", "unexpected"]


@pytest.mark.parametrize(
    ("suite", "seams", "lanes"),
    [
        ("proxy", ["http", "rpc"], ["client", "proxy", "app-server"]),
        ("proxy", ["rpc"], ["proxy", "app-server"]),
        ("editor_client", ["rpc", "http"], ["editor", "app-server", "backend"]),
        ("lite_client", ["http"], ["client", "backend"]),
        ("app_server", ["rpc"], ["client", "app-server"]),
    ],
)
def test_the_lifelines_are_those_of_the_suite(
    browser: Browser, show: Show, suite: str, seams: list[str], lanes: list[str]
) -> None:
    one = case("one", suite=suite, story=True)
    show((report([one]), [story(one["id"], [frame(i, {"method": seam}, seam=seam) for i, seam in enumerate(seams, 1)])]))
    browser.case(one["id"])
    assert browser.texts(".lanes span") == lanes


def test_an_opened_frame_tells_what_differs_and_what_was_masked_or_bound(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    browser.click(".line-head", 4)
    assert browser.texts(".body .sentence") == ["This frame is not the expected one."]
    facts = dict(zip(browser.texts(".body dt"), browser.texts(".body dd"), strict=True))
    assert facts == {
        "frame": "5, app-server → client, notification",
        "differs at": "$.params.turn.status",
        "bound": "<thread:1> = 0198c0de-0000-7000-8000-00000000beef",
        "masked": "$.params.turn.startedAt",
    }
    assert len(browser.texts(".body .pair.differs")) == 1
    assert browser.texts(".body .pair.differs b") == ["complet", "fai"]
    # What was masked or bound is shown, and is no difference.
    assert browser.texts(".body .pair.quiet .tag") == ["bound", "masked"]
    browser.click(".body .tabs button", 2)
    assert json.loads(browser.texts(".body pre")[0]) == json.loads(conversation("x")["frames"][4]["text"])
    browser.click(".line-head", 4)
    assert browser.texts(".body") == []


def test_a_missing_frame_shows_what_should_have_come(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    browser.click(".line-head", 5)
    assert browser.texts(".body .sentence") == ["This frame was expected here and was not said."]
    assert browser.texts(".body .text .line") == ["{", '"method": "thread/archived"', "}"]
    browser.click(".line-head", 7)
    assert browser.texts(".body .notice") == ["Shown are the first 22 characters of 123,456."]


def test_frames_are_searched_and_chosen(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    put = "const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event(arguments[2]))"
    browser.js(put, ".story input[type=search]", "HAYstack", "input")
    browser.wait("document.querySelector('.story .count').textContent === '1 of 8 frames'")
    assert browser.texts(".frame mark") == ["haystack"]
    browser.js(put, ".story input[type=search]", "", "input")
    browser.wait("document.querySelector('.story .count').textContent === '8 frames'")
    browser.js(put, ".story select", "http", "change")
    assert browser.texts(".frame .what") == ["POST /v1/responses", "event response.created"]
    browser.js(put, ".story select", "", "change")
    browser.click("#differing")
    assert browser.texts(".frame .what") == ["turn/completed", "thread/archived", "warning"]


def test_stories_that_are_cut_lost_or_none_say_so(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case("app_server/test_turns/short")
    assert browser.texts(".story .notice") == ["This trace is cut: only a part of the traffic is kept."]
    browser.case("backend/test_turns/lost")
    assert browser.texts(".story .empty") == ["Its frames are not in this file."]
    browser.case("app_server/test_0/good_0")
    assert browser.texts(".story .empty") == ["Nothing: this case speaks to no program, or its frames were not kept."]
    one = case("empty", story=True)
    show((report([one]), [story(one["id"], [])]))
    browser.case(one["id"])
    assert browser.texts(".story .empty") == ["Not one frame was seen."]


def test_damaged_data_are_said_and_the_rest_still_works(browser: Browser, show: Show) -> None:
    show(everything(), change=lambda text: re.sub('id="s0">e.', 'id="s0">AA', text, count=1))
    browser.case(RED)
    assert "its data in this file are damaged" in browser.texts(".rest .notice")[0]
    browser.case("app_server/test_turns/short")
    assert browser.texts(".frame .what") == ["x"]


# -------------------------------------------------------------------------------------------------------------- keyboard


def test_everything_is_done_by_keyboard(browser: Browser, show: Show) -> None:
    show(everything())
    browser.keys("/")
    assert browser.js("return document.activeElement.id") == "search"
    browser.keys("good_1")
    browser.wait("document.querySelector('.list .count').textContent === '11 of 65 cases'")
    browser.keys(Keys.ENTER)  # from the search into the list
    browser.keys("j")
    browser.keys(Keys.ARROW_DOWN)
    browser.keys("k")
    assert browser.js("return document.activeElement.querySelector('.title').textContent") == "The case good_10 ends well"
    focused = "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, parseFloat(s.outlineWidth) >= 2]"
    assert browser.js(focused) == ["solid", True]
    browser.keys(Keys.ENTER)
    browser.wait("location.hash === '#case=app_server%2Ftest_1%2Fgood_10'")
    browser.wait("document.activeElement.tagName === 'H1'")
    browser.keys("n")
    browser.wait("location.hash.endsWith('good_11')")
    browser.keys("p")
    browser.wait("location.hash.endsWith('good_10')")
    browser.keys(Keys.ESCAPE)
    browser.wait("location.hash === ''")
    browser.wait("document.activeElement.matches('.case a')")
    assert browser.js("return document.activeElement.querySelector('.title').textContent") == "The case good_10 ends well"
    browser.keys("/", Keys.ESCAPE)
    browser.wait("document.querySelector('.list .count').textContent === '65 cases'")


def test_frames_are_walked_by_keyboard(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    browser.keys("j", "j", Keys.ENTER)
    assert browser.js("return document.activeElement.getAttribute('aria-expanded')") == "true"
    assert "result #1 of initialize" in browser.js("return document.activeElement.innerText")
    browser.keys("d")
    browser.wait("document.activeElement.innerText.includes('turn/completed')")
    assert browser.js("return document.activeElement.getAttribute('aria-expanded')") == "true"
    browser.keys("/")
    assert browser.js("return document.activeElement.getAttribute('aria-label')") == "Search in the frames"


def test_the_keys_are_told(browser: Browser, show: Show) -> None:
    show(everything())
    browser.keys("?")
    assert browser.js("return document.getElementById('help').open") is True
    assert "the next difference" in browser.texts("#help")[0]
    browser.keys(Keys.ESCAPE)
    browser.wait("!document.getElementById('help').open")


def test_what_is_shown_has_a_name_for_those_who_do_not_see_it(browser: Browser, show: Show) -> None:
    nameless = (
        "return [...document.querySelectorAll('a, button, input, select, summary, [role=img], [role=group]')]"
        ".filter(e => e.checkVisibility() && !(e.innerText || '').trim() && !e.getAttribute('aria-label'))"
        ".filter(e => !e.closest('label')).map(e => e.outerHTML)"
    )
    show(everything())
    browser.open_all()
    assert browser.js(nameless) == []
    browser.case(RED)
    browser.open_all()
    assert browser.js(nameless) == []
    browser.js("document.querySelector('.line-head').replaceChildren()")
    assert len(browser.js(nameless)) == 1  # that this would be seen


# ------------------------------------------------------------------------------------------------------------- a cassette


def test_a_cassette_is_shown_by_the_same_viewer(browser: Browser, tmp_path: Path) -> None:
    told = cassette_trace(ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson", "app_server/test_v2/text_turn")
    write_cassette_html(told, {"codex": "0.92.0"}, tmp_path / "c.html")
    browser.open((tmp_path / "c.html").as_uri())
    assert browser.texts("h1") == ["app_server/test_v2/text_turn"]
    assert browser.texts(".story .count") == [f"{len(told['frames'])} frames"]
    assert browser.texts(".frame .what")[0] == "initialize #0"
    assert browser.texts(".lanes span") == ["client", "app-server", "backend"]
    assert browser.texts(".verdict, .list, nav, .story .about") == []
    browser.keys("j", Keys.ENTER)
    assert browser.texts(".body .text .line")[0] == "{"
    browser.js("window.scrollTo(0, document.body.scrollHeight)")
    browser.wait("[...document.querySelectorAll('.what')].some(e => e.textContent === 'turn/completed')")


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
    assert browser.texts(".alike li") == ["40 cases The answer was \u2026 and not \u2026."]
    browser.click(".alike button")
    assert browser.texts(".count") == ["40 of 42 cases"]
