"""Write the report of a comparison to a file: as Markdown, or as one HTML page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def write(path: str | None, form: Callable[[Any], str], report: dict[str, Any]) -> None:
    """Write one form of a report to the file that the user named; if the user named no file, do nothing.

    Raises ``OSError`` if the file cannot be written.
    """
    if path is not None:
        from codex_replay.shell.files.atomic import write_whole

        try:
            write_whole(path, form(report).encode())
        except OSError as error:
            error.filename = error.filename or path  # a full disk names none
            raise


def html_page(report: dict[str, Any]) -> str:
    """Return the report on a drift of schemas or of behaviour as one HTML page."""
    from codex_replay.report.page.build import drift_html  # not needed, and not loaded, where no page is written

    return drift_html(report)
