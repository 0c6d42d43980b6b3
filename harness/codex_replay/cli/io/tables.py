"""The option `--codex V`: the Codex version whose tables are used if the version of the recording has no tables."""

from __future__ import annotations

import click

from codex_replay.cli.io.console import Unable
from codex_replay.protocol import data_tables


def _with_table(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and (why := data_tables.unavailable("normalise", value)):
        raise Unable(f"--codex: {why}")
    return value


def note_with_option(note: str) -> str:
    """Return the sentence `note` about missing tables, followed by the advice to use the option `--codex`."""
    return f"{note} `--codex V` uses the table of V."


CODEX = click.option(
    "--codex",
    metavar="V",
    callback=_with_table,
    help="Normalise with the tables of this Codex version (default: the recording's).",
)
