"""Write all files of one report together: traces, JUnit, Markdown, JSON, and the HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codex_replay.report import data
from codex_replay.report.junit import junit
from codex_replay.report.markdown import markdown
from codex_replay.report.traces import TraceText, read_traces, writing_traces

JUNIT, SUMMARY, PAGE = "junit.xml", "summary.md", "report.html"
NAMES = (data.REPORT, data.TRACES, JUNIT, SUMMARY, PAGE)


def write_all(folder: Path, report: data.Report, traces: Iterable[data.Trace | TraceText]) -> list[Path]:
    """Write a report into `folder`, which is created if necessary.

    Return the paths, report.json first; raises `OSError` if a file cannot be written.

    The files of an older report are removed first, so that no old verdict remains if writing fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_all(folder)
    from codex_replay.report.page.build import write_html

    reported = writing_traces(folder, traces)  # each is written and shown while it is at hand
    write_html(report, reported, folder / PAGE)
    for _ in reported:
        pass  # the page may not need them all
    data.write_whole(folder / JUNIT, junit(report))
    data.write_whole(folder / SUMMARY, markdown(report))
    data.write_report(folder, report)
    return [folder / name for name in NAMES]


def rewrite(folder: Path, report: data.Report) -> None:
    """Write a changed report into its folder, with the traces that are there; raises `OSError` if a file cannot be written.

    The cases of the report must be the same as in the folder.
    """
    from codex_replay.report.page.build import write_html

    write_html(report, read_traces(folder), folder / PAGE)
    data.write_whole(folder / SUMMARY, markdown(report))
    data.write_report(folder, report)


def remove_all(folder: Path) -> None:
    """Remove the files of an older report, also drafts of a killed run; raises `OSError` if a file cannot be removed."""
    for name in NAMES:
        for path in (folder / name, *folder.glob(f".{name}.*.draft")):
            path.unlink(missing_ok=True)
