"""The browser as the tests use it: one page, asked by scripts and pressed by keys."""

from __future__ import annotations

import time
from typing import Any

import pytest
from selenium import webdriver

#: How long to wait for the page to be in some state, in seconds: against hangs, on a machine that does much else.
PATIENCE = 60.0


class Browser:
    """The browser with one page in it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def js(self, script: str, *args: Any) -> Any:
        """What a script says; `return` it."""
        return self.driver.execute_script(script, *args)

    def wait(self, script: str, *args: Any) -> Any:
        """Wait until an expression is true, and return it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self.js(f"return {script}", *args)
            if found:
                return found
            if time.monotonic() > deadline:
                pytest.fail(f"this never came true: {script}\nconsole: {self.driver.get_log('browser')}")
            time.sleep(0.02)

    def emulate(self, *, width: int = 1280, height: int = 900, dark: bool = False, still: bool = False) -> None:
        """Be a window of this size, of someone who likes it dark, or without motion."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, address: str) -> None:
        """Open a page and wait until it can be used."""
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait("document.documentElement.dataset.ready")

    def case(self, number: str) -> None:
        """Open a case of the page by its address, and wait until its story is there."""
        self.js(
            "delete document.documentElement.dataset.shown; location.hash = '';"
            "setTimeout(() => { location.hash = 'case=' + encodeURIComponent(arguments[0]); }, 0)",
            number,
        )
        self.wait("document.documentElement.dataset.shown")

    def first_case(self) -> None:
        """Open the first case of the list, whatever its name, and wait until its story is there."""
        self.js("delete document.documentElement.dataset.shown; document.getElementById('cases').scrollIntoView()")
        self.click(".case a")  # which is not there while the list is far from the window
        self.wait("document.documentElement.dataset.shown")

    def keys(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that are shown, as words with one space between them."""
        shown = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).map(e => e.innerText)"
        return [" ".join(text.split()) for text in self.js(shown, selector)]

    def rows(self, selector: str) -> list[list[str]]:
        """The texts of the cells of all rows that are shown."""
        shown = (
            "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())"
            ".map(e => [...e.children].map(cell => cell.innerText))"
        )
        return [[" ".join(text.split()) for text in row] for row in self.js(shown, selector)]

    def click(self, selector: str, number: int = 0) -> None:
        """Click an element."""
        self.wait("document.querySelectorAll(arguments[0]).length > arguments[1]", selector, number)
        self.js("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, number)

    def open_all(self) -> None:
        """Open whatever can be opened: parts, rows, frames."""
        folds = ("details:not([open]) > summary", ".group-head[aria-expanded=false]")
        for selector in (*folds, ".more[aria-expanded=false]", ".line-head[aria-expanded=false]", folds[0]):
            for _ in range(4):  # parts hold parts
                self.js("document.querySelectorAll(arguments[0]).forEach(e => e.click())", selector)
                # A part is built when its opening is told, which comes a little later.
                self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 0))")
            # What is packed is there later still.
            self.wait("![...document.querySelectorAll('.drifted > .empty')].some(e => e.textContent === 'Opening ...')")
        self.wait("[...document.querySelectorAll('details[open]')].every(e => e.children.length > 1)")

    def console(self) -> list[str]:
        """What the console has said since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]
