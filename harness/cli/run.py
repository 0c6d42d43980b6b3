"""`codex-replay run`: the suites, with a live display and the verdict; pytest does the work, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from harness.plugin.options import KEYS
from harness.plugin.places import PACKAGED, installed_suites
from harness.plugin.progress import LAST_WORDS, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: The exit status of a run that was interrupted, as pytest has it.
_INTERRUPTED = 2


class BadUse(click.UsageError):
    """What was asked for makes no sense; the status is the one that pytest has for usage errors."""

    exit_code = 4


class NoSuchSuite(BadUse):
    """A SUITE argument names nothing."""


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let what click itself refuses end with pytest's status too: 2 is that of a run that was interrupted."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise BadUse(error.format_message(), error.ctx) from None


def _jobs(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuse what pytest-xdist would take for no workers at all, or answer with its own usage."""
    if value not in ("auto", "logical") and (not value.isascii() or not value.isdigit() or int(value) == 0):
        raise BadUse(f"-n {value}: give the number of cases that shall run at a time, 1 or more, or auto.", ctx)
    return value


def resolve(names: tuple[str, ...]) -> list[str]:
    """Return paths for SUITE arguments: the name of a suite (or a path in one), a path, or a node id; raises `NoSuchSuite`.

    The suites of the working directory go before those that are installed.
    """
    folders = [folder for folder in (Path("suites"), installed_suites()) if folder.is_dir()]
    if not folders:
        raise NoSuchSuite("The suites are neither in this folder nor installed: install codex-replay again.")
    found = []
    for name in names:
        if not name:
            raise NoSuchSuite("A SUITE is an empty text; leave it out to run all of them.")
        path, colons, rest = name.partition("::")
        suite = next((folder / path for folder in folders if (folder / path).exists()), None)
        if suite is not None and not path.startswith((".", "/")):
            found.append(f"{suite}{colons}{rest}")
        elif os.path.exists(path):
            found.append(name)
        elif path.startswith("suites/") and (installed_suites().parent / path).exists():  # so a run calls an installed case
            found.append(str(installed_suites().parent / name))
        else:
            there = folders[-1].iterdir()
            known = ", ".join(sorted(item.name for item in there if item.is_dir() and not item.name.startswith("_")))
            raise NoSuchSuite(f"There is no suite {name!r}. The suites are {known}; a path of your own will do as well.")
    return found or [str(folders[0])]


def no_expression(chosen: str) -> str:
    """Say in a sentence why pytest would not read `chosen` after -k; it does so in a traceback, and with workers late."""
    from _pytest.mark.expression import Expression

    try:
        Expression.compile(chosen)
    except Exception as error:  # a SyntaxError, in earlier versions of pytest a ParseError
        why = str(error).replace(" (<pytest match expression>, line 1)", "")
        return f"-k {chosen!r} is no expression: {why}. Write names with and, or, not, as pytest's -k."
    return ""


def settings_of(paths: list[str]) -> list[str]:
    """Return the options that give installed suites a configuration of their own; none for suites of the working directory.

    Above an installed suite pytest would find the configuration of whatever project the environment lies in, or none. So these
    have packaged.ini, and the working directory's project for `[tool.codex-replay]` and for reports.
    """
    here = Path.cwd()
    places = [Path(path.partition("::")[0]).resolve() for path in paths]
    if not all(place.is_relative_to(installed_suites()) for place in places) or installed_suites() == here / "suites":
        return []
    root = next((folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()), here)
    return ["-c", str(PACKAGED), "--rootdir", str(root)]


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for key, (_, metavar, text) in reversed(KEYS.items()):
        command = click.option(f"--{key}", metavar=metavar, help=text)(command)
    return command


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@_options
@click.option("--backend-auth", metavar="FILE", help="The auth.json to ask a --backend URL with.")
@click.option("--backend-cost-ok", is_flag=True, help="A --backend on another host may be asked, and may cost money.")
@click.option("--update-baseline", is_flag=True, help="Write the file of --baseline anew from what fails.")
@click.option("-n", "jobs", metavar="N", default="2", show_default=True, callback=_jobs, help="How many cases run at a time.")
@click.option("-k", "chosen", metavar="WORDS", help="Only the cases whose names fit, as pytest's -k.")
@click.option("--plain", is_flag=True, help="No live display: pytest's own output, as it comes.")
@click.option("--strength", is_flag=True, help="Try the checks of the suite for proxies on broken proxies (docs/strength.md).")
@click.option("--variants", metavar="GLOB", help="With --strength: only the variants of these names.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The verdict and the path of report.json as JSON on stdout, all else on stderr; with --strength its result.",
)
def command(
    suites: tuple[str, ...],
    jobs: str,
    chosen: str | None,
    plain: bool,
    backend_cost_ok: bool,
    update_baseline: bool,
    strength: bool,
    variants: str | None,
    as_json: bool,
    **given: str | None,
) -> None:
    """Run the suites (all, or those named) and print a verdict table.

    Exit status: 0 verified, 1 failed, 2 interrupted, 4 usage, 5 nothing verified.
    """
    if chosen and (why := no_expression(chosen)):
        raise BadUse(why)
    if variants is not None and not strength:
        raise BadUse("--variants belongs to --strength.")
    paths = resolve(suites)
    arguments = [sys.executable, "-m", "pytest", *paths, *settings_of(paths)]
    for name, value in given.items():
        if value is not None:
            arguments.append(f"--{name.replace('_', '-')}={value}")
    if backend_cost_ok:
        arguments.append("--backend-cost-ok")
    if update_baseline:
        arguments.append("--update-baseline")
    if strength:
        from harness.cli.strength import run_strength

        some = [*(("-k", chosen) if chosen else ()), *((f"--variants={variants}",) if variants else ())]
        raise SystemExit(run_strength([*arguments, *some], jobs, as_json, plain))
    if jobs != "1" and _has_xdist():
        arguments += ["-n", jobs]
    if chosen:
        arguments += ["-k", chosen]
    if as_json:
        raise SystemExit(_run_json(arguments))
    live = not plain and sys.stdout.isatty()
    raise SystemExit(run_live(arguments) if live else run_plain(arguments))


