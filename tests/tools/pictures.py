"""Take the pictures of docs/images: `PYTHONPATH=tests/browser python -m tests.tools.pictures REPORT.html FOLDER [CASE]`.

Each picture is what a reader sees first: a window of 1400x1000, one of a phone, and both in the dark.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.conftest import start

WINDOWS = {"desktop": (1400, 1000), "phone": (390, 844)}


def take(page: Path, folder: Path, case: str = "") -> None:
    """Write a picture of the page, or of one of its cases, for each window, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    with start() as browser:
        for name, (width, height) in WINDOWS.items():
            for dark in (False, True):
                browser.emulate(width=width, height=height, dark=dark, still=True)
                browser.open(page.resolve().as_uri())
                if case:
                    browser.case(case)
                shade = "dark" if dark else "light"
                browser.driver.save_screenshot(str(folder / f"{'case' if case else page.stem}-{name}-{shade}.png"))


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
