"""`codex-replay doctor`: check this environment and explain how to fix it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from codex_replay.cli.io.console import console, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.plugin.base.places import installed_suites
from codex_replay.shell.doctor import DoctorFinding, examine


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--real", is_flag=True, help="Also require the programs that only the real Codex needs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the keys doctor, well and checks.")
@sentences
def command(real: bool, as_json: bool) -> None:
    """Check this environment and explain how to fix it.

    Exit status: 0 if all required parts are installed, 1 if a part is missing or broken. A missing program that is
    optional, or that only the real Codex needs, does not change the exit status. With --real, the programs for the real
    Codex are required, too.
    """
    needed = {"always", "real"} if real else {"always"}
    found: list[DoctorFinding] = []
    with _patience(not as_json):
        for finding in examine(installed_suites()):
            found.append(finding)
            if not as_json:
                _write_out(finding, finding.need in needed)
    ill = [finding for finding in found if not finding.well and finding.need in needed]
    if as_json:
        checks = [_row(finding, finding.need in needed) for finding in found]
        for_programs(json.dumps({"doctor": 1, "well": not ill, "checks": checks}, indent=2))
    elif ill:
        console().print(
            f"{len(ill)} of {len(found)} checks failed: {', '.join(finding.name for finding in ill)}.", style="bold red"
        )
    else:
        console().print("Every required part is present.", style="bold green")
    raise SystemExit(1 if ill else 0)


def _row(finding: DoctorFinding, counts: bool) -> dict[str, object]:
    status = "ok" if finding.well else ("broken" if counts else "absent")
    fix = None if finding.well else finding.mend
    return {"name": finding.name, "need": finding.need, "status": status, "said": finding.said, "mend": fix}


def _write_out(finding: DoctorFinding, counts: bool) -> None:
    word, style = ("ok", "green") if finding.well else (("BROKEN", "bold red") if counts else ("absent", "yellow"))
    out = console()
    out.print(word.ljust(7), style=style, end="")
    out.print(f"{finding.name:<11} {finding.said}")
    if not finding.well and finding.mend:
        out.print(f"{'':<18} fix: {finding.mend}")


@contextmanager
def _patience(shown: bool) -> Iterator[None]:
    """Show a progress message on a terminal, because hashing binaries and starting pytest take a while."""
    if not (shown and sys.stderr.isatty()):
        yield
        return
    with console(sys.stderr).status("looking"):
        yield
