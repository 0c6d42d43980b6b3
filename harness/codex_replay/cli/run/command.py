"""`codex-replay run`: define the options, and run pytest with them in a separate process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from codex_replay.cli.io.stdout import for_programs
from codex_replay.cli.io.suite_names import BadUse, no_expression, resolve
from codex_replay.cli.run.child import started, wait
from codex_replay.cli.run.display import run_live
from codex_replay.cli.run.parts import default_jobs, only_ours, parts
from codex_replay.core.text.numbers import whole_number
from codex_replay.plugin.base.configuration import BadConfiguration, find_root, read
from codex_replay.plugin.base.option_table import KEYS, OTHERS
from codex_replay.plugin.base.places import PACKAGED, SUITES_PLUGIN, installed_suites
from codex_replay.plugin.base.progress import LAST_WORDS, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

#: Printed before a run of all suites.
HOW_LONG = (
    "Running all suites: about two minutes on two idle cores. Name a suite to run less: app_server, backend, editor_client, "
    "lite_client, proxy, schema."
)
#: Printed before a run that tests no program of the user, such as a run in the wrong folder of a repository.
OURS_ONLY = (
    "No proxy or client is configured in {} or named by an option: this run tests only the programs of codex-replay. To test "
    "yours, run `codex-replay init` in its folder, or give --proxy, --editor-client or --lite-client."
)
#: The statuses that end a run of several parts: interrupted, and ended by a signal.
STOPS = (2, 130, 143)


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Usage errors of click get the exit status of pytest's usage errors, because status 2 means an interrupted run."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise BadUse(error.format_message(), error.ctx) from None


def _jobs(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the value of `-n` before pytest-xdist reads it.

    pytest-xdist would take 0 as "no workers", and would refuse other wrong values with pytest's usage message.
    """
    if value not in (None, "auto", "logical") and not whole_number(value):
        raise BadUse(f"-n {value}: give the number of parallel cases, 1 or more, or auto.", ctx)
    return value


def settings_of(paths: list[str]) -> list[str]:
    """Return the pytest options that load the plugin of the suites.

    Installed suites get a separate configuration file, because pytest searches for a configuration in the parent folders of
    a suite. Nevertheless, the table `[tool.codex-replay]` and the report folder of the working directory are used for
    installed suites.
    """
    here = Path.cwd()
    places = [Path(path.partition("::")[0]).resolve() for path in paths]
    if not all(place.is_relative_to(installed_suites()) for place in places) or installed_suites() == here / "suites":
        return ["-p", SUITES_PLUGIN]
    return ["-c", str(PACKAGED), "--rootdir", str(find_root(here))]


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for key, (metavar, text) in reversed(OTHERS.items()):
        command = click.option(f"--{key}", metavar=metavar or None, is_flag=not metavar, help=text)(command)
    for key, (_, metavar, text) in reversed(KEYS.items()):
        command = click.option(f"--{key}", metavar=metavar, help=text)(command)
    return command


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@_options
@click.option(
    "-n",
    "jobs",
    metavar="N",
    callback=_jobs,
    help="The number of parallel cases. Default: up to 4 for the proxy suite if the run starts the proxy, otherwise 2.",
)
@click.option("-k", "chosen", metavar="WORDS", help="Run only the cases whose names match, like pytest's -k.")
@click.option("--plain", is_flag=True, help="Show pytest's output instead of the live display.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the verdict and the path of report.json as JSON on stdout, and everything else on stderr.",
)
def command(
    suites: tuple[str, ...],
    jobs: str | None,
    chosen: str | None,
    plain: bool,
    as_json: bool,
    **named: Any,
) -> None:
    """Run the named suites and print a verdict table.

    Without SUITE arguments, run the suites for the configured proxies and clients, or all suites if nothing is configured.

    Exit status: 0 verified, 1 failed, 2 interrupted, 4 usage, 5 nothing verified, 143 ended by SIGTERM.
    """
    if chosen and (why := no_expression(chosen)):
        raise BadUse(why)
    given = {name.replace("_", "-"): value for name, value in named.items()}
    flags = [f"--{name}" for name, (metavar, _) in OTHERS.items() if not metavar and given.pop(name)]
    here = Path.cwd()
    try:
        own = read(find_root(here), KEYS)
        planned = parts(suites, given, own, here)
    except BadConfiguration as error:
        raise BadUse(str(error)) from None
    if planned[0].suites == ():
        click.echo(HOW_LONG, err=True)
    if only_ours(suites, given, own, here):
        click.echo(OURS_ONLY.format(here), err=True)
    distributed = jobs != "1" and _has_xdist()
    if distributed and os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        flags += ["-p", "xdist"]
    if chosen:
        flags += ["-k", chosen]
    live = not plain and sys.stdout.isatty()
    status = 0
    for part in planned:
        if not suites and part.suites:
            click.echo(f"Running {', '.join(part.suites)}, as the project's configuration says.", err=True)
        paths = resolve(part.suites)
        words = [f"--{name}={value}" for name, value in {**given, **part.options}.items() if value is not None]
        workers = ["-n", jobs or str(default_jobs(part, given, own))] if distributed else []
        arguments = [sys.executable, "-P", "-m", "pytest", *paths, *settings_of(paths), *words, *workers, *flags]
        ended = _run_json(arguments) if as_json else run_live(arguments) if live else run_plain(arguments)
        status = status or ended
        if ended in STOPS:
            break
    raise SystemExit(status)


def _has_xdist() -> bool:
    from importlib.util import find_spec

    return find_spec("xdist") is not None


def _run_json(arguments: list[str]) -> int:
    """Run pytest with its output on stderr, and print the result on stdout: a JSON object with the keys "verdict", "exit" and
    "report".

    If no case ran, the keys "verdict" and "report" are null.
    """
    read, write = os.pipe()
    environment = {**os.environ, LAST_WORDS: "1", VARIABLE: str(write)}
    found: dict[str, object] = {"verdict": None, "exit": None, "report": None}
    with started([*arguments, "-q"], stdout=2, env=environment, pass_fds=(write,)) as child:
        os.close(write)
        with open(read, encoding="utf-8") as events:
            for line in events:
                event = json.loads(line)
                found.update({key: event[key] for key in ("verdict", "report") if key in event})
        found["exit"] = status = wait(child)
    for_programs(json.dumps(found))
    return status


def run_plain(arguments: list[str]) -> int:
    """Run pytest with its output unchanged, and return its exit status."""
    environment = {**os.environ, LAST_WORDS: "1"}
    if sys.stdout.isatty():
        with started(arguments, env=environment) as child:
            return wait(child)
    # Through our own stdout, for that is patient: a reader that goes (`| head`) does not take the verdict with it.
    with started(arguments, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None
        reader = threading.Thread(target=_pass_on, args=(child.stdout,))
        reader.start()
        status = wait(child)
    reader.join()
    child.stdout.close()
    return status


def _pass_on(stream: IO[bytes]) -> None:
    for piece in iter(lambda: stream.read1(1 << 16), b""):  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):  # pytest must not wait for a full disk: the exit status carries the verdict
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
