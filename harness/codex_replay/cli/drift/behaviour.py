"""`codex-replay drift --behaviour FROM TO`: compare the behaviour of two Codex versions by running the suite on both."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from codex_replay.cli.drift.pages import html_page, write
from codex_replay.cli.io.console import Unable, aside, console, stoppable
from codex_replay.cli.io.stdout import for_programs
from codex_replay.cli.io.suite_names import no_expression, resolve
from codex_replay.core.text.escape import escape
from codex_replay.protocol import data_tables
from codex_replay.protocol.behaviour.findings import doubtful, outcome
from codex_replay.protocol.behaviour.markdown import markdown as to_markdown
from codex_replay.protocol.behaviour.markdown import place, summary, to_json, which
from codex_replay.protocol.recordings.compare import ruler
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.codex.cache import check_version
from codex_replay.shell.codex.errors import CodexInstallError
from codex_replay.shell.codex.install import ensure
from codex_replay.shell.codex.suite_run import SUITE, CannotRun, Run, kept, load, nodes

#: Seconds between two lines of progress if there is no terminal.
EVERY = 30.0
#: So many findings are shown; the rest is in the JSON and the Markdown.
SHOWN = 40
STOPPED = "The comparison was interrupted. Complete runs are kept; rerun the command to continue."


def run(
    from_: str,
    to: str,
    as_json: bool,
    *,
    markdown: str | None = None,
    html: str | None = None,
    cassettes: str | None = None,
    chosen: str = "",
    wait: float = 8.0,
    jobs: int = 2,
) -> int:
    """Compare the behaviour of two versions; return the exit status: 0 if the behaviour is the same, 1 if it changed.

    Raises `Unable` (exit status 2) with a sentence if the comparison fails. `chosen` is an expression for pytest's option `-k`.
    `wait` is the number of seconds that a case waits for one frame, and `jobs` is the number of cases that run at the same time.
    """
    if cassettes is not None:
        raise Unable("--cassettes is only for the comparison of schemas; remove --cassettes, or remove --behaviour.")
    for given in (from_, to):
        try:
            check_version(given)
        except CodexInstallError:
            raise Unable(
                f"--behaviour needs two versions with installable binaries, and {given} is not a version: give full numbers, "
                f"such as "
                f"{DEFAULT}. (To compare bundles, remove --behaviour.)"
            ) from None
    by = next((each for each in (from_, to) if data_tables.has("normalise", each)), None)
    if by is None:
        why = data_tables.without(("normalise",), from_, f"two runs of Codex {from_} would differ in every time and path")
        raise Unable(f"{why} Compare Codex {from_} with a version that has the table: {DEFAULT}.")
    if note := ruler(from_, to)[1]:
        aside(note)
    if why := no_expression(chosen):
        raise Unable(why)
    try:
        with stoppable(), _Display() as display:
            for version in dict.fromkeys((from_, to)):
                display.stage(f"Codex {version}", unit="bytes")
                ensure(version, lambda step: display.show(step.done, step.total))
            found = _compare(from_, to, by, display, chosen, wait, jobs)
    except (CodexInstallError, CannotRun) as error:
        raise Unable(str(error)) from None
    except KeyboardInterrupt:
        raise Unable(STOPPED) from None
    for path, form in ((markdown, to_markdown), (html, html_page)):
        try:
            write(path, form, found)
        except OSError as error:
            raise Unable(f"{path} cannot be written ({error.strerror}); choose another path.") from None
    if as_json:
        for_programs(to_json(found).removesuffix("\n"))
    else:
        _print(found)
    return 1 if found["findings"] or found["single"] else 0


def _compare(from_: str, to: str, by: str, display: _Display, chosen: str, wait: float, jobs: int) -> dict[str, Any]:
    """Run the suite on both versions and compare the runs; each run is normalised with the table of the version `by`."""
    suites = Path(resolve((SUITE,))[0]).resolve().parent
    runs, folders = [], []
    for version, number, what in ((from_, 1, ""), (from_, 2, ", a second time as control"), (to, 1 if to != from_ else 3, "")):
        display.stage(f"Running {f'the cases of -k {chosen!r}' if chosen else 'the suite'} on {version}{what}")
        one = Run(suites, version, number, chosen, (), wait, jobs)
        folders.append(kept(one, display.show))
        display.stage(f"Reading the frames of {version}")
        runs.append(load(folders[-1], by, display.step))
    before, control, after = runs
    display.stage("Comparing", len(before))
    found = outcome(before, control, after, (from_, to), display.step, chosen=chosen)
    retried = nodes(folders[2], doubtful(found))
    if retried:
        display.stage(f"Running {len(retried)} cases on {to} a second time", len(retried))
        folder = kept(Run(suites, to, 2 if to != from_ else 4, "", retried, wait, jobs), display.show)
        second = load(folder, by)
        display.stage("Comparing", len(before))
        found = outcome(before, control, after, (from_, to), display.step, second, chosen=chosen)
    return found


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table

    out = console()
    findings = [*found["findings"], *found["single"]]
    if findings:
        table = Table(box=None, pad_edge=False)
        for name in ("what", "cases", "method", "where", "before", "after", "which"):
            table.add_column(name, justify="right" if name == "cases" else "left", overflow="fold")
        for finding in findings[:SHOWN]:
            example = finding["examples"][0]
            texts = [finding["method"], place(finding), example["before"], example["after"], which(finding, found["cases"], 1)]
            short = [text if len(text) <= 60 else f"{text[:57]}..." for text in texts]
            table.add_row(finding["rule"], str(finding["count"]), *(escape(text) for text in short))
        out.print(table)
        if len(findings) > SHOWN:
            out.print(f"and {len(findings) - SHOWN} more; --json, --markdown FILE and --html FILE list all of them.")
    out.print(summary(found))


class _Display:
    """Show the progress on stderr: a bar on a terminal, otherwise a line for each stage and a line every `EVERY` seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._on = sys.stderr.isatty()
        self._clock, self._last_line = clock, clock()
        self._what, self._unit, self._done = "", "", 0
        self._total: int | None = None
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console(sys.stderr), transient=True, disable=not self._on)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> _Display:
        self._bar.start()
        return self

    def __exit__(self, *of: object) -> None:
        self._bar.stop()

    def stage(self, what: str, total: int | None = None, unit: str = "cases") -> None:
        """Show the current stage and its number of steps."""
        self._what, self._done, self._total, self._unit, self._last_line = what, 0, total, unit, self._clock()
        if self._on:
            self._bar.reset(self._task, total=total, description=what)
        else:
            click.echo(f"{what} ...", err=True)

    def show(self, done: int, total: int | None) -> None:
        """Show the number of finished steps."""
        self._done, self._total = done, total
        self._bar.update(self._task, completed=done, total=total)
        self._report_on()

    def step(self) -> None:
        """Show that one more step is finished."""
        self._done += 1
        self._bar.advance(self._task)
        self._report_on()

    def _report_on(self) -> None:
        now = self._clock()
        if not self._on and now - self._last_line >= EVERY:
            self._last_line = now
            of = "" if self._total is None else f" of {self._total}"
            click.echo(f"{self._what}: {self._done}{of} {self._unit} done", err=True)
