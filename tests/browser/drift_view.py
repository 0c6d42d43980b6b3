"""A drift in the browser, as its tests use it: opened, read and searched; and a drift with a change of every sort."""

from __future__ import annotations

from typing import Any

from browsing import Browser

from tests.report.report_sample import drift, drifted


def panel(browser: Browser) -> None:
    """Open the drift in a report, and wait until it is there."""
    browser.click(".drift > summary")
    browser.wait("document.querySelector('.drifted') && !document.querySelector('.drifted').textContent.startsWith('Opening')")


def groups(browser: Browser) -> list[str]:
    return browser.texts(".group-head")


def listed(browser: Browser) -> list[str]:
    """The places and cases of findings; what is outside the window has no text to be seen there."""
    parts = "[...e.children].map(each => each.textContent).join(' ')"
    found: list[str] = browser.js(f"return [...document.querySelectorAll('.finding li')].map(e => {parts})")
    return found


def search(browser: Browser, text: str, count: str) -> None:
    put = "const e = document.querySelector('.findings input'); e.value = arguments[0]; e.dispatchEvent(new Event('input'))"
    browser.js(put, text)
    browser.wait("document.querySelector('.findings .count').textContent === arguments[0]", count)


def mixed() -> Any:
    """A drift with a change of every sort."""
    item = {"type": "ThreadItem", "rule": "value-gone", "what": "old", "path": "$.params.item"}
    places = [
        {"kind": "server-notification", "method": f"item/{name}", "path": "$.params.item"} for name in ("started", "completed")
    ]
    return drift(
        drifted("thread/new", cls="additive", rule="method-new", sentence="The method can be sent now."),
        drifted("sendUserTurn", rule="method-gone", sentence="The server no longer knows the method and answers with an error."),
        drifted("turn/start", cls="additive", rule="property-new", path="$.params.effort", what="effort"),
        drifted("turn/start", path="$.params.input", before="string", after="array"),
        drifted("item/started", sender="server", places=places, **item),
        uncompared=["mine.json has no results."],
    )


def without_policy(text: str, old: str, new: str) -> str:
    """The page with another script, which its policy would not let run."""
    assert old in text
    start = text.index("<meta http-equiv")
    return (text[:start] + text[text.index(">", start) + 1 :]).replace(old, new, 1)
