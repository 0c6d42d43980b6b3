"""Output functions for all verbs: error messages, colours (only on a terminal), and progress (only for long tasks)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, NoReturn, ParamSpec, TextIO, TypeVar, cast

import click

from codex_replay.cli.io.stdout import Coloured, failure
from codex_replay.core.text.numbers import parse_seconds
from codex_replay.core.text.visible import visible
from codex_replay.shell.cassettes.file import CassetteError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

P = ParamSpec("P")
R = TypeVar("R")

#: How wide lines are where there is no terminal to ask.
PLAIN_WIDTH = 160
#: Seconds until a command that still works reports its progress.
PATIENCE = 1.0
#: Seconds between two lines of progress if stderr is no terminal.
EVERY = 30.0

#: What a command says of a frame whose values it cannot walk.
TOO_DEEP = "A frame is nested too deeply for this command (hundreds of levels); read it with `codex-replay cassette show`."


class Place(click.Path):
    """The type of a path on the command line; an empty text is an error, because a shell variable may be unset."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; raise a usage error for an empty text."""
        if value == "":
            self.fail("the path is empty; name a path, or remove the option.", param, ctx)
        return super().convert(value, param, ctx)


class Unable(click.ClickException):
    """A command cannot do its work: the program prints one sentence on stderr and exits with status 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the sentence of the error to stderr."""
        click.echo(f"codex-replay: {self.message}", file=file or sys.stderr)


def console(stream: TextIO | None = None) -> Console:
    """Return a console of the package rich for `stream` (stdout if None).

    The console uses colours on a terminal, unless NO_COLOR is set, and no colours in a pipe.
    """
    # Not needed, and not loaded, by a verb that writes JSON.
    from rich.console import Console

    class Escaping(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(visible(text), **options)

    target = stream or sys.stdout
    width = None if target.isatty() else PLAIN_WIDTH
    file = cast("IO[str]", Coloured(target))
    return Escaping(file=file, highlight=False, emoji=False, markup=False, soft_wrap=True, width=width)


def as_seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Return the value of an option as seconds; raise a usage error if the value is not a number of seconds."""
    try:
        return parse_seconds(value)
    except ValueError as error:
        raise click.UsageError(f"{param.opts[0]} {value}: {error}", ctx) from None


def coloured() -> bool:
    """Return True if output on stdout may have colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def sentences(command: Callable[P, R]) -> Callable[P, R]:
    """End a command without a traceback: print a sentence for an I/O error, and clean up after Ctrl-C."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _told_to_end():
                return command(*args, **kwargs)
        except CassetteError as error:
            raise Unable(str(error)) from None
        except OSError as error:
            if error is failure():
                raise  # reported in one place for all verbs
            where = f"{error.filename}: " if error.filename else ""
            raise Unable(f"{where}{error.strerror or error}; check the path and its permissions.") from None
        except RecursionError:
            raise Unable(TOO_DEEP) from None

    return wrapped


@contextmanager
def _told_to_end() -> Iterator[None]:
    """Raise an exception at SIGTERM and SIGHUP, as Python does at an interrupt, so that child processes are ended.

    The signal that came determines the exit status.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_DFL)  # a second Ctrl-C: the user does not want to wait
        raise SystemExit(128 + number)

    # One that is ignored (nohup) stays so.
    before = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in before:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def stoppable() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that the block ends what it has started and removes its unfinished files."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Progress:
    """The progress of a long task on stderr: on a terminal, a line after one second; otherwise, a line every half minute."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._shown = False
        self._on = sys.stderr.isatty()
        self._next = time.monotonic() + (PATIENCE if self._on else EVERY)

    def expect(self, total: int) -> None:
        """Set the total number of units, once it is known."""
        self._total = total

    def step(self, by: int = 1) -> None:
        """Report that `by` more units (frames or bytes) of the task are done."""
        self._done += by
        if (now := time.monotonic()) < self._next:
            return
        share = f" ({min(100, 100 * self._done // self._total)} %)" if self._total else ""
        if not self._on:
            self._next = now + EVERY
            aside(f"{visible(self._what)}: {self._done}{share}")
            return
        self._next = now + 0.2
        self._shown = True
        self._write(f"\r\x1b[K{visible(self._what)}: {self._done}{share}")

    def clear(self) -> None:
        """Remove the progress line from the terminal."""
        if self._shown:
            self._write("\r\x1b[K")

    @staticmethod
    def _write(text: str) -> None:
        Coloured(sys.stderr).write(text)
        sys.stderr.flush()


def aside(text: str) -> None:
    """Print a note on stderr, separate from the output of a command."""
    click.echo(f"codex-replay: {text}", err=True)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Progress]:
    """Show progress on stderr inside the `with` block."""
    shown = Progress(what, total)
    try:
        yield shown
    finally:
        shown.clear()
