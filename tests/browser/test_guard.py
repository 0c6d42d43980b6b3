"""What the page must never do: run its data, speak to anybody, hide a character; and what it must be for every reader.

Each check is shown a page made worse on purpose, and must see it.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser

from codex_replay.report.page.build import drift_html, write_cassette_html, write_html
from tests.report.report_sample import (
    HOSTILE,
    behaviour,
    behaviour_of,
    case,
    changed,
    drift_of,
    everything,
    frame,
    hostile,
    story,
)

Show = Callable[..., Path]
RED = "app_server/test_turns/red"
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


# --------------------------------------------------------------------------------------------------------- untrusted data

#: Elements that only data could have brought, attributes that run, and what a script of theirs would have left.
INTRUDERS = """
const found = [];
if (window.pwned !== undefined) found.push(`a script of the data ran: ${window.pwned}`);
const foreign = 'img, svg, iframe, object, embed, link:not([rel=icon]), base, meta[http-equiv=refresh]';
for (const each of document.querySelectorAll(foreign))
    found.push(`an element of the data: ${each.tagName}`);
for (const each of document.querySelectorAll('*')) for (const {name, value} of each.attributes)
    if (name.startsWith('on') || /^\\s*javascript:/i.test(value)) found.push(`an attribute that runs: ${name}`);
for (const each of document.querySelectorAll('a[href]'))
    if (!each.getAttribute('href').startsWith('#')) found.push(`a link out: ${each.href}`);
