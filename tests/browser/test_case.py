"""One case of the report's page, and one cassette: what is shown of it, and how it is walked by keyboard."""

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


# -------------------------------------------------------------------------------------------------------------- one case


def test_a_case_tells_all_of_itself(browser: Browser, show: Show) -> None:
    show(everything())
    browser.case(RED)
    assert browser.texts("h1") == ["The case red ends well"]
    assert browser.texts(".case-head .badge, .case-head .id") == ["\u2715 failed", RED]
    assert browser.texts(".rest > .message") == ["AssertionError: the turn failed"]
    assert browser.texts(".spec .muted, .statements") == ["check-red App-server payloads", "PAY-55 A turn that was started ends."]
    assert browser.texts(".command code") == ["pytest 'suites/app_server/test_turns.py::test_red' --app-server fake"]
    assert browser.texts(".details") == []
    browser.click(".details-of summary")
    browser.wait("document.querySelector('.details')")
    assert browser.texts(".details")[0].startswith("E the turn failed E the turn failed")
    assert browser.texts(".story .about") == [
        "The traffic of this run, compared with cassettes/app_server/test_turns/red.ndjson."
    ]
    assert "The case red ends well" in browser.driver.title


def test_each_statement_of_a_case_is_a_link_to_its_cases(browser: Browser, show: Show) -> None:
    links = ["docs/contract/payloads.md#pay-7", "docs/contract/payloads.md#pay-55"]
    both = {"check": "both", "document": "App-server payloads", "section": "PAY-07, PAY-55", "line": None, "links": links}
    both["text"] = "PAY-07: It begins.\nPAY-55: It ends."
    show((report([case("both", spec=both), case("one")]), []))
    browser.open_all()
    assert [row[0] for row in browser.rows(".documents tbody tr")][1:] == ["PAY-07", "PAY-55"]
    browser.case("app_server/test_turns/both")
    assert browser.texts(".statements dt") == ["PAY-07", "PAY-55"]
    assert browser.texts(".statements dd") == ["It begins.", "It ends."]
    browser.click(".statements a", 1)
    browser.wait("document.querySelector('.list .count').checkVisibility()")
    assert browser.texts(".chips button") == ["statement: PAY-55 \u2715"]
    assert sorted(browser.texts(".case .title")) == ["The case both ends well", "The case one ends well"]


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
    assert browser.texts(".body .sentence") == ["This frame differs from the expected frame."]
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
    assert browser.texts(".body .sentence") == ["This frame was expected here, but was not sent."]
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
    assert browser.texts(".story .empty") == ["The frames of this case are not in this file."]
    show(
        (
            report([case(f"c{i}", story=True) for i in range(201)]),
            [story("app_server/test_turns/c200", [frame(1, {"method": "x"})])],
        )
    )
    browser.case("app_server/test_turns/c200")
    assert "`codex-replay report open --full` shows the frames of all" in browser.texts(".story .empty")[0]
    show(everything())
    browser.case("app_server/test_0/good_0")
    assert browser.texts(".story .empty") == ["No frames: this case exchanges no messages, or its frames were not kept."]
    one = case("empty", story=True)
    show((report([one]), [story(one["id"], [])]))
    browser.case(one["id"])
    assert browser.texts(".story .empty") == ["The trace has no frames."]


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
