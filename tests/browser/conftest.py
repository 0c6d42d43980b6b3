"""A headless Chromium for each worker, and what its tests do with it. Without one these tests fail: they are no tests else."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, Browser
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from codex_replay.report.data import Report, Trace
from codex_replay.report.page.build import drift_html, write_html

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --disable-extensions --lang=en"
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def program(names: tuple[str, ...]) -> str:
    """The path of the first of these programs, or a failure that says what is missing."""
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.fail(
        f"There is no {names[0]} here, in which the report page is to be looked at: apt-get install chromium chromium-driver."
    )


@contextmanager
def start(*flags: str) -> Iterator[Browser]:
    """Start a browser, with further flags."""
    options = Options()
    options.binary_location = program(PROGRAMS)
    service = Service(program(("chromedriver",)))
    folder = tempfile.mkdtemp(prefix="codex-replay-browser-")
    for flag in [*FLAGS.split(), f"--user-data-dir={folder}", *flags]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with pytest.MonkeyPatch.context() as patch:
        # The driver is on this machine, whatever proxy the machine has.
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            patch.delenv(name, raising=False)
        patch.setenv("SE_OFFLINE", "true")
        driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(PATIENCE)
    driver.set_page_load_timeout(PATIENCE)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def session_browser() -> Iterator[Browser]:
    with start() as browser:
        yield browser


@pytest.fixture
def browser(session_browser: Browser) -> Iterator[Browser]:
    """The worker's browser, with nothing in it of the test before."""
    session_browser.emulate()
    session_browser.driver.get("about:blank")
    for log in ("browser", "performance"):
        session_browser.driver.get_log(log)
    yield session_browser
    session_browser.driver.get("about:blank")


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[..., Path]:
    """Write a report's page and open it: `show((report, stories), hash="#case=...", change=lambda text: text)`."""

    def shown(sample: tuple[Report, list[Trace]], *, change: Callable[[str], str] | None = None) -> Path:
        path = write_html(*sample, tmp_path / f"report-{len(os.listdir(tmp_path))}.html")
        if change is not None:  # a page made worse on purpose
            before = path.read_text()
            path.write_text(change(before))
            assert path.read_text() != before, "nothing was changed, so nothing is shown by this test"
        browser.open(path.as_uri())
        return path

    return shown


@pytest.fixture
def alone(browser: Browser, tmp_path: Path) -> Callable[..., None]:
    """Write the page of a drift and open it, perhaps made worse on purpose."""

    def shown(found: Any, change: Callable[[str], str] | None = None) -> None:
        text = drift_html(found)
        worse = change(text) if change else text
        assert change is None or worse != text
        (tmp_path / "drift.html").write_text(worse, "ascii")
        browser.open((tmp_path / "drift.html").as_uri())

    return shown


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured, from whichever worker it comes."""
    for report in terminalreporter.getreports("passed"):
        for name, sentence in report.user_properties:
            if name == "measured" and report.when == "call":
                terminalreporter.write_line(f"measured: {sentence}")
