"""A drift that is damaged, walked by keyboard, or of thousands of changes: no file breaks the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser
from drift_view import mixed, panel, search, without_policy
from selenium.webdriver.common.keys import Keys

from codex_replay.plugin.reporting.report import taken_in
from tests.report.report_sample import behaviour, case, changed, drift, drifted, everything, report

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "reports" / "drift"
Show = Callable[..., Path]
Alone = Callable[..., None]
Measured = Callable[[str, object], None]


# ---------------------------------------------------------------------------------------------------- unknown and damaged

STRANGE = "This drift is shown as it stands in its file: "


@pytest.mark.parametrize(
    ("found", "notice", "shown"),
    [
        ({}, f"{STRANGE}it is not of the form", ""),
        ({"hello": "there"}, f"{STRANGE}it is not of the form", "there"),
        ({"drift": 2, "findings": [{"a": "b"}]}, f"{STRANGE}it is not of the form that this page knows (1), but of form 2", "b"),
        ({"drift": 1, "findings": "lost"}, f"{STRANGE}it has no list of findings", "lost"),
        ({"behaviour": 1, "findings": None}, f"{STRANGE}it has no list of findings", "1"),
        (drift(drifted("kept"), {"no": "finding"}, 7, None), "3 findings of 4 cannot be read.", "kept"),
        ({**drift(drifted("kept")), "counts": {"breaking": 9}}, "The file counts 9 breaking, and 1 can be shown", "kept"),
        (drift(drifted("kept", places=7, cases="x", path=None, sentence={"a": []}, hits=3)), "", "kept"),
        ({**drift(drifted("kept")), "counts": 3, "uncompared": {"a": 1}, "cassettes": [1]}, "", "kept"),
        ({**behaviour(changed("new", "kept", cases=["x", -1, None], examples=[1])), "totals": []}, "", "kept"),
        ({**behaviour(changed("new", "kept")), "totals": {"findings": 2}}, "The file counts 2 findings, and 1", "kept"),
        ({**behaviour(changed("new", "kept")), "cases": 1, "noise": 5, "single": {}, "racy": [3]}, "1 finding cannot", "kept"),
        ({"from": {"version": {"toString": 1}}, "to": [], "totals": 4, "counts": "x"}, STRANGE, "toString"),
    ],
)  # fmt: skip
def test_a_strange_or_damaged_file_is_told_and_shown(browser: Browser, show: Show, found: Any, notice: str, shown: str) -> None:
    show((report([case("one")], drift=found), []))
    panel(browser)
    browser.open_all()
    notices = browser.texts(".drifted .notice")
    assert [each for each in notices if each.startswith(notice)] if notice else notices == []
    assert shown in browser.texts(".drifted")[0]
    assert browser.console() == []
    assert browser.texts(".case .title") == ["The case one ends well"]  # the rest is as ever


def test_a_file_that_is_cut_is_told(browser: Browser, show: Show, tmp_path: Path) -> None:
    (tmp_path / "drift.json").write_text(json.dumps(mixed())[:300])
    show((report([case("one")], drift=taken_in(tmp_path / "drift.json")), []))
    panel(browser)
    assert browser.texts(".drifted") == ["drift.json in the report folder is damaged: it is not JSON of a codex-replay command."]


def test_a_page_whose_drift_is_damaged_is_told(browser: Browser, show: Show) -> None:
    show(everything(), change=lambda text: re.sub('id="d0">e.', 'id="d0">AA', text, count=1))
    panel(browser)
    assert browser.texts(".drifted .notice")[0].startswith("This drift cannot be shown: its data in this file are damaged")
    assert browser.texts(".case .title") == ["The case red ends well"]


# -------------------------------------------------------------------------------------------------------------- keyboard


def test_the_drift_is_walked_by_keyboard(browser: Browser, show: Show) -> None:
    show((report([case("one")], drift=mixed()), []))
    panel(browser)
    label = "return document.activeElement.getAttribute('aria-label')"
    browser.keys("/")
    assert "Search cases" in browser.js(label)  # who does not stand in the drift searches the cases
    browser.js("document.querySelector('.findings input').focus()")
    browser.keys(Keys.ENTER, "j", Keys.ARROW_DOWN, "k")
    assert browser.js("return document.activeElement.innerText").startswith("\u25b8\nturn/start")
    assert browser.js("return document.activeElement.getAttribute('aria-expanded')") == "true"
    before = len(browser.texts(".finding"))
    browser.keys(Keys.ENTER)
    assert len(browser.texts(".finding")) == before - 2
    browser.keys("/")
    assert "Search changes" in browser.js(label)
    browser.keys("thread/new")
    browser.wait("document.querySelector('.findings .count').textContent === '1 of 5 changes'")
    browser.keys(Keys.ESCAPE)
    browser.wait("document.querySelector('.findings .count').textContent === '5 changes'")


def test_a_drift_alone_is_walked_by_keyboard(browser: Browser, alone: Alone) -> None:
    alone(mixed())
    browser.keys("j", "j", "d")
    assert "ThreadItem" in browser.js("return document.activeElement.innerText")
    browser.keys("/")
    assert "Search changes" in browser.js("return document.activeElement.getAttribute('aria-label')")


# ----------------------------------------------------------------------------------------------------------------- scale

MANY = 6000
#: Far fewer than there are, whatever the window.
FEW = 2000


def many() -> Any:
    return drift(*(drifted(f"method/{i // 1000 if i < 3000 else i}", path=f"$.params.p{i}", what=f"p{i}") for i in range(MANY)))


def elements(browser: Browser) -> Any:
    return browser.js("return document.querySelectorAll('.drifted *').length")


def test_thousands_of_findings(browser: Browser, alone: Alone, record_property: Measured) -> None:
    alone(many())
    ready = int(browser.js("return document.documentElement.dataset.ready")) / 1000
    assert browser.texts(".findings .count") == ["6,000 changes"]
    assert 0 < elements(browser) < FEW
    browser.click(".group-head")  # a thousand findings in one
    browser.wait("document.querySelectorAll('.finding').length > 0")
    assert browser.js("return document.querySelectorAll('.finding').length") <= 200
    start = browser.js("return performance.now()")
    search(browser, "p5999", "1 of 6,000 changes")
    took = (browser.js("return performance.now()") - start) / 1000
    assert browser.texts(".finding .path") == ["$.params.p5999"]
    record_property("measured", f"a drift of {MANY} findings: usable after {ready:.2f} s, searched in {took:.2f} s")


def test_a_page_that_makes_every_row_at_once_would_be_seen(browser: Browser, alone: Alone) -> None:
    alone(many(), lambda text: without_policy(text, "const BLOCK = 50;", "const BLOCK = 100000;"))
    assert elements(browser) > FEW
