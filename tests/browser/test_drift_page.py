"""The drift as its reader has it, in a report and alone: what it shows, how it is searched, and that no file can break it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser
from drift_view import groups, listed, mixed, panel, search, without_policy

from codex_replay.cli.drift.pages import verdict
from codex_replay.protocol.drift.experimental import CAPABILITY
from tests.report.report_sample import behaviour, case, changed, drift, drifted, everything, report

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "reports" / "drift"
Show = Callable[..., Path]
Alone = Callable[..., None]
Measured = Callable[[str, object], None]


# ------------------------------------------------------------------------------------------------------------- of schemas


def test_the_totals_stand_by_whom_they_hit(browser: Browser, show: Show) -> None:
    show((report([case("one")], drift=mixed()), []))
    assert browser.texts(".drift > summary") == ["Drift 0.92.0 \u2192 0.105.0, 3 breaking, 2 additive"]
    panel(browser)
    assert browser.texts(".drift .said") == ["From 0.92.0 to 0.105.0, 3 changes break clients. 2 changes add something new."]
    assert browser.texts(".drift .tile") == [
        "3 \u2715 breaking",
        "2 \u2192 hit clients that send it",
        "1 \u2192 hit clients that read it",
        "2 + additive",
    ]
    assert browser.texts(".sizes .chip") == ["client methods 55 \u2192 56", "events 64"]
    assert browser.texts(".drifted .notice") == []
    browser.open_all()
    assert "mine.json has no results." in browser.texts(".drifted li")


def test_findings_stand_by_method_or_definition_and_what_breaks_goes_first(browser: Browser, alone: Alone) -> None:
    alone(mixed())
    assert browser.texts("h1") == ["Drift from 0.92.0 to 0.105.0"]
    assert groups(browser) == [
        "\u25b8 sendUserTurn request of the client \u2715 1 breaking gone",
        "\u25b8 turn/start request of the client \u2715 1 breaking + 1 additive type changed; property new: effort",
        "\u25b8 ThreadItem definition, in 2 methods \u2715 1 breaking value gone: old",
        "\u25b8 thread/new request of the client + 1 additive new",
    ]
    assert browser.texts(".finding") == [  # so few stand open
        "\u2715 breaking method gone The server no longer knows the method and answers with an error. Hit: clients that send it.",
        "\u2715 breaking type changed string \u2192 array $.params.input The server refuses the old type. "
        "Hit: clients that send it.",
        "+ additive property new effort $.params.effort The server refuses the old type.",
        "\u2715 breaking value gone old item/started $.params.item The server refuses the old type. Hit: clients that read it. "
        "and 1 other place",
        "+ additive method new The method can be sent now.",
    ]
    browser.click(".finding details > summary")
    browser.wait("document.querySelector('.finding li')")
    assert listed(browser) == ["item/completed $.params.item"]


def gated() -> Any:
    """A drift in which one of three changes is only behind a capability."""
    only = {
        "rule": "property-gone",
        "what": "tools",
        "path": "$.params.tools",
        "sentence": "Only who says it.",
        "behind": "someApi",
    }
    inside = {"path": "$.params.tools[*].name", "with": "someApi"}
    return drift(
        drifted("thread/start", **only),
        drifted("turn/start", rule="method-gone"),
        drifted("thread/start", **inside),
        drifted("new", cls="additive", rule="method-new", without="someApi"),
        drifted("other", cls="additive"),
    )


#: What is said of each.
MARKS = [
    "now only for clients that send capabilities.someApi in initialize",
    "noticed only by clients that send capabilities.someApi in initialize",
    "noticed only by clients that do not send capabilities.someApi in initialize",
]


def test_what_not_all_clients_notice_says_so(browser: Browser, alone: Alone) -> None:
    alone(gated())
    who = "clients that do not send capabilities.someApi in initialize"
    breaks = f"3 changes break clients (1 of them breaks only {who}, 1 of them breaks only clients that send it)"
    adds = f"2 changes add something new (1 of them is only for {who})"
    assert browser.texts(".said") == [f"From 0.92.0 to 0.105.0, {breaks}. {adds}."]
    browser.open_all()
    assert browser.texts(".finding .change .tag") == MARKS
    assert browser.texts(".finding")[0].startswith(
        f"\u2715 breaking property gone tools {MARKS[0]} $.params.tools Only who says it."
    )
    search(browser, "someapi", "3 of 5 changes")
    search(browser, "without someapi", "1 of 5 changes")


def test_the_page_and_the_command_say_the_same_of_who_notices(browser: Browser, alone: Alone) -> None:
    for left in range(5):
        found = gated()
        del found["findings"][left]
        found["counts"] |= {cls: sum(each["class"] == cls for each in found["findings"]) for cls in ("breaking", "additive")}
        alone(found)
        assert browser.texts(".said") == [verdict(found).replace(CAPABILITY, "someApi")]


@pytest.mark.parametrize("key", ["behind", "without", "with"])
@pytest.mark.parametrize("named", [None, "", 7, "someApi"])
def test_a_choice_of_who_notices_is_there_where_not_all_do(browser: Browser, alone: Alone, key: str, named: Any) -> None:
    found = drift(drifted("thread/start"), drifted("turn/start"))
    found["findings"][0][key] = named
    alone(found)
    hidden = browser.js("return document.querySelector('[aria-label^=\"Behind\"]').hidden")
    assert hidden == (named != "someApi")
    assert ("capabilities" in browser.texts(".said")[0]) == (named == "someApi")
    assert len(browser.texts(".finding .change .tag")) == (named == "someApi")


def told(browser: Browser) -> list[list[str]]:
    """All that the page says of a drift, in its order."""
    return [browser.texts(each) for each in (".tile", ".group-head", ".finding", ".drifted > .notice")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return [...some.filter((each) => loud(each)), ...some.filter((each) => !loud(each))]", "return some"),
        ("(!side || item.hits === side)", "true"),
        ("item.group = item.shared ? item.type : item.method", "item.group = item.method"),
        ("highlighted(item.sentence, word)", '""'),
        ('el("code", { cls: "path" }, highlighted(item.path, word))', '""'),
        ("`Hit: ${hitOf(item)}.`", '""'),
        ("numberIn(found.counts, cls) !== null && ", "false && "),
    ],
    ids=["order", "whom", "definition", "sentence", "path", "hit", "doubts"],
)
def test_a_page_that_tells_a_drift_otherwise_would_be_seen(browser: Browser, alone: Alone, old: str, new: str) -> None:
    found = {**mixed(), "counts": {"breaking": 9}}
    alone(found)
    good = told(browser)
    alone(found, lambda text: without_policy(text, old, new))
    assert told(browser) != good
    assert len(told(browser)[2]) == 5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("item.mark && [", "false && ["),
        ("item.mark && [", 'item.mark === "behind" && ['),
        ("NOTICED[item.mark](item.capability)", "NOTICED.behind(item.capability)"),
        ("item.mark = Object.keys(NOTICED).find(", 'item.mark = ["behind"].find('),
        ('clients${noticed(items, "breaking")}', "clients"),
        ('new${noticed(items, "additive")}', "new"),
        ("const without = marked.length - capable", "const without = marked.length"),
        ('item.mark ? `${item.mark} ${item.capability}` : "noticed by all"', '"noticed by all"'),
        ("item.mark, item.capability,", ""),
    ],
    ids=[
        "hidden",
        "one told",
        "one for all",
        "one read",
        "verdict",
        "verdict on what is added",
        "counted twice",
        "no choice",
        "search",
    ],
)
def test_a_page_that_hides_who_notices_would_be_seen(browser: Browser, alone: Alone, old: str, new: str) -> None:
    def seen() -> list[Any]:
        browser.open_all()
        choices = "return [...document.querySelector('[aria-label^=\"Behind\"]').options].map(each => each.textContent)"
        first = [browser.texts(each) for each in (".said", ".finding")] + [browser.js(choices)]
        put = "const e = document.querySelector('.findings input'); e.value = 'someapi'; e.dispatchEvent(new Event('input'))"
        browser.js(put)
        browser.wait("document.querySelector('.findings .count').textContent.includes(' of ')")
        return [*first, browser.texts(".findings .count")]

    alone(gated())
    good = seen()
    alone(gated(), lambda text: without_policy(text, old, new))
    assert seen() != good


def test_the_end_of_all_events_is_one_thing_to_read(browser: Browser, alone: Alone) -> None:
    found = drift(*(drifted(f"codex/event/{name}", kind="event", rule="method-gone") for name in "abc"), drifted("other"))
    alone(found)
    assert len(groups(browser)) == 4
    found["counts"]["to"]["events"] = 0
    alone(found)
    assert groups(browser)[0] == "\u25b8 codex/event/* codex/event (v1) \u2715 3 breaking gone: all 3 types"
    assert len(groups(browser)) == 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("userturn", ["sendUserTurn"]),
        ("TYPE changed input", ["turn/start"]),
        ("item/completed", ["ThreadItem"]),
        ("additive", ["thread/new", "turn/start"]),
        ("no such", []),
    ],
    ids=["method", "several words", "another place", "class", "nothing"],
)
def test_findings_are_found_by_text(browser: Browser, alone: Alone, text: str, found: list[str]) -> None:
    alone(mixed())
    number = 2 if text == "additive" else len(found)
    search(browser, text, f"{number} of 5 changes")
    assert browser.texts(".group-head .name > :first-child") == found
    assert browser.texts(".findings .empty") == ([] if found else ["No change matches."])
    assert len(browser.texts(".findings mark")) >= (1 if "user" in text else 0)


def test_a_number_chooses_what_it_counts(browser: Browser, alone: Alone) -> None:
    alone(mixed())
    browser.click(".tile", 2)
    assert browser.texts(".group-head .name > :first-child") == ["ThreadItem"]
    assert browser.texts(".findings .count") == ["1 of 5 changes"]
    browser.click(".tile", 3)
    assert browser.texts(".group-head .name > :first-child") == ["thread/new", "turn/start"]


def test_with_cassettes_what_hits_ones_own_cases_is_shown_first(browser: Browser, show: Show) -> None:
    mine = ["app_server/test_turns/one", "elsewhere"]
    found = drift(
        drifted("used", cases=mine),
        drifted("unused", cases=[]),
        cassettes={"cases": 3, "hit": 2, "hits": {name: [0] for name in mine}},
    )
    found["ignored"] = 5
    show((report([case("one")], drift=found), []))
    panel(browser)
    said = browser.texts(".drift .said")[0]
    assert said.startswith(
        "2 of your 3 cases are affected by 1 breaking change. In all, from 0.92.0 to 0.105.0, 2 changes break clients"
    )
    assert said.endswith("Not counted: 5 changes (--ignore, --reads, --sends).")
    assert browser.texts(".group-head .name > :first-child") == ["used"]
    browser.click(".finding details > summary")
    browser.wait("document.querySelector('.finding li')")
    assert listed(browser) == mine
    browser.click(".finding li a")  # to the case of this report
    browser.wait("document.querySelector('.case-view')")


# ----------------------------------------------------------------------------------------------------------- of behaviour


def otherwise() -> Any:
    both = [{"before": "(absent)", "after": '"b"', "case": "x"}, {"before": '"c"', "after": '"d"', "case": "y"}]
    return behaviour(
        changed("new", "turn/started", examples=both),
        changed("refused", "reply to newConversation", path="$"),
        single=[changed("value", "3 methods", methods=["a", "b", "c"], cases=[1], note="the client replies")],
        totals={"changed": 1, "unchanged": 1, "compared": 2, "findings": 3},
        ended_early=[{"case": "x", "version": "0.105.0", "ends_early_at": "line 7"}],
    )


def test_the_changes_of_frames_stand_by_what_changed_with_their_cases(browser: Browser, show: Show) -> None:
    sample, stories = everything()
    sample["drift"] = otherwise()
    show((sample, stories))
    assert browser.texts(".drift > summary") == ["Drift 0.92.0 \u2192 0.105.0, 1 of 2 cases changed"]
    panel(browser)
    assert browser.texts(".drifted .notice") == []
    assert browser.texts(".drift .tile") == ["2 \u2260 in several cases", "1 \u2260 in one case"]
    assert groups(browser) == [
        "\u25b8 refused 1 change it is refused",
        "\u25b8 new 1 change it is new",
        "\u25b8 value 1 change it is value",
    ]
    assert browser.texts(".finding .side") == [
        '\u2212 before: "yes"', '+ after: "no"', "", '+ after: "b"', '\u2212 before: "yes"', '+ after: "no"',
    ]  # fmt: skip
    browser.open_all()
    browser.js("document.querySelector('.drift').scrollIntoView()")  # what is far from the window has no rows
    browser.wait("document.querySelectorAll('.finding').length === 3")
    assert "line 7" in browser.texts(".drifted")[0]
    assert browser.texts(".finding")[2].startswith("3 methods $.params.x 1 case the client replies")
    search(browser, "elsewhere newconversation", "1 of 3 changes")
    browser.open_all()
    assert listed(browser)[-2:] == ["app_server/test_turns/red", "app_server/test_turns/elsewhere"]
    browser.click(".finding li a")
    browser.wait("location.hash.endsWith('red')")


def test_a_comparison_of_some_cases_names_the_expression_that_chose_them(browser: Browser, alone: Alone) -> None:
    alone(otherwise())
    assert "-k" not in browser.texts(".drifted .said")[0]
    alone({**otherwise(), "chosen": "test_turns and not <b>"})
    assert browser.texts(".drifted .said")[0].endswith("Only the cases of -k 'test_turns and not <b>' were run.")


@pytest.mark.parametrize("name", sorted(path.stem for path in PUBLISHED.glob("*0.9*-*.json")))
def test_the_published_drifts_are_shown_whole(browser: Browser, alone: Alone, name: str) -> None:
    found = json.loads((PUBLISHED / f"{name}.json").read_text())
    alone(found)
    number = len(found["findings"]) + sum(len(found.get(key, ())) for key in ("single", "racy"))
    assert browser.texts(".findings .count") == [f"{number} changes" if number != 1 else "1 change"]
    assert browser.texts(".drifted > .notice") == []
    assert browser.console() == []