return [...new Set(found)];
"""

#: Text as a reader sees it must hold none of these: each has to be shown by its number. (They cannot all be told by the driver.)
UNSEEN = """
const found = document.body.innerText.match(/[\\u202a-\\u202e\\u2066-\\u2069\\u2028\\u2029\\0\\x1b]|\\p{Cs}/gu) || [];
return found.map(each => `unseen in the text: ${each.codePointAt(0).toString(16)}`);
"""


def through_all(browser: Browser) -> list[str]:
    """Open everything of the page, the first case too, and return what should not be there."""
    found: list[str] = []
    for place in ("", "case"):
        if place:
            browser.first_case()
        browser.open_all()
        for tabs in (1, 2, 0):  # each way to show a frame
            browser.js("document.querySelectorAll('.tabs').forEach(e => e.children[arguments[0]]?.click())", tabs)
            found += browser.js(INTRUDERS)
            found += browser.js(UNSEEN)
    return sorted(set(found))


def test_hostile_data_stay_text(browser: Browser, show: Show) -> None:
    show(hostile())
    assert through_all(browser) == []
    assert browser.console() == []
    # It is there to be read, with every hidden character by its number.
    told = "".join(browser.js("return [...document.querySelectorAll('.rest > .message')].map(e => e.textContent)"))
    assert told.startswith("</script><script>window.pwned=1</script><!--<script>U+2028U+2029<img src=")
    assert told.endswith("$titleU+202EcbaU+2066U+0000U+001B[31mU+D800\U0001f600")
    assert "U+202E" in browser.driver.title


def test_a_hostile_cassette_stays_text(browser: Browser, tmp_path: Path) -> None:
    _, (told,) = hostile()
    write_cassette_html(told, {told["case"]: told["case"]}, tmp_path / "c.html")
    browser.open((tmp_path / "c.html").as_uri())
    browser.open_all()
    assert browser.js(INTRUDERS) == []
    assert browser.console() == []


@pytest.mark.parametrize("make", [drift_of, behaviour_of], ids=["schemas", "behaviour"])
def test_a_hostile_drift_stays_text(browser: Browser, tmp_path: Path, make: Callable[[str], Any]) -> None:
    (tmp_path / "d.html").write_text(drift_html(make(HOSTILE)))
    browser.open((tmp_path / "d.html").as_uri())
    browser.open_all()
    assert browser.js(INTRUDERS) == []
    assert browser.js(UNSEEN) == []
    assert browser.console() == []
    assert len(browser.texts(".finding")) >= 1
    # A careless page shows that all of this would be seen, in the rows of the drift themselves.
    (tmp_path / "d.html").write_text(unsafe((tmp_path / "d.html").read_text()))
    browser.open((tmp_path / "d.html").as_uri())
    browser.open_all()
    assert any("of the data" in each for each in browser.js(INTRUDERS))
    assert browser.js("return document.querySelectorAll('.finding img').length") > 0


def unsafe(text: str) -> str:
    """The page as a careless author would have it: no policy, and markup out of strings."""
    text = POLICY.sub("", text)
    return text.replace(
        "nodes.push(document.createTextNode(text.slice(from, found.index)))",
        "nodes.push(document.createRange().createContextualFragment(text.slice(from, found.index)))",
    )


def test_a_page_that_makes_markup_of_data_is_seen(browser: Browser, show: Show) -> None:
    show(hostile(), change=unsafe)
    assert any("of the data" in each for each in through_all(browser))


def test_a_page_that_hides_characters_is_seen(browser: Browser, show: Show) -> None:
    show(hostile(), change=lambda text: POLICY.sub("", text).replace("if (text.search(HIDDEN) < 0)", "if (true)"))
    assert any(each.startswith("unseen in the text") for each in through_all(browser))


def test_the_policy_alone_stops_what_a_mistake_would_let_in(browser: Browser, show: Show) -> None:
    """The last line of defence: even code that tries cannot make markup of a string, run an attribute, or reach anybody."""
    show(everything())
    for attempt in (
        "document.body.innerHTML = '<img src=x onerror=window.pwned=1>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "document.write('<script>window.pwned=1</script>')",
        "const s = document.createElement('script'); s.text = 'window.pwned=1'; document.body.append(s)",
    ):
        refused = browser.js(f"try {{ {attempt}; return 'done'; }} catch (error) {{ return 'refused'; }}")
        assert refused == "refused", attempt
    assert browser.js("return window.pwned === undefined") is True


# -------------------------------------------------------------------------------------------------------------- network


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, and remembers what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: Any, **more: Any) -> None:
                super().__init__(*args, directory=str(folder), **more)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called there
                asked.append(self.path)

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def requests(browser: Browser) -> list[str]:
    """Everything that the page asked the network for, by the browser's own log and by the page's own entries."""
    logged = []
    for entry in browser.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            logged.append(message["params"]["request"]["url"])
    entries = browser.js("return performance.getEntriesByType('resource').map(e => e.name)")
    return sorted({url for url in [*logged, *entries] if not url.startswith(("data:", "about:"))})


def test_no_request_leaves_the_page(browser: Browser, tmp_path: Path, server: Server) -> None:
    sample, stories = hostile()
    text = json.dumps([sample, stories]).replace("http://127.0.0.1:9", server.address)
    write_html(*json.loads(text), tmp_path / "report.html")
    browser.open(f"{server.address}/report.html")
    through_all(browser)
    assert requests(browser) == [f"{server.address}/report.html"]
    assert set(server.asked) == {"/report.html"}


def test_a_file_opened_from_the_disk_asks_for_nothing_either(browser: Browser, show: Show) -> None:
    path = show(everything())
    through_all(browser)
    assert requests(browser) == [path.as_uri()]


def test_a_request_would_be_seen(browser: Browser, tmp_path: Path, server: Server) -> None:
    path = write_html(*everything(), tmp_path / "report.html")
    path.write_text(POLICY.sub("", path.read_text()).replace("<noscript>", '<img src="/spy.png"><noscript>', 1))
    browser.open(f"{server.address}/report.html")
    browser.wait("performance.getEntriesByType('resource').length > 0")
    assert f"{server.address}/spy.png" in requests(browser)
    assert "/spy.png" in server.asked


def test_the_policy_stops_requests_that_a_script_would_make(browser: Browser, tmp_path: Path, server: Server) -> None:
    write_html(*everything(), tmp_path / "report.html")
    browser.open(f"{server.address}/report.html")
    browser.driver.execute_async_script(
        "const done = arguments[1]; const image = new Image(); image.src = arguments[0] + '/spy.png';"
        "fetch(arguments[0] + '/spy').then(() => done('fetched'), () => done('refused'))",
        server.address,
    )
    assert set(server.asked) == {"/report.html"}


# ------------------------------------------------------------------------------------------------------------- contrast

CONTRAST = """
const parse = text => {
    const [, kind, inside] = text.match(/^(rgba?|color)\\((.*)\\)$/);
    const [r, g, b, a = 1] = inside.match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
    return kind === 'color' ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
const light = colour => colour.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const ground = node => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
};
const poor = new Map();
let seen = 0;
for (const node of document.querySelectorAll('body *')) {
    const text = [...node.childNodes].filter(each => each.nodeType === 3).map(each => each.data).join('').trim();
    if (!text || !node.checkVisibility() || node.closest('.unseen, script, noscript, style, option')) continue;
    seen += 1;
    const back = ground(node);
    const [a, b] = [light(over(parse(getComputedStyle(node).color), back)), light(back)];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.set(`${node.tagName}.${node.className}`, `${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
}
return [seen, [...poor]];
"""


def behaving() -> Any:
    """The same, with a drift of behaviour."""
    sample, stories = everything()
    noise = [{"rule": "order", "method": "a", "path": "", "cases": 1}]
    found = behaviour(changed("refused", "reply to x", methods=["a", "b"]), changed("new", "turn/started"), noise=noise)
    return {**sample, "drift": found}, stories


def views(browser: Browser) -> Iterator[str]:
    """The overview, then a case, with everything open."""
    browser.open_all()
    yield "overview"
    browser.case(RED)
    browser.open_all()
    yield "case"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("sample", [everything, behaving], ids=["usual", "behaviour"])
def test_every_text_can_be_read(browser: Browser, show: Show, dark: bool, sample: Callable[[], Any]) -> None:
    browser.emulate(dark=dark)
    show(sample())
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == grounds["dark" if dark else "light"]
    for view in views(browser):
        seen, poor = browser.js(CONTRAST)
        assert seen > 60, view
        assert poor == [], view


def test_pale_text_would_be_seen(browser: Browser, show: Show) -> None:
    show(everything(), change=lambda text: POLICY.sub("", text).replace("--muted: #525c68", "--muted: #9aa3ad"))
    assert browser.js(CONTRAST)[1]


# --------------------------------------------------------------------------------------------------------------- a phone

#: Elements that stick out of the window, unless something around them scrolls on its own.
STICKS_OUT = """
const room = document.documentElement.clientWidth; // innerWidth grows on a phone when the page does
const wide = document.documentElement.scrollWidth > room ? [`the page: ${document.documentElement.scrollWidth}`] : [];
for (const node of document.querySelectorAll('main *')) {
    const box = node.getBoundingClientRect();
    if (!node.checkVisibility() || box.width === 0 || box.right <= room + 1) continue;
    if (node.closest('.scroll, .unseen, .arrow, .names')) continue;
    wide.push(`${node.tagName}.${node.className}: ${Math.round(box.right)}`);
}
return [...new Set(wide)].slice(0, 10);
"""
#: A word that nothing breaks by itself.
LONG = "x" * 1200


def long() -> Any:
    """A report of long words, where a name, a message, a frame or a path is one."""
    sample, stories = everything()
    key = f"{LONG}/{LONG}/{LONG}"
    one = case(
        LONG, suite=LONG, module=LONG, title=LONG, outcome="failed", message=LONG, details=LONG, expected=LONG, actual=LONG + "y",
        spec={"check": LONG, "document": LONG, "section": LONG, "line": 1, "text": LONG}, again=LONG, recorded=[LONG], story=key,
    )  # fmt: skip
    bad = frame(1, {"method": LONG, "params": {LONG: LONG}}, mark="different", expected=json.dumps({LONG: "y"}), what=LONG,
                paths=[f"$.{LONG}"], bound=[f"{LONG} = x"], masked=[f"$.{LONG}"], conn=1)  # fmt: skip
    other = frame(2, {"method": "x"}, seam="http", conn=2)
    sample["cases"].insert(0, one)
    more = {"command": LONG, "subject": {"app-server": LONG}, "strength": {LONG: [{LONG: LONG}], "variants": 1, "killed": 1}}
    more |= {"coverage": {LONG: {LONG: {"case": LONG}}}, "drift": drift_of(LONG)}
    return {**sample, **more}, [story(key, [bad, other], cassette=LONG), *stories]


def long_behaviour() -> Any:
    """The same with a drift of behaviour."""
    sample, stories = long()
    return {**sample, "drift": behaviour_of(LONG)}, stories


@pytest.mark.parametrize("width", [360, 760, 1280])
@pytest.mark.parametrize(
    "sample", [everything, behaving, long, long_behaviour], ids=["usual", "behaviour", "long words", "long words, behaviour"]
)
def test_nothing_sticks_out_of_the_window(browser: Browser, show: Show, width: int, sample: Callable[[], Any]) -> None:
    browser.emulate(width=width, height=740)
    show(sample())
    browser.open_all()
    assert browser.js(STICKS_OUT) == []
    browser.first_case()
    browser.open_all()
    assert browser.js(STICKS_OUT) == []


def test_a_page_too_wide_for_a_phone_would_be_seen(browser: Browser, show: Show) -> None:
    browser.emulate(width=360, height=740)
    show(everything(), change=lambda text: POLICY.sub("", text).replace("<style>", "<style>.verdict{min-width:500px}", 1))
    assert browser.js(STICKS_OUT)


def test_a_phone_shows_the_lifelines_beside_the_text(browser: Browser, show: Show) -> None:
    browser.emulate(width=360, height=740)
    show(everything())
    browser.case(RED)
    boxes = browser.js("return [...document.querySelectorAll('.lifelines i')].map(e => e.getBoundingClientRect().left)")
    text = browser.js("return document.querySelector('.frame .what').getBoundingClientRect().left")
    assert len(boxes) == 3
    assert sorted(boxes) == boxes
    assert boxes[-1] < text < 100
    # Expected stands above actual, there is no room beside.
    browser.click(".line-head", 4)
    left, right = browser.js(
        "return [...document.querySelector('.body .pair.differs').children].map(e => e.getBoundingClientRect().top)"
    )
    assert left < right


# ---------------------------------------------------------------------------------------------------------------- motion


def test_nothing_moves_for_who_wants_it_still(browser: Browser, show: Show) -> None:
    moving = (
        "return [...document.querySelectorAll('*')].filter(e => {const s = getComputedStyle(e);"
        "return parseFloat(s.transitionDuration) > 0 || s.animationName !== 'none' || s.scrollBehavior === 'smooth'}).length"
    )
    browser.emulate(still=True)
    show(everything())
    assert browser.js(moving) == 0
    browser.emulate(still=False)
    assert browser.js(moving) > 0  # that it would be seen
