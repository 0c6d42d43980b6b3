"""`codex-replay report`: open the report of a run, or merge several reports."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

from codex_replay.cli.io.console import Place, Unable, progress, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.core.text.numbers import plural
from codex_replay.report import data
from codex_replay.report.files import PAGE, write_all
from codex_replay.report.merge import Part, merge, traces
from codex_replay.report.traces import finite, read_traces

#: The default folder of reports.
FOLDER = Path("reports")
STATUS = {"verified": 0, "failed": 1, "nothing verified": 5}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def group() -> None:
    """Open the report of a run, or merge several reports."""


@group.command("open")
@click.argument("folder", metavar="[DIR]", type=Place(path_type=Path), required=False)
@click.option("--full", is_flag=True, help="Write the page of the report again, with the frames of every passed case.")
@click.option("--json", "as_json", is_flag=True, help="Print the path of the report as JSON, and do not open a browser.")
@sentences
def open_report(folder: Path | None, full: bool, as_json: bool) -> None:
    """Show a report in the browser: the report in DIR, otherwise the newest report in reports/.

    If the computer has no browser, print the path of the report.

    Exit status: 0, or 2 if no report was found.
    """
    place = folder or _newest()
    report = _read(place)
    page = (place / PAGE).resolve()
    if full or not page.exists():
        from codex_replay.report.page.build import write_html

        try:
            write_html(report, read_traces(place), page, full=full)
        except data.BadReport as error:
            raise Unable(str(error)) from None
    if as_json:
        for_programs(json.dumps({"page": str(page), "report": str(page.with_name(data.REPORT)), "verdict": report["verdict"]}))
        return
    click.echo(str(page))
    if not _show(page.as_uri()):
        click.echo("No browser was opened, because none was found or there is no display: open this file in a browser.", err=True)


def _newest() -> Path:
    found = [path.parent for path in FOLDER.glob(f"*/{data.REPORT}")]
    if not found:
        raise Unable(f"There is no report below {FOLDER}/; run `codex-replay run` first, or name the folder.")
    return max(found, key=lambda path: (path / data.REPORT).stat().st_mtime_ns)


def _show(url: str) -> bool:
    """Open a page in a graphical browser; return False if no browser is available."""
    display = sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    with contextlib.suppress(webbrowser.Error):
        return display and webbrowser.open(url)
    return False


@group.command("merge")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=Place(path_type=Path))
@click.option("--out", required=True, metavar="DIR", type=Place(path_type=Path), help="The folder of the merged report.")
@click.option(
    "--strength",
    metavar="FILE",
    type=Place(path_type=Path),
    help="Add a strength.json, the result of measuring the suite for proxies.",
)
@click.option("--drift", metavar="FILE", type=Place(path_type=Path), help="Add the output of `drift --json`.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@sentences
def merge_reports(folders: tuple[Path, ...], out: Path, strength: Path | None, drift: Path | None, as_json: bool) -> None:
    """Merge the reports in several folders into one report, for example of several shards, machines, profiles or Codex versions.

    If several reports contain the same case, the worst verdict of the case counts, and the merged report lists every
    verdict. If the program under test, the Codex version or the profile differs, two cases with one name count as different
    cases. Exit status, as for `run`: 0 verified, 1 failed, 5 nothing verified. Exit status 2: a folder contains no valid
    report.
    """
    parts = _parts(folders, out)
    words = ["codex-replay", "report", "merge", *map(str, folders), "--out", str(out)]
    report = merge(parts, shlex.join(words))
    if strength is not None:
        report["strength"] = _object(strength)
    if drift is not None:
        report["drift"] = _object(drift)
    try:
        with progress("traces merged") as shown:
            path, *others = write_all(out, report, _reporting_progress(parts, shown))
    except data.BadReport as error:
        raise Unable(str(error)) from None
    found = data.sums(report["cases"])
    if as_json:
        result = {"verdict": report["verdict"], "report": str(path), "runs": len(report.get("runs", [])), "sums": found}
        for_programs(json.dumps(result))
    else:
        runs = plural(len(report.get("runs", [])), "run")
        click.echo(f"{report['verdict'].upper()}: {plural(found['cases'], 'case')} of {runs}, {_counts(found)}.")
        click.echo(f"Report: {path}")
        click.echo(f"        and {', '.join(sorted(each.name for each in others))} beside it")
    raise SystemExit(STATUS[report["verdict"]])


def _parts(folders: tuple[Path, ...], out: Path) -> list[Part]:
    places = [folder.resolve() for folder in folders]
    if out.resolve() in places:
        raise Unable(f"{out} is one of the reports to merge, and would be overwritten; choose another folder for --out.")
    for i, place in enumerate(places):
        if place in places[:i]:
            raise Unable(f"{folders[i]} is given twice; give each report once.")
    return [Part(folder, _read(folder)) for folder in folders]


def _read(folder: Path) -> data.Report:
    if folder.is_file():
        raise Unable(
            f"{folder} is a file, not a report folder; give the folder that --report wrote, which contains {data.REPORT}."
        )
    try:
        return data.read_report(folder)
    except data.BadReport as error:
        raise Unable(str(error)) from None
    except RecursionError:
        raise Unable(f"{folder / data.REPORT} is nested too deeply for a report; run the suite again.") from None


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unable(f"{path} is not a JSON object; give the output of the command with the option --json.")
    clean: dict[str, Any] = finite(found)
    return clean


def _reporting_progress(parts: list[Part], shown: Any) -> Any:
    for trace in traces(parts):
        shown.step()
        yield trace


def _counts(found: data.Sums) -> str:
    names = ("passed", "failed", "known", "skipped")
    return ", ".join(f"{found[name]} {name}" for name in names if found[name]) or "none"  # type: ignore[literal-required]