def _has_xdist() -> bool:
    from importlib.util import find_spec

    return find_spec("xdist") is not None


def _run_json(arguments: list[str]) -> int:
    """Run pytest with all that it prints on stderr, and say on stdout what came of it: {"verdict", "exit", "report"}.

    Verdict and report are null where there was no case to judge.
    """
    read, write = os.pipe()
    environment = {**os.environ, LAST_WORDS: "1", VARIABLE: str(write)}
    child = subprocess.Popen([*arguments, "-q"], stdout=2, env=environment, pass_fds=(write,))
    os.close(write)
    found: dict[str, object] = {"verdict": None, "exit": None, "report": None}
    with ending(child) as noted, open(read, encoding="utf-8") as events:
        for line in events:
            said = json.loads(line)
            found.update({key: said[key] for key in ("verdict", "report") if key in said})
        found["exit"] = status = wait(child, noted)
    click.echo(json.dumps(found))
    return status


def run_plain(arguments: list[str]) -> int:
    """Run pytest with all that it prints as it comes, and return its status."""
    environment = {**os.environ, LAST_WORDS: "1"}
    if sys.stdout.isatty():
        child = subprocess.Popen(arguments, env=environment)
        with ending(child) as noted:
            return wait(child, noted)
    # Through our own stdout, for that is patient: a reader that goes (`| head`) does not take the verdict with it.
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    reader = threading.Thread(target=_pass_on, args=(child.stdout,))
    reader.start()
    with ending(child) as noted:
        status = wait(child, noted)
    reader.join()
    child.stdout.close()
    return status


def _pass_on(stream: IO[bytes]) -> None:
    for piece in iter(lambda: stream.read1(1 << 16), b""):  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):  # pytest must not wait for a disk that is full: the status tells its verdict
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


@contextlib.contextmanager
def ending(child: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Hand a TERM on to pytest, which ends what it has started: told to end, a run leaves nothing behind.

    An interrupt pytest gets too, and has its servers to end and its verdict to tell: here it is only noted, in what is yielded.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait(child: subprocess.Popen[bytes], noted: Sequence[int] = ()) -> int:
    """Return the exit status of pytest, as a shell tells it; `noted` are the interrupts meanwhile.

    Python itself ends with 1 when it is interrupted before it has begun, which would be the verdict of a run that has failed.
    """
    status = child.wait()
    if noted and status == 1:
        return _INTERRUPTED
    return status if status >= 0 else 128 - status


def run_live(arguments: list[str]) -> int:
    """Run pytest with a progress bar; what it printed from the first failure on is shown when it has ended."""
    from rich.console import Console

    console = Console()
    read, write = os.pipe()
    environment = {**os.environ, LAST_WORDS: "1", VARIABLE: str(write)}
    child = subprocess.Popen(
        [*arguments, "-q", "--color=yes"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, pass_fds=(write,)
    )
    os.close(write)
    printed: list[bytes] = []
    assert child.stdout is not None
    reader = threading.Thread(target=_keep, args=(child.stdout, printed))
    reader.start()
    with ending(child) as noted:
        with open(read, encoding="utf-8") as events:
            _show(events, console)
        status = wait(child, noted)
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
            if "case" not in said:
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
