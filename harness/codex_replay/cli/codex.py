"""`codex-replay codex`: install the real Codex, add the data of a version, list the versions, print the path of a binary."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator

import click

from codex_replay.cli.codex_add import command as add_command
from codex_replay.cli.codex_add import remove as remove_command
from codex_replay.cli.codex_add import state
from codex_replay.cli.io.console import console, stoppable
from codex_replay.cli.io.stdout import for_programs
from codex_replay.protocol.versions import DEFAULT
from codex_replay.shell.codex.cache import cache_folder, find_installed, list_installed
from codex_replay.shell.codex.errors import CodexInstallError
from codex_replay.shell.codex.install import Step, ensure
from codex_replay.shell.files import version_data

# The number of bytes between two lines of plain progress.
_LINE_BYTES = 25_000_000
# The names of the stages in the progress bar; other stages get their own line.
_SHORT = {"resolve": "Looking up", "download": "Downloading", "check": "Checking", "unpack": "Unpacking"}


class _Failure(click.ClickException):
    """An error of the command: it prints a sentence on stderr, and exits with status 2."""

    exit_code = 2


@click.group()
def group() -> None:
    """Install, list and find the real Codex, and add the data of a version."""


@group.command()
@click.argument("version")
@click.option("--json", "as_json", is_flag=True, help="Print each step as one line of JSON.")
def install(version: str, as_json: bool) -> None:
    """Install Codex VERSION (such as 0.92.0) for this platform, and print the path of its binary.

    Downloads the npm package with your npm client, checks its SHA-512, and keeps only the files for this platform. Do
    nothing if Codex VERSION is installed and intact.
    """
    try:
        with stoppable(), _reporter(as_json) as report:
            path = ensure(version, report)
    except CodexInstallError as error:
        raise _failure(str(error), as_json) from None
    except KeyboardInterrupt:
        text = f"The install of Codex {version} was interrupted, and nothing was installed. Run the command again."
        raise _failure(text, as_json) from None
    if as_json:
        _emit({"event": "installed", "version": version, "path": str(path)})
    else:
        for_programs(str(path))


@group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each version.")
def list_(as_json: bool) -> None:
    """List the versions that are installed or added, with their data; mark damaged versions."""
    found = list_installed()
    without = sorted({*version_data.added()} - {it.version for it in found})
    for version in without:
        if as_json:
            _emit({"version": version, "state": state(version)})
        else:
            click.echo(f"{version:<12} no binary; {state(version)}")
    if not found and not as_json:
        click.echo(f"No Codex is installed in {cache_folder()}; `codex-replay codex install {DEFAULT}` installs one.", err=True)
    for it in found:
        if as_json:
            row = {"version": it.version, "triple": it.triple, "path": str(it.path), "bytes": it.size}
            _emit({**row, "problem": it.problem, "state": state(it.version)})
        else:
            note = f"  damaged: {it.problem}" if it.problem else f"  ({state(it.version)})"
            click.echo(f"{it.version:<12} {it.triple:<28} {it.size / 1e6:7.1f} MB  {it.path}{note}")


@group.command()
@click.argument("version")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the keys version and path.")
def path(version: str, as_json: bool) -> None:
    """Print the path of the installed binary of VERSION; exit status 2 if it is not installed."""
    try:
        found = find_installed(version)
    except CodexInstallError as error:
        raise _Failure(str(error)) from None
    if found is None:
        raise _Failure(f"Codex {version} is not installed in {cache_folder()}: run `codex-replay codex install {version}` first.")
    if as_json:
        _emit({"version": version, "path": str(found)})
    else:
        for_programs(str(found))


group.add_command(add_command)
group.add_command(remove_command)


def _failure(text: str, as_json: bool) -> _Failure:
    if as_json:
        _emit({"event": "error", "message": text})
    return _Failure(text)


def _emit(value: dict[str, object]) -> None:
    for_programs(json.dumps(value))


def _reporter(as_json: bool) -> contextlib.AbstractContextManager[Callable[[Step], None]]:
    if as_json:
        return contextlib.nullcontext(_json_lines())
    return _bar() if sys.stderr.isatty() else contextlib.nullcontext(_plain_lines())


def _json_lines() -> Callable[[Step], None]:
    due = _throttle(1_000_000)

    def report(step: Step) -> None:
        if due(step):
            row = {"event": step.stage, "text": step.text, "bytes": step.done}
            _emit(row if step.total is None else {**row, "total": step.total})

    return report


def _plain_lines() -> Callable[[Step], None]:
    due = _throttle(_LINE_BYTES)

    def report(step: Step) -> None:
        if due(step):
            done = f": {step.done / 1e6:.0f} MB" if step.stage == "download" and step.done else ""
            click.echo(f"{step.text}{done}", err=True)

    return report


def _throttle(every: int) -> Callable[[Step], bool]:
    """Return a filter for progress steps: it returns True for the first step of each stage, and after every `every` bytes of a
    download.
    """
    last: list[Step] = []

    def due(step: Step) -> bool:
        same = bool(last) and (last[0].stage, last[0].text) == (step.stage, step.text)
        if same and (step.stage != "download" or step.done - last[0].done < every):
            return False
        last[:] = [step]
        return True

    return due


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Step], None]]:
    """A progress bar on stderr; for a download of unknown size, the bar shows bytes and speed."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(20), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    err = console(sys.stderr)
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("Looking up", total=None)
        stage = ""

        def report(step: Step) -> None:
            nonlocal stage
            if step.stage != stage:
                stage = step.stage
                if stage not in _SHORT or stage == "download":
                    err.print(step.text)
                progress.reset(task, total=step.total, description=_SHORT.get(stage, "Waiting"))
            progress.update(task, completed=step.done, total=step.total)

        yield report
