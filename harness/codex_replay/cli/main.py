"""The `codex-replay` command: each verb is a separate module, imported only when it is used."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

import click

from codex_replay.cli.io.interrupted import SENTENCE, STATUS
from codex_replay.cli.io.stdout import failure, for_people, patient

# verb -> (module below codex_replay.cli, one line of help); its attribute is `command`, or `group` if it has verbs of its own.
# Help is written here so that `--help` need not import every verb.
VERBS = {
    "record": ("record", "Record the traffic between a client and an app-server or a backend."),
    "replay": ("replay.command", "Play the recorded client against a server and compare the answers."),
    "cassette": ("cassette.group", "Show, check, compare and convert cassettes."),
    "codex": ("codex", "Install and find real Codex binaries."),
    "schema": ("schema", "Check, regenerate and document the vendored schema bundle."),
    "drift": ("drift.command", "Compare two Codex versions: the changes, and who they break."),
    "serve": ("serve", "Serve the fake Responses backend."),
    "connect": ("connect", "Use an app-server that speaks WebSocket as a program on stdio."),
    "init": ("init.command", "Try a subject, and write its configuration, CI workflow and known failures."),
    "run": ("run.command", "Run the suites and print a verdict table."),
    "report": ("report", "Open the report of a run, or merge several reports."),
    "doctor": ("doctor", "Check this environment and explain how to fix it."),
}


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


class LazyGroup(click.Group):
    """A group whose commands are imported at first use, so that `codex-replay record` starts immediately."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        If nobody reads the output (`>&-`, `| head`), the output is dropped, and the exit status stays correct.
        """
        if sys.stdout is None or sys.stdout is sys.__stdout__:  # otherwise it is the exception of a caller, who handles it
            sys.stdout = patient(sys.stdout)
        if sys.stderr is sys.__stderr__:
            sys.stderr = for_people(sys.stderr)
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()  # Python would do so at exit, and complain in words of its own
        except OSError as error:
            if error is not failure():
                raise
            click.echo(f"codex-replay: writing to stdout failed ({error.strerror}).", err=True)
            raise SystemExit(2) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the user named.

        After an interrupt, the exit status is 128 plus the number of the signal, as in shells, because status 1 is a verdict.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo(SENTENCE, err=True)
            raise SystemExit(STATUS) from None
        except FileNotFoundError:
            if _has_working_directory():
                raise
            click.echo("codex-replay: the working directory no longer exists; change to another directory.", err=True)
            raise SystemExit(2) from None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command `codex-replay NAME`.

        For an unknown NAME, suggest the most similar command; click itself would compare NAME only with the commands that
        are already loaded.
        """
        if args[0] not in VERBS:
            import difflib

            if near := difflib.get_close_matches(args[0], VERBS, 1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the verbs in the order of the table of verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb; return None for an unknown verb, so that click reports a usage error."""
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"codex_replay.cli.{VERBS[cmd_name][0]}")
        command: click.Command = getattr(module, "group", None) or module.command
        gc.enable()  # see entry.py
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of all verbs for `--help`, each with one line of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="codex-replay", prog_name="codex-replay")
def main() -> None:
    """Record real Codex traffic, replay it byte for byte, and check that clients still speak the protocol."""
