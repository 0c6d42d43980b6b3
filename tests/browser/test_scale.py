"""Thousands of cases and megabytes of frames: the page stays quick, since it makes only what is looked at.

Times are printed, and bounded only against hangs; what is asserted is that the work does not grow with the data.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from browsing import Browser
from selenium.webdriver.common.keys import Keys

from tests.report.report_sample import case, frame, report, story

Show = Callable[..., Path]
CASES, FRAMES = 2000, 20_000
#: Seconds; far above anything that a reader would bear.
HANG = 30.0


Measured = Callable[[str, object], None]


def test_two_thousand_cases(browser: Browser, show: Show, record_property: Measured) -> None:
    cases = [case(f"case_{i}", module=f"test_{i % 40}", story=True, details="x" * 200) for i in range(CASES)]
    turns = [frame(n, {"method": "item/agentMessage/delta", "params": {"delta": f"word {n}"}}) for n in range(1, 41)]
    path = show((report(cases), [story(each["id"], turns) for each in cases]))
    ready = int(browser.js("return document.documentElement.dataset.ready")) / 1000
    rows = browser.js("return document.querySelectorAll('.case').length")
    filtered = browser.js(
        "const from = performance.now(); const e = document.getElementById('search'); e.value = 'case_1999';"
        "e.dispatchEvent(new Event('input')); return from"
    )
    browser.wait("document.querySelector('.list .count').textContent === '1 of 2,000 cases'")
    took = (browser.js("return performance.now()") - filtered) / 1000
    megabytes = path.stat().st_size / 1e6
    record_property(
        "measured", f"{CASES} cases, {megabytes:.1f} MB: usable after {ready:.2f} s, found by text after {took:.2f} s"
    )
    assert 0 < rows <= 400
    assert ready < HANG
    browser.case("app_server/test_39/case_39")
    assert browser.texts(".story .count") == ["40 frames"]


def test_the_last_of_two_thousand_is_reached_by_scrolling_and_by_keys(browser: Browser, show: Show) -> None:
    show((report([case(f"case_{i}") for i in range(CASES)]), []))
    browser.js("window.scrollTo(0, document.body.scrollHeight)")
    for _ in range(20):  # heights are estimates until a row was there
        browser.js("window.scrollTo(0, document.body.scrollHeight)")
        if browser.js("return [...document.querySelectorAll('.case .title')].some(e => e.textContent.includes('case_1999 '))"):
            break
        browser.wait("document.querySelectorAll('.case').length > 0")
    browser.wait("[...document.querySelectorAll('.case .title')].some(e => e.textContent.includes('case_1999 '))")
    assert browser.js("return document.querySelectorAll('.case').length") <= 400
    browser.js("window.scrollTo(0, 0)")
    browser.keys("/", Keys.ENTER, *"j" * 120)
    browser.wait("(document.activeElement.textContent || '').includes('case_120 ')")
    box = browser.js("return document.activeElement.getBoundingClientRect().top")
    assert 0 <= box < 900


def test_a_story_of_ten_megabytes(browser: Browser, show: Show, record_property: Measured) -> None:
    one = case("long", story=True)
    frames = [
        frame(n, {"method": "item/agentMessage/delta", "params": {"itemId": "msg_1", "delta": f"word {n} " + "abcdefgh" * 50}})
        for n in range(1, FRAMES + 1)
    ]
    frames[15_000]["text"] = json.dumps({"method": "turn/completed", "params": {"needle": "only here"}})
    size = sum(len(each["text"]) for each in frames)
    show((report([one]), [story(one["id"], frames)]))
    start = browser.js("return performance.now()")
    browser.case(one["id"])
    took = (browser.js("return performance.now()") - start) / 1000
    assert browser.texts(".story .count") == ["20,000 frames"]
    assert 0 < browser.js("return document.querySelectorAll('.frame').length") <= 400
    start = browser.js(
        "const e = document.querySelector('.story input'); e.value = 'only here';"
        "e.dispatchEvent(new Event('input')); return performance.now()"
    )
    browser.wait("document.querySelector('.story .count').textContent === '1 of 20,000 frames'")
    found = (browser.js("return performance.now()") - start) / 1000
    record_property(
        "measured", f"a story of {size / 1e6:.1f} MB in {FRAMES} frames: open after {took:.2f} s, searched in {found:.2f} s"
    )
    assert took < HANG
    assert found < HANG
    assert browser.texts(".frame mark") == ["only here"]
