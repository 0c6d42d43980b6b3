"""`codex-replay cassette lint`: check cassettes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from codex_replay.cli.cassette.options import JSON, LITERAL, redactor_of
from codex_replay.cli.io.console import Unable, aside, coloured, progress, sentences
from codex_replay.cli.io.stdout import coloured_line, for_programs
from codex_replay.core.text.escape import escape
from codex_replay.core.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codex_replay.shell.cassettes.lint import LintFinding, Report

#: The number of lines that the finding about several secrets of one kind names.
PLACES = 5


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...")
@JSON
@click.option(
    "--notes",
    is_flag=True,
    help="Also print notes: requests without a reply, truncated payloads, and errors of the side that --judge leaves out.",
)
@click.option(
    "--codex",
    metavar="V",
    help="Validate with the schema bundle of this version, or with your own bundle (default: the version in the header).",
)
@click.option(
    "--judge",
    type=click.Choice(["server", "client", "both"]),
    default="server",
    show_default=True,
    help="Only frames of this side must be valid; errors of the other side are notes.",
)
@LITERAL
@sentences
def lint(paths: tuple[str, ...], as_json: bool, notes: bool, codex: str | None, judge: str, literals: tuple[str, ...]) -> None:
    """Check cassettes: schema, numbering, exactness, footer, origin, replies, secrets, and each frame against the JSON schemas of
    Codex.

    All secrets of one kind in a file are one line of the output; --json lists each. The TEXT of a --literal counts as a
    secret, even if the cassette has it in chunks, escaped or compressed. Never print the TEXT of a --literal.

    For a folder, all *.ndjson files in it are checked. Exit status: 0 if no check fails, 1 if a check fails, 2 if a file cannot
    be read as a cassette.
    """
    from codex_replay.protocol.schema.bundle import BundleError
    from codex_replay.shell.cassettes.bundle_check import MISSING, bundle_checks, bundle_of
    from codex_replay.shell.cassettes.lint import find_files
    from codex_replay.shell.cassettes.lint import lint as check

    checks = bundle_checks(codex, judge)
    redactor = redactor_of(literals)
    try:
        if codex is not None:
            bundle_of(codex)
        with progress("frames checked") as shown:
            reports = [check(path, checks, shown.step, redactor) for path in find_files(paths, aside)]
    except BundleError as error:
        raise Unable(str(error)) from None
    found = (finding for report in reports for finding in report.findings)
    missing = list(dict.fromkeys(finding.message for finding in found if finding.check == MISSING))
    for text in missing:
        aside(text)
    if as_json:
        files = [{**asdict(report), "ok": report.ok} for report in reports]
        for_programs(json.dumps({"ok": all(report.ok for report in reports), "missing": missing, "files": files}, indent=2))
    else:
        for report in reports:
            _print_report(report, notes, MISSING)
        bad = sum(not report.ok for report in reports)
        verdict = f"{bad} with errors." if bad else "all sound."
        click.echo(f"{plural(len(reports), 'cassette')}, {plural(sum(report.frames for report in reports), 'frame')}: {verdict}")
    if any(report.unreadable for report in reports):
        raise SystemExit(2)
    if not all(report.ok for report in reports):
        raise SystemExit(1)


def _gathered(report: Report) -> Iterator[LintFinding]:
    """Yield the findings of a report; all secrets of one kind are one finding, with their number and first places."""
    from codex_replay.core.redact.streamed import findings_text
    from codex_replay.shell.cassettes.lint import remedy

    same: dict[str, list[LintFinding]] = {}
    for finding in sorted(report.findings, key=lambda finding: finding.line):
        if finding.kind is not None:
            same.setdefault(finding.kind, []).append(finding)
    for finding in report.findings:
        group = same.get(finding.kind or "", [finding])
        if len(group) == 1:
            yield finding
        elif finding is group[0]:
            lines = list(dict.fromkeys(str(each.line) for each in group))
            where = f"line{'s' if len(lines) > 1 else ''} {', '.join(lines[:PLACES])}"
            where += f" and {len(lines) - PLACES} more" if len(lines) > PLACES else ""
            text = f"{findings_text([finding.kind or ''] * len(group))} in {where}; {remedy(report.path, 'them')}"
            yield replace(finding, message=text)


def _print_report(report: Report, notes: bool, missing: str) -> None:
    """Print the findings of one cassette, except those of the check `missing`, which the caller prints once for all cassettes."""
    if report.unreadable:
        click.echo(f"codex-replay: {report.unreadable}", err=True)
    for finding in _gathered(report):
        if finding.level == "error" or (notes and finding.check != missing):
            frame = f" (frame {finding.frame})" if finding.frame is not None else ""
            colour = "red" if finding.level == "error" else "yellow"
            check = click.style(finding.check, fg=colour) if coloured() else finding.check
            coloured_line(f"{escape(report.path)}, line {finding.line}{frame}: {check}: {escape(finding.message)}")
