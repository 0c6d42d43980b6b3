"""`codex-replay run`: the suites, with a live display and the verdict; pytest does the work, in a process of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from harness.plugin.options import KEYS
from harness.plugin.progress import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable


class NoSuchSuite(click.UsageError):
    """A SUITE argument names nothing; the status is the one that pytest has for usage errors."""

    exit_code = 4


def suites_folder() -> Path:
    """Return the suites of the working directory, else those that are installed with this package."""
    here = Path("suites")
    if here.is_dir():
        return here
    installed = importlib.util.find_spec("suites")
    if installed is None or not installed.submodule_search_locations:
        raise NoSuchSuite("The suites are neither in this folder nor installed: install codex-replay again.")
    return Path(installed.submodule_search_locations[0])


def resolve(names: tuple[str, ...]) -> list[str]:
    """Return paths for SUITE arguments: a path, a node id, or the name of a suite; raises `NoSuchSuite`."""
    folder = suites_folder()
    found = []
    for name in names:
        path, colons, rest = name.partition("::")
        if os.path.exists(path):
            found.append(name)
        elif (folder / path).exists():
            found.append(f"{folder / path}{colons}{rest}")
        else:
            known = ", ".join(sorted(item.name for item in folder.iterdir() if item.is_dir() and not item.name.startswith("_")))
            raise NoSuchSuite(f"There is no suite {name!r}. The suites are {known}; a path of your own will do as well.")
    return found or [str(folder)]


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for key, (_, metavar, text) in reversed(KEYS.items()):
        command = click.option(f"--{key}", metavar=metavar, help=text)(command)
    return command


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@_options
@click.option("--backend-auth", metavar="FILE", help="The auth.json to ask a --backend URL with.")
@click.option("--backend-cost-ok", is_flag=True, help="A --backend on another host may be asked, and may cost money.")
@click.option("-n", "jobs", metavar="N", default="2", show_default=True, help="How many cases run at a time.")
@click.option("-k", "chosen", metavar="WORDS", help="Only the cases whose names fit, as pytest's -k.")
@click.option("--plain", is_flag=True, help="No live display: pytest's own output, as it comes.")
def command(
    suites: tuple[str, ...], jobs: str, chosen: str | None, plain: bool, backend_cost_ok: bool, **given: str | None
) -> None:
    """Run the suites (all, or those named) and print a verdict table.

    Exit status: 0 verified, 1 failed, 2 interrupted, 4 usage, 5 nothing verified.
    """
    arguments = [sys.executable, "-m", "pytest", *resolve(suites)]
    for name, value in given.items():
        if value is not None:
            arguments.append(f"--{name.replace('_', '-')}={value}")
    if backend_cost_ok:
        arguments.append("--backend-cost-ok")
    if jobs != "1" and _has_xdist():
        arguments += ["-n", jobs]
    if chosen:
        arguments += ["-k", chosen]
    live = not plain and sys.stdout.isatty()
    raise SystemExit(_run_live(arguments) if live else subprocess.call(arguments))


def _has_xdist() -> bool:
    from importlib.util import find_spec

    return find_spec("xdist") is not None


def _run_live(arguments: list[str]) -> int:
    """Run pytest with a progress bar; what it printed from the first failure on is shown when it has ended."""
    from rich.console import Console

    console = Console()
    read, write = os.pipe()
    environment = {**os.environ, VARIABLE: str(write)}
    child = subprocess.Popen(
        [*arguments, "-q", "--color=yes"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, pass_fds=(write,)
    )
    os.close(write)
    printed: list[bytes] = []
    assert child.stdout is not None
    reader = threading.Thread(target=_keep, args=(child.stdout, printed))
    reader.start()
    with open(read, encoding="utf-8") as events, contextlib.suppress(KeyboardInterrupt):
        _show(events, console)
    while True:
        try:
            status = child.wait()
            break
        except KeyboardInterrupt:  # pytest got it too, and ends its servers first
            continue
    reader.join()
    child.stdout.close()
    sys.stdout.buffer.write(_from_first_section(b"".join(printed)))
    sys.stdout.flush()
    return status


def _keep(stream: IO[bytes], printed: list[bytes]) -> None:
    printed.extend(iter(lambda: stream.read1(1 << 16), b""))  # type: ignore[attr-defined]


def _show(events: IO[str], console: object) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    assert isinstance(console, Console)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    failed = 0
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("collecting", total=None)
        for line in events:
            said = json.loads(line)
            if "collected" in said:
                progress.update(task, total=said["collected"], description="")
                continue
            name = said["case"].rsplit("/", 1)[-1]
            if said["outcome"] == "failed":
                failed += 1
                console.print(f"FAILED {name}", style="red", markup=False, highlight=False)
            progress.update(task, advance=1, description=name + (f"  ({failed} failed)" if failed else ""))


def _from_first_section(printed: bytes) -> bytes:
    """Leave out pytest's dots: begin at its first ruled heading, or show all if there is none (a usage error)."""
    lines = printed.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if b"=====" in line:
            return b"".join(lines[i:])
    return printed
